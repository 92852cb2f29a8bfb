// What an operation does to its operands and result: flushing, saturation, NaN and the order of
// floats, alike for 32 bits, 64 bits and, widened, 16 bits.  For lanes_*.cpp alone.
#pragma once

#include <type_traits>

#include "ptxsim/lanes/lanes_table.h"

namespace stitch::ptxsim {
inline namespace STITCH_LANES_ISA {

template <class T>
using BitsOf = WordOf<sizeof(T)>;
template <class T>
constexpr BitsOf<T> kSignBit = static_cast<BitsOf<T>>(uint64_t{1} << (sizeof(T) * 8 - 1));
template <class T>  // of 16 bits: those of f16, which alone has .ftz
constexpr BitsOf<T> kExponentBits =
    static_cast<BitsOf<T>>(sizeof(T) == 2   ? 0x7c00
                           : sizeof(T) == 4 ? 0x7f800000
                                            : uint64_t{0x7ff} << 52);

template <class T>
[[gnu::always_inline]] inline T with_sign(T magnitude, T sign) {
  return bits_as<T>((bits_as<BitsOf<T>>(magnitude) & ~kSignBit<T>) |
                    (bits_as<BitsOf<T>>(sign) & kSignBit<T>));
}

// Subnormals become zeros of their sign.
template <bool kFlush, class T>
[[gnu::always_inline]] inline T flush(T x) {
  if constexpr (!kFlush) return x;
  const BitsOf<T> bits = bits_as<BitsOf<T>>(x);
  return bits_as<T>(
      static_cast<BitsOf<T>>((bits & kExponentBits<T>) == 0 ? bits & kSignBit<T> : bits));
}

// To [+0, 1]; NaN to +0.
template <class T>
[[gnu::always_inline]] inline T saturate(T x) {
  const T positive = x > 0 ? x : T{0};
  return positive < 1 ? positive : T{1};
}

[[gnu::always_inline]] inline float canonical(float x) {
  return x != x ? bits_as<float>(kNan32) : x;
}

// Payloads of doubles live on: the first NaN among the operands, made quiet.
[[gnu::always_inline]] inline double first_nan() { return bits_as<double>(kNan64); }
template <class... Rest>
[[gnu::always_inline]] inline double first_nan(double a, Rest... rest) {
  constexpr uint64_t kQuiet = uint64_t{1} << 51;
  return a != a ? bits_as<double>(bits_as<uint64_t>(a) | kQuiet) : first_nan(rest...);
}
template <class... T>
[[gnu::always_inline]] inline double canonical(double x, T... operands) {
  return x != x ? first_nan(operands...) : x;
}
template <class... T>
[[gnu::always_inline]] inline float canonical(float x, T...) {
  return canonical(x);
}

// min and max: -0 below +0; NaN loses against a number unless kNan.
template <bool kMax, bool kNan, bool kXorSign>
constexpr auto kExtremum = []<class T>(T a, T b) __attribute__((always_inline)) {
  using Bits = BitsOf<T>;
  const T sign = bits_as<T>(bits_as<Bits>(a) ^ bits_as<Bits>(b));
  if (kXorSign) {
    a = with_sign(a, T{0});
    b = with_sign(b, T{0});
  }
  const Bits both = bits_as<Bits>(a) & bits_as<Bits>(b);
  const Bits either = bits_as<Bits>(a) | bits_as<Bits>(b);
  const T equal = bits_as<T>(kMax ? both : either);
  T d = (kMax ? a > b : a < b) ? a : b;
  d = a == b ? equal : d;
  d = b != b ? (kNan ? b : a) : d;
  d = kNan && a != a ? a : d;
  const T nan = sizeof(T) == 4 ? bits_as<T>(Bits(kNan32)) : bits_as<T>(Bits(kNan64));
  const T number = kXorSign ? with_sign(d, sign) : d;
  return d != d ? nan : number;
};

template <bool kFlush, bool kAbsolute>
constexpr auto kChangeSign = []<class T>(T a) __attribute__((always_inline)) {
  const BitsOf<T> bits = bits_as<BitsOf<T>>(flush<kFlush>(a));
  return bits_as<T>(static_cast<BitsOf<T>>(kAbsolute ? bits & ~kSignBit<T> : bits ^ kSignBit<T>));
};
constexpr auto kAdd = [](auto a, auto b) { return a + b; };
constexpr auto kSub = [](auto a, auto b) { return a - b; };
constexpr auto kMul = [](auto a, auto b) { return a * b; };

}  // namespace STITCH_LANES_ISA
}  // namespace stitch::ptxsim
