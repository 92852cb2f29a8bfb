#include "rewrite/rewrite_graph.h"

#include <algorithm>
#include <cmath>

#include "rewrite/constants.h"
#include "rewrite/rebuild_graph.h"

namespace stitch {
namespace {

// A reduction of one element.  Not here: sum_sq_dev, which another pass expands.
NodeId reduce_one_element(Builder& b, const RewriteSite& site, NodeId x) {
  const TensorType& type = site.node.type;
  const OpKind op = site.node.op;
  if (op == OpKind::k_sum_sq_dev) return {};
  if (info(op).type_rule == TypeRule::kInteger)
    return make_constant(b, {type.dtype, 0, 0}, type.shape);
  const NodeId element = b.cast(x, type.dtype);
  // Sums begin with 0: that of -0 is 0.
  if (op == OpKind::k_sum && !is_integral(type.dtype))
    return b.pointwise(OpKind::k_add, {element, b.full(type.dtype, 0, 0)});
  return element;
}

// Axes of extent 1 are dropped by a reshape; the reduction goes over the others, if any.
NodeId drop_single_extents(Builder& b, const RewriteSite& site) {
  const NodeId x = site.inputs[0];
  const std::vector<Dim>& shape = b[x].type.shape;
  std::vector<Dim> kept;
  std::vector<int64_t> axes;
  for (int64_t d = 0; d < std::ssize(shape); ++d) {
    const bool reduced = std::ranges::binary_search(site.node.ints, d);
    if (reduced && shape[d].is(1)) continue;
    if (reduced) axes.push_back(static_cast<int64_t>(kept.size()));
    kept.push_back(shape[d]);
  }
  if (axes.size() == site.node.ints.size() && !axes.empty()) return {};
  const NodeId rest = kept == shape ? x : b.reshape(x, kept);
  if (axes.empty()) return reduce_one_element(b, site, rest);
  return b.reduce(site.node.op, rest, axes, site.node.type.dtype, false);
}

bool is_exact_in_f32(double number) {
  return number == std::floor(number) && std::fabs(number) <= 0x1p24;
}

// Sum, maximum and minimum of one number repeated `count` times, where that is exact.
std::optional<Constant> reduce_constant(OpKind op, const Constant& x, int64_t count, DType dtype) {
  if (op == OpKind::k_amax || op == OpKind::k_amin || op == OpKind::k_any || op == OpKind::k_all)
    return x;
  if (op != OpKind::k_sum) return std::nullopt;
  const auto converted = evaluate(OpKind::k_cast, {x}, dtype);
  if (!converted || dtype == DType::kBool) return std::nullopt;
  if (!is_integral(dtype) && converted->number == 0) return Constant{dtype, 0, 0};
  const Constant factor{dtype, static_cast<double>(count), count};
  const double product = converted->number * factor.number;
  if (!is_integral(dtype) && !(is_exact_in_f32(converted->number) && is_exact_in_f32(product)))
    return std::nullopt;
  return evaluate(OpKind::k_mul, {*converted, factor}, dtype);
}

NodeId reduce_full(Builder& b, const RewriteSite& site) {
  const auto constant = constant_of(b, site.inputs[0]);
  if (!constant) return {};
  Dim count = 1;
  for (int64_t axis : site.node.ints) count = count * b[site.inputs[0]].type.shape[axis];
  if (!count.is_constant() || count.value() < 1) return {};
  const auto result = reduce_constant(site.node.op, *constant, count.value(), site.node.type.dtype);
  return result ? make_constant(b, *result, site.node.type.shape) : NodeId();
}

NodeId simplify(Builder& b, const RewriteSite& site) {
  if (family(site.node) != Family::kReduce) return {};
  if (const NodeId constant = reduce_full(b, site); constant.valid()) return constant;
  return drop_single_extents(b, site);
}

}  // namespace

Graph simplify_algebra(const Graph& graph) { return rebuild_graph(graph, simplify); }

}  // namespace stitch
