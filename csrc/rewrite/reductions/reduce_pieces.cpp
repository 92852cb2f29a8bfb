#include "rewrite/reductions/reduce_pieces.h"

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
  DimList shape = b[x].type.shape;
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
    x = b.pad(x, DimList(shape.size(), 0), shape, identity.number, identity.integer);
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
  const auto place = [&](NodeId x, size_t rank, size_t at, const DimList& extents) {
    DimList shape(rank, 1);
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
NodeId reduce_exponentials(Builder& b, const Node& node, const Exponentials& terms, DType dtype,
                           const Pieces& pieces) {
  const auto combine = [&](OpKind op, NodeId l, NodeId r) { return b.pointwise(op, {l, r}); };
  const Axes axes = find_axes(node, pieces);
  const NodeId cut = cut_operand(b, b.cast(terms.x, dtype), pieces, OpKind::k_amax);
  const NodeId own = b.reduce(OpKind::k_amax, cut, axes.inner, dtype, false);
  const double most = info(dtype).largest;
  const NodeId low = combine(OpKind::k_maximum, own, b.full(dtype, -most, 0));
  const NodeId nearest = combine(OpKind::k_minimum, low, b.full(dtype, most, 0));
  const NodeId from = b.reshape(nearest, with_ones(b[cut].type.shape, axes.inner));
  const DimList row = with_ones(b[terms.x].type.shape, node.ints);
  const DimList kept = with_ones(b[own].type.shape, axes.outer);
  const auto of_rows = [&](NodeId value) {
    return b.reshape(expand_to(b, b.cast(value, dtype), row), kept);
  };
  const auto less = [&](NodeId x, const NodeList& shared) {
    for (NodeId value : shared) x = combine(OpKind::k_sub, x, of_rows(value));
    return x;
  };
  const auto sum = [&](NodeId x) { return b.reduce(OpKind::k_sum, x, axes.inner, dtype, false); };
  const NodeId below = combine(OpKind::k_sub, cut, from), exp = b.pointwise(OpKind::k_exp, {below});
  NodeId weight = b.pointwise(OpKind::k_exp, {less(own, terms.exponent)});
  for (const auto& [op, value] : terms.scales)
    weight = value.valid() ? combine(op, weight, of_rows(value)) : b.pointwise(op, {weight});
  NodeId share = combine(OpKind::k_mul, sum(exp), weight);
  if (terms.factor) {
    const NodeId near = combine(OpKind::k_mul, sum(combine(OpKind::k_mul, exp, below)), weight);
    // A weight of zero comes first: the distance alone may be too large to be multiplied.
    const NodeId far = combine(OpKind::k_mul, less(own, *terms.factor), share);
    share = combine(OpKind::k_add, near, far);
  }
  return b.reduce(OpKind::k_sum, share, axes.outer, dtype, false);
}

// The factors of a sum's terms.
struct TermFinder {
  const Graph& graph;
  const Node& sum;
  const std::set<NodeId>& rounded;
  Exponentials found = {};
  NodeId other = {};  // what the factor is made of, where there is one

  bool is_shared(NodeId id) const {
    const DimList& shape = graph[id].type.shape;
    const int64_t missing = graph[sum.inputs[0]].type.rank() - std::ssize(shape);
    return std::ranges::all_of(
        sum.ints, [&](int64_t axis) { return axis < missing || shape[axis - missing].is(1); });
  }

  // Casts within the precision of kernels are nothing.
  NodeId skip_casts(NodeId id) const {
    const auto is_nothing = [&](const Node& cast) {
      const DTypeInfo &from = info(graph[cast.inputs[0]].type.dtype), &to = info(cast.type.dtype);
      return from.is_float && to.is_float && (to.bytes > from.bytes || keeps_digits(cast)) &&
             !rounded.contains(id) && from.register_name == std::string(to.register_name);
    };
    while (graph[id].op == OpKind::k_cast && is_nothing(graph[id])) id = graph[id].inputs[0];
    return id;
  }

  NodeList strip_shared(NodeId& id) const {
    NodeList shared;
    id = skip_casts(id);
    while (graph[id].op == OpKind::k_sub && !rounded.contains(id) &&
           is_shared(graph[id].inputs[1])) {
      shared.insert(shared.begin(), graph[id].inputs[1]);
      id = skip_casts(graph[id].inputs[0]);
    }
    return shared;
  }

  bool add(NodeId id) {
    if (is_shared(id)) {
      found.scales.push_back({OpKind::k_mul, id});
      return true;
    }
    id = skip_casts(id);
    const Node& node = graph[id];
    const bool is_exact = !rounded.contains(id);
    if (node.op == OpKind::k_mul && is_exact) return add(node.inputs[0]) && add(node.inputs[1]);
    const bool divides = node.op == OpKind::k_div && is_shared(node.inputs[1]);
    if ((node.op == OpKind::k_neg || divides) && is_exact) {
      found.scales.push_back({node.op, divides ? node.inputs[1] : NodeId()});
      return add(node.inputs[0]);
    }
    if (node.op == OpKind::k_exp && is_exact && !found.x.valid()) {
      found.x = node.inputs[0];
      found.exponent = strip_shared(found.x);
      return graph[found.x].type.shape == graph[sum.inputs[0]].type.shape;
    }
    if (other.valid()) return false;
    other = id;
    found.factor = strip_shared(other);
    return true;
  }
};

}  // namespace

