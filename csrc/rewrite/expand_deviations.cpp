#include <algorithm>

#include "rewrite/rebuild_graph.h"
#include "rewrite/rewrite_graph.h"

namespace stitch {

static NodeId expand_deviation(Builder& b, const RewriteSite& site) {
  if (site.node.op != OpKind::k_sum_sq_dev) return {};
  const std::vector<int64_t>& axes = site.node.ints;
  const NodeId x = b.cast(site.inputs[0], site.node.type.dtype);
  if (axes.empty()) return b.pointwise(OpKind::k_sub, {x, x});  // 0, or NaN as eager has it
  const Deviations deviations = sum_deviations(b, x, axes);
  return center_squares(b, deviations.squares, deviations.sum, deviations.count);
}

// f64 keeps the digits of what a narrower type held about any of the elements, which all lie within
// sqrt(count) deviations of the mean: nothing waits for the mean, and one pass is enough.
static bool is_one_pass(const Builder& b, NodeId x, const std::vector<int64_t>& axes) {
  const Node& node = b[x];
  return node.op == OpKind::k_cast && node.type.dtype == DType::kF64 &&
         info(b[node.inputs[0]].type.dtype).is_float &&
         std::ranges::all_of(axes, [&](int64_t axis) {
           const Dim& extent = node.type.shape[axis];
           return extent.is_constant() && extent.value() > 0;
         });
}

Deviations sum_deviations(Builder& b, NodeId x, const std::vector<int64_t>& axes) {
  const DType dtype = b[x].type.dtype;
  std::vector<Dim> shape = b[x].type.shape;
  Dim count = 1;
  for (int64_t axis : axes) {
    count = count * shape[axis];
    shape[axis] = 1;
  }
  NodeId center = x;
  if (is_one_pass(b, x, axes)) {
    for (int64_t axis : axes) center = b.slice(center, axis, 0, 1, 1);
  } else {
    const NodeId sum = b.reduce(OpKind::k_sum, x, axes, dtype, false);
    const NodeId mean = b.pointwise(OpKind::k_div, {sum, b.size_value(dtype, count)});
    center = b.reshape(mean, std::move(shape));
  }
  const NodeId deviation = b.pointwise(OpKind::k_sub, {x, center});
  const NodeId square = b.pointwise(OpKind::k_mul, {deviation, deviation});
  const NodeId squares = b.reduce(OpKind::k_sum, square, axes, dtype, false);
  const NodeId sum = b.reduce(OpKind::k_sum, deviation, axes, dtype, false);
  return {b.reshape(center, b[sum].type.shape), squares, sum, count};
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
