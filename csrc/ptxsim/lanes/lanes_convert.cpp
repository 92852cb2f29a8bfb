#include <type_traits>

#include "ptxsim/lanes/lanes_half.h"

namespace stitch::ptxsim {
inline namespace STITCH_LANES_ISA {
namespace {

template <class T>
constexpr bool kIsHalf = std::is_same_v<T, Half> || std::is_same_v<T, BFloat>;
// What a value of each type is while it is converted, and what its natural register holds: 8-bit
// integers live in 16-bit registers, extended; 16-bit floats are their bits.
template <class T>
using Value = std::conditional_t<kIsHalf<T>, float, T>;
template <class T>
using Register = std::conditional_t<kIsHalf<T> || std::is_same_v<T, uint8_t>, uint16_t,
                                    std::conditional_t<std::is_same_v<T, int8_t>, int16_t, T>>;

template <class S>
void load(Value<S>* to, Warp& warp, const Instruction& i) {
  const Register<S>* row = warp.lanes<const Register<S>>(i.operands[1]);
  if constexpr (kIsHalf<S>)
    widen<S, kLanes>(to, row);
  else
    for (int l = 0; l < kLanes; ++l) to[l] = static_cast<S>(row[l]);
}
template <class R>
void store(Warp& warp, const Instruction& i, uint32_t mask, const R* row) {
  write<R>(warp, i.operands[0], mask, [&](int l) { return row[l]; });
}

template <class D, class S>
D clamp_integer(S x) {
  using Wide = __int128;
  constexpr S kLow = Wide{kLeast<D>} > Wide{kLeast<S>} ? S(kLeast<D>) : kLeast<S>;
  constexpr S kHigh = Wide{kMost<D>} < Wide{kMost<S>} ? S(kMost<D>) : kMost<S>;
  const S low = x < kLow ? kLow : x;
  return static_cast<D>(low > kHigh ? kHigh : low);
}

template <class D, class S, bool kSaturate>
void integer_to_integer(Warp& warp, const Instruction& i, uint32_t mask) {
  const Register<S>* a = warp.lanes<const Register<S>>(i.operands[1]);
  write<Register<D>>(warp, i.operands[0], mask, [&](int l) {
    const S x = static_cast<S>(a[l]);
    return static_cast<Register<D>>(kSaturate ? clamp_integer<D>(x) : static_cast<D>(x));
  });
}

template <class V>
void round_integral(V* row, Rounding mode) {
  constexpr bool kSingle = sizeof(V) == 4;
  const auto round = [&](auto op) {
    for (int l = 0; l < kLanes; ++l) row[l] = static_cast<V>(op(row[l]));
  };
  switch (mode) {
    case Rounding::rni:
      return round([](V x) { return kSingle ? __builtin_nearbyintf(x) : __builtin_nearbyint(x); });
    case Rounding::rzi:
      return round([](V x) { return kSingle ? __builtin_truncf(x) : __builtin_trunc(x); });
    case Rounding::rmi:
      return round([](V x) { return kSingle ? __builtin_floorf(x) : __builtin_floor(x); });
    case Rounding::rpi:
      return round([](V x) { return kSingle ? __builtin_ceilf(x) : __builtin_ceil(x); });
    default:
      return;
  }
}
template <class V>
void flush_row(V* row, bool ftz) {
  if constexpr (std::is_same_v<V, float>) {
    if (!ftz) return;
    for (int l = 0; l < kLanes; ++l) row[l] = flush<true>(row[l]);
  }
}

// Beyond the range the nearest integer; NaN zero, or from double or to 64 bits the top bit.
template <class D, class V, bool kTopBitForNan>
D clamp_float(V x) {
  constexpr V kEnd = V(uint64_t{1} << (sizeof(D) * 8 - 1)) * (std::is_signed_v<D> ? 1 : 2);
  constexpr V kStart = std::is_signed_v<D> ? -kEnd : V{0};
  const bool inside = x > kStart && x < kEnd;
  const D whole = static_cast<D>(inside ? x : V{0});
  const D outside = x >= kEnd ? kMost<D> : kLeast<D>;
  constexpr D kNan = kTopBitForNan ? D(uint64_t{1} << (sizeof(D) * 8 - 1)) : D{0};
  return x != x ? kNan : inside ? whole : outside;
}
template <class D, class S>
void float_to_integer(Warp& warp, const Instruction& i, uint32_t mask) {
  Value<S> in[kLanes];
  Register<D> row[kLanes];
  load<S>(in, warp, i);
  flush_row(in, i.modifiers.ftz);
  round_integral(in, i.modifiers.rounding);
  constexpr bool kTopBit = std::is_same_v<S, double> || sizeof(D) == 8;
  for (int l = 0; l < kLanes; ++l) row[l] = clamp_float<D, Value<S>, kTopBit>(in[l]);
  store(warp, i, mask, row);
}

// Rounds the row to the format of a 16-bit float and writes it.
template <class D, class V>
void store_halves(Warp& warp, const Instruction& i, uint32_t mask, const V* row) {
  float single[kLanes];
  if (std::is_same_v<V, float> && i.modifiers.rounding == Rounding::rn) {
    for (int l = 0; l < kLanes; ++l) single[l] = row[l];
  } else {
    const Rounding mode = i.modifiers.rounding;
    for (int l = 0; l < kLanes; ++l) single[l] = static_cast<float>(round_to<D>(row[l], mode));
  }
  uint16_t halves[kLanes];
  narrow<D, kLanes>(halves, single);
  store(warp, i, mask, halves);
}

// 64-bit integers have more bits than double: those beyond show in the last bit that stays.
template <class S>
double integer_to_odd(S x) {
  if constexpr (sizeof(S) < 8) return x;
  const bool negative = x < 0;
  const uint64_t magnitude = negative ? 0 - static_cast<uint64_t>(x) : static_cast<uint64_t>(x);
  if (magnitude >> 53 == 0) return static_cast<double>(x);
  const uint64_t kept = magnitude >> 11 | uint64_t{(magnitude & 0x7ff) != 0};
  const double scaled = static_cast<double>(static_cast<int64_t>(kept)) * 2048;
  return negative ? -scaled : scaled;
}
template <class D, class S>
D integer_to_float(S x) {
  if constexpr (sizeof(S) < 8) {
    return static_cast<D>(static_cast<std::conditional_t<sizeof(S) < 4, int32_t, int64_t>>(x));
  } else if constexpr (std::is_signed_v<S>) {
    return static_cast<D>(x);
  } else {
    // Of the sum of two doubles a zero could get a sign: convert as signed, halved when too large.
    const bool large = x >> 63 != 0;
    const int64_t kept = static_cast<int64_t>(large ? x >> 1 | (x & 1) : x);
    const D converted = static_cast<D>(kept);
    return large ? converted + converted : converted;
  }
}
template <class D, class S>
void integers_to_floats(Warp& warp, const Instruction& i, uint32_t mask) {
  Value<S> in[kLanes];
  load<S>(in, warp, i);
  const bool sat = i.modifiers.sat;
  if constexpr (kIsHalf<D>) {
    double row[kLanes];
    for (int l = 0; l < kLanes; ++l) row[l] = integer_to_odd(in[l]);
    for (int l = 0; l < kLanes; ++l) row[l] = sat ? saturate(row[l]) : row[l];
    store_halves<D>(warp, i, mask, row);
  } else {
    const ScopedRounding rounding(i.modifiers.rounding);
    asm volatile("" : : "r"(in) : "memory");
    D row[kLanes];
    for (int l = 0; l < kLanes; ++l) row[l] = integer_to_float<D>(in[l]);
    for (int l = 0; l < kLanes; ++l) row[l] = sat ? saturate(row[l]) : row[l];
    store(warp, i, mask, row);
  }
}

// float to double keeps what a NaN carries, made quiet; to float it is canonical.
template <class D, class V>
D convert_float(V x) {
  if constexpr (std::is_same_v<D, float>) return canonical(static_cast<float>(x));
  return canonical(static_cast<double>(x), static_cast<double>(x));
}
template <class D, class S>
void float_to_float(Warp& warp, const Instruction& i, uint32_t mask) {
  const Modifiers& m = i.modifiers;
  Value<S> in[kLanes];
  load<S>(in, warp, i);
  if (std::is_same_v<S, float>) flush_row(in, m.ftz);
  round_integral(in, m.rounding);
  if (m.sat)
    for (Value<S>& x : in) x = saturate(x);
  if (m.relu)
    for (Value<S>& x : in) x = x < 0 ? 0 : x;
  if constexpr (kIsHalf<D>) {
    // 16 bits to the same 16 bits: exact, but NaN.
    store_halves<D>(warp, i, mask, in);
  } else {
    const ScopedRounding rounding(m.rounding);
    asm volatile("" : : "r"(in) : "memory");
    D row[kLanes];
    for (int l = 0; l < kLanes; ++l) row[l] = convert_float<D>(in[l]);
    flush_row(row, m.ftz);
    store(warp, i, mask, row);
  }
}
// The conversions met often.
template <class Format>
void single_to_half(Warp& warp, const Instruction& i, uint32_t mask) {
  uint16_t row[kLanes];
  narrow<Format, kLanes>(row, warp.lanes<const float>(i.operands[1]));
  store(warp, i, mask, row);
}
void half_to_single(Warp& warp, const Instruction& i, uint32_t mask) {
  float row[kLanes];
  widen<Half, kLanes>(row, warp.lanes<const uint16_t>(i.operands[1]));
  write<float>(warp, i.operands[0], mask, [&](int l) { return canonical(row[l]); });
}

// The first source into the upper half.
template <class D>
void pack_floats(Warp& warp, const Instruction& i, uint32_t mask) {
  const Modifiers& m = i.modifiers;
  uint16_t halves[2][kLanes];
  for (int k = 0; k < 2; ++k) {
    float row[kLanes];
    std::memcpy(row, warp.lanes<const float>(i.operands[k + 1]), sizeof row);
    for (float& x : row) x = m.relu && x < 0 ? 0.0f : x;
    for (float& x : row) x = static_cast<float>(round_to<D>(x, m.rounding));
    narrow<D, kLanes>(halves[k], row);
  }
  write<uint32_t>(warp, i.operands[0], mask,
                  [&](int l) { return uint32_t{halves[0][l]} << 16 | halves[1][l]; });
}

template <class D, class S>
Handler either(const Modifiers& m) {
  if constexpr (std::is_integral_v<D> && std::is_integral_v<S>) {
    return m.sat ? integer_to_integer<D, S, true> : integer_to_integer<D, S, false>;
  } else if constexpr (std::is_integral_v<D>) {
    return float_to_integer<D, S>;
  } else if constexpr (std::is_integral_v<S>) {
    return integers_to_floats<D, S>;
  } else {
    const bool plain = !m.ftz && !m.sat && !m.relu;
    if (plain && m.rounding == Rounding::rn && std::is_same_v<S, float>) {
      if constexpr (kIsHalf<D>) return single_to_half<D>;
    }
    if (plain && m.rounding == Rounding::none && std::is_same_v<D, float> &&
        std::is_same_v<S, Half>) {
      return half_to_single;
    }
    return float_to_float<D, S>;
  }
}
Handler convert(Type type, Type source, const Modifiers& m) {
  using Numbers = Types<uint8_t, int8_t, uint16_t, int16_t, uint32_t, int32_t, uint64_t, int64_t,
                        Half, BFloat, float, double>;
  return choose(Numbers{}, type, [&]<class D> {
    return choose(Numbers{}, source, [&]<class S> { return either<D, S>(m); });
  });
}

bool is_float(Type type) {
  return type == Type::f16 || type == Type::bf16 || type == Type::f32 || type == Type::f64;
}
bool is_16_bit(Type type) { return type == Type::f16 || type == Type::bf16; }

// Whether the rounding is one that this conversion has: a float rounding where bits are lost, an
// integral one from float to integer or within one type, none else.
bool rounding_fits(Type type, Type source, Rounding rounding) {
  const bool integral = rounding >= Rounding::rni;
  const bool floating = rounding >= Rounding::rn && rounding <= Rounding::rp;
  if (!is_float(type)) return is_float(source) ? integral : rounding == Rounding::none;
  if (!is_float(source)) return floating;
  if (type == source) return integral || rounding == Rounding::none;
  const bool loses = is_16_bit(type) || (type == Type::f32 && source == Type::f64);
  return loses ? floating : rounding == Rounding::none;
}

Handler find_cvt(const Query& q) {
  const Modifiers& m = q.modifiers;
  const bool has_single = q.type == Type::f32 || q.source == Type::f32;
  if (!rounding_fits(q.type, q.source, m.rounding) || (m.ftz && !has_single)) return nullptr;
  const bool takes_relu = is_16_bit(q.type) && q.source == Type::f32 && !m.sat;
  if (m.relu && (!takes_relu || (m.rounding != Rounding::rn && m.rounding != Rounding::rz)))
    return nullptr;
  if (q.type == Type::bf16 && m.sat) return nullptr;
  return convert(q.type, q.source, m);
}

}  // namespace

Handler find_convert(const Query& q) {
  const Modifiers& m = q.modifiers;
  if (q.opcode == Opcode::cvt) return find_cvt(q);
  if (q.opcode != Opcode::cvt_pack || m.ftz || m.sat) return nullptr;
  if (m.rounding != Rounding::rn && m.rounding != Rounding::rz) return nullptr;
  return q.type == Type::f16x2 ? pack_floats<Half> : pack_floats<BFloat>;
}

}  // namespace STITCH_LANES_ISA
}  // namespace stitch::ptxsim
