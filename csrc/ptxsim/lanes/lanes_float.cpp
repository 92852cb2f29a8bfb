#include "ptxsim/lanes/lanes_numbers.h"

namespace stitch::ptxsim {
inline namespace STITCH_LANES_ISA {
namespace {

constexpr auto kMulAdd = []<class T>(T a, T b, T c) {
  return static_cast<T>(sizeof(T) == 4 ? __builtin_fmaf(a, b, c) : __builtin_fma(a, b, c));
};
constexpr auto kDivide = [](auto a, auto b) { return a / b; };
constexpr auto kReciprocal = [](auto a) { return 1 / a; };
constexpr auto kSquareRoot = []<class T>(T a) {
  return static_cast<T>(sizeof(T) == 4 ? __builtin_sqrtf(a) : __builtin_sqrt(a));
};
constexpr auto kCopySign = [](auto a, auto b) { return with_sign(b, a); };

template <auto kOp, bool kFlush, bool kSaturate>
constexpr auto kArithmetic = [](auto... operands) __attribute__((always_inline)) {
  const auto result = flush<kFlush>(kOp(flush<kFlush>(operands)...));
  if constexpr (kSaturate)
    return saturate(result);
  else
    return canonical(result, operands...);
};
template <auto kOp, bool kFlush>
constexpr auto kFlushed = [](auto... operands) __attribute__((always_inline)) {
  return flush<kFlush>(kOp(flush<kFlush>(operands)...));
};

template <auto kOp, class D, class... S>
void map_rounded(Warp& warp, const Instruction& i, uint32_t mask) {
  const ScopedRounding rounding(i.modifiers.rounding);
  map<kOp, kLanes, D, S...>(warp, i, mask);
}
template <auto kOp, class... T>
Handler by_rounding(Rounding mode) {
  if (mode <= Rounding::rn) return map_lanes<kOp, T...>;
  return mode <= Rounding::rp ? map_rounded<kOp, T...> : nullptr;
}

// The modifiers are those of f32.
template <auto kOp, class... Slots>
Handler arithmetic(const Query& q) {
  const Modifiers& m = q.modifiers;
  if (q.type == Type::f64) {
    constexpr auto kPlain = kArithmetic<kOp, false, false>;
    return m.ftz || m.sat ? nullptr : by_rounding<kPlain, Bound<Slots, double>...>(m.rounding);
  }
  const auto of = [&]<bool... kFlags> {
    return by_rounding<kArithmetic<kOp, kFlags...>, Bound<Slots, float>...>(m.rounding);
  };
  return choose_flags(of, m.ftz, m.sat);
}
// Where rounding must be named, and is to the letter.
template <auto kOp, class... Slots>
Handler rounded(const Query& q) {
  return q.modifiers.rounding == Rounding::none ? nullptr : arithmetic<kOp, Slots...>(q);
}
template <auto kOp, class... Slots>
Handler unsaturated(const Query& q) {
  return q.modifiers.sat ? nullptr : rounded<kOp, Slots...>(q);
}

bool is_plain(const Modifiers& m) { return !m.sat && m.rounding == Rounding::none; }

template <bool kMax>
Handler extremum(const Query& q) {
  const Modifiers& m = q.modifiers;
  if (!is_plain(m)) return nullptr;
  if (q.type == Type::f64) {
    const bool is_modified = m.ftz || m.nan || m.xorsign;
    return is_modified ? nullptr : map_lanes<kExtremum<kMax, false, false>, double, double, double>;
  }
  const auto of = []<bool kFlush, bool... kFlags>() -> Handler {
    return map_lanes<kFlushed<kExtremum<kMax, kFlags...>, kFlush>, float, float, float>;
  };
  return choose_flags(of, m.ftz, m.nan, m.xorsign);
}
template <bool kAbsolute>
Handler change_sign(const Query& q) {
  if (!is_plain(q.modifiers)) return nullptr;
  if (!q.modifiers.ftz) return each_of<kChangeSign<false, kAbsolute>, Floats, Self, Self>(q);
  return each_of<kChangeSign<true, kAbsolute>, Types<float>, Self, Self>(q);
}

template <class T>
bool has_property(T bits, Word property) {
  using Float = std::conditional_t<sizeof(T) == 4, float, double>;
  const T magnitude = bits & ~kSignBit<Float>;
  const T exponent = bits & kExponentBits<Float>;
  const bool finite = exponent != kExponentBits<Float>;
  switch (property) {
    case Word::finite:
      return finite;
    case Word::infinite:
      return magnitude == kExponentBits<Float>;
    case Word::number:
      return magnitude <= kExponentBits<Float>;
    case Word::notanumber:
      return magnitude > kExponentBits<Float>;
    case Word::normal:
      return finite && exponent != 0;
    default:
      return exponent == 0 && magnitude != 0;  // subnormal
  }
}
template <class T>
void test_property(Warp& warp, const Instruction& i, uint32_t mask) {
  const T* a = warp.lanes<const T>(i.operands[1]);
  const Word property = i.modifiers.word;
  warp.set_predicate(i.operands[0], mask,
                     gather<uint32_t>([&](int l) { return has_property(a[l], property); }));
}

Handler find_test(const Query& q) {
  return q.type == Type::f32 ? test_property<uint32_t> : test_property<uint64_t>;
}

constexpr Operation kOperations[] = {
    {Opcode::add, arithmetic<kAdd, Self, Self, Self>},
    {Opcode::sub, arithmetic<kSub, Self, Self, Self>},
    {Opcode::mul, arithmetic<kMul, Self, Self, Self>},
    {Opcode::fma, rounded<kMulAdd, Self, Self, Self, Self>},
    {Opcode::mad, rounded<kMulAdd, Self, Self, Self, Self>},
    {Opcode::div, unsaturated<kDivide, Self, Self, Self>},
    {Opcode::rcp, unsaturated<kReciprocal, Self, Self>},
    {Opcode::sqrt, unsaturated<kSquareRoot, Self, Self>},
    {Opcode::min, extremum<false>},
    {Opcode::max, extremum<true>},
    {Opcode::abs, change_sign<true>},
    {Opcode::neg, change_sign<false>},
    {Opcode::copysign, each_of<kCopySign, Floats, Self, Self, Self>},
    {Opcode::testp, find_test},
};

}  // namespace

Handler find_float(const Query& q) {
  const Modifiers& m = q.modifiers;
  if ((q.type != Type::f32 && q.type != Type::f64) || m.approx || m.full || m.relu) return nullptr;
  const bool picks = q.opcode == Opcode::min || q.opcode == Opcode::max;
  return (m.nan || m.xorsign) && !picks ? nullptr : find_operation(kOperations, q);
}

}  // namespace STITCH_LANES_ISA
}  // namespace stitch::ptxsim
