#include "rewrite/rewrite_graph.h"

#include <cmath>

#include "rewrite/constants.h"
#include "rewrite/rebuild_graph.h"

namespace stitch {
namespace {

// What identities look at: operand values, and the constants among them.
struct Operands {
  Builder& builder;
  const Node& node;
  NodeList values;
  std::vector<std::optional<Constant>> constants;

  bool is(size_t i, double value) const { return constants[i] && constants[i]->is(value); }
  const Node& operator[](size_t i) const { return builder[values[i]]; }
};

// What the op becomes; an invalid id: it stays.
using X = const Operands&;
using Replacement = NodeId (*)(X x);

bool is_float(const Operands& x) { return info(x.node.type.dtype).is_float; }

// The operand beside one that is `value`, on either side.
NodeId beside(const Operands& x, double value) {
  return x.is(1, value) ? x.values[0] : x.is(0, value) ? x.values[1] : NodeId();
}

// `and` of bools: with false it is the constant, with true the other operand; `or` the other way.
template <bool neutral>
NodeId absorb(const Operands& x) {
  if (x[0].type.dtype != DType::kBool) return {};
  for (size_t i = 0; i < 2; ++i) {
    if (x.is(i, neutral)) return x.values[1 - i];
    if (x.is(i, !neutral)) return x.values[i];
  }
  return x.values[0] == x.values[1] ? x.values[0] : NodeId();
}

NodeId choose_branch(const Operands& x) {
  if (x.constants[0]) return x.values[x.constants[0]->integer ? 1 : 2];
  return x.values[1] == x.values[2] ? x.values[1] : NodeId();
}

// Eager computes these exponents by multiplication as well.
NodeId multiply_out_power(const Operands& x) {
  const NodeId base = x.values[0];
  if (x.is(1, 1)) return base;
  if (!x.is(1, 2) && !x.is(1, 3)) return {};
  const NodeId square = x.builder.pointwise(OpKind::k_mul, {base, base});
  return x.is(1, 2) ? square : x.builder.pointwise(OpKind::k_mul, {square, base});
}

// Each negates the other, for NaN too where they are != and ==.
constexpr std::pair<OpKind, OpKind> kNegations[] = {
    {OpKind::k_eq, OpKind::k_ne}, {OpKind::k_lt, OpKind::k_ge}, {OpKind::k_gt, OpKind::k_le}};

NodeId negate_comparison(const Operands& x) {
  const NodeList inputs = x[0].inputs;
  if (x[0].op == OpKind::k_logical_not && x.builder[inputs[0]].type.dtype == DType::kBool)
    return inputs[0];
  for (const auto& [one, other] : kNegations) {
    if (x[0].op != one && x[0].op != other) continue;
    const bool holds = one == OpKind::k_eq || is_integral(x.builder[inputs[0]].type.dtype);
    return holds ? x.builder.pointwise(x[0].op == one ? other : one, inputs) : NodeId();
  }
  return {};
}

// A random number is its word's upper 24 bits, w / 2^24: at least c where w is at least c * 2^24.
NodeId compare_word(const Operands& x) {
  const bool is_coarse = x[0].op == OpKind::k_coarse_random;
  if ((!is_coarse && x[0].op != OpKind::k_random) || !x.constants[1]) return {};
  const OpKind op = x.node.op;
  const bool moves_up = op == OpKind::k_gt || op == OpKind::k_le;
  const bool is_least = op == OpKind::k_gt || op == OpKind::k_ge;
  const double steps = x.constants[1]->number * 0x1p24;
  const double least = moves_up ? std::floor(steps) + 1 : std::ceil(steps);
  const int edge = is_coarse ? 1 << 9 : 1;  // halves of a word are compared
  if (!(least >= edge && least <= 0x1p24 - edge)) return {};
  NodeList operands = x[0].inputs;
  operands.insert(operands.begin(),
                  x.builder.full(DType::kI64, 0, static_cast<int64_t>(least) << 8));
  const OpKind compare = is_coarse ? OpKind::k_coarse_least : OpKind::k_random_least;
  const NodeId holds = x.builder.pointwise(compare, operands);
  return is_least ? holds : x.builder.pointwise(OpKind::k_logical_not, {holds});
}

// With a factor of 0 or 1, a constant one is one of two: dropout's kept element and scale are one.
NodeId multiply(const Operands& x) {
  if (const NodeId same = beside(x, 1); same.valid()) return same;
  for (size_t i = 0; i < 2; ++i) {
    const NodeList factors = x[1 - i].inputs;
    if (!x.constants[i] || x[1 - i].op != OpKind::k_mul || !is_float(x)) continue;
    if (!std::isfinite(x.constants[i]->number)) continue;
    for (size_t j = 0; j < 2; ++j) {
      const Node& mask = x.builder[factors[j]];
      if (mask.op != OpKind::k_cast) continue;
      const NodeId kept = mask.inputs[0];
      if (x.builder[kept].type.dtype != DType::kBool) continue;
      const DType dtype = x.node.type.dtype;
      const NodeId scale = x.builder.full(dtype, x.constants[i]->number, 0);
      const NodeId none = x.builder.full(dtype, x.constants[i]->number * 0.0, 0);
      const NodeId factor = x.builder.pointwise(OpKind::k_select, {kept, scale, none});
      return x.builder.pointwise(OpKind::k_mul, {factors[1 - j], factor});
    }
  }
  return {};
}

// The first of two casts may go when it loses nothing, and the second does the same to its operand.
// A float to integer conversion on the way would change what happens out of range.
NodeId collapse_casts(const Operands& x) {
  if (x[0].op != OpKind::k_cast) return {};
  const NodeId source = x[0].inputs[0];
  const DType from = x.builder[source].type.dtype, middle = x[0].type.dtype, to = x.node.type.dtype;
  if (!is_value_preserving(from, middle)) return {};
  const bool detour = is_integral(from) && !is_integral(middle) && is_integral(to);
  if (detour && to != DType::kBool && !is_value_preserving(from, to)) return {};
  return x.builder.cast(source, to);
}

constexpr OpRow<Replacement> kReplacements[] = {
    // -0.0 + 0.0 is 0.0, but x + -0.0 is x.
    {OpKind::k_add, [](X x) { return beside(x, is_float(x) ? -0.0 : 0.0); }},
    {OpKind::k_sub, [](X x) { return x.is(1, 0.0) ? x.values[0] : NodeId(); }},
    {OpKind::k_mul, multiply},
    {OpKind::k_div, [](X x) { return x.is(1, 1) && is_float(x) ? x.values[0] : NodeId(); }},
    {OpKind::k_neg, [](X x) { return x[0].op == OpKind::k_neg ? x[0].inputs[0] : NodeId(); }},
    {OpKind::k_pow, multiply_out_power},
    {OpKind::k_cast, collapse_casts},
    {OpKind::k_select, choose_branch},
    {OpKind::k_bitwise_and, absorb<true>},
    {OpKind::k_logical_and, absorb<true>},
    {OpKind::k_bitwise_or, absorb<false>},
    {OpKind::k_logical_or, absorb<false>},
    {OpKind::k_logical_not, negate_comparison},
    {OpKind::k_ge, compare_word},
    {OpKind::k_gt, compare_word},
    {OpKind::k_le, compare_word},
    {OpKind::k_lt, compare_word},
};

NodeId fold_all(const Operands& x) {
  std::vector<Constant> constants;
  for (const auto& constant : x.constants) {
    if (!constant) return {};
    constants.push_back(*constant);
  }
  const auto result = evaluate(x.node.op, constants, x.node.type.dtype);
  return result ? make_constant(x.builder, *result, x.node.type.shape) : NodeId();
}

NodeId fold(Builder& builder, const RewriteSite& site) {
  if (family(site.node) != Family::kPointwise) return {};
  const auto read = [&](NodeId input) { return constant_of(builder.graph(), input); };
  const Operands x{builder, site.node, site.inputs, map_to_vector(site.inputs, read)};
  if (const NodeId constant = fold_all(x); constant.valid()) return constant;
  const Replacement replace = find_function(kReplacements, site.node.op);
  const NodeId result = replace ? replace(x) : NodeId();
  return result.valid() ? expand_to(builder, result, site.node.type.shape) : result;
}

}  // namespace

Graph fold_constants(const Graph& graph) { return rebuild_graph(graph, fold); }

}  // namespace stitch
