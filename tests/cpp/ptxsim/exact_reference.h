// Exact: binary numbers of any size, rounded to IEEE formats by the definition of rounding.
//
// The reference of the float tests.  It shares nothing with the simulator: a value is a sign and a
// large integer of units of 2^-kPoint, no operation of the host's floats takes part.
#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "ptxsim/isa/isa.h"

namespace stitch::ptxsim::lanes_test {

// Precision with the hidden bit, exponents of normal numbers.
struct FloatFormat {
  int bytes;
  int precision;
  int least;
  int greatest;
};
constexpr FloatFormat kHalf = {2, 11, -14, 15};
constexpr FloatFormat kBFloat = {2, 8, -126, 127};
constexpr FloatFormat kSingle = {4, 24, -126, 127};
constexpr FloatFormat kDouble = {8, 53, -1022, 1023};

inline FloatFormat format_of(Type type) {
  switch (type) {
    case Type::f16:
    case Type::f16x2:
      return kHalf;
    case Type::bf16:
    case Type::bf16x2:
      return kBFloat;
    case Type::f32:
      return kSingle;
    default:
      return kDouble;
  }
}
inline int mantissa_bits(const FloatFormat& f) { return f.precision - 1; }
inline uint64_t sign_bit(const FloatFormat& f) { return uint64_t{1} << (f.bytes * 8 - 1); }
inline uint64_t infinity_bits(const FloatFormat& f) {
  return uint64_t(f.greatest - f.least + 2) << mantissa_bits(f);
}
inline bool is_nan(const FloatFormat& f, uint64_t bits) {
  return (bits & (sign_bit(f) - 1)) > infinity_bits(f);
}
inline bool is_infinite(const FloatFormat& f, uint64_t bits) {
  return (bits & (sign_bit(f) - 1)) == infinity_bits(f);
}
inline bool is_zero(const FloatFormat& f, uint64_t bits) { return (bits & (sign_bit(f) - 1)) == 0; }
inline bool is_negative(const FloatFormat& f, uint64_t bits) { return (bits & sign_bit(f)) != 0; }
inline uint64_t flushed(const FloatFormat& f, uint64_t bits) {
  return (bits & infinity_bits(f)) == 0 ? bits & sign_bit(f) : bits;
}

class Exact {
 public:
  // mantissa * 2^exponent
  Exact(bool negative, unsigned __int128 mantissa, int exponent) : negative_(negative) {
    const int at = exponent + kPoint;
    for (int bit = 0; mantissa != 0; ++bit, mantissa >>= 1) {
      if (mantissa & 1) words_[(at + bit) / 64] |= uint64_t{1} << (at + bit) % 64;
    }
  }
  // A finite number of a format.
  Exact(const FloatFormat& f, uint64_t bits)
      : Exact(is_negative(f, bits), mantissa_of(f, bits), exponent_of(f, bits)) {}

  static uint64_t mantissa_of(const FloatFormat& f, uint64_t bits) {
    const uint64_t fraction = bits & ((uint64_t{1} << mantissa_bits(f)) - 1);
    return (bits & infinity_bits(f)) == 0 ? fraction : fraction | uint64_t{1} << mantissa_bits(f);
  }
  static int exponent_of(const FloatFormat& f, uint64_t bits) {
    const int field = int((bits & infinity_bits(f)) >> mantissa_bits(f));
    return (field == 0 ? 1 : field) + f.least - 1 - mantissa_bits(f);
  }

  bool is_zero() const { return msb() < 0; }
  bool negative() const { return negative_; }

  friend Exact operator+(const Exact& a, const Exact& b) {
    Exact sum = a;
    if (a.negative_ == b.negative_) {
      unsigned __int128 carry = 0;
      for (int k = 0; k < kWords; ++k) {
        carry += static_cast<unsigned __int128>(a.words_[k]) + b.words_[k];
        sum.words_[k] = uint64_t(carry);
        carry >>= 64;
      }
      return sum;
    }
    if (compare(a, b) < 0) return b + a;
    uint64_t borrow = 0;
    for (int k = 0; k < kWords; ++k) {
      const unsigned __int128 taken = static_cast<unsigned __int128>(b.words_[k]) + borrow;
      sum.words_[k] = uint64_t(a.words_[k] - taken);
      borrow = taken > a.words_[k];
    }
    return sum;
  }