std::optional<Exponentials> find_exponentials(const Graph& graph, const Node& sum,
                                              const std::set<NodeId>& rounded) {
  const DTypeInfo& type = info(sum.type.dtype);
  if (sum.op != OpKind::k_sum || !type.is_float) return {};
  TermFinder finder{graph, sum, rounded};
  if (!finder.add(sum.inputs[0]) || finder.found.exponent.empty()) return {};
  if (finder.other.valid() && finder.other != finder.found.x) return {};
  const DTypeInfo& base = info(graph[finder.found.x].type.dtype);
  if (!base.is_float || base.register_name != std::string(type.register_name)) return {};
  return finder.found;
}

bool waits_for(const Exponentials& terms, const std::vector<bool>& marked) {
  const auto is_marked = [&](NodeId id) { return id.valid() && marked[id.index()]; };
  return std::ranges::any_of(terms.exponent, is_marked) ||
         (terms.factor && std::ranges::any_of(*terms.factor, is_marked)) ||
         std::ranges::any_of(terms.scales, is_marked, &Exponentials::Scale::value);
}

NodeId reduce_pieces(Builder& b, const RewriteSite& site, const Pieces& pieces,
                     const std::optional<Exponentials>& terms) {
  const Node& node = site.node;
  if (node.op == OpKind::k_sum_sq_dev) return reduce_deviations(b, node, site.inputs[0], pieces);
  // Partial sums keep the accumulator's precision.
  const DType dtype = node.type.dtype;
  const bool is_narrow = (node.op == OpKind::k_sum || node.op == OpKind::k_prod) &&
                         (dtype == DType::kF16 || dtype == DType::kBF16);
  const DType partial = is_narrow ? DType::kF32 : dtype;
  if (terms) {
    Exponentials made = *terms;
    const auto renew = [&](NodeId& id) { id = id.valid() ? site.made[id.index()] : id; };
    renew(made.x);
    std::ranges::for_each(made.exponent, renew);
    if (made.factor) std::ranges::for_each(*made.factor, renew);
    std::ranges::for_each(made.scales, renew, &Exponentials::Scale::value);
    return b.cast(reduce_exponentials(b, node, made, partial, pieces), dtype);
  }
  const Axes axes = find_axes(node, pieces);
  const NodeId cut = cut_operand(b, site.inputs[0], pieces, node.op);
  const NodeId parts = b.reduce(node.op, cut, axes.inner, partial, false);
  return b.cast(b.reduce(node.op, parts, axes.outer, partial, false), dtype);
}

}  // namespace stitch
