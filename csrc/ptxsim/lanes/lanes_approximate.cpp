#include <cmath>

#include "ptxsim/lanes/lanes_half.h"

namespace stitch::ptxsim {
inline namespace STITCH_LANES_ISA {
namespace {

// How far a result may be from the exact one: units in the last place, a part of it, or absolutely.
struct Bound {
  double units = 0;
  double relative = 0;
  double absolute = 0;
};

// Each operation in double, as the PTX ISA bounds its error in the format named.
struct ApproximateReciprocal {
  static double of(double a) { return 1 / a; }
  static Bound bound(double, Single) { return {.units = 1}; }
};
struct ApproximateRoot {
  static double of(double a) { return __builtin_sqrt(a); }
  static Bound bound(double, Single) { return {.relative = 0x1p-23}; }
};
struct ApproximateInverseRoot {
  static double of(double a) { return 1 / __builtin_sqrt(a); }
  static Bound bound(double, Single) { return {.relative = 0x1p-22 * 0.5358867312681466}; }
};
// Beyond 100 pi nothing is promised; the bound before holds there too.
Bound circular_bound(double a) {
  constexpr double kTwoPi = 6.283185307179586;
  const bool near = __builtin_fabs(a) <= kTwoPi;
  return {.absolute = near ? 0x1p-20 * 0.7071067811865476 : 0x1p-14 * 0.6155722066724582};
}
struct ApproximateSine {
  static double of(double a) { return __builtin_sin(a); }
  static Bound bound(double a, Single) { return circular_bound(a); }
};
struct ApproximateCosine {
  static double of(double a) { return __builtin_cos(a); }
  static Bound bound(double a, Single) { return circular_bound(a); }
};
struct ApproximateLog {
  static double of(double a) { return __builtin_log2(a); }
  static Bound bound(double a, Single) {
    if (a > 0.5 && a < 2) return {.absolute = 0x1p-22};
    return {.relative = 0x1p-22};
  }
};
struct ApproximateExp {
  static double of(double a) { return __builtin_exp2(a); }
  static Bound bound(double, Single) { return {.units = 2}; }
  static Bound bound(double, Half) { return {.relative = 0x1p-10 * 1.0717734625362931}; }
  static Bound bound(double, BFloat) { return {.relative = 0x1p-7}; }
};
struct ApproximateTanh {
  static double of(double a) { return __builtin_tanh(a); }
  static Bound bound(double, Single) { return {.relative = 0x1p-11}; }
  static Bound bound(double, Half) { return {.absolute = 0x1p-11 * 1.0090504003146433}; }
  static Bound bound(double, BFloat) { return {.absolute = 0x1p-8}; }
};

// Uniform in (-1, 1).
double draw() { return static_cast<double>(int64_t(next_random(approximation_noise))) * 0x1p-63; }

// What is left of the bound after rounding is drawn from.  Zeros, infinities and NaN are exact.  A
// result that would leave its binade upwards, where rounding errs by more, stays.
template <class Format>
double disturb(double exact, const Bound& bound) {
  const double magnitude = __builtin_fabs(exact);
  if (approximation_noise == 0 || exact == 0 || !(magnitude <= Format::kMax)) return exact;
  const int exponent = std::ilogb(magnitude * (1 - 0x1p-40));
  const int least = exponent > Format::kMinExponent ? exponent : Format::kMinExponent;
  const double unit = std::ldexp(1.0, least - Format::kPrecision + 1);
  const double most = bound.units * unit + bound.relative * magnitude + bound.absolute;
  if (most <= unit / 2) return exact;
  const double disturbed = exact + draw() * (most - unit / 2);
  if (__builtin_signbit(disturbed) != __builtin_signbit(exact)) return exact;
  return __builtin_fabs(disturbed) < std::ldexp(2.0, exponent) ? disturbed : exact;
}

template <class Format, class Op>
float approximate(double a) {
  const double exact = Op::of(a);
  // Of zeros the PTX ISA lists the results, so that 2^0 and cos(0) are 1.
  const double disturbed = a == 0 ? exact : disturb<Format>(exact, Op::bound(a, Format{}));
  const bool to_one = __builtin_fabs(exact) <= 1 && __builtin_fabs(disturbed) > 1;
  constexpr bool kWithinOne = std::is_same_v<Op, ApproximateSine> ||
                              std::is_same_v<Op, ApproximateCosine> ||
                              std::is_same_v<Op, ApproximateTanh>;
  const double kept = kWithinOne && to_one ? exact : disturbed;
  return canonical(static_cast<float>(round_to<Format>(kept, Rounding::rn)));
}

template <class Op, bool kFlush>
void approximate_lanes(Warp& warp, const Instruction& i, uint32_t mask) {
  const float* a = warp.lanes<const float>(i.operands[1]);
  write<float>(warp, i.operands[0], mask, [&](int l) {
    if ((mask >> l & 1) == 0) return 0.0f;
    return flush<kFlush>(approximate<Single, Op>(flush<kFlush>(a[l])));
  });
}
// Reciprocals and roots of doubles have no slow parts: all lanes at once, unless disturbed.
template <class Op, bool kFlush>
void quick_lanes(Warp& warp, const Instruction& i, uint32_t mask) {
  if (approximation_noise != 0) return approximate_lanes<Op, kFlush>(warp, i, mask);
  const float* a = warp.lanes<const float>(i.operands[1]);
  write<float>(warp, i.operands[0], mask, [&](int l) {
    return flush<kFlush>(canonical(static_cast<float>(Op::of(double{flush<kFlush>(a[l])}))));
  });
}

template <class T, class Op, bool kFlush>
void approximate_halves(Warp& warp, const Instruction& i, uint32_t mask) {
  using Format = typename HalfRow<T>::Format;
  constexpr int kCount = HalfRow<T>::kCount;
  float row[kCount];
  load_halves<T, false>(row, warp, i.operands[1]);
  for (int l = 0; l < kCount; ++l) {
    if ((mask >> (l / (kCount / kLanes)) & 1) == 0) continue;
    row[l] = flush<kFlush>(approximate<Format, Op>(flush<kFlush>(row[l])));
  }
  uint16_t halves[kCount];
  narrow<Format, kCount>(halves, row);
  write<uint16_t, kCount>(warp, i.operands[0], mask, [&](int l) { return halves[l]; });
}

// a / b is a times a reciprocal, which is zero for the largest b; .full scales first.
template <bool kFlush, bool kFull>
void divide_lanes(Warp& warp, const Instruction& i, uint32_t mask) {
  const float* a = warp.lanes<const float>(i.operands[1]);
  const float* b = warp.lanes<const float>(i.operands[2]);
  write<float>(warp, i.operands[0], mask, [&](int l) {
    const float x = flush<kFlush>(a[l]);
    const float y = flush<kFlush>(b[l]);
    const bool beyond = !kFull && __builtin_fabsf(y) > 0x1p126f && __builtin_fabsf(y) < kInfinity;
    const double exact = beyond ? x * __builtin_copysign(0.0, y) : double{x} / double{y};
    const double disturbed = disturb<Single>(exact, {.units = 2});
    return flush<kFlush>(canonical(static_cast<float>(disturbed)));
  });
}

// The upper half of a double; subnormals are flushed, NaN has one encoding.
template <class Op>
void upper_half_lanes(Warp& warp, const Instruction& i, uint32_t mask) {
  const double* a = warp.lanes<const double>(i.operands[1]);
  write<uint64_t>(warp, i.operands[0], mask, [&](int l) -> uint64_t {
    const double exact = flush<true>(Op::of(flush<true>(a[l])));
    if (exact != exact) return uint64_t{0x7fffffff} << 32;
    const uint64_t bits = bits_as<uint64_t>(exact);
    return (bits + ((uint64_t{1} << 31) - 1 + (bits >> 32 & 1))) >> 32 << 32;
  });
}
void inverse_root_lanes(Warp& warp, const Instruction& i, uint32_t mask) {
  const double* a = warp.lanes<const double>(i.operands[1]);
  write<double>(warp, i.operands[0], mask,
                [&](int l) { return canonical(1 / __builtin_sqrt(a[l]), a[l]); });
}

template <class Op, bool kIsQuick>
Handler single(const Query& q) {
  const auto of = []<bool kFlush>() -> Handler {
    return kIsQuick ? quick_lanes<Op, kFlush> : approximate_lanes<Op, kFlush>;
  };
  return q.type == Type::f32 ? choose_flags(of, q.modifiers.ftz) : nullptr;
}
// Of doubles reciprocals alone, of which .ftz is the upper half.
Handler reciprocal(const Query& q) {
  if (q.type == Type::f32) return single<ApproximateReciprocal, true>(q);
  return q.modifiers.ftz ? upper_half_lanes<ApproximateReciprocal> : nullptr;
}
Handler inverse_root(const Query& q) {
  if (q.type == Type::f32) return single<ApproximateInverseRoot, true>(q);
  return q.modifiers.ftz ? upper_half_lanes<ApproximateInverseRoot> : inverse_root_lanes;
}
// 16-bit formats too: of 2^x, bf16 has .ftz, which must be there; tanh has none.
template <class Op, bool kFlushesBFloat>
Handler any_width(const Query& q) {
  if (q.type == Type::f32)
    return q.modifiers.ftz && !kFlushesBFloat ? nullptr : single<Op, false>(q);
  return choose(Halves{}, q.type, [&]<class T>() -> Handler {
    constexpr bool kFlush = HalfRow<T>::kIsBFloat && kFlushesBFloat;
    return q.modifiers.ftz == kFlush ? approximate_halves<T, Op, kFlush> : nullptr;
  });
}
Handler divide(const Query& q) {
  if (q.type != Type::f32 || q.modifiers.approx == q.modifiers.full) return nullptr;
  const auto of = []<bool... kFlags>() -> Handler { return divide_lanes<kFlags...>; };
  return choose_flags(of, q.modifiers.ftz, q.modifiers.full);
}

constexpr Operation kOperations[] = {
    {Opcode::div, divide},
    {Opcode::rcp, reciprocal},
    {Opcode::sqrt, single<ApproximateRoot, true>},
    {Opcode::rsqrt, inverse_root},
    {Opcode::sin, single<ApproximateSine, false>},
    {Opcode::cos, single<ApproximateCosine, false>},
    {Opcode::lg2, single<ApproximateLog, false>},
    {Opcode::ex2, any_width<ApproximateExp, true>},
    {Opcode::tanh, any_width<ApproximateTanh, false>},
};

}  // namespace

Handler find_approximate(const Query& q) {
  const Modifiers& m = q.modifiers;
  if (m.rounding != Rounding::none || m.sat || m.relu) return nullptr;
  return m.approx || q.opcode == Opcode::div ? find_operation(kOperations, q) : nullptr;
}

}  // namespace STITCH_LANES_ISA
}  // namespace stitch::ptxsim
