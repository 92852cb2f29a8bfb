#include "rewrite/rewrite_graph.h"

#include <cmath>

#include "rewrite/rebuild_graph.h"

namespace stitch {

static bool is_widening_cast(const Builder& b, NodeId id) {
  const Node& node = b[id];
  if (node.op != OpKind::k_cast) return false;
  const DType from = b[node.inputs[0]].type.dtype, to = node.type.dtype;
  return is_value_preserving(from, to) && info(from).bytes < info(to).bytes;
}

// How many leading operands hold elements (the others are indices), for ops that move elements
// and compute none; 0 for all other ops.
static size_t moved_operands(const Node& node) {
  if (is_plain_view(node)) return 1;
  if (family(node) != Family::kReader || combines_segments(info(node))) return 0;
  // What lies outside the operand must be a number of the narrow dtype too.
  if (node.op == OpKind::k_pad)
    return node.number == 0 && !std::signbit(node.number) && node.integer == 0 ? 1 : 0;
  if (node.op == OpKind::k_cat) return node.inputs.size();
  return node.op == OpKind::k_slice_scatter ? 2 : 1;
}

static NodeId sink_cast(Builder& b, const RewriteSite& site) {
  const size_t moved = moved_operands(site.node);
  if (moved == 0 || site.strides_matter) return {};
  NodeList inputs = site.inputs;
  for (size_t i = 0; i < moved; ++i) {
    if (!is_widening_cast(b, inputs[i])) return {};
    inputs[i] = b[inputs[i]].inputs[0];
    if (b[inputs[i]].type.dtype != b[inputs[0]].type.dtype) return {};
  }
  return b.cast(b.copy(site.node, inputs), site.node.type.dtype);
}

Graph sink_casts(const Graph& graph) { return rebuild_graph(graph, sink_cast); }

}  // namespace stitch
