#include "rewrite/constants.h"

#include <cmath>

namespace stitch {
namespace {

using enum OpKind;

// A number cast to `dtype`: through f32, as eager does; ties to even, with gradual underflow.
double round_to_dtype(double x, DType dtype) {
  if (dtype == DType::kF64) return x;
  const DTypeInfo& type = info(dtype);
  x = static_cast<float>(x);
  if (x != 0 && std::isfinite(x)) {
    const int lowest = 2 - (1 << (type.exponent_bits - 1));
    const int unit = std::max(std::ilogb(x), lowest) - (type.digits - 1);
    x = std::ldexp(std::nearbyint(std::ldexp(x, -unit)), unit);
  }
  if (dtype == DType::kE4M3) return std::clamp(x, -type.largest, type.largest);
  return std::fabs(x) > type.largest ? std::copysign(kInfinity, x) : x;
}

// The low bits of an integer, read as the dtype does.
int64_t wrap_integer(int64_t x, DType dtype) {
  const DTypeInfo& type = info(dtype);
  const int unused_bits = 64 - type.digits - type.is_signed;
  const uint64_t high = static_cast<uint64_t>(x) << unused_bits;
  return type.is_signed ? static_cast<int64_t>(high) >> unused_bits
                        : static_cast<int64_t>(high >> unused_bits);
}

using Numbers = std::array<double, 3>;
using Integers = std::array<int64_t, 3>;
using N = const Numbers&;
using I = const Integers&;

template <class Apply>
int64_t wrapping(I x) {
  return static_cast<int64_t>(Apply()(static_cast<uint64_t>(x[0]), static_cast<uint64_t>(x[1])));
}
double larger(double a, double b) { return a != a || a > b ? a : b; }
double smaller(double a, double b) { return a != a || a < b ? a : b; }

// Ops that every device rounds correctly.  Null: not for operands of that kind.
struct Computation {
  OpKind op;
  double (*number)(N);
  int64_t (*integer)(I);
};
#define STITCH_COMPARISON(op, expression) \
  {k_##op, [](N x) -> double { return expression; }, [](I x) -> int64_t { return expression; }}
constexpr Computation kComputations[] = {
    {k_neg, [](N x) { return -x[0]; }, [](I x) { return wrapping<std::minus<>>({0, x[0]}); }},
    {k_abs, [](N x) { return std::fabs(x[0]); }, nullptr},
    {k_add, [](N x) { return x[0] + x[1]; }, wrapping<std::plus<>>},
    {k_sub, [](N x) { return x[0] - x[1]; }, wrapping<std::minus<>>},
    {k_mul, [](N x) { return x[0] * x[1]; }, wrapping<std::multiplies<>>},
    {k_div, [](N x) { return x[0] / x[1]; }, nullptr},
    {k_sqrt, [](N x) { return std::sqrt(x[0]); }, nullptr},
    {k_reciprocal, [](N x) { return 1 / x[0]; }, nullptr},
    {k_floor, [](N x) { return std::floor(x[0]); }, nullptr},
    {k_ceil, [](N x) { return std::ceil(x[0]); }, nullptr},
    {k_trunc, [](N x) { return std::trunc(x[0]); }, nullptr},
    {k_maximum, [](N x) { return larger(x[0], x[1]); }, [](I x) { return std::max(x[0], x[1]); }},
    {k_minimum, [](N x) { return smaller(x[0], x[1]); }, [](I x) { return std::min(x[0], x[1]); }},
    {k_bitwise_and, nullptr, [](I x) { return x[0] & x[1]; }},
    {k_bitwise_or, nullptr, [](I x) { return x[0] | x[1]; }},
    {k_bitwise_xor, nullptr, [](I x) { return x[0] ^ x[1]; }},
    STITCH_COMPARISON(eq, x[0] == x[1]),
    STITCH_COMPARISON(ne, x[0] != x[1]),
    STITCH_COMPARISON(lt, x[0] < x[1]),
    STITCH_COMPARISON(le, x[0] <= x[1]),
    STITCH_COMPARISON(gt, x[0] > x[1]),
    STITCH_COMPARISON(ge, x[0] >= x[1]),
    STITCH_COMPARISON(logical_not, x[0] == 0),
    STITCH_COMPARISON(logical_and, x[0] != 0 && x[1] != 0),
    STITCH_COMPARISON(logical_or, x[0] != 0 || x[1] != 0),
    STITCH_COMPARISON(logical_xor, (x[0] != 0) != (x[1] != 0)),
};
#undef STITCH_COMPARISON

std::optional<Constant> convert(const Constant& from, DType to) {
  const bool from_integral = is_integral(from.dtype);
  if (to == DType::kBool)
    return Constant{to, 0, from_integral ? from.integer != 0 : from.number != 0};
  if (!is_integral(to)) {
    if (!from_integral) return Constant{to, round_to_dtype(from.number, to), 0};
    if (to == DType::kF64) return Constant{to, static_cast<double>(from.integer), 0};
    return Constant{to, round_to_dtype(static_cast<float>(from.integer), to), 0};
  }
  if (from_integral) return Constant{to, 0, wrap_integer(from.integer, to)};
  // Out of range, devices disagree.
  if (!(std::fabs(from.number) < 0x1p62)) return std::nullopt;
  const int64_t integer = static_cast<int64_t>(from.number);
  if (wrap_integer(integer, to) != integer) return std::nullopt;
  return Constant{to, 0, integer};
}

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

using R = const ValueRange*;
constexpr OpRow<ValueRange (*)(R x)> kRangeRules[] = {
    {k_cast, [](R x) { return x[0]; }},
    {k_neg, [](R x) { return ValueRange{-x[0].high, -x[0].low}; }},
    {k_add, [](R x) { return ValueRange{x[0].low + x[1].low, x[0].high + x[1].high}; }},
    {k_sub, [](R x) { return ValueRange{x[0].low - x[1].high, x[0].high - x[1].low}; }},
    {k_mul, [](R x) { return multiply(x[0], x[1]); }},
    {k_maximum,
     [](R x) { return ValueRange{std::max(x[0].low, x[1].low), std::max(x[0].high, x[1].high)}; }},
    {k_minimum,
     [](R x) { return ValueRange{std::min(x[0].low, x[1].low), std::min(x[0].high, x[1].high)}; }},
    {k_select,
     [](R x) { return ValueRange{std::min(x[1].low, x[2].low), std::max(x[1].high, x[2].high)}; }},
};

ValueRange range_of(const Node& node, const std::vector<ValueRange>& known) {
  const DType dtype = node.type.dtype;
  if (dtype == DType::kOpaque) return kAnywhere;
  if (is_integral(dtype)) return integer_range(dtype);
  if (node.op == k_full)
    return node.dims.empty() ? ValueRange{node.number, node.number} : integer_range(DType::kI64);
  const auto operands =
      map_to_vector(node.inputs, [&](NodeId operand) { return known[operand.index()]; });
  if (family(node) == Family::kView) return operands[0];
  const auto range = find_function(kRangeRules, node.op);
  return range ? range(operands.data()) : kAnywhere;
}

}  // namespace

bool Constant::is(double value) const {
  if (is_integral(dtype)) return static_cast<double>(integer) == value;
  return number == value && std::signbit(number) == std::signbit(value);
}

std::optional<Constant> constant_of(const Graph& graph, NodeId id) {
  const Node& node = graph[skip_views(graph, id)];
  if (node.op != k_full || !node.dims.empty()) return std::nullopt;
  if (is_integral(node.type.dtype))
    return Constant{node.type.dtype, 0, wrap_integer(node.integer, node.type.dtype)};
  const bool is_f64 = node.type.dtype == DType::kF64;
  return Constant{node.type.dtype, is_f64 ? node.number : static_cast<float>(node.number), 0};
}

std::optional<Constant> evaluate(OpKind op, const std::vector<Constant>& operands, DType dtype) {
  const auto is_beyond = [](const Constant& x) { return x.dtype == DType::kU64 && x.integer < 0; };
  if (op == k_select) return operands[0].integer ? operands[1] : operands[2];
  if (std::ranges::any_of(operands, is_beyond)) return std::nullopt;
  if (op == k_cast) return convert(operands[0], dtype);
  const Computation* row = find_by(kComputations, op, &Computation::op);
  if (!row) return std::nullopt;
  Numbers numbers{};
  Integers integers{};
  std::ranges::transform(operands, numbers.begin(), &Constant::number);
  std::ranges::transform(operands, integers.begin(), &Constant::integer);
  const bool integral = is_integral(operands[0].dtype);
  const bool is_truth = info(op).type_rule == TypeRule::kBool;
  // Arithmetic on bool has rules of its own; bits of bool are plain.
  if (operands[0].dtype == DType::kBool && row->number && !is_truth) return std::nullopt;
  if (integral ? !row->integer : !row->number) return std::nullopt;
  if (integral) return Constant{dtype, 0, wrap_integer(row->integer(integers), dtype)};
  // One operation in double, rounded once more to f32, is the correctly rounded f32 operation.
  const double result = row->number(numbers);
  if (is_truth) return Constant{dtype, 0, result != 0};
  return Constant{dtype, dtype == DType::kF64 ? result : static_cast<float>(result), 0};
}

Constant identity_of(OpKind reduction, DType dtype) {
  const std::string_view identity = info(reduction).identity;
  const auto highest = static_cast<int64_t>(~uint64_t{0} >> (64 - info(dtype).digits));
  if (identity == "lowest") return {dtype, -kInfinity, info(dtype).is_signed ? -highest - 1 : 0};
  if (identity == "highest") return {dtype, kInfinity, highest};
  return identity == "1" ? Constant{dtype, 1, 1} : Constant{dtype, 0, 0};
}

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
