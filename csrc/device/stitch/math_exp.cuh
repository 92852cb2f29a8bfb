// Exponentials, logarithms and what follows from them: exp exp2 expm1 log log2 log10 log1p sigmoid
// tanh sinh cosh asinh acosh atanh.
//
// f32: polynomials of our own, free of branches, so that the host vectorises them and host and
// device agree to the last bit.  f64: the compiler's functions.  Coefficients are minimax fits of
// the relative error (tools/fit_polynomials.py); each function's bound in ULP stands above it and
// is tested in tests/cpp/device/math_test.cpp.
#pragma once

#include "device/stitch/math_basic.cuh"

namespace stitch {

// Constants are templates: a plain one ends up in the global memory of every kernel under NVRTC.
template <class T>
inline constexpr T kLog2E = 0x1.715476p+0f;
template <class T>
inline constexpr T kLn2 = 0x1.62e43p-1f;
template <class T>
inline constexpr T kLn2Low = -0x1.05c61p-29f;  // ln 2 - kLn2

// Adding 1.5 * 2^23 to a float rounds it to an integer and leaves that integer in its low bits.
template <class T>
inline constexpr T kRoundToInteger = 0x1.8p23f;

// mantissa * 2^n in two steps, so that overflow and subnormals round as they must.  biased is the
// float 1.5 * 2^23 + 254 + n: half of its bits, moved into the exponent field, is 2^(n/2).
// n = -254 gives zero factors: results that underflow go there, since processors take a slow path
// for products that underflow, and a masked softmax is full of them.
STITCH_DEVICE f32 scale(f32 mantissa, f32 biased) {
  const i32 bits = bit_cast<i32>(biased);
  const i32 half = bits >> 1;
  const f32 first = bit_cast<f32>(static_cast<u32>(half) << 23);
  const f32 second = bit_cast<f32>(static_cast<u32>(bits - half) << 23);
  return mantissa * first * second;
}

// e^r for |r| <= ln 2 / 2, relative error 2^-28.
STITCH_DEVICE f32 exp_reduced(f32 r) {
  f32 p = 0x1.6a411cp-10f;
  p = fma(p, r, 0x1.123ceep-7f);
  p = fma(p, r, 0x1.5558a6p-5f);
  p = fma(p, r, 0x1.55548cp-3f);
  p = fma(p, r, 0x1.fffffcp-2f);
  p = fma(p, r, 1.0f);
  return fma(p, r, 1.0f);
}

// e^x for -176 <= x <= 91 as the operands of scale.
struct Scaled {
  f32 mantissa, biased;
};
STITCH_DEVICE Scaled exp_scaled(f32 x) {
  const f32 biased = fma(x, kLog2E<f32>, kRoundToInteger<f32> + 254.0f);
  const f32 n = biased - (kRoundToInteger<f32> + 254.0f);
  const f32 r = fma(n, -kLn2Low<f32>, fma(n, -kLn2<f32>, x));
  return {exp_reduced(r), biased};
}

#if STITCH_CUDA
STITCH_DEVICE f32 exp(f32 x) { return approximate_exp(x); }
STITCH_DEVICE f32 exp2(f32 x) { return approximate_exp2_full(x); }
#else
// 1 ULP.
STITCH_DEVICE f32 exp(f32 x) {
  x = x < -104.0f ? -176.0f : x;  // e^-176 is 2^-254
  const Scaled e = exp_scaled(x > 89.0f ? 89.0f : x);
  return scale(e.mantissa, e.biased);
}

// 1 ULP.  |r| <= 1/2, relative error of the polynomial 2^-28.
STITCH_DEVICE f32 exp2(f32 x) {
  x = x < -150.0f ? -254.0f : x;
  x = x > 129.0f ? 129.0f : x;
  const f32 biased = x + (kRoundToInteger<f32> + 254.0f);
  const f32 r = x - (biased - (kRoundToInteger<f32> + 254.0f));
  f32 p = 0x1.41ba6ap-13f;
  p = fma(p, r, 0x1.5f0c54p-10f);
  p = fma(p, r, 0x1.3b2da4p-7f);
  p = fma(p, r, 0x1.c6af76p-5f);
  p = fma(p, r, 0x1.ebfbdcp-3f);
  p = fma(p, r, 0x1.62e43p-1f);
  return scale(fma(p, r, 1.0f), biased);
}
#endif

// e^r - 1 for |r| <= ln 2 / 2, relative error 2^-26.
STITCH_DEVICE f32 expm1_reduced(f32 r) {
  f32 p = 0x1.6ab10ap-10f;
  p = fma(p, r, 0x1.122c8cp-7f);
  p = fma(p, r, 0x1.55579ep-5f);
  p = fma(p, r, 0x1.5554aap-3f);
  p = fma(p, r, 0x1.fffffep-2f);
  return fma(p, r * r, r);
}

// e^x = power + power * reduced for -80 <= x <= 0.  One step of reduction suffices: e^x shrinks
// faster than the error of n * kLn2 grows.
struct Exponential {
  f32 power, reduced;
};
STITCH_DEVICE Exponential exp_negative(f32 x) {
  const f32 shifted = fma(x, kLog2E<f32>, kRoundToInteger<f32>);
  const f32 r = fma(shifted - kRoundToInteger<f32>, -kLn2<f32>, x);
  const f32 power = bit_cast<f32>((bit_cast<u32>(shifted) << 23) + 0x3f800000u);
  return {power, expm1_reduced(r)};
}

// 2 ULP.  Works with half the power, since 2^128 is no float.
STITCH_DEVICE f32 expm1(f32 x) {
  f32 limited = x < -20.0f ? -20.0f : x;
  limited = limited > 89.0f ? 89.0f : limited;
  const f32 shifted = fma(limited, kLog2E<f32>, kRoundToInteger<f32>);
  const f32 n = shifted - kRoundToInteger<f32>;
  const f32 r = fma(n, -kLn2Low<f32>, fma(n, -kLn2<f32>, limited));
  const f32 half_power = bit_cast<f32>((bit_cast<u32>(shifted) << 23) + 0x3f000000u);
  const f32 half = fma(half_power, expm1_reduced(r), half_power - 0.5f);
  return abs(x) < 0x1p-25f ? x : half + half;
}

template <class T>
inline constexpr T kTwoThirds = 0x3f2aaaab;
STITCH_DEVICE f32 to_float(u32 bits) { return static_cast<f32>(static_cast<i32>(bits)); }
// x = 2^exponent * (1 + fraction) with |fraction| <= 1/3, subnormals included.
struct Decomposed {
  f32 exponent, fraction;
};
STITCH_DEVICE Decomposed decompose(f32 x) {
  const bool subnormal = x < 0x1p-126f;
  const u32 bits = bit_cast<u32>(subnormal ? x * 0x1p23f : x);
  const u32 shift = (bits - kTwoThirds<u32>)&0xff800000u;
  const f32 exponent = fma(to_float(shift), 0x1p-23f, subnormal ? -23.0f : 0.0f);
  return {exponent, bit_cast<f32>(bits - shift) - 1.0f};
}

// What a logarithm of any base is outside the positive finite numbers.
STITCH_DEVICE f32 finish_log(f32 x, f32 regular) {
  const f32 positive = x < kInfinity<f32> ? regular : x;  // infinity, NaN
  return x > 0.0f ? positive : x == 0.0f ? -kInfinity<f32> : kQuietNan<f32>;
}

// log(1 + f) for |f| <= 1/3, relative error 2^-27.
STITCH_DEVICE f32 log1p_reduced(f32 f) {
  f32 p = -0x1.fe9a2ap-4f;
  p = fma(p, f, 0x1.201c44p-3f);
  p = fma(p, f, -0x1.f6cd3cp-4f);
  p = fma(p, f, 0x1.1e7efp-3f);
  p = fma(p, f, -0x1.557e08p-3f);
  p = fma(p, f, 0x1.99d592p-3f);
  p = fma(p, f, -0x1.ffff94p-3f);
  p = fma(p, f, 0x1.5554fap-2f);
  p = fma(p, f, -0.5f);
  return fma(p, f * f, f);
}

// 1 ULP.
STITCH_DEVICE f32 log(f32 x) {
  const Decomposed d = decompose(x);
  return finish_log(x, fma(d.exponent, kLn2<f32>, log1p_reduced(d.fraction)));
}

// 1.5 ULP.  The linear term has two parts, so that the result is good near 1.
STITCH_DEVICE f32 log2(f32 x) {
  const Decomposed d = decompose(x);
  const f32 f = d.fraction;
  f32 p = -0x1.68d684p-3f;
  p = fma(p, f, 0x1.a09f7ap-3f);
  p = fma(p, f, -0x1.6c681cp-3f);
  p = fma(p, f, 0x1.9d215ap-3f);
  p = fma(p, f, -0x1.ec8b1ap-3f);
  p = fma(p, f, 0x1.27a384p-2f);
  p = fma(p, f, -0x1.715492p-2f);
  p = fma(p, f, 0x1.ec7014p-2f);
  p = fma(p, f, -0x1.715476p-1f);
  const f32 rest = fma(p, f * f, f * 0x1.4ae0cp-26f);
  return finish_log(x, fma(f, kLog2E<f32>, rest) + d.exponent);
}

// 1.5 ULP.
STITCH_DEVICE f32 log10(f32 x) {
  const Decomposed d = decompose(x);
  const f32 f = d.fraction;
  f32 p = -0x1.cc954ap-5f;
  p = fma(p, f, 0x1.f228c8p-5f);
  p = fma(p, f, -0x1.b0e82cp-5f);
  p = fma(p, f, 0x1.f2259cp-5f);
  p = fma(p, f, -0x1.28c148p-4f);
  p = fma(p, f, 0x1.63f6e4p-4f);
  p = fma(p, f, -0x1.bcb66cp-4f);
  p = fma(p, f, 0x1.287a2ep-3f);
  p = fma(p, f, -0x1.bcb7b2p-3f);
  const f32 rest = fma(p, f * f, f * -0x1.5b235ep-27f);
  const f32 fraction = fma(f, 0x1.bcb7b2p-2f, rest);  // log10 e
  // log10 2 in two parts, the first with few enough bits that its product is exact.
  return finish_log(x, fma(d.exponent, 0x1.344p-2f, fma(d.exponent, 0x1.3509f8p-18f, fraction)));
}

// 2 ULP.  1 + x is never rounded: the power of two is taken from it, but applied to x and 1.
STITCH_DEVICE f32 log1p(f32 x) {
  const u32 shift = (bit_cast<u32>(x + 1.0f) - kTwoThirds<u32>)&0xff800000u;
  const f32 quarter = bit_cast<f32>(0x40800000u - shift);  // 4 * 2^-exponent
  const f32 f = bit_cast<f32>(bit_cast<u32>(x) - shift) + fma(0.25f, quarter, -1.0f);
  const f32 exponent = to_float(shift) * 0x1p-23f;
  const f32 regular = fma(exponent, kLn2<f32>, log1p_reduced(f));
  const f32 above = x < kInfinity<f32> ? regular : x;
  const f32 result = x > -1.0f ? above : x == -1.0f ? -kInfinity<f32> : kQuietNan<f32>;
  return abs(x) < 0x1p-25f ? x : result;
}

#if STITCH_CUDA
STITCH_DEVICE f32 sigmoid(f32 x) { return approximate_sigmoid(x); }
STITCH_DEVICE f32 tanh(f32 x) { return approximate_tanh(x); }
STITCH_DEVICE f32 quotient_of_quarter(f32 half) { return 0.25f * approximate_reciprocal(half); }
#else
// 2 ULP, subnormal results included: e^-|x| is used on both sides.  The last step takes back most
// of what rounding 1 + e cost.
STITCH_DEVICE f32 sigmoid(f32 x) {
  const f32 e = exp(-abs(x));
  const f32 sum = 1.0f + e;
  const f32 quotient = (x < 0.0f ? e : 1.0f) / sum;
  return fma(-quotient, e - (sum - 1.0f), quotient);
}

// 2 ULP, near zero too; beyond 1, where gradients take 1 - y^2, as a difference from 1.
STITCH_DEVICE f32 tanh(f32 x) {
  const f32 magnitude = abs(x);
  const Exponential e = exp_negative(magnitude > 20.0f ? -40.0f : -2.0f * magnitude);
  const f32 below = fma(e.power, e.reduced, 1.0f + e.power);
  const f32 twice = 2.0f * fma(e.power, e.reduced, e.power);
  const f32 above = fma(-e.power, e.reduced, 1.0f - e.power);
  const bool is_large = magnitude > 1.0f;
  const f32 quotient = (is_large ? twice : above) / below;
  return copysign(is_large ? 1.0f - quotient : quotient, x);
}
STITCH_DEVICE f32 quotient_of_quarter(f32 half) { return 0.25f / half; }
#endif

// e^x / 2 for x >= 0: finite wherever sinh and cosh are.
STITCH_DEVICE f32 half_exp(f32 x) {
  const Scaled e = exp_scaled(x > 91.0f ? 91.0f : x);
  return scale(e.mantissa, e.biased - 1.0f);
}

// 2 ULP.
STITCH_DEVICE f32 cosh(f32 x) {
  const f32 half = half_exp(abs(x));
  return half + quotient_of_quarter(half);
}
// 2 ULP.  A polynomial up to 1, relative error 2^-25.
STITCH_DEVICE f32 sinh(f32 x) {
  const f32 magnitude = abs(x);
  const f32 half = half_exp(magnitude);
  const f32 s = x * x;
  f32 p = 0x1.ab429p-13f;
  p = fma(p, s, 0x1.10f76p-7f);
  p = fma(p, s, 0x1.555598p-3f);
  const f32 near = fma(p, magnitude * s, magnitude);
  return copysign(magnitude > 1.0f ? half - quotient_of_quarter(half) : near, x);
}

// 3 ULP each.  Where squares would overflow or drown the rest, log(2 x) is the result.
STITCH_DEVICE f32 asinh(f32 x) {
  const f32 magnitude = abs(x);
  const bool large = magnitude > 0x1p30f;
  const f32 s = x * x;
  const f32 sum = magnitude + s / (1.0f + sqrt(s + 1.0f));
  return copysign(log1p(large ? magnitude : sum) + (large ? kLn2<f32> : 0.0f), x);
}
STITCH_DEVICE f32 acosh(f32 x) {
  const bool large = x > 0x1p30f;
  const f32 t = x - 1.0f;
  const f32 sum = t + sqrt(fma(t, t, t + t));
  return log1p(large ? x : x < 1.0f ? kQuietNan<f32> : sum) + (large ? kLn2<f32> : 0.0f);
}
STITCH_DEVICE f32 atanh(f32 x) {
  const f32 magnitude = abs(x);
  return copysign(0.5f * log1p((magnitude + magnitude) / (1.0f - magnitude)), x);
}

STITCH_DEVICE f64 exp(f64 x) { return STITCH_LIBM(exp)(x); }
STITCH_DEVICE f64 exp2(f64 x) { return STITCH_LIBM(exp2)(x); }
STITCH_DEVICE f64 expm1(f64 x) { return STITCH_LIBM(expm1)(x); }
STITCH_DEVICE f64 log(f64 x) { return STITCH_LIBM(log)(x); }
STITCH_DEVICE f64 log2(f64 x) { return STITCH_LIBM(log2)(x); }
STITCH_DEVICE f64 log10(f64 x) { return STITCH_LIBM(log10)(x); }
STITCH_DEVICE f64 log1p(f64 x) { return STITCH_LIBM(log1p)(x); }
STITCH_DEVICE f64 sinh(f64 x) { return STITCH_LIBM(sinh)(x); }
STITCH_DEVICE f64 cosh(f64 x) { return STITCH_LIBM(cosh)(x); }
STITCH_DEVICE f64 tanh(f64 x) { return STITCH_LIBM(tanh)(x); }
STITCH_DEVICE f64 asinh(f64 x) { return STITCH_LIBM(asinh)(x); }
STITCH_DEVICE f64 acosh(f64 x) { return STITCH_LIBM(acosh)(x); }
STITCH_DEVICE f64 atanh(f64 x) { return STITCH_LIBM(atanh)(x); }
STITCH_DEVICE f64 sigmoid(f64 x) {
  const f64 e = exp(-abs(x));
  return (x < 0.0 ? e : 1.0) / (1.0 + e);
}

}  // namespace stitch
