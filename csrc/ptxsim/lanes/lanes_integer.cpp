#include <type_traits>

#include "ptxsim/lanes/lanes_table.h"

namespace stitch::ptxsim {
inline namespace STITCH_LANES_ISA {
namespace {

// Wide enough that no arithmetic below overflows: signed overflow and the promotion of 16-bit
// operands to int are undefined, wrapping is what PTX asks for.
template <class T>
using Unsigned = std::conditional_t<(sizeof(T) < 4), uint32_t, std::make_unsigned_t<T>>;
template <class T>
constexpr bool kSigned = std::is_signed_v<T>;
template <class T, class Signed, class Unsigned>
using Like = std::conditional_t<kSigned<T>, Signed, Unsigned>;
template <class T>  // twice as wide
using Wide = std::conditional_t<sizeof(T) == 2, Like<T, int32_t, uint32_t>,
                                std::conditional_t<sizeof(T) == 4, Like<T, int64_t, uint64_t>,
                                                   Like<T, __int128, unsigned __int128>>>;
template <class T>
T high(T a, T b) {
  return static_cast<T>((Wide<T>{a} * Wide<T>{b}) >> (sizeof(T) * 8));
}
int32_t saturate(int64_t x) {
  return static_cast<int32_t>(x > kMost<int32_t>    ? kMost<int32_t>
                              : x < kLeast<int32_t> ? kLeast<int32_t>
                                                    : x);
}
template <class T>
int64_t low_24(T a) {
  return kSigned<T> ? int64_t{static_cast<int32_t>(uint32_t(a) << 8) >> 8}
                    : int64_t{uint32_t(a) & 0xffffffu};
}

constexpr auto kAdd = []<class T>(T a, T b) { return T(Unsigned<T>(a) + Unsigned<T>(b)); };
constexpr auto kSub = []<class T>(T a, T b) { return T(Unsigned<T>(a) - Unsigned<T>(b)); };
constexpr auto kMulLow = []<class T>(T a, T b) { return T(Unsigned<T>(a) * Unsigned<T>(b)); };
constexpr auto kMulHigh = []<class T>(T a, T b) { return high(a, b); };
constexpr auto kMulWide = []<class T>(T a, T b) { return Wide<T>{a} * Wide<T>{b}; };
constexpr auto kMul24 = []<class T>(T a, T b) {
  return static_cast<T>(uint64_t(low_24(a)) * uint64_t(low_24(b)));
};
// What mul and mad have in common.
template <auto kMul>
constexpr auto kMulAdd = [](auto a, auto b, auto c) { return kAdd(kMul(a, b), c); };
// Division by zero gives any value in PTX: here all ones, and the dividend as remainder.
constexpr auto kDivide = []<class T>(T a, T b) {
  const bool wraps = kSigned<T> && a == kLeast<T> && b == static_cast<T>(-1);
  const T quotient = static_cast<T>(a / (b == 0 || wraps ? T{1} : b));
  return b == 0 ? static_cast<T>(-1) : quotient;
};
constexpr auto kRemainder = []<class T>(T a, T b) {
  const bool one = b == 0 || (kSigned<T> && b == static_cast<T>(-1));
  const T remainder = static_cast<T>(a % (one ? T{1} : b));
  return b == 0 ? a : remainder;
};
constexpr auto kNegate = []<class T>(T a) { return kSub(T{0}, a); };
constexpr auto kAbsolute = []<class T>(T a) { return a < 0 ? kNegate(a) : a; };
constexpr auto kMin = []<class T>(T a, T b) { return a < b ? a : b; };
constexpr auto kMax = []<class T>(T a, T b) { return a > b ? a : b; };
template <auto kOp>
constexpr auto kRelu = []<class T>(T a, T b) { return kMax(kOp(a, b), T{0}); };
constexpr auto kSad = []<class T>(T a, T b, T c) {
  return kAdd(c, a < b ? kSub(b, a) : kSub(a, b));
};
// c plus the products of the elements of `a` with bytes of `b`, from the byte kFirst on.
template <class A, class B, int kFirst>
constexpr auto kDotProduct = [](uint32_t a, uint32_t b, uint32_t c) {
  constexpr int kBits = sizeof(A) * 8;
  for (int k = 0; k < 32 / kBits; ++k)
    c += uint32_t(static_cast<A>(a >> kBits * k)) * uint32_t(static_cast<B>(b >> 8 * (kFirst + k)));
  return c;
};

// Sums with the carry flag, a predicate; sub leaves a borrow there.  Operands: the result, the flag
// that is written or none, sources, the flag that is read.
template <class T, auto kOp, int kSources, bool kIn>
void with_carry(Warp& warp, const Instruction& i, uint32_t mask) {
  const T* a = warp.lanes<const T>(i.operands[2]);
  const T* b = warp.lanes<const T>(i.operands[3]);
  const T* c = warp.lanes<const T>(i.operands[kSources + 1]);
  const uint32_t flags = kIn ? warp.predicate(i.operands[kSources + 2]) : 0;
  T row[kLanes];
  uint32_t carry = 0;
  for (int l = 0; l < kLanes; ++l) {
    bool out = false;
    row[l] = kOp(a[l], b[l], c[l], T(flags >> l & 1), out);
    carry |= uint32_t{out} << l;
  }
  write<T>(warp, i.operands[0], mask, [&](int l) { return row[l]; });
  warp.set_predicate(i.operands[1], mask, carry);
}
template <class T>
T add_carry(T a, T b, T in, bool& out) {
  using Bits = std::make_unsigned_t<T>;
  const Bits sum = Bits(a) + Bits(b);
  const Bits all = sum + Bits(in);
  out = sum < Bits(a) || all < sum;
  return static_cast<T>(all);
}
constexpr auto kAddCarry = []<class T>(T a, T b, T, T in, bool& out) {
  return add_carry(a, b, in, out);
};
constexpr auto kSubCarry = []<class T>(T a, T b, T, T in, bool& out) {
  using Bits = std::make_unsigned_t<T>;
  out = Bits(a) < Bits(b) || (a == b && in != 0);
  return static_cast<T>(Bits(a) - Bits(b) - Bits(in));
};
template <auto kMul>
constexpr auto kMulAddCarry =
    []<class T>(T a, T b, T c, T in, bool& out) { return add_carry(kMul(a, b), c, in, out); };

template <auto kOp, int kSources, bool kIn>
Handler carrying(const Query& q) {
  return choose(LargeIntegers{}, q.type,
                []<class T>() -> Handler { return with_carry<T, kOp, kSources, kIn>; });
}
template <auto kOp>
Handler unary(const Query& q) {
  return each_of<kOp, Types<int16_t, int32_t, int64_t>, Self, Self>(q);
}
template <auto kOp>
Handler binary(const Query& q) {
  if (q.type == Type::u16x2) return map_pairs<kOp, uint16_t, uint16_t, uint16_t>;
  if (q.type == Type::s16x2) return map_pairs<kOp, int16_t, int16_t, int16_t>;
  return each_of<kOp, Integers, Self, Self, Self>(q);
}
template <auto kOp, class List = Integers>
Handler ternary(const Query& q) {
  return each_of<kOp, List, Self, Self, Self, Self>(q);
}
template <bool kAdds>
Handler wide(const Query& q) {
  return choose(Types<uint16_t, uint32_t, int16_t, int32_t>{}, q.type, []<class T>() -> Handler {
    if (kAdds) return map_lanes<kMulAdd<kMulWide>, Wide<T>, T, T, Wide<T>>;
    return map_lanes<kMulWide, Wide<T>, T, T>;
  });
}
template <auto kOp>
Handler extremum(const Query& q) {
  if (!q.modifiers.relu) return binary<kOp>(q);
  return q.type == Type::s32 || q.type == Type::s16x2 ? binary<kRelu<kOp>>(q) : nullptr;
}
template <class Unsigned, class Signed, int kFirst>
Handler dot_product(const Query& q) {
  const auto of = []<bool kSignedA, bool kSignedB>() -> Handler {
    using A = std::conditional_t<kSignedA, Signed, Unsigned>;
    using B = std::conditional_t<kSignedB, int8_t, uint8_t>;
    return map_lanes<kDotProduct<A, B, kFirst>, uint32_t, uint32_t, uint32_t, uint32_t>;
  };
  return choose_flags(of, q.type == Type::s32, q.source == Type::s32);
}

using Integers32 = Types<uint32_t, int32_t>;
constexpr Operation kOperations[] = {
    {Opcode::add, binary<kAdd>},
    {Opcode::sub, binary<kSub>},
    {Opcode::mul_lo, binary<kMulLow>},
    {Opcode::mul_hi, binary<kMulHigh>},
    {Opcode::mul_wide, wide<false>},
    {Opcode::mad_lo, ternary<kMulAdd<kMulLow>>},
    {Opcode::mad_hi, ternary<kMulAdd<kMulHigh>>},
    {Opcode::mad_wide, wide<true>},
    {Opcode::mul24_lo, each_of<kMul24, Integers32, Self, Self, Self>},
    {Opcode::mad24_lo, ternary<kMulAdd<kMul24>, Integers32>},
    {Opcode::div, binary<kDivide>},
    {Opcode::rem, binary<kRemainder>},
    {Opcode::abs, unary<kAbsolute>},
    {Opcode::neg, unary<kNegate>},
    {Opcode::min, extremum<kMin>},
    {Opcode::max, extremum<kMax>},
    {Opcode::sad, ternary<kSad>},
    {Opcode::dp4a, dot_product<uint8_t, int8_t, 0>},
    {Opcode::dp2a_lo, dot_product<uint16_t, int16_t, 0>},
    {Opcode::dp2a_hi, dot_product<uint16_t, int16_t, 2>},
    {Opcode::add_cc, carrying<kAddCarry, 2, false>},
    {Opcode::addc, carrying<kAddCarry, 2, true>},
    {Opcode::sub_cc, carrying<kSubCarry, 2, false>},
    {Opcode::subc, carrying<kSubCarry, 2, true>},
    {Opcode::mad_lo_cc, carrying<kMulAddCarry<kMulLow>, 3, false>},
    {Opcode::madc_lo, carrying<kMulAddCarry<kMulLow>, 3, true>},
    {Opcode::mad_hi_cc, carrying<kMulAddCarry<kMulHigh>, 3, false>},
    {Opcode::madc_hi, carrying<kMulAddCarry<kMulHigh>, 3, true>},
};

constexpr auto kAddSaturating = [](int32_t a, int32_t b) { return saturate(int64_t{a} + b); };
constexpr auto kSubSaturating = [](int32_t a, int32_t b) { return saturate(int64_t{a} - b); };
constexpr auto kMadSaturating = [](int32_t a, int32_t b, int32_t c) {
  return saturate(int64_t{high(a, b)} + c);
};
constexpr Operation kSaturating[] = {
    {Opcode::add, only<map_lanes<kAddSaturating, int32_t, int32_t, int32_t>>},
    {Opcode::sub, only<map_lanes<kSubSaturating, int32_t, int32_t, int32_t>>},
    {Opcode::mad_hi, only<map_lanes<kMadSaturating, int32_t, int32_t, int32_t, int32_t>>},
};

}  // namespace

Handler find_integer(const Query& q) {
  const Modifiers& m = q.modifiers;
  const bool is_pair = q.type == Type::u16x2 || q.type == Type::s16x2;
  if (!(is_integer(q.type) || is_pair) || m.ftz || m.approx || m.full || m.nan || m.xorsign ||
      m.rounding != Rounding::none) {
    return nullptr;
  }
  if (m.sat) return q.type == Type::s32 ? find_operation(kSaturating, q) : nullptr;
  return find_operation(kOperations, q);
}

}  // namespace STITCH_LANES_ISA
}  // namespace stitch::ptxsim
