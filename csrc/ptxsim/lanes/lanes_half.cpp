#include "ptxsim/lanes/lanes_half.h"

namespace stitch::ptxsim {
inline namespace STITCH_LANES_ISA {
namespace {

// A sum, difference or product of two 16-bit floats, rounded to float and again to 16 bits, is
// rounded as if once: 24 >= 2 * 11 + 2.  Not so a fused multiply-add, which goes by double.
template <class Format>
struct HalfMulAdd {
  static float of(float a, float b, float c) {
    const double sum = add_to_odd(double{a} * double{b}, c);
    return static_cast<float>(round_to<Format>(sum, Rounding::rn));
  }
};

template <class Format, class Op, bool kFlush, bool kSaturate, bool kRelu>
struct HalfArithmetic {
  using Tag = Format;
  static constexpr bool kFlushes = kFlush;
  template <class... T>
  [[gnu::always_inline]] static float of(T... operands) {
    const float result = Op::of(operands...);
    if (kSaturate) return saturate(result);
    return kRelu && result < 0 ? 0.0f : result;
  }
};

template <class Op, int kCount, size_t... K>
[[gnu::always_inline]] inline void map_halves(Warp& warp, const Instruction& i, uint32_t mask,
                                              std::index_sequence<K...>) {
  float in[sizeof...(K)][kCount];
  for (size_t k = 0; k < sizeof...(K); ++k) {
    uint16_t row[kCount];
    std::memcpy(row, warp.lanes<const uint16_t>(i.operands[k + 1]), sizeof row);
    if (Op::kFlushes)
      for (uint16_t& x : row) x = flush_half(x);
    widen<typename Op::Tag, kCount>(in[k], row);
  }
  float result[kCount];
  for (int l = 0; l < kCount; ++l) result[l] = Op::of(in[K][l]...);
  uint16_t row[kCount];
  narrow<typename Op::Tag, kCount>(row, result);
  write<uint16_t, kCount>(warp, i.operands[0], mask,
                          [&](int l) { return Op::kFlushes ? flush_half(row[l]) : row[l]; });
}
template <class Op, int kCount, int kSources>
void half_lanes(Warp& warp, const Instruction& i, uint32_t mask) {
  map_halves<Op, kCount>(warp, i, mask, std::make_index_sequence<kSources>{});
}

template <class Op, int kSources>
Handler by_count(Type type) {
  return type == Type::f16 || type == Type::bf16 ? half_lanes<Op, kLanes, kSources>
                                                 : half_lanes<Op, 2 * kLanes, kSources>;
}

template <class Op, int kSources>
Handler half_handler(Type type, const Modifiers& m) {
  if (m.ftz) {
    if (m.sat) return by_count<HalfArithmetic<Half, Op, true, true, false>, kSources>(type);
    if (m.relu) return by_count<HalfArithmetic<Half, Op, true, false, true>, kSources>(type);
    return by_count<HalfArithmetic<Half, Op, true, false, false>, kSources>(type);
  }
  if (m.sat) return by_count<HalfArithmetic<Half, Op, false, true, false>, kSources>(type);
  if (m.relu) return by_count<HalfArithmetic<Half, Op, false, false, true>, kSources>(type);
  return by_count<HalfArithmetic<Half, Op, false, false, false>, kSources>(type);
}
template <class Op, int kSources>
Handler bfloat_handler(Type type, const Modifiers& m) {
  if (m.ftz || m.sat) return nullptr;
  if (m.relu) return by_count<HalfArithmetic<BFloat, Op, false, false, true>, kSources>(type);
  return by_count<HalfArithmetic<BFloat, Op, false, false, false>, kSources>(type);
}

bool is_half(Type type) { return type == Type::f16 || type == Type::f16x2; }

template <class Op, int kSources>
Handler either_handler(Type type, const Modifiers& m) {
  return is_half(type) ? half_handler<Op, kSources>(type, m)
                       : bfloat_handler<Op, kSources>(type, m);
}

template <bool kMax>
Handler extremum(Type type, const Modifiers& m) {
  if (m.sat || m.relu) return nullptr;
  if (m.nan) {
    return m.xorsign ? either_handler<Extremum<kMax, true, true>, 2>(type, m)
                     : either_handler<Extremum<kMax, true, false>, 2>(type, m);
  }
  return m.xorsign ? either_handler<Extremum<kMax, false, true>, 2>(type, m)
                   : either_handler<Extremum<kMax, false, false>, 2>(type, m);
}

template <bool kFlush, bool kAbsolute>
struct ChangeSign {
  static uint16_t of(uint16_t a) {
    const uint16_t x = kFlush ? flush_half(a) : a;
    return static_cast<uint16_t>(kAbsolute ? x & 0x7fff : x ^ 0x8000);
  }
};
template <bool kAbsolute>
Handler change_sign(Type type, const Modifiers& m) {
  const bool pair = type == Type::f16x2 || type == Type::bf16x2;
  if (m.sat || m.relu || (m.ftz && !is_half(type))) return nullptr;
  if (m.ftz) {
    return pair ? map_pairs<ChangeSign<true, kAbsolute>, uint16_t, uint16_t>
                : map_lanes<ChangeSign<true, kAbsolute>, uint16_t, uint16_t>;
  }
  return pair ? map_pairs<ChangeSign<false, kAbsolute>, uint16_t, uint16_t>
              : map_lanes<ChangeSign<false, kAbsolute>, uint16_t, uint16_t>;
}

Handler mul_add(Type type, const Modifiers& m) {
  if (m.rounding != Rounding::rn || (m.sat && m.relu)) return nullptr;
  return is_half(type) ? half_handler<HalfMulAdd<Half>, 3>(type, m)
                       : bfloat_handler<HalfMulAdd<BFloat>, 3>(type, m);
}

}  // namespace

Handler find_half(const Query& q) {
  const Modifiers& m = q.modifiers;
  const bool is_16_bit = is_half(q.type) || q.type == Type::bf16 || q.type == Type::bf16x2;
  const bool picks = q.opcode == Opcode::min || q.opcode == Opcode::max;
  if (!is_16_bit || m.approx || ((m.nan || m.xorsign) && !picks)) return nullptr;
  if (m.rounding != Rounding::none && m.rounding != Rounding::rn) return nullptr;
  if (q.opcode == Opcode::fma) return mul_add(q.type, m);
  if (m.relu) return nullptr;
  switch (q.opcode) {
    case Opcode::add:
      return either_handler<FloatAdd, 2>(q.type, m);
    case Opcode::sub:
      return either_handler<FloatSub, 2>(q.type, m);
    case Opcode::mul:
      return either_handler<FloatMul, 2>(q.type, m);
    case Opcode::min:
      return extremum<false>(q.type, m);
    case Opcode::max:
      return extremum<true>(q.type, m);
    case Opcode::abs:
      return change_sign<true>(q.type, m);
    case Opcode::neg:
      return change_sign<false>(q.type, m);
    default:
      return nullptr;
  }
}

}  // namespace STITCH_LANES_ISA
}  // namespace stitch::ptxsim
