#include <type_traits>

#include "ptxsim/lanes/lanes_loop.h"

namespace stitch::ptxsim {
inline namespace STITCH_LANES_ISA {
namespace {

// Wide enough that no arithmetic below overflows: signed overflow and the promotion of 16-bit
// operands to int are undefined, wrapping is what PTX asks for.
template <class T>
using Unsigned = std::conditional_t<(sizeof(T) < 4), uint32_t, std::make_unsigned_t<T>>;
template <class T>
struct Twice;
template <>
struct Twice<uint16_t> {
  using Type = uint32_t;
};
template <>
struct Twice<int16_t> {
  using Type = int32_t;
};
template <>
struct Twice<uint32_t> {
  using Type = uint64_t;
};
template <>
struct Twice<int32_t> {
  using Type = int64_t;
};
template <>
struct Twice<uint64_t> {
  using Type = unsigned __int128;
};
template <>
struct Twice<int64_t> {
  using Type = __int128;
};
template <class T>
using Wide = typename Twice<T>::Type;

template <class T>
constexpr bool kSigned = std::is_signed_v<T>;
template <class T>
constexpr T kLeast = kSigned<T> ? T(Unsigned<T>{1} << (sizeof(T) * 8 - 1)) : T{0};
template <class T>
constexpr T kMost = static_cast<T>(~kLeast<T>);

template <class T>
T high(T a, T b) {
  return static_cast<T>((Wide<T>{a} * Wide<T>{b}) >> (sizeof(T) * 8));
}

struct Add {
  template <class T>
  static T of(T a, T b) {
    return static_cast<T>(Unsigned<T>(a) + Unsigned<T>(b));
  }
};
struct Sub {
  template <class T>
  static T of(T a, T b) {
    return static_cast<T>(Unsigned<T>(a) - Unsigned<T>(b));
  }
};
int32_t saturate(int64_t x) {
  return static_cast<int32_t>(x > kMost<int32_t>    ? kMost<int32_t>
                              : x < kLeast<int32_t> ? kLeast<int32_t>
                                                    : x);
}
struct AddSaturating {
  static int32_t of(int32_t a, int32_t b) { return saturate(int64_t{a} + b); }
};
struct SubSaturating {
  static int32_t of(int32_t a, int32_t b) { return saturate(int64_t{a} - b); }
};
struct MulLow {
  template <class T>
  static T of(T a, T b) {
    return static_cast<T>(Unsigned<T>(a) * Unsigned<T>(b));
  }
};
struct MulHigh {
  template <class T>
  static T of(T a, T b) {
    return high(a, b);
  }
};
struct MulWide {
  template <class T>
  static Wide<T> of(T a, T b) {
    return Wide<T>{a} * Wide<T>{b};
  }
};
struct MadLow {
  template <class T>
  static T of(T a, T b, T c) {
    return Add::of(MulLow::of(a, b), c);
  }
};
struct MadHigh {
  template <class T>
  static T of(T a, T b, T c) {
    return Add::of(high(a, b), c);
  }
};
struct MadHighSaturating {
  static int32_t of(int32_t a, int32_t b, int32_t c) { return saturate(int64_t{high(a, b)} + c); }
};
struct MadWide {
  template <class T>
  static Wide<T> of(T a, T b, Wide<T> c) {
    return Add::of(MulWide::of(a, b), c);
  }
};
template <class T>
int64_t low_24(T a) {
  return kSigned<T> ? int64_t{static_cast<int32_t>(uint32_t(a) << 8) >> 8}
                    : int64_t{uint32_t(a) & 0xffffffu};
}
struct Mul24 {
  template <class T>
  static T of(T a, T b) {
    return static_cast<T>(uint64_t(low_24(a)) * uint64_t(low_24(b)));
  }
};
struct Mad24 {
  template <class T>
  static T of(T a, T b, T c) {
    return Add::of(Mul24::of(a, b), c);
  }
};
// Division by zero gives any value in PTX: here all ones, and the dividend as remainder.
struct Divide {
  template <class T>
  static T of(T a, T b) {
    const bool wraps = kSigned<T> && a == kLeast<T> && b == static_cast<T>(-1);
    const T quotient = static_cast<T>(a / (b == 0 || wraps ? T{1} : b));
    return b == 0 ? static_cast<T>(-1) : quotient;
  }
};
struct Remainder {
  template <class T>
  static T of(T a, T b) {
    const bool one = b == 0 || (kSigned<T> && b == static_cast<T>(-1));
    const T remainder = static_cast<T>(a % (one ? T{1} : b));
    return b == 0 ? a : remainder;
  }
};
struct Absolute {
  template <class T>
  static T of(T a) {
    return a < 0 ? Sub::of(T{0}, a) : a;
  }
};
struct Negate {
  template <class T>
  static T of(T a) {
    return Sub::of(T{0}, a);
  }
};
struct Min {
  template <class T>
  static T of(T a, T b) {
    return a < b ? a : b;
  }
};
struct Max {
  template <class T>
  static T of(T a, T b) {
    return a > b ? a : b;
  }
};
template <class Op>
struct Relu {
  template <class T>
  static T of(T a, T b) {
    return Max::of(Op::of(a, b), T{0});
  }
};
struct Sad {
  template <class T>
  static T of(T a, T b, T c) {
    return Add::of(c, a < b ? Sub::of(b, a) : Sub::of(a, b));
  }
};
// c plus the products of the elements of `a` with bytes of `b`, from the byte kFirst on.
template <class A, class B, int kFirst>
struct DotProduct {
  static uint32_t of(uint32_t a, uint32_t b, uint32_t c) {
    constexpr int kBits = sizeof(A) * 8;
    for (int k = 0; k < 32 / kBits; ++k) {
      c += uint32_t(static_cast<A>(a >> kBits * k)) *
           uint32_t(static_cast<B>(b >> 8 * (kFirst + k)));
    }
    return c;
  }
};

// Sums with the carry flag, a predicate; sub leaves a borrow there.  Operands: the result, the flag
// that is written, sources, the flag that is read.
template <class T, class Op, bool kIn, bool kOut>
void with_carry(Warp& warp, const Instruction& i, uint32_t mask) {
  const T* a = warp.lanes<const T>(i.operands[2]);
  const T* b = warp.lanes<const T>(i.operands[3]);
  const T* c = warp.lanes<const T>(i.operands[Op::kSources + 1]);
  const uint32_t flags = kIn ? warp.predicate(i.operands[Op::kSources + 2]) : 0;
  T row[kLanes];
  uint32_t carry = 0;
  for (int l = 0; l < kLanes; ++l) {
    bool out = false;
    row[l] = Op::of(a[l], b[l], c[l], T(flags >> l & 1), out);
    carry |= uint32_t{out} << l;
  }
  write<T>(warp, i.operands[0], mask, [&](int l) { return row[l]; });
  if (kOut) write_predicate(warp, i.operands[1], mask, carry);
}
template <class T>
T add_carry(T a, T b, T in, bool& out) {
  const T sum = static_cast<T>(a + b);
  const T all = static_cast<T>(sum + in);
  out = sum < a || all < sum;
  return all;
}
struct CarryAdd {
  static constexpr int kSources = 2;
  template <class T>
  static T of(T a, T b, T, T in, bool& out) {
    return add_carry(a, b, in, out);
  }
};
struct CarrySub {
  static constexpr int kSources = 2;
  template <class T>
  static T of(T a, T b, T, T in, bool& out) {
    out = a < b || (a == b && in != 0);
    return static_cast<T>(a - b - in);
  }
};
struct CarryMadLow {
  static constexpr int kSources = 3;
  template <class T>
  static T of(T a, T b, T c, T in, bool& out) {
    return add_carry(T(a * b), c, in, out);
  }
};
template <bool kSignedProduct>
struct CarryMadHigh {
  static constexpr int kSources = 3;
  template <class T>
  static T of(T a, T b, T c, T in, bool& out) {
    using Factor = std::conditional_t<kSignedProduct, std::make_signed_t<T>, T>;
    return add_carry(T(high(Factor(a), Factor(b))), c, in, out);
  }
};

template <class Op, bool kIn>
Handler carry_handler(Type type, bool out) {
  const bool is_64 = type == Type::u64 || type == Type::s64;
  if (out) return is_64 ? with_carry<uint64_t, Op, kIn, true> : with_carry<uint32_t, Op, kIn, true>;
  return is_64 ? with_carry<uint64_t, Op, kIn, false> : with_carry<uint32_t, Op, kIn, false>;
}
template <bool kIn>
Handler carry_mad_high(Type type, bool out) {
  const bool is_signed = type == Type::s32 || type == Type::s64;
  return is_signed ? carry_handler<CarryMadHigh<true>, kIn>(type, out)
                   : carry_handler<CarryMadHigh<false>, kIn>(type, out);
}

template <class Op>
Handler unary(Type type) {
  return choose<int16_t, int32_t, int64_t>(type, []<class T> { return map_lanes<Op, T, T>; });
}
template <class Make>
Handler choose_any(Type type, Make make) {
  return choose<uint16_t, uint32_t, uint64_t, int16_t, int32_t, int64_t>(type, make);
}
template <class Op>
Handler binary(Type type) {
  if (type == Type::u16x2) return map_pairs<Op, uint16_t, uint16_t, uint16_t>;
  if (type == Type::s16x2) return map_pairs<Op, int16_t, int16_t, int16_t>;
  return choose_any(type, []<class T> { return map_lanes<Op, T, T, T>; });
}
template <class Op>
Handler ternary(Type type) {
  return choose_any(type, []<class T> { return map_lanes<Op, T, T, T, T>; });
}
template <class Make>
Handler choose_narrow(Type type, Make make) {
  return choose<uint16_t, uint32_t, int16_t, int32_t>(type, make);
}
Handler wide_product(Type type) {
  return choose_narrow(type, []<class T> { return map_lanes<MulWide, Wide<T>, T, T>; });
}
Handler wide_mad(Type type) {
  return choose_narrow(type, []<class T> { return map_lanes<MadWide, Wide<T>, T, T, Wide<T>>; });
}
template <class Op>
Handler extremum(Type type, bool relu) {
  if (!relu) return binary<Op>(type);
  if (type == Type::s32) return map_lanes<Relu<Op>, int32_t, int32_t, int32_t>;
  if (type == Type::s16x2) return map_pairs<Relu<Op>, int16_t, int16_t, int16_t>;
  return nullptr;
}
template <class A, class B, int kFirst>
constexpr Handler kDot =
    map_lanes<DotProduct<A, B, kFirst>, uint32_t, uint32_t, uint32_t, uint32_t>;
template <class Unsigned, class Signed, int kFirst = 0>
Handler dot_product(Type a, Type b) {
  const bool b_is_unsigned = b == Type::u32;
  if (a == Type::u32)
    return b_is_unsigned ? kDot<Unsigned, uint8_t, kFirst> : kDot<Unsigned, int8_t, kFirst>;
  return b_is_unsigned ? kDot<Signed, uint8_t, kFirst> : kDot<Signed, int8_t, kFirst>;
}

Handler find_plain(const Query& q) {
  switch (q.opcode) {
    case Opcode::add:
      return binary<Add>(q.type);
    case Opcode::sub:
      return binary<Sub>(q.type);
    case Opcode::mul_lo:
      return binary<MulLow>(q.type);
    case Opcode::mul_hi:
      return binary<MulHigh>(q.type);
    case Opcode::mul_wide:
      return wide_product(q.type);
    case Opcode::mad_lo:
      return ternary<MadLow>(q.type);
    case Opcode::mad_hi:
      return ternary<MadHigh>(q.type);
    case Opcode::mad_wide:
      return wide_mad(q.type);
    case Opcode::mul24_lo:
      return q.type == Type::s32 ? map_lanes<Mul24, int32_t, int32_t, int32_t>
                                 : map_lanes<Mul24, uint32_t, uint32_t, uint32_t>;
    case Opcode::mad24_lo:
      return q.type == Type::s32 ? map_lanes<Mad24, int32_t, int32_t, int32_t, int32_t>
                                 : map_lanes<Mad24, uint32_t, uint32_t, uint32_t, uint32_t>;
    case Opcode::div:
      return binary<Divide>(q.type);
    case Opcode::rem:
      return binary<Remainder>(q.type);
    case Opcode::abs:
      return unary<Absolute>(q.type);
    case Opcode::neg:
      return unary<Negate>(q.type);
    case Opcode::min:
      return extremum<Min>(q.type, q.modifiers.relu);
    case Opcode::max:
      return extremum<Max>(q.type, q.modifiers.relu);
    case Opcode::sad:
      return ternary<Sad>(q.type);
    case Opcode::dp4a:
      return dot_product<uint8_t, int8_t>(q.type, q.source);
    case Opcode::dp2a_lo:
      return dot_product<uint16_t, int16_t>(q.type, q.source);
    case Opcode::dp2a_hi:
      return dot_product<uint16_t, int16_t, 2>(q.type, q.source);
    default:
      return nullptr;
  }
}

Handler find_carry(const Query& q) {
  const bool out = q.modifiers.carry_out;
  switch (q.opcode) {
    case Opcode::add_cc:
      return carry_handler<CarryAdd, false>(q.type, true);
    case Opcode::addc:
      return carry_handler<CarryAdd, true>(q.type, out);
    case Opcode::sub_cc:
      return carry_handler<CarrySub, false>(q.type, true);
    case Opcode::subc:
      return carry_handler<CarrySub, true>(q.type, out);
    case Opcode::mad_lo_cc:
      return carry_handler<CarryMadLow, false>(q.type, true);
    case Opcode::madc_lo:
      return carry_handler<CarryMadLow, true>(q.type, out);
    case Opcode::mad_hi_cc:
      return carry_mad_high<false>(q.type, true);
    case Opcode::madc_hi:
      return carry_mad_high<true>(q.type, out);
    default:
      return nullptr;
  }
}

Handler find_saturating(const Query& q) {
  if (q.type != Type::s32) return nullptr;
  switch (q.opcode) {
    case Opcode::add:
      return map_lanes<AddSaturating, int32_t, int32_t, int32_t>;
    case Opcode::sub:
      return map_lanes<SubSaturating, int32_t, int32_t, int32_t>;
    case Opcode::mad_hi:
      return map_lanes<MadHighSaturating, int32_t, int32_t, int32_t, int32_t>;
    default:
      return nullptr;
  }
}

bool has_integers(Type type) {
  return (type >= Type::u16 && type <= Type::u64) || (type >= Type::s16 && type <= Type::s64) ||
         type == Type::u16x2 || type == Type::s16x2;
}

}  // namespace

Handler find_integer(const Query& q) {
  const Modifiers& m = q.modifiers;
  if (!has_integers(q.type) || m.ftz || m.approx || m.full || m.nan || m.xorsign ||
      m.rounding != Rounding::none) {
    return nullptr;
  }
  if (m.sat) return find_saturating(q);
  if (Handler handler = find_carry(q)) return handler;
  return find_plain(q);
}

}  // namespace STITCH_LANES_ISA
}  // namespace stitch::ptxsim
