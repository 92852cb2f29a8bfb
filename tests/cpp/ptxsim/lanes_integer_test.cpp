// Integer arithmetic against 128-bit host arithmetic.
#include "lanes_bench.h"

namespace stitch::ptxsim::lanes_test {
namespace {

using Int = __int128;

const Covers kCovers = {Opcode::add_cc,    Opcode::addc,     Opcode::sub_cc,    Opcode::subc,
                        Opcode::mad_lo_cc, Opcode::madc_lo,  Opcode::mad_hi_cc, Opcode::madc_hi,
                        Opcode::mul_lo,    Opcode::mul_hi,   Opcode::mul_wide,  Opcode::mad_lo,
                        Opcode::mad_hi,    Opcode::mad_wide, Opcode::mul24_lo,  Opcode::mad24_lo,
                        Opcode::rem,       Opcode::sad,      Opcode::dp4a,      Opcode::dp2a_lo,
                        Opcode::dp2a_hi};

bool is_signed(Type type) {
  return type == Type::s16 || type == Type::s32 || type == Type::s64 || type == Type::s16x2;
}
bool has_integers(Type type) {
  const char first = name_of(type)[0];
  return first == 'u' || first == 's';
}
bool is_pair(Type type) { return type == Type::u16x2 || type == Type::s16x2; }
int bits_of(Type type) { return type_bytes(type) * 8; }
Int value(bool sign, int bits, uint64_t raw) {
  const Int x = bits == 64 ? Int(raw) : Int(raw & ((uint64_t{1} << bits) - 1));
  return sign && x >> (bits - 1) & 1 ? x - (Int{1} << bits) : x;
}
// In 128 bits, which wrap: 64-bit factors may fill them.
using Bits = unsigned __int128;
Int times(Int a, Int b) { return Int(Bits(a) * Bits(b)); }
Int plus(Int a, Int b) { return Int(Bits(a) + Bits(b)); }
// The high half, rounding down.
Int high(Int product, int bits) { return product >> bits; }

struct Numbers {
  Type type;
  int bits;
  Int a, b, c;
};
using Model = Int (*)(const Numbers& n);

uint64_t apply(Model model, Type type, const Args& args) {
  const bool sign = is_signed(type);
  if (!is_pair(type)) {
    const int bits = bits_of(type);
    return uint64_t(model({type, bits, value(sign, bits, args[0]), value(sign, bits, args[1]),
                           value(sign, bits, args[2])}));
  }
  uint64_t both = 0;
  for (int shift = 0; shift < 32; shift += 16) {
    const Int d = model({type, 16, value(sign, 16, args[0] >> shift),
                         value(sign, 16, args[1] >> shift), value(sign, 16, args[2] >> shift)});
    both |= (uint64_t(d) & 0xffff) << shift;
  }
  return both;
}

Int clamp_32(Int x) { return x < INT32_MIN ? Int{INT32_MIN} : x > INT32_MAX ? Int{INT32_MAX} : x; }
Int sign_24(const Numbers& n, Int x) { return value(is_signed(n.type), 24, uint64_t(x)); }
Int absolute(Int x) { return x < 0 ? -x : x; }

struct Row {
  Opcode opcode;
  int sources;
  Model model;
  Modifiers modifiers = {};
  std::vector<Type> only = {};  // of the row's types, when not all integers
};

const Row kRows[] = {
    {Opcode::add, 2, [](const Numbers& n) { return n.a + n.b; }},
    {Opcode::sub, 2, [](const Numbers& n) { return n.a - n.b; }},
    {Opcode::add,
     2,
     [](const Numbers& n) { return clamp_32(n.a + n.b); },
     {.sat = true},
     {Type::s32}},
    {Opcode::sub,
     2,
     [](const Numbers& n) { return clamp_32(n.a - n.b); },
     {.sat = true},
     {Type::s32}},
    {Opcode::mul_lo, 2, [](const Numbers& n) { return times(n.a, n.b); }},
    {Opcode::mul_hi, 2,
     [](const Numbers& n) {
       if (n.bits == 64 && !is_signed(n.type)) {
         return Int((unsigned __int128)n.a * (unsigned __int128)n.b >> 64);
       }
       return high(times(n.a, n.b), n.bits);
     }},
    {Opcode::mad_lo, 3, [](const Numbers& n) { return plus(times(n.a, n.b), n.c); }},
    {Opcode::mad_hi, 3,
     [](const Numbers& n) {
       if (n.bits == 64 && !is_signed(n.type)) {
         return Int((unsigned __int128)n.a * (unsigned __int128)n.b >> 64) + n.c;
       }
       return high(times(n.a, n.b), n.bits) + n.c;
     }},
    {Opcode::mad_hi,
     3,
     [](const Numbers& n) { return clamp_32(high(times(n.a, n.b), 32) + n.c); },
     {.sat = true},
     {Type::s32}},
    {Opcode::mul24_lo, 2, [](const Numbers& n) { return sign_24(n, n.a) * sign_24(n, n.b); }},
    {Opcode::mad24_lo, 3, [](const Numbers& n) { return sign_24(n, n.a) * sign_24(n, n.b) + n.c; }},
    {Opcode::div, 2, [](const Numbers& n) { return n.b == 0 ? Int{-1} : n.a / n.b; }},
    {Opcode::rem, 2, [](const Numbers& n) { return n.b == 0 ? n.a : n.a % n.b; }},
    {Opcode::abs, 1, [](const Numbers& n) { return absolute(n.a); }},
    {Opcode::neg, 1, [](const Numbers& n) { return -n.a; }},
    {Opcode::min, 2, [](const Numbers& n) { return n.a < n.b ? n.a : n.b; }},
    {Opcode::max, 2, [](const Numbers& n) { return n.a < n.b ? n.b : n.a; }},
    {Opcode::min,
     2,
     [](const Numbers& n) { return n.a < 0 || n.b < 0 ? 0
                                   : n.a < n.b        ? n.a
                                                      : n.b; },
     {.relu = true},
     {Type::s32, Type::s16x2}},
    {Opcode::max,
     2,
     [](const Numbers& n) { return n.a < 0 && n.b < 0 ? 0
                                   : n.a < n.b        ? n.b
                                                      : n.a; },
     {.relu = true},
     {Type::s32, Type::s16x2}},
    {Opcode::sad, 3, [](const Numbers& n) { return n.c + absolute(n.a - n.b); }},
};

TEST(LanesInteger, Arithmetic) {
  for (const Row& row : kRows) {
    for (Type type : row.only.empty() ? types_of(row.opcode) : row.only) {
      if (!has_integers(type)) continue;
      const int bytes = type_bytes(type);
      Form form{row.opcode, type, Type::none, row.modifiers, {}};
      form.widths.assign(row.sources + 1, bytes);
      const auto values = integer_values(bytes, row.sources == 3 ? 6 : 60);
      check(form, product(std::vector(row.sources, values)),
            [&](const Args& args) { return apply(row.model, type, args); });
    }
  }
}

TEST(LanesInteger, WideProducts) {
  for (Opcode opcode : {Opcode::mul_wide, Opcode::mad_wide}) {
    for (Type type : types_of(opcode)) {
      const int bytes = type_bytes(type);
      const bool adds = opcode == Opcode::mad_wide;
      Form form{opcode, type, Type::none, {}, {2 * bytes, bytes, bytes}};
      if (adds) form.widths.push_back(2 * bytes);
      std::vector<std::vector<uint64_t>> values(2, integer_values(bytes, 20));
      if (adds) values.push_back(integer_values(2 * bytes, 8));
      check(form, product(values), [&](const Args& args) {
        const bool sign = is_signed(type);
        const Int p = value(sign, bytes * 8, args[0]) * value(sign, bytes * 8, args[1]);
        return uint64_t(p + (adds ? value(sign, bytes * 16, args[2]) : 0));
      });
    }
  }
}

// A sum of unsigned words and a carry, in the result and beyond it.
unsigned __int128 sum_of(Opcode opcode, Type type, const Args& args, bool in) {
  using Wide = unsigned __int128;
  const bool sign = is_signed(type);
  const int bits = bits_of(type);
  const Wide whole = (Wide{1} << bits) - 1;
  const Wide product = Wide(value(sign, bits, args[0])) * Wide(value(sign, bits, args[1]));
  switch (opcode) {
    case Opcode::add_cc:
    case Opcode::addc:
      return Wide{args[0]} + args[1] + in;
    case Opcode::sub_cc:
    case Opcode::subc:
      return (Wide{args[0]} - args[1] - in) & ((Wide{1} << (bits + 1)) - 1);
    case Opcode::mad_lo_cc:
    case Opcode::madc_lo:
      return (product & whole) + args[2] + in;
    default:
      return (product >> bits & whole) + args[2] + in;
  }
}

TEST(LanesInteger, Carries) {
  const struct {
    Opcode opcode;
    int sources;
    bool in;
  } kCarries[] = {{Opcode::add_cc, 2, false},    {Opcode::addc, 2, true},
                  {Opcode::sub_cc, 2, false},    {Opcode::subc, 2, true},
                  {Opcode::mad_lo_cc, 3, false}, {Opcode::madc_lo, 3, true},
                  {Opcode::mad_hi_cc, 3, false}, {Opcode::madc_hi, 3, true}};
  for (const auto& row : kCarries) {
    for (Type type : types_of(row.opcode)) {
      const int bytes = type_bytes(type);
      Form form{row.opcode, type, Type::none, {.carry_out = true}, {bytes, kPredicate}};
      form.destinations = 2;
      std::vector<std::vector<uint64_t>> values(row.sources,
                                                integer_values(bytes, row.sources == 3 ? 4 : 30));
      for (int k = 0; k < row.sources; ++k) form.widths.push_back(bytes);
      if (row.in) {
        form.widths.push_back(kPredicate);
        values.push_back({0, 1});
      }
      const auto cases = product(values);
      const auto sum = [&](const Args& args) {
        return sum_of(row.opcode, type, args, row.in && args[row.sources] != 0);
      };
      check(form, cases, [&](const Args& args) { return uint64_t(sum(args)); });
      check(form, cases, [&](const Args& args) { return uint64_t(sum(args) >> bits_of(type)); }, 1);
      if (!row.in) continue;
      form.modifiers.carry_out = false;
      form.widths[1] = kUnused;
      check(form, cases, [&](const Args& args) { return uint64_t(sum(args)); });
    }
  }
}

TEST(LanesInteger, DotProducts) {
  struct Dot {
    Opcode opcode;
    int bits, first_byte;  // of the elements of a; of b
  };
  for (const Dot& dot :
       {Dot{Opcode::dp4a, 8, 0}, Dot{Opcode::dp2a_lo, 16, 0}, Dot{Opcode::dp2a_hi, 16, 2}}) {
    for (Type type : types_of(dot.opcode)) {
      for (Type source : sources_of(dot.opcode)) {
        const Form form{dot.opcode, type, source, {}, {4, 4, 4, 4}};
        const auto values = integer_values(4, 10);
        check(form, product({values, values, values}), [&](const Args& args) {
          Int sum = args[2];
          for (int k = 0; k < 32 / dot.bits; ++k) {
            sum += value(is_signed(type), dot.bits, args[0] >> dot.bits * k) *
                   value(is_signed(source), 8, args[1] >> 8 * (dot.first_byte + k));
          }
          return uint64_t(sum);
        });
      }
    }
  }
}

TEST(LanesInteger, RefusesWhatDoesNotGoTogether) {
  for (Type type : {Type::u32, Type::s16, Type::s64, Type::u16x2}) {
    EXPECT_TRUE(refused({Opcode::add, type, Type::none, {.sat = true}, {}})) << name_of(type);
    EXPECT_TRUE(refused({Opcode::min, type, Type::none, {.relu = true}, {}})) << name_of(type);
    EXPECT_TRUE(refused({Opcode::add, type, Type::none, {.rounding = Rounding::rn}, {}}));
    EXPECT_TRUE(refused({Opcode::min, type, Type::none, {.ftz = true}, {}}));
  }
}

}  // namespace
}  // namespace stitch::ptxsim::lanes_test
