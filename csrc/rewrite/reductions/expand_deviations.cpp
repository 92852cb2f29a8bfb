#include "rewrite/rebuild_graph.h"
#include "rewrite/rewrite_graph.h"

namespace stitch {

static NodeId expand_deviation(Builder& b, const RewriteSite& site) {
  if (site.node.op != OpKind::k_sum_sq_dev) return {};
  const std::vector<int64_t>& axes = site.node.ints;
  const NodeId x = b.cast(site.inputs[0], site.node.type.dtype);
  if (axes.empty()) return b.pointwise(OpKind::k_sub, {x, x});  // 0, or NaN as eager has it
  const NodeId count = count_elements(b, x, axes);
  const Deviations deviations = sum_deviations(b, x, axes, count);
  return center_squares(b, deviations.squares, deviations.sum, count);
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

NodeId count_elements(Builder& b, NodeId x, const std::vector<int64_t>& axes) {
  return b.size_value(b[x].type.dtype, element_count(pick(b[x].type.shape, axes)));
}

Deviations sum_deviations(Builder& b, NodeId x, const std::vector<int64_t>& axes, NodeId count,
                          NodeId inside) {
  const DType dtype = b[x].type.dtype;
  NodeId center = x;
  if (is_one_pass(b, x, axes)) {
    for (int64_t axis : axes) center = b.slice(center, axis, 0, 1, 1);
  } else {
    const NodeId sum = b.reduce(OpKind::k_sum, x, axes, dtype, false);
    const NodeId mean = b.pointwise(OpKind::k_div, {sum, count});
    center = b.reshape(mean, with_ones(b[x].type.shape, axes));
  }
  NodeId deviation = b.pointwise(OpKind::k_sub, {x, center});
  if (inside.valid())
    deviation = b.pointwise(OpKind::k_select, {inside, deviation, b.full(dtype, 0, 0)});
  const NodeId square = b.pointwise(OpKind::k_mul, {deviation, deviation});
  const NodeId squares = b.reduce(OpKind::k_sum, square, axes, dtype, false);
  const NodeId sum = b.reduce(OpKind::k_sum, deviation, axes, dtype, false);
  return {b.reshape(center, b[sum].type.shape), squares, sum};
}

// What the mean is off by is the mean of the deviations, whose square is in every term.
NodeId center_squares(Builder& b, NodeId squares, NodeId sum, NodeId count) {
  const NodeId share = b.pointwise(OpKind::k_div, {sum, count});
  const NodeId excess = b.pointwise(OpKind::k_mul, {sum, share});
  const NodeId exact = b.pointwise(OpKind::k_sub, {squares, excess});
  return b.pointwise(OpKind::k_maximum, {exact, b.full(b[sum].type.dtype, 0, 0)});
}

Graph expand_deviations(const Graph& graph) { return rebuild_graph(graph, expand_deviation); }

}  // namespace stitch
