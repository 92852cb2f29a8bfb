#include "rewrite/reduce_pieces.h"

#include <algorithm>

#include "base/round_up.h"
#include "rewrite/constants.h"
#include "rewrite/rewrite_graph.h"

namespace stitch {
namespace {

// The operand cut, [.., count, length, (lanes, vector,) ..], and the axes of both reductions.
struct Axes {
  std::vector<int64_t> inner;  // of the cut operand
  std::vector<int64_t> outer;  // of the first reduction's result
};

int64_t dims_of(const Pieces& pieces) { return pieces.lanes * pieces.vector > 1 ? 4 : 2; }

Axes find_axes(const Node& node, const Pieces& pieces) {
  const int64_t first = pieces.dim - pieces.joined, dims = dims_of(pieces);
  std::vector<int64_t> inner = {first + 1}, outer = {first};
  if (dims == 4) {
    outer.push_back(first + 2);
    inner.push_back(first + 3);
  }
  for (int64_t axis : node.ints) {
    if (axis >= first && axis <= pieces.dim) continue;
    inner.push_back(axis < first ? axis : axis - pieces.joined - 1 + dims);
  }
  for (int64_t& axis : outer)
    axis -= std::ranges::count_if(inner, [&](int64_t gone) { return gone < axis; });
  return {inner, outer};
}

NodeId cut_operand(Builder& b, NodeId x, const Pieces& pieces, OpKind op) {
  std::vector<Dim> shape = b[x].type.shape;
  const int64_t first = pieces.dim - pieces.joined;
  for (int64_t i = 0; i < pieces.joined; ++i) {
    shape[first] = shape[first] * shape[first + 1];
    shape.erase(shape.begin() + first + 1);
  }
  if (pieces.joined) x = b.reshape(x, shape);
  SymbolTable& symbols = b.graph().symbols;
  const Dim count =
      pieces.count ? Dim(pieces.count) : symbols.divide_up(shape[first], pieces.elements());
  Dim length = pieces.count ? symbols.divide_up(shape[first], pieces.count) : Dim(pieces.length);
  // Long pieces that are padded anyway begin where vectors may.
  if (length.is_constant() && length.value() >= 1024 && !is_divisible(shape[first], length.value()))
    length = round_up(length.value(), 16);
  const Dim padded = count * length * Dim(pieces.lanes * pieces.vector);
  if (padded != shape[first]) {
    shape[first] = padded;
    const Constant identity = identity_of(op, b[x].type.dtype);
    x = b.pad(x, std::vector<Dim>(shape.size(), 0), shape, identity.number, identity.integer);
  }
  shape[first] = count;
  shape.insert(shape.begin() + first + 1, length);
  if (dims_of(pieces) == 4)
    shape.insert(shape.begin() + first + 2, {Dim(pieces.lanes), Dim(pieces.vector)});
  return b.reshape(x, shape);
}

// What a piece that is padded holds: how many elements, and whether an element is one.
struct Filling {
  NodeId count, inside;
};

// The last pieces of `extent` elements hold fewer than the others, or none.
Filling find_filling(Builder& b, NodeId cut, const Axes& axes, const Dim& extent, int64_t first) {
  const Dim count = b[cut].type.shape[first], length = b[cut].type.shape[first + 1];
  const auto integer = [&](const Dim& size) { return b.size_value(DType::kI64, size); };
  const auto place = [&](NodeId x, size_t rank, size_t at, const std::vector<Dim>& extents) {
    std::vector<Dim> shape(rank, 1);
    std::ranges::copy(extents, shape.begin() + static_cast<int64_t>(at));
    return b.reshape(x, shape);
  };
  const size_t rank = b[cut].type.shape.size();
  const NodeId position = b.iota(DType::kI64, count * length, 0, 1);
  const NodeId left = b.iota(DType::kI64, count, extent, length * Dim(-1));
  NodeId held = b.pointwise(OpKind::k_minimum, {left, integer(length)});
  held = b.pointwise(OpKind::k_maximum, {held, integer(0)});
  Dim others = 1;  // along other axes
  for (int64_t axis : axes.inner)
    if (axis != first + 1) others = others * b[cut].type.shape[axis];
  held = b.cast(b.pointwise(OpKind::k_mul, {held, integer(others)}), b[cut].type.dtype);
  return {
      place(held, rank - axes.inner.size(), axes.outer[0], {count}),
      b.pointwise(OpKind::k_lt, {place(position, rank, first, {count, length}), integer(extent)})};
}

// Each piece's sums are moved from its own mean to one number, the mean of these means, as if all
// deviations had been taken from that.  Differences of means are exact where both are large; means
// that were corrected before they are compared would be rounded once more.
NodeId reduce_deviations(Builder& b, const Node& node, NodeId x, const Pieces& pieces) {
  const DType dtype = node.type.dtype;
  const auto combine = [&](OpKind op, NodeId l, NodeId r) { return b.pointwise(op, {l, r}); };
  const Axes axes = find_axes(node, pieces);
  const int64_t first = pieces.dim - pieces.joined;
  x = b.cast(x, dtype);
  const NodeId cut = cut_operand(b, x, pieces, OpKind::k_sum);
  const NodeId all = count_elements(b, x, node.ints);
  Filling filling{count_elements(b, cut, axes.inner), {}};
  NodeId divisor = filling.count;
  Dim extent = 1, padded = 1;
  for (int64_t d = first; d <= pieces.dim; ++d) extent = extent * b[x].type.shape[d];
  for (int64_t d = 0; d < dims_of(pieces); ++d) padded = padded * b[cut].type.shape[first + d];
  if (padded != extent) {
    STITCH_CHECK(dims_of(pieces) == 2, "deviations of padded pieces of threads");
    filling = find_filling(b, cut, axes, extent, first);
    divisor = combine(OpKind::k_maximum, filling.count, b.full(dtype, 1, 1));
  }
  const Deviations own = sum_deviations(b, cut, axes.inner, divisor, filling.inside);
  const auto sum = [&](NodeId parts, bool keeps) {
    return b.reduce(OpKind::k_sum, parts, axes.outer, dtype, keeps);
  };
  const bool is_padded = filling.inside.valid();
  const NodeId weighed = is_padded ? combine(OpKind::k_mul, own.center, filling.count) : own.center;
  const NodeId weights = is_padded ? all : count_elements(b, own.sum, axes.outer);
  const NodeId shared = combine(OpKind::k_div, sum(weighed, true), weights);
  const NodeId apart = combine(OpKind::k_sub, own.center, shared);
  // (d + a)^2 summed over a piece is sum(d^2) + a * (2 * sum(d) + n * a).
  const NodeId moved = combine(OpKind::k_mul, apart, filling.count);
  const NodeId sums = combine(OpKind::k_add, own.sum, moved);
  const NodeId more = combine(OpKind::k_mul, apart, combine(OpKind::k_add, own.sum, sums));
  const NodeId squares = combine(OpKind::k_add, own.squares, more);
  return center_squares(b, sum(squares, false), sum(sums, false), all);
}

// Where all of a piece is -inf, or some of it inf, the nearest number that is finite serves.
NodeId reduce_exponentials(Builder& b, const Node& node, const Exponentials& terms,
                           const Pieces& pieces) {
  const DType dtype = node.type.dtype;
  const auto combine = [&](OpKind op, NodeId l, NodeId r) { return b.pointwise(op, {l, r}); };
  const auto exp_of = [&](NodeId x, NodeId from) {
    return b.pointwise(OpKind::k_exp, {combine(OpKind::k_sub, x, from)});
  };
  const Axes axes = find_axes(node, pieces);
  const NodeId cut = cut_operand(b, terms.x, pieces, OpKind::k_amax);
  const NodeId own = b.reduce(OpKind::k_amax, cut, axes.inner, dtype, false);
  const double most = info(dtype).largest;
  const NodeId low = combine(OpKind::k_maximum, own, b.full(dtype, -most, 0));
  std::vector<Dim> shape = b[cut].type.shape;
  for (int64_t axis : axes.inner) shape[axis] = 1;
  const NodeId from = b.reshape(combine(OpKind::k_minimum, low, b.full(dtype, most, 0)), shape);
  const NodeId sums = b.reduce(OpKind::k_sum, exp_of(cut, from), axes.inner, dtype, false);
  std::vector<Dim> row = b[terms.x].type.shape, kept = b[own].type.shape;
  for (int64_t axis : node.ints) row[axis] = 1;
  for (int64_t axis : axes.outer) kept[axis] = 1;
  const NodeId weight = exp_of(own, b.reshape(expand_to(b, terms.reference, row), kept));
  return b.reduce(OpKind::k_sum, combine(OpKind::k_mul, sums, weight), axes.outer, dtype, false);
}

}  // namespace

std::optional<Exponentials> find_exponentials(const Graph& graph, const Node& sum) {
  if (sum.op != OpKind::k_sum) return {};
  const Node& exp = graph[sum.inputs[0]];
  if (exp.op != OpKind::k_exp || exp.type.dtype != sum.type.dtype) return {};
  const Node& sub = graph[exp.inputs[0]];
  if (sub.op != OpKind::k_sub) return {};
  const auto [x, reference] = std::tie(sub.inputs[0], sub.inputs[1]);
  if (graph[x].type.shape != sub.type.shape) return {};
  const std::vector<Dim>& shape = graph[reference].type.shape;
  const int64_t missing = sub.type.rank() - graph[reference].type.rank();
  const bool is_shared = std::ranges::all_of(
      sum.ints, [&](int64_t axis) { return axis < missing || shape[axis - missing].is(1); });
  return is_shared ? std::optional(Exponentials{x, reference}) : std::nullopt;
}

NodeId reduce_pieces(Builder& b, const RewriteSite& site, const Pieces& pieces,
                     const std::optional<Exponentials>& terms) {
  const Node& node = site.node;
  if (node.op == OpKind::k_sum_sq_dev) return reduce_deviations(b, node, site.inputs[0], pieces);
  if (terms) {
    const Exponentials made = {site.made[terms->x.index()], site.made[terms->reference.index()]};
    return reduce_exponentials(b, node, made, pieces);
  }
  // Partial sums keep the accumulator's precision.
  const DType dtype = node.type.dtype;
  const bool is_narrow = (node.op == OpKind::k_sum || node.op == OpKind::k_prod) &&
                         (dtype == DType::kF16 || dtype == DType::kBF16);
  const DType partial = is_narrow ? DType::kF32 : dtype;
  const Axes axes = find_axes(node, pieces);
  const NodeId cut = cut_operand(b, site.inputs[0], pieces, node.op);
  const NodeId parts = b.reduce(node.op, cut, axes.inner, partial, false);
  return b.cast(b.reduce(node.op, parts, axes.outer, partial, false), dtype);
}

}  // namespace stitch
