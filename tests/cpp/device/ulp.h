// Distance of an f32 result from an f64 reference, and the points at which functions are tested.
//
// A unit in the last place is that of the reference rounded to f32.  NaN must meet NaN and zeros
// must agree in sign; anything else that differs in kind counts as infinitely far.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

namespace stitch_test {

inline double ulp_distance(float got, double expected) {
  constexpr double kFar = std::numeric_limits<double>::infinity();
  constexpr double kBeyond = 0x1p128;  // the first power of two that f32 lacks
  if (std::isnan(expected) || std::isnan(got))
    return std::isnan(expected) == std::isnan(got) ? 0 : kFar;
  if (std::isinf(expected)) return got == expected ? 0 : kFar;
  if (expected == 0) return got == 0 && std::signbit(got) == std::signbit(expected) ? 0 : kFar;
  int exponent;
  std::frexp(expected, &exponent);
  const double ulp = std::ldexp(1.0, std::fmin(std::fmax(exponent - 24, -149), 104));
  const double finite = std::isinf(got) ? std::copysign(kBeyond, got) : got;
  return std::fabs(finite - std::fmax(-kBeyond, std::fmin(expected, kBeyond))) / ulp;
}

inline float float_of_bits(uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}

inline const std::vector<float>& special_floats() {
  static const std::vector<float> values = [] {
    std::vector<float> result;
    for (float x : {0.0f,
                    0x1p-149f,
                    0x1p-127f,
                    0x1p-126f,
                    0x1p-26f,
                    0x1p-25f,
                    0x1p-24f,
                    0.25f,
                    0.5f,
                    0x1.fffffep-1f,
                    1.0f,
                    0x1.000002p+0f,
                    1.5f,
                    2.0f,
                    2.5f,
                    3.0f,
                    10.0f,
                    20.0f,
                    87.0f,
                    88.72283f,
                    88.72284f,
                    103.97f,
                    104.0f,
                    1e4f,
                    65535.0f,
                    65536.0f,
                    0x1p23f,
                    0x1p24f,
                    1e10f,
                    0x1p64f,
                    0x1p127f,
                    0x1.fffffep+127f,
                    std::numeric_limits<float>::infinity(),
                    std::nanf("")}) {
      result.push_back(x);
      result.push_back(-x);
    }
    return result;
  }();
  return values;
}

// Every 4001st float of either sign, 1.07 million points over all exponents, and the special ones.
inline const std::vector<float>& sample_floats() {
  static const std::vector<float> values = [] {
    std::vector<float> result = special_floats();
    for (uint64_t bits = 0; bits < (1ull << 32); bits += 4001) {
      result.push_back(float_of_bits(static_cast<uint32_t>(bits)));
    }
    return result;
  }();
  return values;
}

}  // namespace stitch_test
