// Elementary functions of the device headers against f64 references, with their bounds in ULP.
#include "device/stitch/math.cuh"

#include <gtest/gtest.h>

#include <random>
#include <string>

#include "ulp.h"

namespace stitch_test {

struct UnaryCase {
  const char* name;
  float (*function)(float);
  double (*reference)(double);
  double bound_ulp;
};

#define UNARY(name, reference, bound)                                                            \
  {#name, [](float x) { return stitch::name(x); }, [](double x) -> double { return reference; }, \
   bound}

double exact_sigmoid(double x) {
  return x < 0 ? std::exp(x) / (1 + std::exp(x)) : 1 / (1 + std::exp(-x));
}

const UnaryCase kUnaryCases[] = {
    UNARY(exp, std::exp(x), 1),
    UNARY(exp2, std::exp2(x), 1),
    UNARY(expm1, std::expm1(x), 2),
    UNARY(log, std::log(x), 1),
    UNARY(log2, std::log2(x), 1.5),
    UNARY(log10, std::log10(x), 1.5),
    UNARY(log1p, std::log1p(x), 2),
    UNARY(sigmoid, exact_sigmoid(x), 2),
    UNARY(tanh, std::tanh(x), 2),
    UNARY(sinh, std::sinh(x), 2),
    UNARY(cosh, std::cosh(x), 2),
    UNARY(asinh, std::asinh(x), 3),
    UNARY(acosh, std::acosh(x), 3),
    UNARY(atanh, std::atanh(x), 3),
    UNARY(sin, std::sin(x), 2),
    UNARY(cos, std::cos(x), 2),
    UNARY(tan, std::tan(x), 3.5),
    UNARY(asin, std::asin(x), 2.5),
    UNARY(acos, std::acos(x), 1.5),
    UNARY(atan, std::atan(x), 2),
    UNARY(erf, std::erf(x), 2),
    UNARY(erfc, std::erfc(x), 4.5),
    UNARY(lgamma, std::lgamma(x), 1),
    UNARY(sqrt, std::sqrt(x), 0.5),
    UNARY(rsqrt, 1 / std::sqrt(x), 1.5),
    UNARY(reciprocal, 1 / x, 0.5),
    UNARY(floor, std::floor(x), 0),
    UNARY(ceil, std::ceil(x), 0),
    UNARY(trunc, std::trunc(x), 0),
    UNARY(round, std::nearbyint(x), 0),
    UNARY(frac, x - std::trunc(x), 0),
    UNARY(square, x* x, 0.5),
    UNARY(abs, std::fabs(x), 0),
    UNARY(neg, -x, 0),
    UNARY(sign,
          x > 0   ? 1
          : x < 0 ? -1
                  : 0,
          0),
    UNARY(relu, x < 0 ? 0 : x, 0),
};

class UnaryTest : public testing::TestWithParam<UnaryCase> {};

TEST_P(UnaryTest, StaysWithinItsBound) {
  const UnaryCase& test = GetParam();
  double worst = 0;
  float worst_input = 0;
  for (float x : sample_floats()) {
    const double distance = ulp_distance(test.function(x), test.reference(x));
    if (distance > worst) {
      worst = distance;
      worst_input = x;
    }
  }
  RecordProperty("worst_ulp", std::to_string(worst));
  EXPECT_LE(worst, test.bound_ulp)
      << test.name << "(" << worst_input << ") is " << test.function(worst_input) << ", expected "
      << test.reference(worst_input);
}

INSTANTIATE_TEST_SUITE_P(Math, UnaryTest, testing::ValuesIn(kUnaryCases),
                         [](const auto& info) { return std::string(info.param.name); });

// Bits, so that NaN equals itself and zeros differ.
bool same_bits(float a, float b) {
  return (std::isnan(a) && std::isnan(b)) ||
         stitch::bit_cast<uint32_t>(a) == stitch::bit_cast<uint32_t>(b);
}

template <class Function>
__attribute__((noinline)) void apply_simd(Function function, const float* x, float* y, int count) {
  STITCH_SIMD
  for (int i = 0; i < count; ++i) y[i] = function(x[i]);
}

template <class Function>
void expect_simd_equals_scalar(const char* name, Function function) {
  const std::vector<float>& x = special_floats();
  std::vector<float> y(x.size());
  apply_simd(function, x.data(), y.data(), static_cast<int>(x.size()));
  for (size_t i = 0; i < x.size(); ++i) {
    volatile float input = x[i];
    EXPECT_TRUE(same_bits(y[i], function(input))) << name << "(" << x[i] << ")";
  }
}

TEST(Math, VectorLoopsGiveTheBitsOfScalarCode) {
#define CHECK_SIMD(name) expect_simd_equals_scalar(#name, [](float x) { return stitch::name(x); })
  CHECK_SIMD(exp);
  CHECK_SIMD(expm1);
  CHECK_SIMD(log);
  CHECK_SIMD(log1p);
  CHECK_SIMD(sigmoid);
  CHECK_SIMD(tanh);
  CHECK_SIMD(erf);
  CHECK_SIMD(sin);
  CHECK_SIMD(cos);
  CHECK_SIMD(rsqrt);
}

struct BinaryCase {
  const char* name;
  float (*function)(float, float);
  double (*reference)(double, double);
  double bound_ulp;
};

#define BINARY(name, reference, bound)                         \
  {#name, [](float a, float b) { return stitch::name(a, b); }, \
   [](double a, double b) -> double { return reference; }, bound}

double exact_remainder(double a, double b) {
  const double rest = std::fmod(a, b);
  return rest != 0 && (b < 0) != (rest < 0) ? rest + b : rest;
}

double exact_maximum(double a, double b) {
  return std::isnan(a) || std::isnan(b) ? std::nan("") : std::fmax(a, b);
}

const BinaryCase kBinaryCases[] = {
    BINARY(add, a + b, 0.5),
    BINARY(sub, a - b, 0.5),
    BINARY(mul, a* b, 0.5),
    BINARY(div, a / b, 0.501),  // the reference is rounded itself
    BINARY(pow, std::pow(a, b), 1),
    BINARY(atan2, std::atan2(a, b), 3),
    BINARY(hypot, std::hypot(a, b), 1),
    BINARY(fmod, std::fmod(a, b), 0),
    BINARY(remainder, exact_remainder(a, b), 0.5),
    BINARY(div_trunc, std::trunc(static_cast<float>(a / b)), 0),
    BINARY(nextafter, std::nextafterf(a, b), 0),
    BINARY(copysign, std::copysign(a, b), 0),
};

class BinaryTest : public testing::TestWithParam<BinaryCase> {
 protected:
  void check(float a, float b) {
    const BinaryCase& test = GetParam();
    const float got = test.function(a, b);
    const double distance = ulp_distance(got, test.reference(a, b));
    if (distance <= test.bound_ulp) return;
    ADD_FAILURE() << test.name << "(" << a << ", " << b << ") is " << got << ", expected "
                  << test.reference(a, b) << ", " << distance << " ULP away";
  }
};

TEST_P(BinaryTest, IsRightForSpecialValues) {
  for (float a : special_floats()) {
    for (float b : special_floats()) check(a, b);
  }
}

TEST_P(BinaryTest, StaysWithinItsBound) {
  std::mt19937 random(7);
  for (int i = 0; i < 1000000 && !HasFailure(); ++i) {
    check(float_of_bits(random()), float_of_bits(random()));
    // Ordinary magnitudes, 2^-8 to 2^8.
    check(float_of_bits((random() & 0x87ffffff) | 0x3c000000),
          float_of_bits((random() & 0x87ffffff) | 0x3c000000));
  }
}

INSTANTIATE_TEST_SUITE_P(Math, BinaryTest, testing::ValuesIn(kBinaryCases),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(Math, FloorDivisionFollowsEager) {
  const float inf = stitch::infinity<float>();
  EXPECT_EQ(stitch::div_floor(5.0f, 3.0f), 1.0f);
  EXPECT_EQ(stitch::div_floor(-5.0f, 3.0f), -2.0f);
  EXPECT_EQ(stitch::div_floor(5.0f, -3.0f), -2.0f);
  EXPECT_EQ(stitch::div_floor(1.0f, 0.1f), 9.0f);  // 0.1f exceeds 1/10
  EXPECT_EQ(stitch::div_floor(1.0f, 0.0f), inf);
  EXPECT_TRUE(std::isnan(stitch::div_floor(inf, 2.0f)));
  EXPECT_TRUE(std::signbit(stitch::div_floor(-0.0f, 3.0f)));
  EXPECT_FALSE(std::signbit(stitch::div_floor(-0.0f, -3.0f)));
  EXPECT_EQ(stitch::div_floor(-7.5, 2.0), -4.0);
}

TEST(Math, MaximumAndClampHandNanOn) {
  const float nan = stitch::quiet_nan<float>();
  for (float x : special_floats()) {
    for (float y : special_floats()) {
      if (std::isnan(x) || std::isnan(y)) {
        EXPECT_TRUE(std::isnan(stitch::maximum(x, y)));
        EXPECT_TRUE(std::isnan(stitch::minimum(x, y)));
        EXPECT_TRUE(std::isnan(stitch::clamp(1.0f, x, y)));
        EXPECT_TRUE(same_bits(stitch::fmax(x, y), std::fmax(x, y)));
        EXPECT_TRUE(same_bits(stitch::fmin(x, y), std::fmin(x, y)));
      } else {
        EXPECT_EQ(stitch::maximum(x, y), exact_maximum(x, y));
        EXPECT_EQ(stitch::minimum(x, y), -exact_maximum(-x, -y));
        EXPECT_EQ(stitch::fmax(x, y), std::fmax(x, y));
        EXPECT_EQ(stitch::clamp(x, -1.0f, y), std::fmin(std::fmax(x, -1.0f), y));
      }
    }
  }
  EXPECT_TRUE(std::isnan(stitch::clamp(nan, 0.0f, 1.0f)));
  EXPECT_TRUE(std::isnan(stitch::relu(nan)));
  EXPECT_EQ(stitch::sign(nan), 0.0f);
}

TEST(Math, ClassifiesLikeTheStandardLibrary) {
  for (float x : special_floats()) {
    EXPECT_EQ(stitch::isnan(x), std::isnan(x));
    EXPECT_EQ(stitch::isinf(x), std::isinf(x));
    EXPECT_EQ(stitch::isfinite(x), std::isfinite(x));
    EXPECT_EQ(stitch::signbit(x), std::signbit(x));
    EXPECT_EQ(stitch::isnan<double>(x), std::isnan(x));
    EXPECT_EQ(stitch::logical_not(x), x == 0);
  }
}

TEST(Math, InvertsTheErrorFunction) {
  for (double y = -0.999999; y < 1; y += 0.00037) {
    EXPECT_NEAR(std::erf(stitch::erfinv(y)), y, 2e-16) << y;
  }
  for (double distance = 0.5; distance > 1e-15; distance *= 0.37) {  // close to 1
    EXPECT_NEAR(std::erfc(stitch::erfinv(1 - distance)) / (1 - (1 - distance)), 1, 1e-13)
        << distance;
  }
  const double small = stitch::erfinv(1e-30);
  EXPECT_NEAR(small / 1e-30, std::sqrt(std::acos(-1.0)) / 2, 1e-15);
  EXPECT_EQ(stitch::erfinv(1.0f), stitch::infinity<float>());
  EXPECT_EQ(stitch::erfinv(-1.0f), -stitch::infinity<float>());
  EXPECT_TRUE(std::isnan(stitch::erfinv(1.5f)));
  EXPECT_TRUE(std::isnan(stitch::erfinv(stitch::quiet_nan<float>())));
  EXPECT_TRUE(std::signbit(stitch::erfinv(-0.0f)));
}

TEST(Math, DigammaObeysItsEquations) {
  constexpr double kEulerGamma = 0.57721566490153286;
  EXPECT_NEAR(stitch::digamma(1.0), -kEulerGamma, 1e-15);
  EXPECT_NEAR(stitch::digamma(0.5), -kEulerGamma - 2 * std::log(2.0), 4e-15);
  for (double x = -7.25; x < 20; x += 0.5) {
    EXPECT_NEAR(stitch::digamma(x + 1), stitch::digamma(x) + 1 / x, 1e-12) << x;
  }
  EXPECT_EQ(stitch::digamma(0.0f), -stitch::infinity<float>());
  EXPECT_EQ(stitch::digamma(-0.0f), stitch::infinity<float>());
  EXPECT_TRUE(std::isnan(stitch::digamma(-3.0f)));
  EXPECT_TRUE(std::isnan(stitch::digamma(-stitch::infinity<float>())));
}

TEST(Math, DoublesUseTheLibrary) {
  for (double x : {-2.5, -0.5, 0.25, 0.75, 3.0}) {
    EXPECT_EQ(stitch::exp(x), std::exp(x));
    EXPECT_EQ(stitch::tanh(x), std::tanh(x));
    EXPECT_EQ(stitch::sin(x), std::sin(x));
    EXPECT_EQ(stitch::erf(x), std::erf(x));
    EXPECT_EQ(stitch::pow(x, 3.0), std::pow(x, 3.0));
    EXPECT_EQ(stitch::atan2(x, 2.0), std::atan2(x, 2.0));
    EXPECT_EQ(stitch::nextafter(x, 9.0), std::nextafter(x, 9.0));
    EXPECT_EQ(stitch::remainder(x, -2.0), exact_remainder(x, -2.0));
    EXPECT_NEAR(stitch::sigmoid(x), exact_sigmoid(x), 1e-15);
  }
}

}  // namespace stitch_test
