// Circular functions: sin cos tan, and asin acos atan atan2 hypot.
//
// f32 sin, cos and tan are our own.  An angle is reduced to r in [-pi/4, pi/4] and a quadrant:
// below 2^16 by three-part subtraction, above by multiplying with the right 96 bits of 1/pi
// (Payne and Hanek), which are picked by selects instead of table loads so that the host still
// vectorises.  The device branches; the host computes both and chooses.
#pragma once

#include "device/stitch/math_exp.cuh"

namespace stitch {

// |x| = (quadrant + 4 k) * pi/2 + rest.
struct Angle {
  f32 rest;
  u32 quadrant;
};

// Exact to 0.6 ULP of the rest for |x| < 2^16: pi/2 in parts of 20, 22 and 24 bits.
STITCH_DEVICE Angle reduce_small_angle(f32 magnitude) {
  const f32 shifted = fma(magnitude, 0x1.45f306p-1f, kRoundToInteger<f32>);  // 2/pi
  const f32 n = shifted - kRoundToInteger<f32>;
  f32 rest = fma(n, -0x1.921fbp+0f, magnitude);
  rest = fma(n, -0x1.5110b4p-22f, rest);
  rest = fma(n, -0x1.84698ap-48f, rest);
  return {rest, bit_cast<u32>(shifted)};
}

// One of four words by index: selects on constants, where a table would be loads.
template <u32 kA, u32 kB, u32 kC, u32 kD>
STITCH_DEVICE u32 pick_word(i32 index) {
  const u32 low = index == 0 ? kA : kB;
  const u32 high = index == 2 ? kC : kD;
  return index < 2 ? low : high;
}
STITCH_DEVICE u32 join_words(u32 high, u32 low, u32 shift) {
  return (high << shift) | ((low >> 1) >> (31u - shift));
}

// For 2^0 <= |x| < 2^128.  x = m * 2^(e - 31) with a 32-bit m, so x / (2 pi) modulo 1 is m times a
// window of 1/pi that starts e bits in; 64 bits of that fraction are kept.
STITCH_DEVICE Angle reduce_large_angle(f32 magnitude) {
  const u32 bits = bit_cast<u32>(magnitude);
  const i32 exponent = static_cast<i32>(bits >> 23) - 127;
  const u32 mantissa = (bits << 8) | 0x80000000u;
  const i32 word = exponent >> 5;
  const u32 shift = static_cast<u32>(exponent) & 31u;
  // 1/pi is 0.517cc1b7 27220a94 ... in hexadecimal.
  const u32 w0 = pick_word<0x00000000, 0x517cc1b7, 0x27220a94, 0xfe13abe8>(word);
  const u32 w1 = pick_word<0x517cc1b7, 0x27220a94, 0xfe13abe8, 0xfa9a6ee0>(word);
  const u32 w2 = pick_word<0x27220a94, 0xfe13abe8, 0xfa9a6ee0, 0x6db14acc>(word);
  const u32 w3 = pick_word<0xfe13abe8, 0xfa9a6ee0, 0x6db14acc, 0x9e21c820>(word);
  const u32 high = join_words(w0, w1, shift);
  const u32 middle = join_words(w1, w2, shift);
  const u32 low = join_words(w2, w3, shift);
  u64 fraction = (static_cast<u64>(mantissa) * low) >> 32;
  fraction += static_cast<u64>(mantissa) * middle;
  fraction += static_cast<u64>(mantissa * high) << 32;
  // The nearest quarter turn is the quadrant; what is left, signed, times 2 pi / 2^64 the rest.
  const u32 quadrant = static_cast<u32>((fraction + (1ull << 61)) >> 62);
  const u64 left = fraction - (static_cast<u64>(quadrant) << 62);
  const f64 upper = static_cast<f64>(static_cast<i32>(left >> 32)) * 0x1p32;
  const f64 lower = static_cast<f64>(static_cast<i32>(static_cast<u32>(left) >> 1)) * 2.0;
  return {static_cast<f32>((upper + lower) * 0x1.921fb54442d18p-62), quadrant};
}

STITCH_DEVICE Angle reduce_angle(f32 magnitude) {
  // One unsigned comparison for 2^16 <= magnitude < infinity; infinity and NaN become NaN below.
  const bool large = bit_cast<u32>(magnitude) - 0x47800000u < 0x7f800000u - 0x47800000u;
#if STITCH_CUDA
  return large ? reduce_large_angle(magnitude) : reduce_small_angle(magnitude);
#else
  const Angle a = reduce_small_angle(magnitude), b = reduce_large_angle(magnitude);
  return {large ? b.rest : a.rest, large ? b.quadrant : a.quadrant};
#endif
}

// sin and cos of r in [-pi/4, pi/4], relative errors 2^-28 and 2^-33.
STITCH_DEVICE f32 sin_reduced(f32 r, f32 s) {
  f32 p = -0x1.9951fap-13f;
  p = fma(p, s, 0x1.110774p-7f);
  p = fma(p, s, -0x1.555546p-3f);
  return fma(p, r * s, r);
}
STITCH_DEVICE f32 cos_reduced(f32 s) {
  f32 p = 0x1.99e80cp-16f;
  p = fma(p, s, -0x1.6c0c28p-10f);
  p = fma(p, s, 0x1.55554ap-5f);
  p = fma(p, s, -0.5f);
  return fma(p, s, 1.0f);
}

// sin of the reduced angle; cos is the same a quadrant on.
STITCH_DEVICE f32 sin_quadrant(f32 rest, u32 quadrant, u32 sign) {
  const f32 s = rest * rest;
  const f32 value = quadrant & 1u ? cos_reduced(s) : sin_reduced(rest, s);
  return bit_cast<f32>(bit_cast<u32>(value) ^ (((quadrant << 30) ^ sign) & 0x80000000u));
}

// 2 ULP each, over the whole range.
STITCH_DEVICE f32 sin(f32 x) {
  const Angle angle = reduce_angle(abs(x));
  return sin_quadrant(angle.rest, angle.quadrant, bit_cast<u32>(x));
}
STITCH_DEVICE f32 cos(f32 x) {
  const Angle angle = reduce_angle(abs(x));
  return sin_quadrant(angle.rest, angle.quadrant + 1u, 0u);
}

// 3.5 ULP.
STITCH_DEVICE f32 tan(f32 x) {
  const Angle angle = reduce_angle(abs(x));
  const f32 s = angle.rest * angle.rest;
  const f32 sine = sin_reduced(angle.rest, s), cosine = cos_reduced(s);
  const bool odd = angle.quadrant & 1u;
  const f32 value = (odd ? -cosine : sine) / (odd ? sine : cosine);
  return bit_cast<f32>(bit_cast<u32>(value) ^ (bit_cast<u32>(x) & 0x80000000u));
}

template <class T>
inline constexpr T kHalfPi = 0x1.921fb6p+0f;
template <class T>
inline constexpr T kHalfPiLow = -0x1.777a5cp-25f;  // pi/2 - kHalfPi

// atan of t in [0, 1], relative error 2^-28.
STITCH_DEVICE f32 atan_reduced(f32 t) {
  const f32 s = t * t;
  f32 p = -0x1.d4e7fcp-10f;
  p = fma(p, s, 0x1.64e788p-7f);
  p = fma(p, s, -0x1.fe17fep-6f);
  p = fma(p, s, 0x1.da68ap-5f);
  p = fma(p, s, -0x1.5816d2p-4f);
  p = fma(p, s, 0x1.c08f5ap-4f);
  p = fma(p, s, -0x1.2420a8p-3f);
  p = fma(p, s, 0x1.9991e4p-3f);
  p = fma(p, s, -0x1.55553ep-2f);
  return fma(p, t * s, t);
}

// 2 ULP.
STITCH_DEVICE f32 atan(f32 x) {
  const f32 magnitude = abs(x);
  const bool inverted = magnitude > 1.0f;
  const f32 angle = atan_reduced((inverted ? 1.0f : magnitude) / (inverted ? magnitude : 1.0f));
  return copysign(inverted ? kHalfPi<f32> - (angle - kHalfPiLow<f32>) : angle, x);
}

// 3 ULP.  The smaller over the larger coordinate, then the octant.
STITCH_DEVICE f32 atan2(f32 y, f32 x) {
  const f32 width = abs(x), height = abs(y);
  const bool steep = height > width;
  const f32 small = steep ? width : height, large = steep ? height : width;
  // 0 / 0 and infinity / infinity have limits here.
  const f32 ratio = small == large ? 1.0f : small / large;
  const f32 first = atan_reduced(large == 0.0f ? 0.0f : ratio);
  const f32 second = steep ? kHalfPi<f32> - (first - kHalfPiLow<f32>) : first;
  const f32 third = signbit(x) ? 2.0f * kHalfPi<f32> - (second - 2.0f * kHalfPiLow<f32>) : second;
  return isnan(x) | isnan(y) ? kQuietNan<f32> : copysign(third, y);
}

// asin of r in [0, 1/2] given s = r * r, relative error 2^-27.
STITCH_DEVICE f32 asin_reduced(f32 r, f32 s) {
  f32 p = 0x1.595c9p-5f;
  p = fma(p, s, 0x1.8c3e28p-6f);
  p = fma(p, s, 0x1.747bbap-5f);
  p = fma(p, s, 0x1.330204p-4f);
  p = fma(p, s, 0x1.5555c8p-3f);
  return fma(p, r * s, r);
}

// 2.5 and 1.5 ULP.  Above 1/2, asin x = pi/2 - 2 asin(sqrt((1 - x) / 2)).
STITCH_DEVICE f32 asin(f32 x) {
  const f32 magnitude = abs(x);
  const bool near_one = magnitude > 0.5f;
  const f32 s = near_one ? fma(magnitude, -0.5f, 0.5f) : x * x;
  const f32 angle = asin_reduced(near_one ? sqrt(s) : magnitude, s);
  return copysign(near_one ? fma(angle, -2.0f, kHalfPiLow<f32>) + kHalfPi<f32> : angle, x);
}
STITCH_DEVICE f32 acos(f32 x) {
  const f32 magnitude = abs(x);
  const bool near_one = magnitude > 0.5f;
  const f32 s = near_one ? fma(magnitude, -0.5f, 0.5f) : x * x;
  const f32 angle = asin_reduced(near_one ? sqrt(s) : magnitude, s);
  const f32 far = (kHalfPiLow<f32> - copysign(angle, x)) + kHalfPi<f32>;
  const f32 doubled = angle + angle;
  const f32 near = x > 0.0f ? doubled : (2.0f * kHalfPiLow<f32> - doubled) + 2.0f * kHalfPi<f32>;
  return near_one ? near : far;
}

STITCH_DEVICE f64 sin(f64 x) { return STITCH_LIBM(sin)(x); }
STITCH_DEVICE f64 cos(f64 x) { return STITCH_LIBM(cos)(x); }
STITCH_DEVICE f64 tan(f64 x) { return STITCH_LIBM(tan)(x); }
STITCH_DEVICE f64 asin(f64 x) { return STITCH_LIBM(asin)(x); }
STITCH_DEVICE f64 acos(f64 x) { return STITCH_LIBM(acos)(x); }
STITCH_DEVICE f64 atan(f64 x) { return STITCH_LIBM(atan)(x); }
STITCH_DEVICE f64 atan2(f64 y, f64 x) { return STITCH_LIBM(atan2)(y, x); }
STITCH_DEVICE f64 hypot(f64 x, f64 y) { return STITCH_LIBM(hypot)(x, y); }

// 1 ULP: the square of an f32 is exact in f64 and cannot overflow there.
STITCH_DEVICE f32 hypot(f32 x, f32 y) {
  const f64 a = x, b = y;
  const f32 root = static_cast<f32>(sqrt(fma(a, a, b * b)));
  const bool infinite = (abs(x) == kInfinity<f32>) | (abs(y) == kInfinity<f32>);
  return infinite ? kInfinity<f32> : root;
}

}  // namespace stitch
