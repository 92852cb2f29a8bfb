#include "ptxsim/lanes/lanes_half.h"

namespace stitch::ptxsim {
inline namespace STITCH_LANES_ISA {
namespace {

// A sum, difference or product of two 16-bit floats, rounded to float and again to 16 bits, is
// rounded as if once: 24 >= 2 * 11 + 2.  Not so a fused multiply-add, which goes by double.
constexpr auto kMulAdd = [](float a, float b, float c) {
  return add_to_odd(double{a} * double{b}, c);
};
template <class Format>
[[gnu::always_inline]] inline float to_float(float x) {
  return x;
}
template <class Format>
[[gnu::always_inline]] inline float to_float(double x) {
  return static_cast<float>(round_to<Format>(x, Rounding::rn));
}

template <class T, auto kOp, int kSources, bool kFlush, bool kSaturate, bool kRelu>
void half_lanes(Warp& warp, const Instruction& i, uint32_t mask) {
  using Format = typename HalfRow<T>::Format;
  constexpr int kCount = HalfRow<T>::kCount;
  float in[kSources][kCount];
  for (int k = 0; k < kSources; ++k) load_halves<T, kFlush>(in[k], warp, i.operands[k + 1]);
  float result[kCount];
  [&]<size_t... K>(std::index_sequence<K...>) __attribute__((always_inline)) {
    for (int l = 0; l < kCount; ++l) {
      const float x = to_float<Format>(kOp(in[K][l]...));
      result[l] = kSaturate ? saturate(x) : kRelu && x < 0 ? 0.0f : x;
    }
  }(std::make_index_sequence<kSources>{});
  uint16_t row[kCount];
  narrow<Format, kCount>(row, result);
  write<uint16_t, kCount>(warp, i.operands[0], mask, [&](int l) { return flush<kFlush>(row[l]); });
}

// f16 alone has .ftz and .sat.
template <auto kOp, int kSources>
Handler arithmetic(const Query& q) {
  const Modifiers& m = q.modifiers;
  return choose(Halves{}, q.type, [&]<class T> {
    const auto of = []<bool kFlush, bool kSaturate, bool kRelu>() -> Handler {
      if constexpr ((kSaturate && kRelu) || (HalfRow<T>::kIsBFloat && (kFlush || kSaturate)))
        return nullptr;
      else
        return half_lanes<T, kOp, kSources, kFlush, kSaturate, kRelu>;
    };
    return choose_flags(of, m.ftz, m.sat, m.relu);
  });
}
Handler mul_add(const Query& q) {
  return q.modifiers.rounding == Rounding::rn ? arithmetic<kMulAdd, 3>(q) : nullptr;
}
template <bool kMax>
Handler extremum(const Query& q) {
  const auto of = [&]<bool... kFlags> { return arithmetic<kExtremum<kMax, kFlags...>, 2>(q); };
  return q.modifiers.sat ? nullptr : choose_flags(of, q.modifiers.nan, q.modifiers.xorsign);
}
template <bool kAbsolute>
Handler change_sign(const Query& q) {
  const bool is_pair = q.type == Type::f16x2 || q.type == Type::bf16x2;
  const bool is_bfloat = q.type == Type::bf16 || q.type == Type::bf16x2;
  if (q.modifiers.sat || (q.modifiers.ftz && is_bfloat)) return nullptr;
  const auto of = []<bool kFlush, bool kPair>() -> Handler {
    constexpr auto kOp = kChangeSign<kFlush, kAbsolute>;
    return kPair ? map_pairs<kOp, uint16_t, uint16_t> : map_lanes<kOp, uint16_t, uint16_t>;
  };
  return choose_flags(of, q.modifiers.ftz, is_pair);
}

constexpr Operation kOperations[] = {
    {Opcode::add, arithmetic<kAdd, 2>}, {Opcode::sub, arithmetic<kSub, 2>},
    {Opcode::mul, arithmetic<kMul, 2>}, {Opcode::fma, mul_add},
    {Opcode::min, extremum<false>},     {Opcode::max, extremum<true>},
    {Opcode::abs, change_sign<true>},   {Opcode::neg, change_sign<false>},
};

}  // namespace

Handler find_half(const Query& q) {
  const Modifiers& m = q.modifiers;
  const bool is_16_bit = choose(Halves{}, q.type, []<class> { return true; });
  const bool picks = q.opcode == Opcode::min || q.opcode == Opcode::max;
  if (!is_16_bit || m.approx || m.rounding > Rounding::rn) return nullptr;
  if (((m.nan || m.xorsign) && !picks) || (m.relu && q.opcode != Opcode::fma)) return nullptr;
  return find_operation(kOperations, q);
}

}  // namespace STITCH_LANES_ISA
}  // namespace stitch::ptxsim
