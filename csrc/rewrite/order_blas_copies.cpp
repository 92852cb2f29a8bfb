#include "rewrite/rewrite_graph.h"

#include "rewrite/rebuild_graph.h"

namespace stitch {

static NodeId swap_last_two(Builder& b, NodeId x) {
  std::vector<int64_t> order = count_to<int64_t>(b[x].type.rank());
  std::swap(order[order.size() - 1], order[order.size() - 2]);
  return b.permute(x, order);
}

// The operand copied the other way round, or an invalid id where that gains nothing.
static NodeId reorder(Builder& b, NodeId operand) {
  const Node node = b[operand];
  if (node.op != OpKind::k_reshape) return {};
  const NodeId source = node.inputs[0];
  const TensorType from = b[source].type;
  const int rank = from.rank(), out_rank = node.type.rank();
  if (rank < 3 || out_rank < 3) return {};
  for (int d = 1; d <= 2; ++d)
    if (from.shape[rank - d] != node.type.shape[out_rank - d]) return {};
  const bool transposed = from.strides[rank - 2].is(1) && !from.strides[rank - 1].is(1);
  if (!transposed || view_strides(from.shape, from.strides, node.type.shape)) return {};
  DimList shape = node.type.shape;
  std::swap(shape[out_rank - 1], shape[out_rank - 2]);
  return swap_last_two(b, b.reshape(swap_last_two(b, source), shape));
}

static NodeId order_operands(Builder& b, const RewriteSite& site) {
  if (site.node.op != OpKind::k_library || !is_blas_call(site.node.name)) return {};
  NodeList inputs = site.inputs;
  for (NodeId& input : inputs)
    if (const NodeId ordered = reorder(b, input); ordered.valid()) input = ordered;
  return inputs == site.inputs ? NodeId() : b.copy(site.node, inputs);
}

Graph order_blas_copies(const Graph& graph) { return rebuild_graph(graph, order_operands); }

}  // namespace stitch
