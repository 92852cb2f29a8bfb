// Integer and bool semantics of the device headers: eager PyTorch's, and nothing may trap.
#include "device/stitch/math.cuh"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>

namespace stitch_test {

using namespace stitch;

// All pairs of i8 and of u8 against arithmetic in i64.
template <class T>
i64 wrap(i64 value) {
  return static_cast<T>(value);
}

i64 floor_quotient(i64 a, i64 b) {
  const i64 quotient = a / b;
  return a % b != 0 && (a < 0) != (b < 0) ? quotient - 1 : quotient;
}

template <class T>
class NarrowInteger : public testing::Test {};
using NarrowTypes = testing::Types<i8, u8>;
TYPED_TEST_SUITE(NarrowInteger, NarrowTypes);

TYPED_TEST(NarrowInteger, WrapsAndDividesLikeEager) {
  using T = TypeParam;
  for (i64 x = std::numeric_limits<T>::min(); x <= std::numeric_limits<T>::max(); ++x) {
    for (i64 y = std::numeric_limits<T>::min(); y <= std::numeric_limits<T>::max(); ++y) {
      const T a = static_cast<T>(x), b = static_cast<T>(y);
      ASSERT_EQ(add(a, b), wrap<T>(x + y));
      ASSERT_EQ(sub(a, b), wrap<T>(x - y));
      ASSERT_EQ(mul(a, b), wrap<T>(x * y));
      ASSERT_EQ(maximum(a, b), std::max(x, y));
      ASSERT_EQ(bitwise_xor(a, b), wrap<T>(x ^ y));
      ASSERT_EQ(lt(a, b), x < y);
      if (y == 0) continue;
      ASSERT_EQ(div_trunc(a, b), wrap<T>(x / y)) << x << " / " << y;
      ASSERT_EQ(fmod(a, b), wrap<T>(x % y));
      ASSERT_EQ(div_floor(a, b), wrap<T>(floor_quotient(x, y))) << x << " // " << y;
      ASSERT_EQ(remainder(a, b), wrap<T>(x - y * floor_quotient(x, y))) << x << " % " << y;
    }
    const T a = static_cast<T>(x);
    ASSERT_EQ(neg(a), wrap<T>(-x));
    ASSERT_EQ(stitch::abs(a), wrap<T>(x < 0 ? -x : x));
    ASSERT_EQ(sign(a), (x > 0) - (x < 0));
    ASSERT_EQ(bitwise_not(a), wrap<T>(~x));
    ASSERT_EQ(square(a), wrap<T>(x * x));
    ASSERT_EQ(floor(a), a);
  }
}

template <class T>
class AnyInteger : public testing::Test {};
using AllTypes = testing::Types<u8, i8, i16, i32, i64>;
TYPED_TEST_SUITE(AnyInteger, AllTypes);

TYPED_TEST(AnyInteger, NeverTraps) {
  using T = TypeParam;
  volatile T lowest = std::numeric_limits<T>::min(), zero = 0, minus_one = static_cast<T>(-1);
  volatile T seven = 7;
  for (T dividend : {T(lowest), T(zero), T(minus_one), T(seven)}) {
    EXPECT_EQ(div_trunc(dividend, T(zero)), 0);
    EXPECT_EQ(div_floor(dividend, T(zero)), 0);
    EXPECT_EQ(fmod(dividend, T(zero)), 0);
    EXPECT_EQ(remainder(dividend, T(zero)), 0);
  }
  if constexpr (kIsSigned<T>) {
    EXPECT_EQ(div_trunc(T(lowest), T(minus_one)), T(lowest));
    EXPECT_EQ(div_floor(T(lowest), T(minus_one)), T(lowest));
    EXPECT_EQ(remainder(T(lowest), T(minus_one)), 0);
    EXPECT_EQ(stitch::abs(T(lowest)), T(lowest));
    EXPECT_EQ(neg(T(lowest)), T(lowest));
  }
}

TYPED_TEST(AnyInteger, ShiftsOutsideTheWidthLeaveZeroOrSign) {
  using T = TypeParam;
  constexpr int kWidth = 8 * sizeof(T);
  EXPECT_EQ(shift_left(T(3), T(2)), T(12));
  EXPECT_EQ(shift_left(T(1), T(kWidth)), T(0));
  EXPECT_EQ(shift_right(T(12), T(2)), T(3));
  EXPECT_EQ(shift_right(T(12), T(kWidth)), T(0));
  if constexpr (kIsSigned<T>) {
    EXPECT_EQ(shift_left(T(-1), T(1)), T(-2));
    EXPECT_EQ(shift_left(T(3), T(-1)), T(0));
    EXPECT_EQ(shift_right(T(-1), T(1)), T(-1));
    EXPECT_EQ(shift_right(T(-5), T(kWidth)), T(-1));
    EXPECT_EQ(shift_right(T(3), T(-1)), T(0));
  }
}

TYPED_TEST(AnyInteger, PowersWrap) {
  using T = TypeParam;
  for (int base = 0; base < 8; ++base) {
    u64 expected = 1;
    for (int exponent = 0; exponent < 40; ++exponent) {
      ASSERT_EQ(pow(T(base), T(exponent)), static_cast<T>(expected)) << base << "^" << exponent;
      expected *= static_cast<u64>(base);
    }
  }
  if constexpr (kIsSigned<T>) {
    EXPECT_EQ(pow(T(2), T(-1)), T(0));
    EXPECT_EQ(pow(T(1), T(-5)), T(1));
    EXPECT_EQ(pow(T(-1), T(-5)), T(-1));
    EXPECT_EQ(pow(T(-1), T(-4)), T(1));
    EXPECT_EQ(pow(T(-3), T(3)), T(-27));
  }
}

TYPED_TEST(AnyInteger, LimitsStartReductions) {
  using T = TypeParam;
  EXPECT_EQ(kLowest<T>, std::numeric_limits<T>::min());
  EXPECT_EQ(kHighest<T>, std::numeric_limits<T>::max());
}

TEST(IntegerDivision, IsExactAtTheEndsOfThirtyTwoBits) {
  const i64 edges[] = {INT32_MIN, INT32_MIN + 1, -65537,        -3,       -2, -1, 1, 2,
                       3,         65535,         INT32_MAX - 1, INT32_MAX};
  for (i64 x : edges) {
    for (i64 y : edges) {
      const i32 a = static_cast<i32>(x), b = static_cast<i32>(y);
      EXPECT_EQ(div_trunc(a, b), wrap<i32>(x / y)) << x << " / " << y;
      EXPECT_EQ(div_floor(a, b), wrap<i32>(floor_quotient(x, y)));
      EXPECT_EQ(remainder(a, b), wrap<i32>(x - y * floor_quotient(x, y)));
    }
  }
  EXPECT_EQ(div_floor(i64(-9007199254740993), i64(2)), -4503599627370497);
}

TEST(Bool, AddsAsOrAndMultipliesAsAnd) {
  for (bool a : {false, true}) {
    for (bool b : {false, true}) {
      EXPECT_EQ(add(a, b), a || b);
      EXPECT_EQ(mul(a, b), a && b);
      EXPECT_EQ(maximum(a, b), a || b);
      EXPECT_EQ(minimum(a, b), a && b);
      EXPECT_EQ(bitwise_and(a, b), a && b);
      EXPECT_EQ(bitwise_or(a, b), a || b);
      EXPECT_EQ(bitwise_xor(a, b), a != b);
      EXPECT_EQ(logical_xor(a, b), a != b);
    }
    EXPECT_EQ(bitwise_not(a), !a);
    EXPECT_EQ(logical_not(a), !a);
  }
  EXPECT_EQ(kLowest<bool>, false);
  EXPECT_EQ(kHighest<bool>, true);
}

TEST(Select, ChoosesOnEveryType) {
  EXPECT_EQ(select(true, i8(3), i8(4)), 3);
  EXPECT_EQ(select(false, 1.5, 2.5), 2.5);
  EXPECT_EQ(clamp(i32(7), i32(0), i32(5)), 5);
  EXPECT_EQ(clamp(i32(7), i32(6), i32(5)), 5);  // the upper bound wins, as in eager
  EXPECT_EQ(relu(i16(-3)), 0);
  EXPECT_EQ(fma(i8(100), i8(2), i8(1)), static_cast<i8>(201));
  EXPECT_FALSE(isnan(i32(3)));
  EXPECT_TRUE(isfinite(u8(3)));
  EXPECT_TRUE(signbit(i8(-1)));
}

}  // namespace stitch_test
