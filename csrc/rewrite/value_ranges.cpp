#include "rewrite/constants.h"

#include <algorithm>
#include <cmath>

#include "ops/op_rules.h"

namespace stitch {
namespace {

constexpr ValueRange kAnywhere = {-kInfinity, kInfinity};

// Wide enough for every integer dtype.
ValueRange integer_range(DType dtype) {
  if (dtype == DType::kBool) return {0, 1};
  const double reach = std::ldexp(1, 8 * info(dtype).bytes);
  return {-reach, reach};
}

ValueRange multiply(const ValueRange& a, const ValueRange& b) {
  const auto [low, high] =
      std::minmax({a.low * b.low, a.low * b.high, a.high * b.low, a.high * b.high});
  return {low, high};
}

using X = const ValueRange*;
constexpr OpRow<ValueRange (*)(X x)> kRangeRules[] = {
    {OpKind::k_cast, [](X x) { return x[0]; }},
    {OpKind::k_neg, [](X x) { return ValueRange{-x[0].high, -x[0].low}; }},
    {OpKind::k_add, [](X x) { return ValueRange{x[0].low + x[1].low, x[0].high + x[1].high}; }},
    {OpKind::k_sub, [](X x) { return ValueRange{x[0].low - x[1].high, x[0].high - x[1].low}; }},
    {OpKind::k_mul, [](X x) { return multiply(x[0], x[1]); }},
    {OpKind::k_maximum,
     [](X x) { return ValueRange{std::max(x[0].low, x[1].low), std::max(x[0].high, x[1].high)}; }},
    {OpKind::k_minimum,
     [](X x) { return ValueRange{std::min(x[0].low, x[1].low), std::min(x[0].high, x[1].high)}; }},
    {OpKind::k_select,
     [](X x) { return ValueRange{std::min(x[1].low, x[2].low), std::max(x[1].high, x[2].high)}; }},
};

ValueRange range_of(const Node& node, const std::vector<ValueRange>& known) {
  const DType dtype = node.type.dtype;
  if (dtype == DType::kOpaque) return kAnywhere;
  if (is_integral(dtype)) return integer_range(dtype);
  if (node.op == OpKind::k_full)
    return node.dims.empty() ? ValueRange{node.number, node.number} : integer_range(DType::kI64);
  ValueRange operands[3] = {kAnywhere, kAnywhere, kAnywhere};
  for (size_t i = 0; i < std::min<size_t>(3, node.inputs.size()); ++i)
    operands[i] = known[node.inputs[i].index()];
  if (family(node) == Family::kView) return operands[0];
  const auto range = find_function(kRangeRules, node.op);
  return range ? range(operands) : kAnywhere;
}

}  // namespace

ValueRange stored_as(DType dtype, ValueRange range) {
  // 0 * inf and inf - inf: some elements are NaN, nothing is known of the others.
  if (std::isnan(range.low) || std::isnan(range.high)) return kAnywhere;
  const double most = info(dtype).is_float ? info(dtype).largest : kInfinity;
  if (range.low < -most) range.low = -kInfinity;
  if (range.high > most) range.high = kInfinity;
  return range;
}

std::vector<ValueRange> find_ranges(const Graph& graph) {
  std::vector<ValueRange> ranges;
  ranges.reserve(graph.nodes.size());
  for (const Node& node : graph.nodes)
    ranges.push_back(stored_as(node.type.dtype, range_of(node, ranges)));
  return ranges;
}

}  // namespace stitch
