// Conversions: 16-bit sources exhaustively, others by edges, against exact arithmetic.
#include "exact_reference.h"
#include "lanes_bench.h"

namespace stitch::ptxsim::lanes_test {
namespace {

const Covers kCovers = {Opcode::cvt, Opcode::cvt_pack};

using Int = __int128;

bool is_float(Type type) {
  return type == Type::f16 || type == Type::bf16 || type == Type::f32 || type == Type::f64;
}
bool is_signed(Type type) { return name_of(type)[0] == 's'; }
int register_bytes(Type type) { return type_bytes(type) == 1 ? 2 : type_bytes(type); }

Int integer_of(Type type, uint64_t raw) {
  const int bits = type_bytes(type) * 8;
  const Int x = bits == 64 ? Int(raw) : Int(raw & ((uint64_t{1} << bits) - 1));
  return is_signed(type) && x >> (bits - 1) & 1 ? x - (Int{1} << bits) : x;
}
Int most_of(Type type) { return (Int{1} << (type_bytes(type) * 8 - is_signed(type))) - 1; }
Int least_of(Type type) { return is_signed(type) ? -most_of(type) - 1 : 0; }

// The registers of 8-bit results hold them extended.
uint64_t as_register(Type type, Int x) { return uint64_t(integer_of(type, uint64_t(x))); }

std::vector<uint64_t> values_of(Type type) {
  std::vector<uint64_t> values;
  if (type_bytes(type) <= 2) {
    for (uint64_t k = 0; k < 65536; k += type_bytes(type) == 1 ? 37 : 1) values.push_back(k);
    return values;
  }
  if (!is_float(type)) return integer_values(type_bytes(type), 1000);
  // Near powers of two: the ends of integer types, halves, and of the narrower formats.
  const FloatFormat f = format_of(type);
  std::mt19937_64 random(7);
  const int fields = f.greatest - f.least + 3;
  for (int field = 0; field < fields; ++field) {
    const bool near = std::abs(field + f.least - 1) < 160;
    if (!near && field % 97 != 0 && field != fields - 1) continue;
    const uint64_t base = uint64_t(field) << mantissa_bits(f);
    const uint64_t unit = uint64_t{1} << mantissa_bits(f);
    for (uint64_t low : {uint64_t{0}, uint64_t{1}, unit / 2, unit / 2 + 1, unit - 1, unit / 4,
                         unit >> 8, (unit >> 8) + 1, (unit >> 8) - 1, unit >> 11, (unit >> 11) + 1,
                         unit >> 7 | unit >> 8, random() % unit, random() % unit}) {
      values.push_back(base + low);
      values.push_back(sign_bit(f) | (base + low));
    }
  }
  return values;
}

Rounding as_float_rounding(Rounding mode) {
  switch (mode) {
    case Rounding::rni:
      return Rounding::rn;
    case Rounding::rzi:
      return Rounding::rz;
    case Rounding::rmi:
      return Rounding::rm;
    default:
      return Rounding::rp;
  }
}
// The integer that a finite number rounds to.
Int rounded_integer(const FloatFormat& f, uint64_t bits, Rounding mode) {
  const int exponent = Exact::exponent_of(f, bits);
  const Int mantissa = Int(Exact::mantissa_of(f, bits));
  const bool negative = is_negative(f, bits);
  const Int huge = Int{1} << 100;
  if (exponent > 60) return mantissa == 0 ? 0 : negative ? -huge : huge;
  if (exponent >= 0) return negative ? -(mantissa << exponent) : mantissa << exponent;
  const int shift = -exponent < 120 ? -exponent : 120;
  Int whole = mantissa >> shift;
  const Int rest = mantissa - (whole << shift);
  const Int half = Int{1} << (shift - 1);
  const Rounding rounding = as_float_rounding(mode);
  if (rounding == Rounding::rn && (rest > half || (rest == half && (whole & 1)))) ++whole;
  if (rounding == Rounding::rp && !negative && rest != 0) ++whole;
  if (rounding == Rounding::rm && negative && rest != 0) ++whole;
  return negative ? -whole : whole;
}

uint64_t nan_of(const FloatFormat& to, const FloatFormat& from, uint64_t bits) {
  if (to.bytes == 4) return 0x7fffffffu;
  if (to.bytes == 2) return 0x7fffu;
  // What a NaN carries goes to the top of the longer fraction.
  const uint64_t fraction = (bits & ((uint64_t{1} << mantissa_bits(from)) - 1))
                            << (52 - mantissa_bits(from));
  const uint64_t sign = is_negative(from, bits) ? uint64_t{1} << 63 : 0;
  return sign | infinity_bits(to) | fraction | uint64_t{1} << 51;
}
uint64_t saturated(const FloatFormat& f, uint64_t bits) {
  const uint64_t one = uint64_t(-f.least + 1) << mantissa_bits(f);
  return is_nan(f, bits) || is_negative(f, bits) ? 0 : bits > one ? one : bits;
}

uint64_t float_to_float(const Form& form, Type source, uint64_t bits) {
  const Modifiers& m = form.modifiers;
  const FloatFormat from = format_of(source), to = format_of(form.type);
  if (m.ftz && source == Type::f32) bits = flushed(from, bits);
  uint64_t d;
  if (is_nan(from, bits)) {
    d = nan_of(to, from, bits);
  } else if (is_infinite(from, bits)) {
    d = infinity_bits(to) | (is_negative(from, bits) ? sign_bit(to) : 0);
  } else if (m.rounding >= Rounding::rni) {
    const Int whole =
        Exact::exponent_of(from, bits) >= 0 ? 0 : rounded_integer(from, bits, m.rounding);
    const Exact exact(is_negative(from, bits),
                      static_cast<unsigned __int128>(whole < 0 ? -whole : whole), 0);
    d = Exact::exponent_of(from, bits) >= 0 ? bits : exact.round(to, Rounding::rn);
  } else {
    d = Exact(from, bits).round(to, m.rounding);
  }
  if (m.sat) d = saturated(to, d);
  if (m.relu && !is_nan(to, d) && is_negative(to, d) && !is_zero(from, bits)) d = 0;
  return m.ftz && form.type == Type::f32 ? flushed(to, d) : d;
}

uint64_t float_to_integer(const Form& form, Type source, uint64_t bits) {
  const FloatFormat f = format_of(source);
  const Type type = form.type;
  if (form.modifiers.ftz && source == Type::f32) bits = flushed(f, bits);
  if (is_nan(f, bits)) {
    const bool zero = source != Type::f64 && type_bytes(type) != 8;
    return zero ? 0 : as_register(type, Int{1} << (type_bytes(type) * 8 - 1));
  }
  Int x = is_negative(f, bits) ? least_of(type) : most_of(type);
  if (!is_infinite(f, bits)) x = rounded_integer(f, bits, form.modifiers.rounding);
  x = x < least_of(type) ? least_of(type) : x > most_of(type) ? most_of(type) : x;
  return as_register(type, x);
}

uint64_t expected_of(const Form& form, uint64_t bits) {
  const Type type = form.type, source = form.source;
  if (is_float(type) && is_float(source)) return float_to_float(form, source, bits);
  if (is_float(source)) return float_to_integer(form, source, bits);
  Int x = integer_of(source, bits);
  if (is_float(type)) {
    const FloatFormat f = format_of(type);
    const Exact exact(x < 0, static_cast<unsigned __int128>(x < 0 ? -x : x), 0);
    const uint64_t d = exact.round(f, form.modifiers.rounding);
    return form.modifiers.sat ? saturated(f, d) : d;
  }
  if (form.modifiers.sat)
    x = x < least_of(type) ? least_of(type) : x > most_of(type) ? most_of(type) : x;
  return as_register(type, x);
}

// The roundings of the PTX ISA for a pair of types.
std::vector<Rounding> roundings_of(Type type, Type source) {
  const std::vector<Rounding> kIntegral = {Rounding::rni, Rounding::rzi, Rounding::rmi,
                                           Rounding::rpi};
  const std::vector<Rounding> kFloat = {Rounding::rn, Rounding::rz, Rounding::rm, Rounding::rp};
  if (!is_float(type)) return is_float(source) ? kIntegral : std::vector{Rounding::none};
  if (!is_float(source)) return kFloat;
  if (type == source) {
    std::vector<Rounding> both = kIntegral;
    both.push_back(Rounding::none);
    return both;
  }
  const bool widens = type == Type::f64 || (type == Type::f32 && type_bytes(source) == 2);
  return widens ? std::vector{Rounding::none} : kFloat;
}

bool has_rounding(Type type, Type source, Rounding rounding) {
  for (Rounding r : roundings_of(type, source)) {
    if (r == rounding) return true;
  }
  return false;
}

TEST(LanesConvert, EveryPairOfTypes) {
  for (Type type : types_of(Opcode::cvt)) {
    for (Type source : sources_of(Opcode::cvt)) {
      const auto cases = product({values_of(source)});
      for (Rounding rounding : roundings_of(type, source)) {
        for (int bits = 0; bits < 4; ++bits) {
          const bool ftz = bits & 1, sat = bits & 2;
          if (ftz && type != Type::f32 && source != Type::f32) continue;
          if (sat && type == Type::bf16) continue;
          const Form form{Opcode::cvt,
                          type,
                          source,
                          {.rounding = rounding, .ftz = ftz, .sat = sat},
                          {register_bytes(type), register_bytes(source)}};
          check(form, bits == 0 ? cases : some_of(cases, 2000),
                [&](const Args& args) { return expected_of(form, args[0]); });
        }
      }
    }
  }
}

TEST(LanesConvert, OtherRoundingsAreRefused) {
  for (Type type : types_of(Opcode::cvt)) {
    for (Type source : sources_of(Opcode::cvt)) {
      for (int r = 0; r <= int(Rounding::rpi); ++r) {
        if (has_rounding(type, source, Rounding(r))) continue;
        EXPECT_TRUE(refused({Opcode::cvt, type, source, {.rounding = Rounding(r)}, {}}))
            << name_of(type) << ' ' << name_of(source) << ' ' << r;
      }
    }
  }
}

TEST(LanesConvert, ReluAndPacks) {
  const auto singles = values_of(Type::f32);
  for (Type type : {Type::f16, Type::bf16}) {
    for (Rounding rounding : {Rounding::rn, Rounding::rz}) {
      const Form form{Opcode::cvt, type, Type::f32, {.rounding = rounding, .relu = true}, {2, 4}};
      check(form, product({singles}), [&](const Args& args) { return expected_of(form, args[0]); });
    }
  }
  for (Type type : types_of(Opcode::cvt_pack)) {
    for (Rounding rounding : {Rounding::rn, Rounding::rz}) {
      for (bool relu : {false, true}) {
        const Modifiers m = {.rounding = rounding, .relu = relu};
        const Form one{Opcode::cvt, type == Type::f16x2 ? Type::f16 : Type::bf16, Type::f32, m, {}};
        const Form form{Opcode::cvt_pack, type, Type::f32, m, {4, 4, 4}};
        std::vector<Args> cases;
        for (size_t k = 0; k < singles.size(); ++k) {
          cases.push_back({singles[k], singles[(k * 31 + 5) % singles.size()]});
        }
        check(form, cases, [&](const Args& args) {
          return expected_of(one, args[0]) << 16 | expected_of(one, args[1]);
        });
      }
    }
  }
}

}  // namespace
}  // namespace stitch::ptxsim::lanes_test
