// A GPU's approximate instructions, and the functions made of them.
//
// Under STITCH_CUDA the f32 functions of math_exp.cuh and math_special.cuh are these: an exact
// reduction, one approximate instruction and what undoes the reduction.  Bounds in ULP take the PTX
// manual's bounds of the instructions (ex2 2 ULP, rcp 1 ULP).  Of all floats an H200 is off by at
// most 2.07 units for exp, 2.39 for exp2 (the instruction itself), 3.07 for sigmoid, 1.90 for tanh,
// 1.52 for rsqrt, 1.63 for sinh, 1.36 for cosh and 4.97 for erfc (tests/gpu, 2026-11).
// Those named _short are for results that are rounded to 16 bits: relative error 2^-16, so that the
// rounded result is within 0.51 ULP; what is below 2^-126 may become zero.
#pragma once

#include "device/stitch/prelude.cuh"

#if STITCH_CUDA

namespace stitch {

#define STITCH_APPROXIMATE(name, instruction)           \
  STITCH_DEVICE f32 name(f32 x) {                       \
    f32 y;                                              \
    asm(instruction ".f32 %0, %1;" : "=f"(y) : "f"(x)); \
    return y;                                           \
  }
STITCH_APPROXIMATE(approximate_exp2, "ex2.approx.ftz")
STITCH_APPROXIMATE(approximate_exp2_full, "ex2.approx")
STITCH_APPROXIMATE(approximate_reciprocal, "rcp.approx.ftz")
STITCH_APPROXIMATE(approximate_rsqrt, "rsqrt.approx")
#undef STITCH_APPROXIMATE

// 2 ULP, subnormals included, without the branch of a quotient that is rounded correctly.
STITCH_DEVICE f32 div_short(f32 a, f32 b) {
  f32 y;
  asm("div.full.f32 %0, %1, %2;" : "=f"(y) : "f"(a), "f"(b));
  return y;
}

// 2^n e^r with n = x / ln 2 rounded and kept within [-126, 127], |r| <= ln 2 / 2 or what is beyond:
// 2.75 ULP, and one rounding more where the result is subnormal.
STITCH_DEVICE f32 approximate_exp(f32 x) {
  f32 part, shifted;
  // (x / ln 2 + 126) / 253 within [0, 1], then 1.5 * 2^23 + 127 + n.
  asm("fma.rn.sat.f32 %0, %1, 0f3BBADACC, 0f3EFEFCF7;" : "=f"(part) : "f"(x));
  asm("fma.rn.f32 %0, %1, 0f437D0000, 0f4B400001;" : "=f"(shifted) : "f"(part));
  const f32 n = shifted - (0x1.8p23f + 127.0f);
  const f32 r = ::fmaf(x, 0x1.4ae0cp-26f, ::fmaf(x, 0x1.715476p+0f, -n));
  return approximate_exp2(r) * bit_cast<f32>(bit_cast<u32>(shifted) << 23);
}
// The square of e^(x/2), which is never subnormal where the result is not zero: keeps subnormal
// results, of which a sum may be a divisor, without a test for them.  Of x * factor.
STITCH_DEVICE f32 exp_short(f32 x, f32 factor = 1.0f) {
  const f32 root = approximate_exp2(x * (factor * 0x1.715476p-1f));
  return root * root;
}

// Zero below 2^-126.
STITCH_DEVICE f32 exp_vanishing(f32 x) { return approximate_exp2(x * 0x1.715476p+0f); }

// 1 / (1 + e^-x).
STITCH_DEVICE f32 approximate_sigmoid(f32 x) {
  const f32 e = approximate_exp(-::fabsf(x));
  const f32 sum = 1.0f + e, lost = e - (sum - 1.0f);
  const f32 y = approximate_reciprocal(sum);
  const f32 quotient = ::fmaf(y, ::fmaf(-sum, y, 1.0f) - lost * y, y);
  return x < 0.0f ? e * quotient : quotient;
}
STITCH_DEVICE f32 sigmoid_short(f32 x, f32 factor = 1.0f) {
  return approximate_reciprocal(1.0f + approximate_exp2(x * (factor * -0x1.715476p+0f)));
}

// 1 - 2 / (e^2|x| + 1), near zero a polynomial of relative error 2^-23.5.
STITCH_DEVICE f32 approximate_tanh(f32 x) {
  const f32 magnitude = ::fabsf(x), s = x * x;
  const f32 power = approximate_exp2(magnitude * 0x1.715476p+1f);
  const f32 far = ::fmaf(approximate_reciprocal(power + 1.0f), -2.0f, 1.0f);
  f32 p = 0x1.ff9d04p-7f;
  p = ::fmaf(p, s, -0x1.abb8fcp-5f);
  p = ::fmaf(p, s, 0x1.10a72p-3f);
  p = ::fmaf(p, s, -0x1.555368p-2f);
  const f32 near = ::fmaf(::fmaf(p, s, 0.0f), x, x);  // a sum with 0, so that -0 stays
  return magnitude < 0.6f ? near : ::copysignf(far, x);
}
STITCH_DEVICE f32 tanh_short(f32 x) {
  const f32 power = approximate_exp2(x * 0x1.715476p+1f);
  const f32 far = ::fmaf(approximate_reciprocal(power + 1.0f), -2.0f, 1.0f);
  const f32 near = ::fmaf(::fmaf(x * x, -0x1.555368p-2f, 0.0f), x, x);
  return ::fabsf(x) < 0.0625f ? near : far;
}

// 1 + erf(x) = erfc(-x), erfc(t) = 2^-(t h(t)), h a polynomial up to 5, from there constant.  Error
// 2^-19 of erfc(t) + 2^-6.
STITCH_DEVICE f32 erf_plus_one_short(f32 x) {
  const f32 magnitude = ::fabsf(x), t = ::fminf(magnitude, 5.0f);
  f32 p = -0x1.0f73p-12f;
  p = ::fmaf(p, t, 0x1.18fbfp-8f);
  p = ::fmaf(p, t, -0x1.06e45ap-5f);
  p = ::fmaf(p, t, 0x1.34a3a8p-3f);
  p = ::fmaf(p, t, 0x1.d5eb74p-1f);
  p = ::fmaf(p, t, 0x1.a0c23cp+0f);
  const f32 rest = approximate_exp2(-magnitude * p);
  return x < 0.0f ? rest : 2.0f - rest;
}

// 1 / b as two factors: the product with both neither overflows nor vanishes where a / b does not.
struct Inverse {
  f32 factor, power;
};
STITCH_DEVICE Inverse invert(f32 b) {
  const f32 magnitude = ::fabsf(b);
  const f32 power = magnitude > 0x1p64f ? 0x1p-64f : magnitude < 0x1p-64f ? 0x1p64f : 1.0f;
  return {1.0f / (b * power), power};
}
// 1.5 ULP.
STITCH_DEVICE f32 div_by(f32 a, Inverse b) { return a * b.factor * b.power; }

}  // namespace stitch

#endif
