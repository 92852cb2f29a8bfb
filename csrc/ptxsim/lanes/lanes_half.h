// Rows of 16-bit floats: to float and back, exactly.  For lanes_*.cpp alone.
#pragma once

#if defined(__F16C__)
#include <immintrin.h>
#endif

#include "ptxsim/lanes/lanes_numbers.h"

namespace stitch::ptxsim {
inline namespace STITCH_LANES_ISA {

// Every value has its own float; NaN is some NaN.
template <class Format, int kCount>
[[gnu::noinline]] void widen(float* to, const uint16_t* from) {
  if constexpr (std::is_same_v<Format, BFloat>) {
    for (int k = 0; k < kCount; ++k) to[k] = bits_as<float>(uint32_t{from[k]} << 16);
    return;
  }
#if defined(__F16C__)
  for (int k = 0; k < kCount; k += 8) {
    const __m128i halves = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + k));
    _mm256_storeu_ps(to + k, _mm256_cvtph_ps(halves));
  }
#else
  for (int k = 0; k < kCount; ++k) {
    const uint32_t magnitude = uint32_t{from[k] & 0x7fffu} << 13;
    const float scaled = bits_as<float>(magnitude) * 0x1p112f;  // of any exponent, also 0
    const uint32_t bits =
        magnitude < 0x0f800000u ? bits_as<uint32_t>(scaled) : magnitude | 0x7f800000u;
    to[k] = bits_as<float>(bits | uint32_t{from[k] & 0x8000u} << 16);
  }
#endif
}

// Rounded to nearest, ties to even; NaN becomes 0x7fff.
template <class Format, int kCount>
[[gnu::noinline]] void narrow(uint16_t* to, const float* from) {
  if constexpr (std::is_same_v<Format, BFloat>) {
    for (int k = 0; k < kCount; ++k) {
      const uint32_t bits = bits_as<uint32_t>(from[k]);
      const uint32_t rounded = (bits + 0x7fffu + (bits >> 16 & 1)) >> 16;
      to[k] = static_cast<uint16_t>((bits & 0x7fffffffu) > 0x7f800000u ? kNan16 : rounded);
    }
    return;
  }
#if defined(__F16C__)
  for (int k = 0; k < kCount; k += 8) {
    const __m128i halves = _mm256_cvtps_ph(_mm256_loadu_ps(from + k), _MM_FROUND_TO_NEAREST_INT);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to + k), halves);
  }
  for (int k = 0; k < kCount; ++k) to[k] = (to[k] & 0x7fff) > 0x7c00 ? kNan16 : to[k];
#else
  for (int k = 0; k < kCount; ++k) {
    const float x = static_cast<float>(round_to<Half>(from[k], Rounding::rn));
    const uint32_t bits = bits_as<uint32_t>(x) & 0x7fffffffu;
    const float small = bits < 0x38800000u ? bits_as<float>(bits) : 0.0f;
    const uint32_t subnormal = static_cast<uint32_t>(static_cast<int32_t>(small * 0x1p24f));
    const uint32_t normal = bits >= 0x7f800000u ? 0x7c00u : (bits >> 13) - 0x1c000u;
    const uint32_t magnitude = bits < 0x38800000u ? subnormal : normal;
    const uint32_t half = magnitude | (bits_as<uint32_t>(x) >> 16 & 0x8000u);
    to[k] = static_cast<uint16_t>(bits > 0x7f800000u ? kNan16 : half);
  }
#endif
}

// A row of one of Halves.
template <class T>
struct HalfRow {
  using Format = T;
  static constexpr int kCount = kLanes;
  static constexpr bool kIsBFloat = std::is_same_v<T, BFloat>;
};
template <class T>
struct HalfRow<Pair<T>> : HalfRow<T> {
  static constexpr int kCount = 2 * kLanes;
};
template <class T, bool kFlush>
[[gnu::always_inline]] inline void load_halves(float* to, Warp& warp, uint32_t unit) {
  uint16_t row[HalfRow<T>::kCount];
  std::memcpy(row, warp.lanes<const uint16_t>(unit), sizeof row);
  if (kFlush)
    for (uint16_t& x : row) x = flush<true>(x);
  widen<typename HalfRow<T>::Format, HalfRow<T>::kCount>(to, row);
}

}  // namespace STITCH_LANES_ISA
}  // namespace stitch::ptxsim
