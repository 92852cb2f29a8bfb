#include "rewrite/rewrite_graph.h"

#include "rewrite/rebuild_graph.h"

namespace stitch {
namespace {

NodeId expand_deviation(Builder& b, const RewriteSite& site) {
  if (site.node.op != OpKind::k_sum_sq_dev) return {};
  const DType dtype = site.node.type.dtype;
  const std::vector<int64_t>& axes = site.node.ints;
  const NodeId x = b.cast(site.inputs[0], dtype);
  if (axes.empty()) return b.pointwise(OpKind::k_sub, {x, x});  // 0, or NaN as eager has it
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
  const NodeId total = b.reduce(OpKind::k_sum, squares, axes, dtype, false);
  // What the mean is off by is the mean of the deviations, whose square is in every term.
  const NodeId rest = b.reduce(OpKind::k_sum, deviation, axes, dtype, false);
  const NodeId share = b.pointwise(OpKind::k_div, {rest, b.size_value(dtype, count)});
  const NodeId excess = b.pointwise(OpKind::k_mul, {rest, share});
  const NodeId exact = b.pointwise(OpKind::k_sub, {total, excess});
  return b.pointwise(OpKind::k_maximum, {exact, b.full(dtype, 0, 0)});
}

}  // namespace

Graph expand_deviations(const Graph& graph) { return rebuild_graph(graph, expand_deviation); }

}  // namespace stitch
