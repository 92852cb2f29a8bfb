#include "rewrite/rewrite_graph.h"

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
  const DimList& shape = b[x].type.shape;
  DimList kept;
  std::vector<int64_t> axes;
  for (int64_t d = 0; d < std::ssize(shape); ++d) {
    const bool reduced = contains(site.node.ints, d);
    if (reduced && shape[d].is(1)) continue;
    if (reduced) axes.push_back(std::ssize(kept));
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
  const auto constant = constant_of(b.graph(), site.inputs[0]);
  if (!constant) return {};
  const Dim count = element_count(pick(b[site.inputs[0]].type.shape, site.node.ints));
  if (!count.is_constant() || count.value() < 1) return {};
  const auto result = reduce_constant(site.node.op, *constant, count.value(), site.node.type.dtype);
  return result ? make_constant(b, *result, site.node.type.shape) : NodeId();
}

// A condition that holds at one place along an axis: where the index equals `at` and others hold.
struct PlaceFinder {
  Builder& b;
  const DimList& shape;  // of the condition
  int64_t axis;
  NodeId index = {}, at = {};
  NodeList others = {};

  bool is_shared(NodeId id) const {  // along the axis
    const DimList& own = b[id].type.shape;
    const int64_t missing = std::ssize(shape) - std::ssize(own);
    return axis < missing || own[axis - missing].is(1);
  }
  bool is_index(NodeId id) const {
    const Node& iota = b[b[id].op == OpKind::k_reshape ? b[id].inputs[0] : id];
    return iota.op == OpKind::k_iota && iota.dims[0].is(0) && iota.dims[1].is(1) &&
           !is_shared(id) && without_ones(b[id].type.shape) == std::vector{shape[axis]};
  }

  bool find(NodeId condition) {
    const Node& node = b[condition];
    if (is_shared(condition)) {
      others.push_back(condition);
      return true;
    }
    if (node.op == OpKind::k_logical_and) return find(node.inputs[0]) && find(node.inputs[1]);
    if (node.op != OpKind::k_eq || at.valid()) return false;
    const int first = is_index(node.inputs[0]) ? 0 : 1;
    index = node.inputs[first];
    at = node.inputs[1 - first];
    return is_index(index) && is_shared(at);
  }

  // Whether there is such a place at all.
  NodeId exists() const {
    const DType dtype = b[at].type.dtype;
    const NodeId end = b.size_value(dtype, shape[axis]);
    const NodeId holds = join_others(b.pointwise(OpKind::k_ge, {at, b.full(dtype, 0, 0)}));
    return b.pointwise(OpKind::k_logical_and, {holds, b.pointwise(OpKind::k_lt, {at, end})});
  }
  NodeId join_others(NodeId holds) const {
    for (NodeId other : others)
      holds = holds.valid() ? b.pointwise(OpKind::k_logical_and, {holds, other}) : other;
    return holds;
  }
};

// sum(select(index == at & c, x, 0)) along the index is select(0 <= at < extent & c, x, 0).
NodeId sum_one_place(Builder& b, const RewriteSite& site) {
  const Node& sum = site.node;
  if (sum.op != OpKind::k_sum || sum.ints.size() != 1) return {};
  const Node term = b[site.inputs[0]];
  if (term.op != OpKind::k_select) return {};
  const auto rest = constant_of(b.graph(), term.inputs[2]);
  PlaceFinder place{b, term.type.shape, sum.ints[0]};
  if (!rest || rest->number != 0 || rest->integer != 0 || !place.find(term.inputs[0]) ||
      !place.at.valid() || !place.is_shared(term.inputs[1]))
    return {};
  const NodeId zero = b.full(sum.type.dtype, 0, 0);
  const NodeId value = b.cast(term.inputs[1], sum.type.dtype);
  const NodeId one = b.pointwise(OpKind::k_select, {place.exists(), value, zero});
  const DimList row = with_ones(term.type.shape, {place.axis});
  // Sums begin with 0: that of -0 is 0.
  return b.reshape(expand_to(b, b.pointwise(OpKind::k_add, {one, zero}), row), sum.type.shape);
}

// Where others hold is part of the place, and both are of 32 bits: index == at & c is
// index == select(0 <= at < extent & c, at, -1), one comparison for each index of the axis.
NodeId compare_one_place(Builder& b, const RewriteSite& site) {
  constexpr int64_t kWorthwhile = 16;  // indices for each place
  const Node& node = site.node;
  if (node.op != OpKind::k_eq && node.op != OpKind::k_logical_and) return {};
  const NodeId condition = b.pointwise(node.op, site.inputs);
  for (int64_t axis = 0; axis < node.type.rank(); ++axis) {
    const Dim& extent = node.type.shape[axis];
    if (!extent.is_constant() || extent.value() < kWorthwhile || extent.value() > INT32_MAX)
      continue;
    PlaceFinder place{b, node.type.shape, axis};
    if (!place.find(condition) || !place.at.valid()) continue;
    const bool is_short = b[place.at].type.dtype == DType::kI32;
    if (is_short && place.others.empty()) return {};
    const NodeId holds = is_short ? place.join_others({}) : place.exists();
    const NodeId at = b.cast(place.at, DType::kI32), none = b.full(DType::kI32, 0, -1);
    const NodeId index = b.reshape(b.iota(DType::kI32, extent, 0, 1), b[place.index].type.shape);
    return b.pointwise(OpKind::k_eq, {index, b.pointwise(OpKind::k_select, {holds, at, none})});
  }
  return {};
}

// cast(clamp(round(x), -127, 127)) to integers is cast(round(clamp(x, -127, 127))): what rounds and
// converts is one instruction.  Bounds are integers, so nothing is rounded across them; the sign of
// a zero, which may differ, is lost in the cast.
NodeId round_last(Builder& b, const RewriteSite& site) {
  const DType dtype = site.node.type.dtype;
  if (site.node.op != OpKind::k_cast || !is_integral(dtype) || dtype == DType::kBool) return {};
  const Node clamp = b[site.inputs[0]];
  if (clamp.op != OpKind::k_clamp || b[clamp.inputs[0]].op != OpKind::k_round) return {};
  NodeList inputs = clamp.inputs;
  for (const NodeId bound : {inputs[1], inputs[2]}) {
    const auto constant = constant_of(b.graph(), bound);
    if (!constant || !is_exact_in_f32(constant->number)) return {};
  }
  inputs[0] = b[inputs[0]].inputs[0];
  return b.cast(b.pointwise(OpKind::k_round, {b.pointwise(OpKind::k_clamp, inputs)}), dtype);
}

NodeId simplify(Builder& b, const RewriteSite& site) {
  if (const NodeId rounded = round_last(b, site); rounded.valid()) return rounded;
  if (family(site.node) != Family::kReduce) return compare_one_place(b, site);
  if (const NodeId one = sum_one_place(b, site); one.valid()) return one;
  if (const NodeId constant = reduce_full(b, site); constant.valid()) return constant;
  return drop_single_extents(b, site);
}

}  // namespace

Graph simplify_algebra(const Graph& graph) { return rebuild_graph(graph, simplify); }

}  // namespace stitch
