// Conversions of the device headers: every 16-bit float, rounding at every midpoint, integers.
#include "device/stitch/convert.cuh"

#include <gtest/gtest.h>

#include "ulp.h"

namespace stitch_test {

using namespace stitch;

// The number that 16 bits mean, from the definition of the format.
double decode(u16 bits, int exponent_bits, int mantissa_bits) {
  const int exponent = (bits >> mantissa_bits) & ((1 << exponent_bits) - 1);
  const int mantissa = bits & ((1 << mantissa_bits) - 1);
  const int bias = (1 << (exponent_bits - 1)) - 1;
  const double sign = bits & 0x8000 ? -1 : 1;
  if (exponent == (1 << exponent_bits) - 1) return mantissa ? std::nan("") : sign * INFINITY;
  if (exponent == 0) return sign * std::ldexp(mantissa, 1 - bias - mantissa_bits);
  return sign * std::ldexp(mantissa + (1 << mantissa_bits), exponent - bias - mantissa_bits);
}

template <class T>
double decode(T x) {
  return kSame<T, f16> ? decode(x.bits, 5, 10) : decode(x.bits, 8, 7);
}

template <class T>
class SixteenBitFloat : public testing::Test {};
using SixteenBitTypes = testing::Types<f16, bf16>;
TYPED_TEST_SUITE(SixteenBitFloat, SixteenBitTypes);

TYPED_TEST(SixteenBitFloat, AllValuesWidenExactlyAndComeBack) {
  using T = TypeParam;
  for (u32 bits = 0; bits < 65536; ++bits) {
    const T x{static_cast<u16>(bits)};
    const f32 wide = convert<f32>(x);
    ASSERT_EQ(ulp_distance(wide, decode(x)), 0) << bits;
    ASSERT_EQ(ulp_distance(static_cast<float>(convert<f64>(x)), decode(x)), 0) << bits;
    const T back = convert<T>(wide);
    if (std::isnan(wide)) {
      ASSERT_TRUE(std::isnan(decode(back))) << bits;
    } else {
      ASSERT_EQ(back.bits, x.bits);
    }
    ASSERT_EQ(convert<bool>(x), wide != 0);
  }
}

TYPED_TEST(SixteenBitFloat, RoundsToNearestEvenAroundEveryMidpoint) {
  using T = TypeParam;
  for (u32 bits = 0; bits < 0x8000; ++bits) {
    const T low{static_cast<u16>(bits)}, high{static_cast<u16>(bits + 1)};
    if (!std::isfinite(decode(low))) break;
    // Above the largest number the next one would be a power of two that the format lacks.
    const double top = std::isfinite(decode(high))
                           ? decode(high)
                           : decode(low) * 2 - decode(T{static_cast<u16>(bits - 1)});
    const float midpoint = static_cast<float>((decode(low) + top) / 2);
    for (float sign : {1.0f, -1.0f}) {
      const u16 sign_bits = sign < 0 ? 0x8000 : 0;
      const u16 even = bits & 1 ? high.bits : low.bits;
      ASSERT_EQ(convert<T>(sign * midpoint).bits, even | sign_bits) << bits;
      ASSERT_EQ(convert<T>(sign * std::nextafterf(midpoint, 0)).bits, low.bits | sign_bits) << bits;
      ASSERT_EQ(convert<T>(sign * std::nextafterf(midpoint, INFINITY)).bits, high.bits | sign_bits)
          << bits;
    }
  }
}

TYPED_TEST(SixteenBitFloat, SamplesRoundLikeTheCompiler) {
  using T = TypeParam;
  for (float x : sample_floats()) {
    const T got = convert<T>(x);
    if (std::isnan(x)) {
      ASSERT_TRUE(std::isnan(decode(got)));
      continue;
    }
    ASSERT_EQ(round_to<T>(x), convert<f32>(got));
#ifdef __FLT16_MAX__
    if constexpr (kSame<T, f16>) {
      ASSERT_EQ(got.bits, bit_cast<u16>(static_cast<_Float16>(x))) << x;
    }
#endif
  }
}

TEST(Convert, BoolIsAnythingButZero) {
  EXPECT_TRUE(convert<bool>(quiet_nan<f32>()));
  EXPECT_TRUE(convert<bool>(0x1p-149f));
  EXPECT_FALSE(convert<bool>(-0.0f));
  EXPECT_TRUE(convert<bool>(i64(1) << 40));
  EXPECT_TRUE(convert<bool>(boolean{2}));
  EXPECT_EQ(convert<boolean>(i64(256)).byte, 1);
  EXPECT_EQ(convert<boolean>(0.0).byte, 0);
  EXPECT_EQ(convert<f32>(boolean{7}), 1.0f);
  EXPECT_EQ(convert<i32>(true), 1);
  EXPECT_EQ(convert<bf16>(true).bits, 0x3f80);
}

TEST(Convert, FloatsTruncateToIntegers) {
  volatile f32 x = -2.9f;
  EXPECT_EQ(convert<i32>(f32(x)), -2);
  EXPECT_EQ(convert<i8>(f32(x)), -2);
  EXPECT_EQ(convert<u8>(f32(x)), 254);
  x = 300.7f;
  EXPECT_EQ(convert<u8>(f32(x)), 44);
  EXPECT_EQ(convert<i8>(f32(x)), 44);
  x = -129.0f;
  EXPECT_EQ(convert<i8>(f32(x)), 127);
  x = 70000.0f;
  EXPECT_EQ(convert<i16>(f32(x)), 4464);
  x = 5e9f;
  EXPECT_EQ(convert<i64>(f32(x)), 5000000000);
  EXPECT_EQ(convert<i64>(convert<f16>(1.5f)), 1);
}

#if defined(__x86_64__)
TEST(Convert, WhatDoesNotFitIsTheProcessorsAnswer) {
  volatile f32 x = 3e9f;
  EXPECT_EQ(convert<i32>(f32(x)), INT32_MIN);
  x = quiet_nan<f32>();
  EXPECT_EQ(convert<i32>(f32(x)), INT32_MIN);
  EXPECT_EQ(convert<i64>(f32(x)), INT64_MIN);
  EXPECT_EQ(convert<i16>(f32(x)), 0);
}
#endif

TEST(Convert, IntegersWrapAndRound) {
  EXPECT_EQ(convert<i8>(i32(200)), -56);
  EXPECT_EQ(convert<u8>(i64(-1)), 255);
  EXPECT_EQ(convert<i64>(u8(200)), 200);
  EXPECT_EQ(convert<f32>(i32(16777217)), 16777216.0f);
  EXPECT_EQ(convert<f32>((i64(1) << 40) + 1), 0x1p40f);
  EXPECT_EQ(convert<f16>(i32(70000)).bits, 0x7c00);
  // f64 goes to 16 bits through f32, as eager's conversion does.
  EXPECT_EQ(convert<f16>(1.0 + 0x1p-11 + 0x1p-40).bits, 0x3c00);
}

TEST(Convert, RegistersHoldSixteenBitFloatsAsF32) {
  EXPECT_TRUE((kSame<compute_t<f16>, f32>));
  EXPECT_TRUE((kSame<compute_t<bf16>, f32>));
  EXPECT_TRUE((kSame<compute_t<boolean>, bool>));
  EXPECT_TRUE((kSame<compute_t<i8>, i8>));
  EXPECT_TRUE((kSame<compute_t<f64>, f64>));
}

}  // namespace stitch_test
