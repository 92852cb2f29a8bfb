// Arithmetic, comparison, rounding and choice on every register type, named as in ops.def.
//
// Both operands have one type.  Integers wrap in their own type; bool adds as `or` and multiplies
// as `and`.  Floats follow IEEE 754 without contraction: host and device agree to the last bit.
// maximum, minimum, clamp and relu hand NaN on; fmax and fmin ignore it.
#pragma once

#include "device/stitch/math_approx.cuh"

namespace stitch {

STITCH_DEVICE f32 fma(f32 a, f32 b, f32 c) { return STITCH_LIBM_F32(fma)(a, b, c); }
STITCH_DEVICE f64 fma(f64 a, f64 b, f64 c) { return STITCH_LIBM(fma)(a, b, c); }

template <class T>
STITCH_DEVICE T add(T a, T b) {
  if constexpr (kIsFloat<T>)
    return a + b;
  else if constexpr (kSame<T, bool>)
    return a | b;
  else
    return static_cast<T>(static_cast<wrap_t<T>>(a) + static_cast<wrap_t<T>>(b));
}
template <class T>
STITCH_DEVICE T sub(T a, T b) {
  if constexpr (kIsFloat<T>)
    return a - b;
  else
    return static_cast<T>(static_cast<wrap_t<T>>(a) - static_cast<wrap_t<T>>(b));
}
template <class T>
STITCH_DEVICE T mul(T a, T b) {
  if constexpr (kIsFloat<T>)
    return a * b;
  else if constexpr (kSame<T, bool>)
    return a & b;
  else
    return static_cast<T>(static_cast<wrap_t<T>>(a) * static_cast<wrap_t<T>>(b));
}
template <class T>
STITCH_DEVICE T fma(T a, T b, T c) {
  return add(mul(a, b), c);
}
template <class T>
STITCH_DEVICE T neg(T x) {
  if constexpr (kIsFloat<T>)
    return -x;
  else
    return static_cast<T>(wrap_t<T>(0) - static_cast<wrap_t<T>>(x));
}
template <class T>
STITCH_DEVICE T square(T x) {
  return mul(x, x);
}

STITCH_DEVICE f32 div(f32 a, f32 b) { return a / b; }
STITCH_DEVICE f64 div(f64 a, f64 b) { return a / b; }
STITCH_DEVICE f32 reciprocal(f32 x) { return 1.0f / x; }
STITCH_DEVICE f64 reciprocal(f64 x) { return 1.0 / x; }
STITCH_DEVICE f32 sqrt(f32 x) { return STITCH_LIBM_F32(sqrt)(x); }
STITCH_DEVICE f64 sqrt(f64 x) { return STITCH_LIBM(sqrt)(x); }
#if STITCH_CUDA
STITCH_DEVICE f32 rsqrt(f32 x) { return approximate_rsqrt(x); }  // 2.2 ULP, as eager's
#else
// Two correctly rounded steps: 1.5 ULP.
STITCH_DEVICE f32 rsqrt(f32 x) { return 1.0f / sqrt(x); }
#endif
STITCH_DEVICE f64 rsqrt(f64 x) { return 1.0 / sqrt(x); }

STITCH_DEVICE f32 copysign(f32 x, f32 s) { return STITCH_LIBM_F32(copysign)(x, s); }
STITCH_DEVICE f64 copysign(f64 x, f64 s) { return STITCH_LIBM(copysign)(x, s); }

// Comparison.
template <class T>
STITCH_DEVICE bool eq(T a, T b) {
  return a == b;
}
template <class T>
STITCH_DEVICE bool ne(T a, T b) {
  return a != b;
}
template <class T>
STITCH_DEVICE bool lt(T a, T b) {
  return a < b;
}
template <class T>
STITCH_DEVICE bool le(T a, T b) {
  return a <= b;
}
template <class T>
STITCH_DEVICE bool gt(T a, T b) {
  return a > b;
}
template <class T>
STITCH_DEVICE bool ge(T a, T b) {
  return a >= b;
}
template <class T>
STITCH_DEVICE bool isnan(T x) {
  return x != x;
}

// Logic: anything but zero is true.
template <class T>
STITCH_DEVICE bool logical_not(T x) {
  return x == T(0);
}
template <class T>
STITCH_DEVICE bool logical_and(T a, T b) {
  return (a != T(0)) & (b != T(0));
}
template <class T>
STITCH_DEVICE bool logical_or(T a, T b) {
  return (a != T(0)) | (b != T(0));
}
template <class T>
STITCH_DEVICE bool logical_xor(T a, T b) {
  return (a != T(0)) != (b != T(0));
}

// Choice.
template <class T>
STITCH_DEVICE T select(bool condition, T a, T b) {
  return condition ? a : b;
}
// In a running maximum `a` is the accumulator: a comparison that is false for NaN keeps it, and the
// test of b stays off the chain of dependent instructions.
template <class T>
STITCH_DEVICE T maximum(T a, T b) {
  const T larger = b > a ? b : a;
  return isnan(b) ? b : larger;
}
template <class T>
STITCH_DEVICE T minimum(T a, T b) {
  const T smaller = b < a ? b : a;
  return isnan(b) ? b : smaller;
}
template <class T>
STITCH_DEVICE T fmax(T a, T b) {
  return (a > b) | isnan(b) ? a : b;
}
template <class T>
STITCH_DEVICE T fmin(T a, T b) {
  return (a < b) | isnan(b) ? a : b;
}
#if STITCH_CUDA
// One instruction each.  They order -0 below +0, where the portable form takes the first operand.
STITCH_DEVICE f32 maximum(f32 a, f32 b) {
  f32 c;
  asm("max.NaN.f32 %0, %1, %2;" : "=f"(c) : "f"(a), "f"(b));
  return c;
}
STITCH_DEVICE f32 minimum(f32 a, f32 b) {
  f32 c;
  asm("min.NaN.f32 %0, %1, %2;" : "=f"(c) : "f"(a), "f"(b));
  return c;
}
#endif
template <class T>
STITCH_DEVICE T clamp(T x, T low, T high) {
  return minimum(maximum(x, low), high);
}
template <class T>
STITCH_DEVICE T relu(T x) {
  return is_negative(x) ? T(0) : x;  // NaN and -0 pass
}

STITCH_DEVICE f32 abs(f32 x) { return STITCH_LIBM_F32(fabs)(x); }
STITCH_DEVICE f64 abs(f64 x) { return STITCH_LIBM(fabs)(x); }
template <class T>
STITCH_DEVICE T abs(T x) {
  return is_negative(x) ? neg(x) : x;
}
template <class T>
STITCH_DEVICE T sign(T x) {
  if constexpr (kIsFloat<T>)
    return x > T(0) ? T(1) : x < T(0) ? T(-1) : T(0);  // NaN gives 0
  else
    return static_cast<T>((x > T(0)) - is_negative(x));
}

// Classification; integers are finite.
template <class T>
STITCH_DEVICE bool isinf(T x) {
  if constexpr (kIsFloat<T>)
    return abs(x) == kInfinity<T>;
  else
    return false;
}
template <class T>
STITCH_DEVICE bool isfinite(T x) {
  if constexpr (kIsFloat<T>)
    return abs(x) < kInfinity<T>;
  else
    return true;
}
STITCH_DEVICE bool signbit(f32 x) { return bit_cast<i32>(x) < 0; }
STITCH_DEVICE bool signbit(f64 x) { return bit_cast<i64>(x) < 0; }
template <class T>
STITCH_DEVICE bool signbit(T x) {
  return is_negative(x);
}

// Rounding; integers are whole already.
#define STITCH_ROUNDING(name, function)                                  \
  STITCH_DEVICE f32 name(f32 x) { return STITCH_LIBM_F32(function)(x); } \
  STITCH_DEVICE f64 name(f64 x) { return STITCH_LIBM(function)(x); }     \
  template <class T>                                                     \
  STITCH_DEVICE T name(T x) {                                            \
    return x;                                                            \
  }
STITCH_ROUNDING(floor, floor)
STITCH_ROUNDING(ceil, ceil)
STITCH_ROUNDING(trunc, trunc)
STITCH_ROUNDING(round, rint)  // half to even
#undef STITCH_ROUNDING
STITCH_DEVICE f32 frac(f32 x) { return x - trunc(x); }
STITCH_DEVICE f64 frac(f64 x) { return x - trunc(x); }

// The neighbour of x towards y.
template <class T>
STITCH_DEVICE T nextafter(T x, T y) {
  using B = wrap_t<T>;
  const B bits = bit_cast<B>(x);
  const B smallest = bit_cast<B>(copysign(bit_cast<T>(B(1)), y));
  const B step = (x < y) == (x > T(0)) ? B(1) : B(-1);
  const T moved = bit_cast<T>(x == T(0) ? smallest : static_cast<B>(bits + step));
  return x == y ? y : isnan(x) | isnan(y) ? kQuietNan<T> : moved;
}

// Floating division to the floor, and the remainder with the divisor's sign.
template <class T>
STITCH_DEVICE T div_trunc_float(T a, T b) {
  return trunc(a / b);
}
#if STITCH_CUDA
STITCH_DEVICE f32 fmod(f32 a, f32 b) { return ::fmodf(a, b); }
#else
// Exact, as fmod is, but of fixed length so that it vectorises.  |a / b| is below 2^277; each step
// takes off multiples of b * 2^(50 k), exactly, since what is left is a multiple of b's last bit
// and below 2 b * 2^(50 k).  An estimate of the quotient that is one off is mended at the end.
STITCH_DEVICE f32 fmod(f32 a, f32 b) {
  const f64 divisor = abs(b);
  const f64 inverse = 1.0 / divisor;
  f64 rest = abs(a);
  STITCH_UNROLL
  for (int k = 5; k >= 0; --k) {
    const f64 power = bit_cast<f64>(static_cast<u64>(1023 + 50 * k) << 52);
    const f64 inverse_power = bit_cast<f64>(static_cast<u64>(1023 - 50 * k) << 52);
    rest = fma(-trunc(rest * (inverse * inverse_power)), divisor * power, rest);
  }
  rest = rest < 0.0 ? rest + divisor : rest;
  rest = rest >= divisor ? rest - divisor : rest;
  const bool defined = (abs(a) < kInfinity<f32>)&(divisor > 0.0);
  const f32 finite = divisor < kInfinity<f64> ? static_cast<f32>(rest) : abs(a);
  return defined ? copysign(finite, a) : kQuietNan<f32>;
}
#endif
STITCH_DEVICE f64 fmod(f64 a, f64 b) { return STITCH_LIBM(fmod)(a, b); }
template <class T>
STITCH_DEVICE T remainder_float(T a, T b) {
  const T rest = fmod(a, b);
  return (rest != T(0)) & ((b < T(0)) != (rest < T(0))) ? rest + b : rest;
}
template <class T>
STITCH_DEVICE T div_floor_float(T a, T b) {
  const T rest = fmod(a, b);
  const T exact = (a - rest) / b;
  const T quotient = (rest != T(0)) & ((b < T(0)) != (rest < T(0))) ? exact - T(1) : exact;
  const T below = floor(quotient);
  const T nearest = quotient - below > T(0.5) ? below + T(1) : below;
  const T finite = quotient == T(0) ? copysign(T(0), a / b) : nearest;
  return b == T(0) ? a / b : finite;
}

}  // namespace stitch
