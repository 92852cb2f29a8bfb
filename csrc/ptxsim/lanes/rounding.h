// Rounding: IEEE formats narrower than double, exactly, in every rounding mode.
//
// For lanes_*.cpp alone, which see it once per instruction set (STITCH_LANES_ISA).  A double is
// rounded by adding a constant whose last bit is the last bit of the narrow format, so loops over
// lanes become vectors; operations of float and double round as MXCSR says.
#pragma once

#include <cfenv>
#include <cstdint>
#include <type_traits>

#include "ptxsim/isa/isa.h"

namespace stitch::ptxsim {
inline namespace STITCH_LANES_ISA {

template <class To, class From>
[[gnu::always_inline]] inline To bits_as(From from) {
  static_assert(sizeof(To) == sizeof(From));
  return __builtin_bit_cast(To, from);
}

// The tags of 16-bit floats; a register holds their bits.
struct Half {
  static constexpr int kPrecision = 11, kMinExponent = -14;
  static constexpr double kMax = 65504.0;
};
struct BFloat {
  static constexpr int kPrecision = 8, kMinExponent = -126;
  static constexpr double kMax = 0x1.fep127;
};
struct Single {
  static constexpr int kPrecision = 24, kMinExponent = -126;
  static constexpr double kMax = 0x1.fffffep127;
};

constexpr uint32_t kNan32 = 0x7fffffffu;
constexpr uint16_t kNan16 = 0x7fffu;
constexpr uint64_t kNan64 = 0xfff8000000000000u;
constexpr double kInfinity = __builtin_inf();

// `x` rounded to the precision and exponents of Format; beyond kMax as the mode says.  NaN stays.
template <class Format>
[[gnu::always_inline]] inline double round_to(double x, Rounding mode) {
  constexpr uint64_t kExponent = uint64_t{0x7ff} << 52;
  constexpr uint64_t kLeast = uint64_t{1023 + Format::kMinExponent} << 52;
  constexpr uint64_t kShift = uint64_t{53 - Format::kPrecision} << 52;
  const double magnitude = __builtin_fabs(x);
  const bool negative = bits_as<uint64_t>(x) >> 63 != 0;
  const bool away = (mode == Rounding::rp && !negative) || (mode == Rounding::rm && negative);
  const double within = magnitude < 2 * Format::kMax ? magnitude : 0.0;
  uint64_t exponent = bits_as<uint64_t>(within) & kExponent;
  exponent = exponent > kLeast ? exponent : kLeast;
  const double magic = bits_as<double>((exponent + kShift) | uint64_t{1} << 51);
  constexpr double kUlp = 1.0 / double(uint64_t{1} << (Format::kPrecision - 1));
  const double ulp = bits_as<double>(exponent) * kUlp;
  double rounded = (within + magic) - magic;
  const double up = rounded < within ? rounded + ulp : rounded;
  const double down = rounded > within ? rounded - ulp : rounded;
  rounded = mode == Rounding::rn ? rounded : away ? up : down;
  rounded = magnitude < 2 * Format::kMax ? rounded : magnitude;
  const double beyond =
      mode == Rounding::rn || away || magnitude == kInfinity ? kInfinity : Format::kMax;
  rounded = rounded > Format::kMax ? beyond : rounded;
  return __builtin_copysign(rounded, x);
}

// a * b + c with the product exact (both have at most 24 bits), rounded so that rounding again to a
// narrower format errs but once: what was lost shows in the last bit.
[[gnu::always_inline]] inline double add_to_odd(double product, double c) {
  const double sum = product + c;
  const double back = sum - product;
  const double error = (product - (sum - back)) + (c - back);
  const uint64_t bits = bits_as<uint64_t>(sum);
  const bool outward = (error > 0) == (sum > 0);
  const uint64_t odd = bits & 1 ? bits : outward ? bits + 1 : bits - 1;
  const bool exact = error == 0 || !(__builtin_fabs(sum) < kInfinity);
  return exact ? sum : bits_as<double>(odd);
}

// The rounding of float and double operations while it lives.  The compiler moves no operation on
// registers of the warp across its ends: the calls may touch any memory.
class ScopedRounding {
 public:
  explicit ScopedRounding(Rounding mode) : saved_(std::fegetround()) {
    std::fesetround(mode == Rounding::rz   ? FE_TOWARDZERO
                    : mode == Rounding::rm ? FE_DOWNWARD
                    : mode == Rounding::rp ? FE_UPWARD
                                           : FE_TONEAREST);
  }
  ~ScopedRounding() { std::fesetround(saved_); }
  ScopedRounding(const ScopedRounding&) = delete;
  ScopedRounding& operator=(const ScopedRounding&) = delete;

 private:
  int saved_;
};

}  // namespace STITCH_LANES_ISA
}  // namespace stitch::ptxsim
