#include "rewrite/rebuild_graph.h"
#include "rewrite/rewrite_graph.h"

namespace stitch {
namespace {

NodeId expand_deviation(Builder& b, const RewriteSite& site) {
  if (site.node.op != OpKind::k_sum_sq_dev) return {};
  const std::vector<int64_t>& axes = site.node.ints;
  const NodeId x = b.cast(site.inputs[0], site.node.type.dtype);
  if (axes.empty()) return b.pointwise(OpKind::k_sub, {x, x});  // 0, or NaN as eager has it
  const Deviations deviations = sum_deviations(b, x, axes);
  return center_squares(b, deviations.squares, deviations.sum, deviations.count);
}

}  // namespace

Deviations sum_deviations(Builder& b, NodeId x, const std::vector<int64_t>& axes) {
  const DType dtype = b[x].type.dtype;
  std::vector<Dim> mean_shape = b[x].type.shape;
  Dim count = 1;
  for (int64_t axis : axes) {
    count = count * mean_shape[axis];
    mean_shape[axis] = 1;
  }
  const NodeId sum = b.reduce(OpKind::k_sum, x, axes, dtype, false);
  const NodeId mean = b.pointwise(OpKind::k_div, {sum, b.size_value(dtype, count)});
  const NodeId deviation = b.pointwise(OpKind::k_sub, {x, b.reshape(mean, std::move(mean_shape))});
  const NodeId squares = b.pointwise(OpKind::k_mul, {deviation, deviation});
  return {mean, b.reduce(OpKind::k_sum, squares, axes, dtype, false),
          b.reduce(OpKind::k_sum, deviation, axes, dtype, false), count};
}

// What the mean is off by is the mean of the deviations, whose square is in every term.
NodeId center_squares(Builder& b, NodeId squares, NodeId sum, const Dim& count) {
  const DType dtype = b[sum].type.dtype;
  const NodeId share = b.pointwise(OpKind::k_div, {sum, b.size_value(dtype, count)});
  const NodeId excess = b.pointwise(OpKind::k_mul, {sum, share});
  const NodeId exact = b.pointwise(OpKind::k_sub, {squares, excess});
  return b.pointwise(OpKind::k_maximum, {exact, b.full(dtype, 0, 0)});
}

Graph expand_deviations(const Graph& graph) { return rebuild_graph(graph, expand_deviation); }

}  // namespace stitch
