// Approximate instructions: rounded from long double, and within their bounds when disturbed.
#include <cmath>

#include "exact_reference.h"
#include "lanes_bench.h"

namespace stitch::ptxsim::lanes_test {
namespace {

const Covers kCovers = {Opcode::rsqrt, Opcode::sin, Opcode::cos,
                        Opcode::lg2,   Opcode::ex2, Opcode::tanh};

using Real = long double;

Real real_of(const FloatFormat& f, uint64_t bits) {
  if (is_nan(f, bits)) return NAN;
  const Real sign = is_negative(f, bits) ? -1 : 1;
  if (is_infinite(f, bits)) return sign * INFINITY;
  return sign * std::ldexp(Real(Exact::mantissa_of(f, bits)), Exact::exponent_of(f, bits));
}
uint64_t bits_of(const FloatFormat& f, Real x) {
  if (std::isnan(x)) return f.bytes == 4 ? 0x7fffffffu : 0x7fffu;
  const uint64_t sign = std::signbit(x) ? sign_bit(f) : 0;
  if (std::isinf(x)) return sign | infinity_bits(f);
  if (x == 0) return sign;
  int exponent;
  const Real fraction = std::frexp(std::fabs(x), &exponent);
  if (exponent < -2000) return sign;
  if (exponent > 2000) return sign | infinity_bits(f);
  return Exact(sign != 0, uint64_t(std::ldexp(fraction, 64)), exponent - 64).round(f, Rounding::rn);
}

struct Row {
  Opcode opcode;
  Real (*of)(Real x);
  Real (*bound)(const FloatFormat& f, Real x, Real y);  // of what may be off, beside rounding
};
Real unit_of(const FloatFormat& f, Real y) {
  const int exponent = std::ilogb(y);
  return std::ldexp(Real{1}, (exponent > f.least ? exponent : f.least) - mantissa_bits(f));
}
Real circular(const FloatFormat&, Real x, Real) {
  return std::fabs(x) <= 2 * 3.14159265358979323846L ? std::exp2(-20.5L) : std::exp2(-14.7L);
}
const Row kRows[] = {{Opcode::rcp, [](Real x) { return 1 / x; },
                      [](const FloatFormat& f, Real, Real y) { return unit_of(f, y); }},
                     {Opcode::sqrt, [](Real x) { return std::sqrt(x); },
                      [](const FloatFormat&, Real, Real y) { return y * std::exp2(-23.0L); }},
                     {Opcode::rsqrt, [](Real x) { return 1 / std::sqrt(x); },
                      [](const FloatFormat&, Real, Real y) { return y * std::exp2(-22.9L); }},
                     {Opcode::sin, [](Real x) { return std::sin(x); }, circular},
                     {Opcode::cos, [](Real x) { return std::cos(x); }, circular},
                     {Opcode::lg2, [](Real x) { return std::log2(x); },
                      [](const FloatFormat&, Real x, Real y) {
                        return std::exp2(-22.0L) * (x > 0.5L && x < 2 ? 1 : std::fabs(y));
                      }},
                     {Opcode::ex2, [](Real x) { return std::exp2(x); },
                      [](const FloatFormat& f, Real, Real y) {
                        return f.precision == 24 ? 2 * unit_of(f, y)
                                                 : y * std::exp2(f.precision == 11 ? -9.9L : -7.0L);
                      }},
                     {Opcode::tanh, [](Real x) { return std::tanh(x); },
                      [](const FloatFormat& f, Real, Real y) {
                        return f.precision == 24 ? std::fabs(y) * std::exp2(-11.0L)
                                                 : std::exp2(f.precision == 11 ? -10.987L : -8.0L);
                      }}};

std::vector<uint64_t> inputs_of(const FloatFormat& f) {
  std::vector<uint64_t> values;
  if (f.bytes == 2) {
    for (uint64_t k = 0; k < 65536; ++k) values.push_back(k);
    return values;
  }
  values = {0,          1,          0x7fffff,   0x800000,   0x3f800000, 0x7f7fffff,
            0x7f800000, 0x7fc00001, 0x3f000000, 0x40000000, 0x40c90fdb, 0x439d1463};
  std::mt19937_64 random(3);
  for (int k = 0; k < 6000; ++k)
    values.push_back(k % 2 ? random() % 0x7f800000 : 0x38000000 + random() % 0x0b000000);
  const size_t positive = values.size();
  for (size_t k = 0; k < positive; ++k) values.push_back(values[k] | 0x80000000u);
  return values;
}

bool wants_ftz(Opcode opcode, Type type, bool ftz) {
  if (opcode == Opcode::tanh) return !ftz;
  if (type == Type::f32) return true;
  return ftz == (type == Type::bf16 || type == Type::bf16x2);
}
std::vector<Type> scalar_types(Opcode opcode) {
  std::vector<Type> types;
  for (Type type : types_of(opcode)) {
    if (type != Type::f64 && type != Type::f16x2 && type != Type::bf16x2) types.push_back(type);
  }
  return types;
}
// By default the result is the nearest number, whatever the row's bound.
uint64_t nearest(const Row& row, const FloatFormat& f, uint64_t a, bool ftz) {
  if (ftz) a = flushed(f, a);
  const uint64_t d = bits_of(f, row.of(real_of(f, a)));
  return ftz ? flushed(f, d) : d;
}

TEST(LanesApproximate, RoundedCorrectlyByDefault) {
  set_approximation_noise(0);
  for (const Row& row : kRows) {
    for (Type type : types_of(row.opcode)) {
      if (type == Type::f64) continue;
      const bool pair = type == Type::f16x2 || type == Type::bf16x2;
      const FloatFormat f = format_of(type);
      for (bool ftz : {false, true}) {
        const Form form{row.opcode,
                        type,
                        Type::none,
                        {.ftz = ftz, .approx = true},
                        {pair ? 4 : f.bytes, pair ? 4 : f.bytes}};
        if (!wants_ftz(row.opcode, type, ftz)) {
          EXPECT_TRUE(refused(form)) << describe(form);
          continue;
        }
        auto values = inputs_of(f);
        if (pair) {
          for (size_t k = 0; k < values.size(); ++k)
            values[k] |= ((values[k] * 40503 + 7) & 0xffff) << 16;
        }
        check(form, product({values}), [&](const Args& args) {
          if (!pair) return nearest(row, f, args[0], ftz);
          return nearest(row, f, args[0] >> 16, ftz) << 16 | nearest(row, f, args[0] & 0xffff, ftz);
        });
      }
    }
  }
}

// Runs all values, disturbed, and returns how many results differ from the nearest number.
int disturbed(const Row& row, Type type, Handler handler) {
  const FloatFormat f = format_of(type);
  const bool ftz = type == Type::bf16 && row.opcode == Opcode::ex2;
  const auto values = inputs_of(f);
  LaneBench bench;
  bench.bind({row.opcode, type, Type::none, {.ftz = ftz, .approx = true}, {f.bytes, f.bytes}});
  int moved = 0;
  for (size_t first = 0; first + kLanes <= values.size(); first += kLanes) {
    for (int l = 0; l < kLanes; ++l) bench.set(1, f.bytes, l, values[first + l]);
    bench.run(handler, 0xffffffffu);
    for (int l = 0; l < kLanes; ++l) {
      const uint64_t got = bench.get(0, f.bytes, l), near = nearest(row, f, values[first + l], ftz);
      if (got == near) continue;
      ++moved;
      const Real x = real_of(f, values[first + l]), y = row.of(x);
      EXPECT_LE(std::fabs(real_of(f, got) - y), row.bound(f, x, y) * (1 + 1e-6L))
          << row_of(row.opcode).name << '.' << name_of(type) << " of " << double(x);
    }
  }
  return moved;
}

TEST(LanesApproximate, NoiseStaysWithinTheBound) {
  for (const Row& row : kRows) {
    for (Type type : scalar_types(row.opcode)) {
      const bool ftz = type == Type::bf16 && row.opcode == Opcode::ex2;
      for (Handler handler :
           handlers_of({row.opcode, type, Type::none, {.ftz = ftz, .approx = true}, {}})) {
        set_approximation_noise(42);
        const int moved = disturbed(row, type, handler);
        set_approximation_noise(42);
        EXPECT_EQ(disturbed(row, type, handler), moved) << "the same seed draws the same errors";
        EXPECT_GT(moved, 0) << row_of(row.opcode).name << '.' << name_of(type);
      }
    }
  }
  set_approximation_noise(0);
}

TEST(LanesApproximate, Division) {
  const FloatFormat f = kSingle;
  const auto values = std::vector<uint64_t>{
      0,          0x80000000, 1,          0x80000001, 0x3f800000, 0x7f000001, 0xff000001,
      0x7f7fffff, 0x7f800000, 0xff800000, 0x7fc00000, 0x40490fdb, 0x3eaaaaab};
  for (bool full : {false, true}) {
    for (bool ftz : {false, true}) {
      const Form form{Opcode::div,
                      Type::f32,
                      Type::none,
                      {.ftz = ftz, .approx = !full, .full = full},
                      {4, 4, 4}};
      check(form, product({values, values}), [&](Args args) -> uint64_t {
        if (ftz) args[0] = flushed(f, args[0]), args[1] = flushed(f, args[1]);
        const Real a = real_of(f, args[0]), b = real_of(f, args[1]);
        const bool beyond = !full && std::fabs(b) > 0x1p126L && !std::isinf(b);
        const Real zero = std::signbit(a) != std::signbit(b) ? -0.0L : 0.0L;
        const bool nan = std::isnan(a) || (beyond && std::isinf(a));
        const uint64_t d = bits_of(f, !beyond ? a / b : nan ? Real(NAN) : zero);
        return ftz ? flushed(f, d) : d;
      });
    }
  }
}

// The upper halves of doubles; the other forms in double are exact functions of the host.
TEST(LanesApproximate, Doubles) {
  const std::vector<double> values = {1,      2,        3,         0.0, -0.0, 1e300, 1e-300,
                                      5e-324, INFINITY, -INFINITY, -1,  NAN,  0.1};
  std::vector<uint64_t> bits;
  for (double x : values) bits.push_back(__builtin_bit_cast(uint64_t, x));
  for (Opcode opcode : {Opcode::rcp, Opcode::rsqrt}) {
    const Form form{opcode, Type::f64, Type::none, {.ftz = true, .approx = true}, {8, 8}};
    check(form, product({bits}), [&](const Args& args) -> uint64_t {
      const double a = __builtin_bit_cast(double, flushed(kDouble, args[0]));
      const double d = opcode == Opcode::rcp ? 1 / a : 1 / std::sqrt(a);
      if (std::isnan(d)) return 0x7fffffff00000000u;
      const uint64_t exact = flushed(kDouble, __builtin_bit_cast(uint64_t, d));
      const uint64_t low = exact & 0xffffffffu, high = exact >> 32;
      return (high + (low > 0x80000000u || (low == 0x80000000u && high % 2 == 1))) << 32;
    });
  }
  const Form form{Opcode::rsqrt, Type::f64, Type::none, {.approx = true}, {8, 8}};
  check(form, product({bits}), [&](const Args& args) -> uint64_t {
    const double a = __builtin_bit_cast(double, args[0]);
    if (std::isnan(a)) return args[0] | uint64_t{1} << 51;
    return a < 0 ? 0xfff8000000000000u : __builtin_bit_cast(uint64_t, 1 / std::sqrt(a));
  });
}

}  // namespace
}  // namespace stitch::ptxsim::lanes_test
