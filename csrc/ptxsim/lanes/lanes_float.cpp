#include "ptxsim/lanes/lanes_numbers.h"

namespace stitch::ptxsim {
inline namespace STITCH_LANES_ISA {
namespace {

struct FusedMulAdd {
  static float of(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
  static double of(double a, double b, double c) { return __builtin_fma(a, b, c); }
};
struct FloatDivide {
  template <class T>
  static T of(T a, T b) {
    return a / b;
  }
};
struct Reciprocal {
  template <class T>
  static T of(T a) {
    return 1 / a;
  }
};
struct SquareRoot {
  static float of(float a) { return __builtin_sqrtf(a); }
  static double of(double a) { return __builtin_sqrt(a); }
};

template <class Op, bool kFlush, bool kSaturate>
struct Arithmetic {
  template <class... T>
  [[gnu::always_inline]] static auto of(T... operands) {
    const auto result = flush<kFlush>(Op::of(flush<kFlush>(operands)...));
    if constexpr (kSaturate) return saturate(result);
    return canonical(result, operands...);
  }
};

template <class Op, class D, class... S>
void map_rounded(Warp& warp, const Instruction& i, uint32_t mask) {
  const ScopedRounding rounding(i.modifiers.rounding);
  map<Op, kLanes, D, S...>(warp, i, mask);
}

// The handlers of one operation: by rounding, then the modifiers, which only f32 has.
template <class Op, class... S>
Handler by_rounding(const Modifiers& m) {
  using First = std::common_type_t<S...>;
  switch (m.rounding) {
    case Rounding::none:
    case Rounding::rn:
      return map_lanes<Op, First, S...>;
    case Rounding::rz:
    case Rounding::rm:
    case Rounding::rp:
      return map_rounded<Op, First, S...>;
    default:
      return nullptr;
  }
}
template <class Op, class... S>
Handler f32_handler(const Modifiers& m) {
  if (m.ftz) {
    return m.sat ? by_rounding<Arithmetic<Op, true, true>, S...>(m)
                 : by_rounding<Arithmetic<Op, true, false>, S...>(m);
  }
  return m.sat ? by_rounding<Arithmetic<Op, false, true>, S...>(m)
               : by_rounding<Arithmetic<Op, false, false>, S...>(m);
}
template <class Op, class... S>
Handler f64_handler(const Modifiers& m) {
  return m.ftz || m.sat ? nullptr : by_rounding<Arithmetic<Op, false, false>, S...>(m);
}
template <class Op>
Handler unary(Type type, const Modifiers& m) {
  return type == Type::f32 ? f32_handler<Op, float>(m) : f64_handler<Op, double>(m);
}
template <class Op>
Handler binary(Type type, const Modifiers& m) {
  return type == Type::f32 ? f32_handler<Op, float, float>(m) : f64_handler<Op, double, double>(m);
}
template <class Op>
Handler ternary(Type type, const Modifiers& m) {
  return type == Type::f32 ? f32_handler<Op, float, float, float>(m)
                           : f64_handler<Op, double, double, double>(m);
}
// Rounding must be named, and is to the letter.
template <class Op>
Handler rounded_unary(const Query& q) {
  return q.modifiers.rounding == Rounding::none || q.modifiers.sat ? nullptr
                                                                   : unary<Op>(q.type, q.modifiers);
}

template <class Op, bool kFlush>
struct Flushed {
  template <class T>
  [[gnu::always_inline]] static T of(T a, T b) {
    return flush<kFlush>(Op::of(flush<kFlush>(a), flush<kFlush>(b)));
  }
};
template <class Op>
Handler extremum_f32(bool ftz) {
  return ftz ? map_lanes<Flushed<Op, true>, float, float, float>
             : map_lanes<Flushed<Op, false>, float, float, float>;
}
template <bool kMax>
Handler extremum(Type type, const Modifiers& m) {
  if (m.relu || m.sat || m.rounding != Rounding::none) return nullptr;
  if (type == Type::f64) {
    return m.ftz || m.nan || m.xorsign
               ? nullptr
               : map_lanes<Extremum<kMax, false, false>, double, double, double>;
  }
  if (m.nan) {
    return m.xorsign ? extremum_f32<Extremum<kMax, true, true>>(m.ftz)
                     : extremum_f32<Extremum<kMax, true, false>>(m.ftz);
  }
  return m.xorsign ? extremum_f32<Extremum<kMax, false, true>>(m.ftz)
                   : extremum_f32<Extremum<kMax, false, false>>(m.ftz);
}

template <bool kFlush, bool kAbsolute>
struct ChangeSign {
  template <class T>
  [[gnu::always_inline]] static T of(T a) {
    const BitsOf<T> bits = bits_as<BitsOf<T>>(flush<kFlush>(a));
    return bits_as<T>(kAbsolute ? bits & ~kSignBit<T> : bits ^ kSignBit<T>);
  }
};
template <bool kAbsolute>
Handler change_sign(Type type, const Modifiers& m) {
  if (m.sat || m.rounding != Rounding::none) return nullptr;
  if (type == Type::f64)
    return m.ftz ? nullptr : map_lanes<ChangeSign<false, kAbsolute>, double, double>;
  return m.ftz ? map_lanes<ChangeSign<true, kAbsolute>, float, float>
               : map_lanes<ChangeSign<false, kAbsolute>, float, float>;
}

struct CopySign {
  template <class T>
  static T of(T a, T b) {
    return with_sign(b, a);
  }
};

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
  uint32_t bits = 0;
  for (int l = 0; l < kLanes; ++l) bits |= uint32_t{has_property(a[l], property)} << l;
  write_predicate(warp, i.operands[0], mask, bits);
}

}  // namespace

Handler find_float(const Query& q) {
  const Modifiers& m = q.modifiers;
  if ((q.type != Type::f32 && q.type != Type::f64) || m.approx || m.full) return nullptr;
  if (m.relu || ((m.nan || m.xorsign) && q.opcode != Opcode::min && q.opcode != Opcode::max))
    return nullptr;
  switch (q.opcode) {
    case Opcode::add:
      return binary<FloatAdd>(q.type, m);
    case Opcode::sub:
      return binary<FloatSub>(q.type, m);
    case Opcode::mul:
      return binary<FloatMul>(q.type, m);
    case Opcode::fma:
    case Opcode::mad:
      return m.rounding == Rounding::none ? nullptr : ternary<FusedMulAdd>(q.type, m);
    case Opcode::div:
      return m.rounding == Rounding::none || m.sat ? nullptr : binary<FloatDivide>(q.type, m);
    case Opcode::rcp:
      return rounded_unary<Reciprocal>(q);
    case Opcode::sqrt:
      return rounded_unary<SquareRoot>(q);
    case Opcode::min:
      return extremum<false>(q.type, m);
    case Opcode::max:
      return extremum<true>(q.type, m);
    case Opcode::abs:
      return change_sign<true>(q.type, m);
    case Opcode::neg:
      return change_sign<false>(q.type, m);
    case Opcode::copysign:
      return q.type == Type::f32 ? map_lanes<CopySign, float, float, float>
                                 : map_lanes<CopySign, double, double, double>;
    case Opcode::testp:
      return q.type == Type::f32 ? test_property<uint32_t> : test_property<uint64_t>;
    default:
      return nullptr;
  }
}

}  // namespace STITCH_LANES_ISA
}  // namespace stitch::ptxsim