  // The bits of the number rounded; exactly zero gives +0, the caller knows better.
  uint64_t round(const FloatFormat& f, Rounding mode) const {
    const uint64_t sign = negative_ ? sign_bit(f) : 0;
    const int top = msb();
    if (top < 0) return sign;
    const int exponent = top - kPoint > f.least ? top - kPoint : f.least;
    const int last = exponent - mantissa_bits(f) + kPoint;  // the bit that is a unit
    uint64_t kept = 0;
    for (int bit = top; bit >= last; --bit) kept = kept << 1 | at(bit);
    const bool guard = at(last - 1);
    const bool rest = any_below(last - 1);
    bool up = false;
    if (mode == Rounding::rn || mode == Rounding::none) up = guard && (rest || kept & 1);
    if (mode == Rounding::rp) up = !negative_ && (guard || rest);
    if (mode == Rounding::rm) up = negative_ && (guard || rest);
    kept += up;
    // Of the bits of a float the next one is the next number, across binades and into infinity.
    const uint64_t hidden = uint64_t{1} << mantissa_bits(f);
    const uint64_t biased = uint64_t(exponent - f.least) * hidden + kept;
    if (biased < infinity_bits(f)) return sign | biased;
    const bool to_infinity = mode == Rounding::rn || mode == Rounding::none ||
                             (mode == Rounding::rp && !negative_) ||
                             (mode == Rounding::rm && negative_);
    return sign | (to_infinity ? infinity_bits(f) : infinity_bits(f) - 1);
  }

 private:
  static constexpr int kPoint = 2560;
  static constexpr int kWords = 80;

  bool at(int bit) const { return bit >= 0 && (words_[bit / 64] >> bit % 64 & 1) != 0; }
  int msb() const {
    for (int k = kWords - 1; k >= 0; --k) {
      if (words_[k] != 0) return k * 64 + 63 - __builtin_clzll(words_[k]);
    }
    return -1;
  }
  bool any_below(int bit) const {
    for (int k = 0; k < bit / 64; ++k) {
      if (words_[k] != 0) return true;
    }
    return bit > 0 && (words_[bit / 64] & ((uint64_t{1} << bit % 64) - 1)) != 0;
  }
  static int compare(const Exact& a, const Exact& b) {
    for (int k = kWords - 1; k >= 0; --k) {
      if (a.words_[k] != b.words_[k]) return a.words_[k] < b.words_[k] ? -1 : 1;
    }
    return 0;
  }
  bool negative_;
  std::array<uint64_t, kWords> words_ = {};
};

// Results for finite operands, and zero results with their sign.
inline uint64_t rounded_sum(const FloatFormat& f, const Exact& a, const Exact& b, Rounding mode) {
  const Exact sum = a + b;
  if (!sum.is_zero()) return sum.round(f, mode);
  const bool both = a.negative() && b.negative();
  const bool differ = a.negative() != b.negative() || !a.is_zero();
  return both || (differ && a.negative() != b.negative() && mode == Rounding::rm) ? sign_bit(f) : 0;
}
inline Exact product_of(const FloatFormat& f, uint64_t a, uint64_t b) {
  using Wide = unsigned __int128;
  return Exact(is_negative(f, a) != is_negative(f, b),
               Wide{Exact::mantissa_of(f, a)} * Exact::mantissa_of(f, b),
               Exact::exponent_of(f, a) + Exact::exponent_of(f, b));
}
// Bits enough that one more, set when something is left, makes rounding exact.
inline Exact quotient_of(const FloatFormat& f, uint64_t a, uint64_t b) {
  using Wide = unsigned __int128;
  int shift = 0;
  Wide dividend = Exact::mantissa_of(f, a);
  while (dividend >> 120 == 0 && dividend != 0) dividend <<= 1, ++shift;
  const Wide divisor = Exact::mantissa_of(f, b);
  Wide quotient = dividend / divisor;
  const bool rest = dividend % divisor != 0;
  const int exponent = Exact::exponent_of(f, a) - Exact::exponent_of(f, b) - shift;
  return Exact(is_negative(f, a) != is_negative(f, b), quotient << 1 | rest, exponent - 1);
}
inline Exact root_of(const FloatFormat& f, uint64_t a) {
  using Wide = unsigned __int128;
  int exponent = Exact::exponent_of(f, a);
  Wide square = Exact::mantissa_of(f, a);
  while (square >> 122 == 0 && square != 0) square <<= 1, --exponent;
  if (exponent % 2 != 0) square <<= 1, --exponent;
  Wide root = 0;
  for (Wide bit = Wide{1} << 62; bit != 0; bit >>= 1) {
    if ((root | bit) * (root | bit) <= square) root |= bit;
  }
  return Exact(false, root << 1 | (root * root != square), exponent / 2 - 1);
}

}  // namespace stitch::ptxsim::lanes_test
