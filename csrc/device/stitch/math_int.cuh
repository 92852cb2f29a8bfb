// Integer division, powers, shifts and bits, and the division names shared with floats.
//
// Quotients round as the name says, a remainder has its divisor's sign, fmod its dividend's.
// A zero divisor yields 0 and the lowest value over -1 wraps: nothing here may trap.
#pragma once

#include "device/stitch/math_basic.cuh"

namespace stitch {

// a / b towards zero.  Up to 32 bits the host divides as f64, which is exact after truncation (a
// quotient that is no integer differs from one by at least 2^-32) and, unlike idiv, vectorises.
template <class T>
STITCH_DEVICE T divide_integers(T a, T b) {
  const bool negates = kIsSigned<T> && b == static_cast<T>(-1);
  const T safe = (b == T(0)) | negates ? T(1) : b;
  T quotient;
  if constexpr (!STITCH_CUDA && sizeof(T) <= 4)
    quotient = static_cast<T>(static_cast<i32>(static_cast<f64>(a) / static_cast<f64>(safe)));
  else
    quotient = static_cast<T>(a / safe);
  const T defined = b == T(0) ? T(0) : quotient;
  return negates ? neg(a) : defined;
}

template <class T>
STITCH_DEVICE T div_trunc(T a, T b) {
  if constexpr (kIsFloat<T>)
    return div_trunc_float(a, b);
  else
    return divide_integers(a, b);
}
template <class T>
STITCH_DEVICE T fmod(T a, T b) {
  return b == T(0) ? T(0) : sub(a, mul(divide_integers(a, b), b));
}
template <class T>
STITCH_DEVICE bool rounds_up(T rest, T b) {
  return (rest != T(0)) & (is_negative(rest) != is_negative(b));
}
template <class T>
STITCH_DEVICE T remainder(T a, T b) {
  if constexpr (kIsFloat<T>) {
    return remainder_float(a, b);
  } else {
    const T rest = fmod(a, b);
    return rounds_up(rest, b) ? add(rest, b) : rest;
  }
}
template <class T>
STITCH_DEVICE T div_floor(T a, T b) {
  if constexpr (kIsFloat<T>) {
    return div_floor_float(a, b);
  } else {
    const T quotient = divide_integers(a, b);
    const T rest = sub(a, mul(quotient, b));
    return (b != T(0)) & rounds_up(rest, b) ? sub(quotient, T(1)) : quotient;
  }
}

// x to the n-th power by squaring, wrapping; a negative n leaves only powers of 1 and -1.
template <class T>
STITCH_DEVICE T pow_integer(T x, T n) {
  const bool odd = n & 1;
  if (is_negative(n)) return x == T(1) ? T(1) : x == static_cast<T>(-1) ? (odd ? x : T(1)) : T(0);
  T result = T(1);
  T base = x;
  for (wrap_t<T> rest = static_cast<wrap_t<T>>(n); rest != 0; rest >>= 1) {
    if (rest & 1) result = mul(result, base);
    base = mul(base, base);
  }
  return result;
}

// Shifts by a count outside [0, width) give what infinitely wide arithmetic would leave: zero, or
// the sign for a right shift.
template <class T>
STITCH_DEVICE T shift_left(T x, T count) {
  constexpr u64 kWidth = 8 * sizeof(T);
  const bool inside = static_cast<u64>(static_cast<i64>(count)) < kWidth;
  const wrap_t<T> shifted = static_cast<wrap_t<T>>(x) << (inside ? static_cast<u32>(count) : 0u);
  return inside ? static_cast<T>(shifted) : T(0);
}
template <class T>
STITCH_DEVICE T shift_right(T x, T count) {
  constexpr u32 kWidth = 8 * sizeof(T);
  const bool inside = static_cast<u64>(static_cast<i64>(count)) < kWidth;
  const T fill = is_negative(x) ? static_cast<T>(-1) : T(0);
  return inside ? static_cast<T>(x >> (inside ? static_cast<u32>(count) : 0u)) : fill;
}

template <class T>
STITCH_DEVICE T bitwise_not(T x) {
  if constexpr (kSame<T, bool>)
    return !x;
  else
    return static_cast<T>(~x);
}
template <class T>
STITCH_DEVICE T bitwise_and(T a, T b) {
  return static_cast<T>(a & b);
}
template <class T>
STITCH_DEVICE T bitwise_or(T a, T b) {
  return static_cast<T>(a | b);
}
template <class T>
STITCH_DEVICE T bitwise_xor(T a, T b) {
  return static_cast<T>(a ^ b);
}

}  // namespace stitch
