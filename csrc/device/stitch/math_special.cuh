// Powers and special functions: pow, erf erfc erfinv, lgamma digamma.
#pragma once

#include "device/stitch/math_int.cuh"
#include "device/stitch/math_trig.cuh"

namespace stitch {

// 2 ULP, near zero too.  erf(t) = 1 - e^-(t g(t)) with g(t) = -log(erfc(t)) / t smooth on [0, 4]:
// one polynomial and one expm1 serve the whole range, and expm1 keeps the accuracy near zero.  g -
// 1 is fitted with the error weighted by what reaches the result, 2^-27.8.  From 3.95 on erf is 1.
STITCH_DEVICE f32 erf(f32 x) {
  const f32 magnitude = abs(x);
  const f32 t = magnitude > 3.95f ? 3.95f : magnitude;
  f32 p = -0x1.3b1bdcp-17f;
  p = fma(p, t, 0x1.f29fdp-14f);
  p = fma(p, t, -0x1.4e2fd8p-11f);
  p = fma(p, t, 0x1.b74816p-10f);
  p = fma(p, t, -0x1.63864p-13f);
  p = fma(p, t, -0x1.39b7c6p-6f);
  p = fma(p, t, 0x1.a4f8c4p-4f);
  p = fma(p, t, 0x1.45f3p-1f);
  p = fma(p, t, 0x1.06eba8p-3f);
  const Exponential e = exp_negative(-fma(p, t, t));
  return copysign(fma(-e.power, e.reduced, 1.0f - e.power), x);
}
STITCH_DEVICE f64 erf(f64 x) { return STITCH_LIBM(erf)(x); }
STITCH_DEVICE f64 erfc(f64 x) { return STITCH_LIBM(erfc)(x); }
// 4.5 ULP, also where the result is tiny.  Above 1/2, e^(x^2) erfc(x) (1 + 2 x) is smooth in
// (x - 4) / (x + 4); what rounding x^2 lost returns as a factor of e^-x^2.
STITCH_DEVICE f32 erfc(f32 x) {
  const f32 limited = x > 10.1f ? 10.1f : x;
  const f32 t = (limited - 4.0f) / (limited + 4.0f);
  f32 p = 0x1.4cdaaap-10f;
  p = fma(p, t, 0x1.083f54p-7f);
  p = fma(p, t, -0x1.ef4da6p-7f);
  p = fma(p, t, 0x1.293f7ap-5f);
  p = fma(p, t, -0x1.125486p-4f);
  p = fma(p, t, 0x1.8019e6p-4f);
  p = fma(p, t, -0x1.9d7976p-4f);
  p = fma(p, t, 0x1.16f0fp-4f);
  p = fma(p, t, 0x1.f7d13ap-7f);
  p = fma(p, t, -0x1.1df1c2p-3f);
  p = fma(p, t, 0x1.3ba592p+0f);
  const f32 scaled = p / fma(limited, 2.0f, 1.0f);
  const f32 square = limited * limited;
  const f32 lost = fma(limited, limited, -square);
  const f32 e = exp(-square);
  const f32 upper = fma(-lost * scaled, e, scaled * e);
  return x < 0.5f ? 1.0f - erf(x) : upper;
}

// log2(x) for finite x > 0, in f64 with relative error 2^-41: enough for a power to 0.6 ULP.
STITCH_DEVICE f64 log2_extended(f32 x) {
  const Decomposed d = decompose(x);
  const f64 f = d.fraction;
  f64 p = 0x1.28512f767387ap-3;
  p = fma(p, f, -0x1.34d524cda713fp-3);
  p = fma(p, f, 0x1.9fe0a544676ep-4);
  p = fma(p, f, -0x1.c94e7ab18159bp-4);
  p = fma(p, f, 0x1.0e7c79c147593p-3);
  p = fma(p, f, -0x1.29030de619c24p-3);
  p = fma(p, f, 0x1.48318525ae902p-3);
  p = fma(p, f, -0x1.7142088cc970cp-3);
  p = fma(p, f, 0x1.a6181d5dbd1f9p-3);
  p = fma(p, f, -0x1.ec710d91c7c44p-3);
  p = fma(p, f, 0x1.2776c3c20d5ebp-2);
  p = fma(p, f, -0x1.715475bdd7516p-2);
  p = fma(p, f, 0x1.ec709dc5623a6p-2);
  p = fma(p, f, -0x1.71547652f163cp-1);
  p = fma(p, f, 0x1.71547652b8171p+0);
  return fma(p, f, static_cast<f64>(d.exponent));
}

// 2^x rounded to f32.
STITCH_DEVICE f32 exp2_extended(f64 x) {
  const bool underflows = x < -150.0;
  x = underflows ? 0.0 : x;
  x = x > 200.0 ? 200.0 : x;
  const f64 shifted = x + 0x1.8p52;
  const f64 r = x - (shifted - 0x1.8p52);
  f64 p = 0x1.41d30d7984b12p-13;
  p = fma(p, r, 0x1.5f4597fdee08ap-10);
  p = fma(p, r, 0x1.3b2dbc68454eap-7);
  p = fma(p, r, 0x1.c6aed45f9e60cp-5);
  p = fma(p, r, 0x1.ebfbdadb14f78p-3);
  p = fma(p, r, 0x1.62e430c82af96p-1);
  p = fma(p, r, 0x1.0000000262452p+0);
  const f64 power = bit_cast<f64>(bit_cast<u64>(p) + (bit_cast<u64>(shifted) << 52));
  return static_cast<f32>(underflows ? 0.0 : power);
}

// 1 ULP.  |x|^y in f64, then the sign of an odd power and the cases of C99.
STITCH_DEVICE f32 pow(f32 x, f32 y) {
  const f32 base = abs(x);
  const f64 regular = log2_extended(base);
  const f64 edge = base == 0.0f ? -kInfinity<f64> : static_cast<f64>(base);  // infinity, NaN
  const bool is_regular = (base > 0.0f) & (base < kInfinity<f32>);
  const f32 power = exp2_extended(static_cast<f64>(y) * (is_regular ? regular : edge));
  const f32 magnitude = (base == 1.0f) | (y == 0.0f) ? 1.0f : power;
  const f32 half = 0.5f * y;
  const bool odd = (floor(y) == y) & (floor(half) != half);
  const f32 sign = odd ? x : 1.0f;
  const bool undefined = (x < 0.0f) & (base < kInfinity<f32>)&(floor(y) != y);
  // pow(-1, NaN) is NaN, pow(1, NaN) and pow(NaN, 0) are 1.
  return undefined ? kQuietNan<f32> : copysign(magnitude, sign);
}
STITCH_DEVICE f64 pow(f64 x, f64 y) { return STITCH_LIBM(pow)(x, y); }
template <class T>
STITCH_DEVICE T pow(T x, T n) {
  return pow_integer(x, n);
}

#if STITCH_CUDA
STITCH_DEVICE f64 lgamma(f64 x) { return ::lgamma(x); }
#else
STITCH_DEVICE f64 lgamma(f64 x) {
  int sign;  // lgamma would write a global
  return __builtin_lgamma_r(x, &sign);
}
#endif
STITCH_DEVICE f32 lgamma(f32 x) { return static_cast<f32>(lgamma(static_cast<f64>(x))); }

// The inverse of erf: the rational starting values that ATen uses, good to 5 digits, and steps of
// Halley's method in f64: after one 13 digits are right, after two all.
template <int kSteps>
STITCH_DEVICE f64 refine_erfinv(f64 y) {
  const f64 magnitude = abs(y);
  f64 x;
  if (magnitude <= 0.7) {
    const f64 z = y * y;
    const f64 above = fma(fma(fma(-0.140543331, z, 0.914624893), z, -1.645349621), z, 0.886226899);
    f64 below = fma(fma(0.012229801, z, -0.329097515), z, 1.442710462);
    below = fma(fma(below, z, -2.118377725), z, 1.0);
    x = magnitude * above / below;
  } else {
    const f64 z = sqrt(-log((1.0 - magnitude) * 0.5));
    const f64 above = fma(fma(fma(1.641345311, z, 3.429567803), z, -1.624906493), z, -1.970840454);
    x = above / fma(fma(1.637067800, z, 3.543889200), z, 1.0);
  }
  // erfc keeps the distance to 1 that erf would lose.
  for (int step = 0; step < kSteps; ++step) {
    const f64 error = magnitude < 0.5 ? erf(x) - magnitude : (1.0 - magnitude) - erfc(x);
    const f64 newton = error * 0.88622692545275801 * exp(x * x);  // sqrt(pi) / 2
    x -= newton / fma(x, newton, 1.0);
  }
  const f64 result = magnitude == 1.0 ? kInfinity<f64> : x;
  return copysign(magnitude <= 1.0 ? result : kQuietNan<f64>, y);
}
STITCH_DEVICE f64 erfinv(f64 x) { return refine_erfinv<2>(x); }
STITCH_DEVICE f32 erfinv(f32 x) { return static_cast<f32>(refine_erfinv<1>(x)); }

// The derivative of lgamma: reflection for negative x, recurrence up to 10, then the asymptotic
// series with Bernoulli numbers (Cephes).
STITCH_DEVICE f64 digamma(f64 x) {
  if (x == 0.0) return copysign(kInfinity<f64>, -x);
  f64 reflected = 0.0;
  if (x < 0.0) {
    const f64 rest = x - trunc(x);
    if (rest == 0.0) return kQuietNan<f64>;
    constexpr f64 kPi = 3.14159265358979323846;
    reflected = -kPi / tan(kPi * rest);
    x = 1.0 - x;
  }
  f64 recurred = 0.0;
  while (x < 10.0) {
    recurred -= 1.0 / x;
    x += 1.0;
  }
  const f64 z = 1.0 / (x * x);
  f64 series = 8.33333333333333333333e-2;
  series = fma(series, z, -2.10927960927960927961e-2);
  series = fma(series, z, 7.57575757575757575758e-3);
  series = fma(series, z, -4.16666666666666666667e-3);
  series = fma(series, z, 3.96825396825396825397e-3);
  series = fma(series, z, -8.33333333333333333333e-3);
  series = fma(series, z, 8.33333333333333333333e-2);
  return reflected + recurred + log(x) - 0.5 / x - series * z;
}
STITCH_DEVICE f32 digamma(f32 x) { return static_cast<f32>(digamma(static_cast<f64>(x))); }

}  // namespace stitch
