#include "rewrite/rewrite_graph.h"

#include "rewrite/rebuild_graph.h"

namespace stitch {
namespace {

// oneDNN adds all terms into one number where channels lie last, else those of 16 channels each:
// the error is 1.4 times eager's with 32 channels, 1.7 with 48, 1.9 to 2.0 with 64 [M, 2026-11].
constexpr int64_t kMostChannels = 48;
// Of so few places a product takes 0.15 to 0.75 of a convolution's time; of fewer 0.1 to 0.85 with
// the copies that it costs where its neighbours keep eager's layout [M, 2026-11].
constexpr int64_t kFewPlaces = 16, kFewestPlaces = 9;

// From [batch, channels, rows, columns] to [batch, rows, columns, channels], and back.
const std::vector<int64_t> kToLast = {0, 2, 3, 1}, kToFirst = {0, 3, 1, 2};

DimList strides_of_last(const DimList& shape) {
  return pick(contiguous_strides(pick(shape, kToLast)), kToFirst);
}

bool lies_last(const TensorType& type) {
  return type.rank() == 4 && type.strides == strides_of_last(type.shape) &&
         type.strides != contiguous_strides(type.shape);
}

bool is_convolution(const Node& node) { return node.name == "aten.convolution.default"; }

struct Laying {
  const Graph& graph;
  const bool always;
  const std::vector<bool> is_demanded = find_demanded(graph);
  NodeList last = NodeList(graph.nodes.size());  // by old node
};

// An old node with channels last, if it is there so or lies so.
NodeId last_of(Builder& b, Laying& laying, const RewriteSite& site, NodeId old) {
  NodeId& last = laying.last[old.index()];
  if (!last.valid() && lies_last(laying.graph[old].type))
    last = b.permute(site.made[old.index()], kToLast);
  return last;
}

// The rows of channels times the weights.
NodeId multiply(Builder& b, const RewriteSite& site, NodeId x) {
  const DimList shape = pick(site.node.type.shape, kToLast);
  for (int d : {1, 2})
    if (const int64_t step = site.node.ints[d - 1]; step != 1) x = b.slice(x, d, 0, shape[d], step);
  const Dim rows = element_count({shape.begin(), shape.end() - 1});
  const Dim from = b[x].type.shape.back(), to = shape.back();
  const NodeId weight = b.permute(b.reshape(site.inputs[1], {to, from}), {1, 0});
  const TensorType type = contiguous_type(site.node.type.dtype, {rows, to});
  x = b.reshape(b.made_call("aten.mm.default", {b.reshape(x, {rows, from}), weight}, type), shape);
  return site.inputs.size() > 2 ? b.pointwise(OpKind::k_add, {x, site.inputs[2]}) : x;
}

NodeId convolve(Builder& b, Laying& laying, const RewriteSite& site) {
  const Node& node = site.node;
  if (node.type.dtype != DType::kF32 || node.ints.size() != 4) return {};
  const DimList& shape = laying.graph[node.inputs[0]].type.shape;
  const DimList& weight = laying.graph[node.inputs[1]].type.shape;
  const Dim places = node.type.shape[2] * node.type.shape[3];
  const auto is_kept = [&](NodeId id) {
    return laying.is_demanded[id.index()] && !lies_last(laying.graph[id].type) && !places.is(1);
  };
  const bool pads = node.ints[2] != 0 || node.ints[3] != 0;
  const bool is_product = weight[1] == shape[1] && (weight[2] * weight[3]).is(1) && !pads;
  const bool pays_copies = is_product && places.is_at_most(kFewestPlaces);
  if (!pays_copies && (is_kept(site.id) || is_kept(node.inputs[0]))) return {};
  const NodeId x = last_of(b, laying, site, node.inputs[0]);
  if (is_product && (x.valid() || laying.always || places.is_at_most(kFewPlaces)))
    return multiply(b, site, x.valid() ? x : b.permute(site.inputs[0], kToLast));
  const bool is_exact = laying.always || weight[1].is_at_most(kMostChannels);
  if (is_product || !is_exact || shape[1].is(1)) return {};
  NodeList inputs = site.inputs;
  if (x.valid()) inputs[0] = b.permute(x, kToFirst);
  inputs[0] = b.with_layout(inputs[0], strides_of_last(shape));
  if (!weight[1].is(1)) inputs[1] = b.with_layout(inputs[1], strides_of_last(weight));
  Node call = node;
  call.type.strides = strides_of_last(node.type.shape);
  return b.permute(b.copy(call, inputs), kToLast);
}

// Of elements at the same place, or at places and channels that are counted.
NodeId compute(Builder& b, Laying& laying, const RewriteSite& site) {
  const Node& node = site.node;
  const bool is_pointwise = family(node) == Family::kPointwise;
  NodeList inputs = site.inputs;
  bool is_known = false;
  for (size_t i = 0; i < inputs.size(); ++i) {
    DimList shape = b[inputs[i]].type.shape;
    if (shape.empty()) continue;
    const NodeId last = last_of(b, laying, site, node.inputs[i]);
    is_known |= last.valid() && (!is_pointwise || shape == node.type.shape);
    shape.insert(shape.begin(), 4 - shape.size(), 1);
    inputs[i] = last.valid() ? last : b.permute(b.reshape(inputs[i], shape), kToLast);
  }
  if (!is_known) return {};
  Node moved = node;
  moved.type.shape = pick(node.type.shape, kToLast);
  if (node.op == OpKind::k_pad)
    moved.dims = pick(node.dims, kToLast);
  else if (!is_pointwise)
    moved.ints = {kToFirst[node.ints[0]]};
  return b.copy(moved, inputs);
}

NodeId find_last(Builder& b, Laying& laying, const RewriteSite& site) {
  const Node& node = site.node;
  if (node.type.rank() != 4) return {};
  if (is_convolution(node)) return convolve(b, laying, site);
  if (node.op == OpKind::k_layout) return last_of(b, laying, site, node.inputs[0]);
  const bool counts =
      node.op == OpKind::k_slice || node.op == OpKind::k_pad || node.op == OpKind::k_cat;
  return counts || family(node) == Family::kPointwise ? compute(b, laying, site) : NodeId();
}

}  // namespace

Graph lay_channels_last(const Graph& graph, const std::string& layout) {
  if (layout == "eager" || std::ranges::none_of(graph.nodes, is_convolution)) return graph;
  Laying laying{graph, layout == "channels_last"};
  return rebuild_graph(graph, [&](Builder& b, const RewriteSite& site) -> NodeId {
    const NodeId last = laying.last[site.id.index()] = find_last(b, laying, site);
    if (!last.valid()) return {};
    const NodeId first = b.permute(last, kToFirst);
    return site.strides_matter ? b.with_layout(first, site.node.type.strides) : first;
  });
}

}  // namespace stitch
