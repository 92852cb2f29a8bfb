#include "rewrite/order_convolutions.h"

#include "rewrite/rebuild_graph.h"

namespace stitch {
namespace {

constexpr const char* kConvolution = "aten.convolution.default";
constexpr const char* kPooling = "aten.max_pool2d_with_indices.default";

// Terms of a sum for which the library's error is less than twice that with channels first: with
// channels last it adds all of them into one number.  (oneDNN 3.12: 1.9 times at 576, 2.6 at 1152.)
constexpr int64_t kMostTerms = 576;

bool is_call(const Node& node, const char* name) {
  return node.op == OpKind::k_library && node.name == name;
}

// Of an image [batch, channels, height, width].
std::vector<Dim> channels_last(const std::vector<Dim>& shape) {
  const Dim& channels = shape[1];
  return {shape[1] * shape[2] * shape[3], 1, shape[3] * channels, channels};
}

bool has_channels_last(const TensorType& type) {
  return type.rank() == 4 && type.strides == channels_last(type.shape);
}

// weight: [channels out, channels in of a group, height, width]
bool has_few_terms(const TensorType& weight) {
  const Dim terms = weight.shape[1] * weight.shape[2] * weight.shape[3];
  return terms.is_constant() && terms.value() <= kMostTerms;
}

// Is it, or a result of it, a call that yields channels last?
bool yields_channels_last(const Builder& b, NodeId id) {
  const Node& node = b[id];
  return (node.op == OpKind::k_get || is_call(node, kConvolution)) && has_channels_last(node.type);
}

// Behind pointwise values and copies of the same shape.
bool comes_from_convolution(const Builder& b, NodeId id) {
  const std::vector<Dim> shape = b[id].type.shape;
  for (;;) {
    if (yields_channels_last(b, id)) return true;
    const Node& node = b[id];
    if (family(node) != Family::kPointwise && node.op != OpKind::k_layout) return false;
    if (b[node.inputs[0]].type.shape != shape) return false;
    id = node.inputs[0];
  }
}

// The operands, the first laid out anew.
std::vector<NodeId> take_channels_last(Builder& b, const RewriteSite& site) {
  std::vector<NodeId> inputs = site.inputs;
  inputs[0] = b.with_strides(inputs[0], channels_last(b[inputs[0]].type.shape));
  return inputs;
}

NodeId yield_channels_last(Builder& b, const RewriteSite& site, std::vector<NodeId> inputs) {
  Node node = site.node;
  node.type.strides = channels_last(node.type.shape);
  return b.with_strides(b.copy(node, std::move(inputs)), site.node.type.strides);
}

NodeId order_call(Builder& b, const RewriteSite& site) {
  const Node& node = site.node;
  const bool is_image = !site.inputs.empty() && b[site.inputs[0]].type.rank() == 4;
  if (is_image && is_call(node, kConvolution)) {
    if (site.strides_matter || has_channels_last(node.type)) return {};
    if (!has_few_terms(b[site.inputs[1]].type)) return {};
    return yield_channels_last(b, site, take_channels_last(b, site));
  }
  if (is_image && is_call(node, kPooling)) {
    if (!comes_from_convolution(b, site.inputs[0])) return {};
    return b.copy(node, take_channels_last(b, site));
  }
  if (node.op != OpKind::k_get || site.strides_matter) return {};
  const Node& call = b[site.inputs[0]];
  const bool is_ordered = is_call(call, kPooling) && has_channels_last(b[call.inputs[0]].type) &&
                          node.type.rank() == 4 && !has_channels_last(node.type);
  return is_ordered ? yield_channels_last(b, site, site.inputs) : NodeId();
}

}  // namespace

Graph order_convolutions(const Graph& graph) { return rebuild_graph(graph, order_call); }

}  // namespace stitch
