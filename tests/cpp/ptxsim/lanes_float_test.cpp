// Float arithmetic of every format, rounding and modifier against exact arithmetic.
#include "exact_reference.h"
#include "lanes_bench.h"

namespace stitch::ptxsim::lanes_test {
namespace {

const Covers kCovers = {Opcode::add, Opcode::sub,  Opcode::mul,      Opcode::fma,  Opcode::mad,
                        Opcode::div, Opcode::abs,  Opcode::neg,      Opcode::min,  Opcode::max,
                        Opcode::rcp, Opcode::sqrt, Opcode::copysign, Opcode::testp};

bool is_float(Type type) { return name_of(type)[0] == 'f' || name_of(type)[0] == 'b'; }
bool is_pair(Type type) { return type == Type::f16x2 || type == Type::bf16x2; }
bool is_bfloat(Type type) { return type == Type::bf16 || type == Type::bf16x2; }
constexpr Rounding kModes[] = {Rounding::rn, Rounding::rz, Rounding::rm, Rounding::rp};

// Zeros, the ends of subnormal and normal numbers, numbers near one and near halfway, NaN.
std::vector<uint64_t> float_values(const FloatFormat& f, int random_count) {
  const uint64_t one = uint64_t(-f.least + 1) << mantissa_bits(f);
  const uint64_t least_normal = uint64_t{1} << mantissa_bits(f);
  const uint64_t infinity = infinity_bits(f);
  std::vector<uint64_t> values = {0,
                                  1,
                                  least_normal - 1,
                                  least_normal,
                                  least_normal + 1,
                                  one,
                                  one + 1,
                                  one - 1,
                                  infinity - 1,
                                  infinity,
                                  infinity | least_normal >> 1,
                                  infinity | 1,
                                  one + (least_normal >> 1),
                                  one - 2 * least_normal};
  std::mt19937_64 random(f.precision);
  for (int k = 0; k < random_count; ++k) {
    // Half of them near one, where sums cancel and round.
    const uint64_t any = random() & (sign_bit(f) - 1);
    const uint64_t spread = random() % (uint64_t(2 * f.precision) << mantissa_bits(f));
    const uint64_t least = one > spread / 2 ? one - spread / 2 : 0;
    values.push_back(k % 2 == 0 ? any : least);
  }
  const size_t positive = values.size();
  for (size_t k = 0; k < positive; ++k) values.push_back(values[k] | sign_bit(f));
  return values;
}

uint64_t canonical_nan(const FloatFormat& f) { return f.bytes == 4 ? 0x7fffffffu : 0x7fffu; }
uint64_t nan_of(const FloatFormat& f, std::initializer_list<uint64_t> operands) {
  if (f.bytes != 8) return canonical_nan(f);
  for (uint64_t bits : operands) {
    if (is_nan(f, bits)) return bits | uint64_t{1} << 51;
  }
  return 0xfff8000000000000u;
}
bool any_nan(const FloatFormat& f, std::initializer_list<uint64_t> operands) {
  for (uint64_t bits : operands) {
    if (is_nan(f, bits)) return true;
  }
  return false;
}

uint64_t add(const FloatFormat& f, uint64_t a, uint64_t b, Rounding mode) {
  if (any_nan(f, {a, b})) return nan_of(f, {a, b});
  if (is_infinite(f, a) && is_infinite(f, b)) return a == b ? a : nan_of(f, {});
  if (is_infinite(f, a)) return a;
  if (is_infinite(f, b)) return b;
  return rounded_sum(f, Exact(f, a), Exact(f, b), mode);
}
uint64_t fma(const FloatFormat& f, uint64_t a, uint64_t b, uint64_t c, Rounding mode) {
  if (any_nan(f, {a, b, c})) return nan_of(f, {a, b, c});
  const uint64_t sign = (a ^ b) & sign_bit(f);
  const bool infinite = is_infinite(f, a) || is_infinite(f, b);
  if (infinite && (is_zero(f, a) || is_zero(f, b))) return nan_of(f, {});
  if (infinite) return add(f, infinity_bits(f) | sign, is_infinite(f, c) ? c : 0, mode);
  if (is_infinite(f, c)) return c;
  return rounded_sum(f, product_of(f, a, b), Exact(f, c), mode);
}
uint64_t mul(const FloatFormat& f, uint64_t a, uint64_t b, Rounding mode) {
  // A zero of the product's sign added changes nothing.
  return fma(f, a, b, (a ^ b) & sign_bit(f), mode);
}
uint64_t divide(const FloatFormat& f, uint64_t a, uint64_t b, Rounding mode) {
  const uint64_t sign = (a ^ b) & sign_bit(f);
  if (any_nan(f, {a, b})) return nan_of(f, {a, b});
  if (is_infinite(f, a)) return is_infinite(f, b) ? nan_of(f, {}) : infinity_bits(f) | sign;
  if (is_zero(f, b)) return is_zero(f, a) ? nan_of(f, {}) : infinity_bits(f) | sign;
  if (is_infinite(f, b) || is_zero(f, a)) return sign;
  return quotient_of(f, a, b).round(f, mode);
}
uint64_t root(const FloatFormat& f, uint64_t a, Rounding mode) {
  if (is_nan(f, a)) return nan_of(f, {a});
  if (is_zero(f, a)) return a;
  if (is_negative(f, a)) return nan_of(f, {});
  return is_infinite(f, a) ? a : root_of(f, a).round(f, mode);
}
// As integers that grow with the numbers, -0 below +0.
int64_t order_of(const FloatFormat& f, uint64_t bits) {
  const int64_t magnitude = int64_t(bits & (sign_bit(f) - 1));
  return is_negative(f, bits) ? -magnitude - 1 : magnitude;
}
uint64_t extremum(const FloatFormat& f, uint64_t a, uint64_t b, const Modifiers& m, bool max) {
  const uint64_t sign = (a ^ b) & sign_bit(f);
  if (m.xorsign) a &= sign_bit(f) - 1, b &= sign_bit(f) - 1;
  const bool nan_a = is_nan(f, a), nan_b = is_nan(f, b);
  if ((nan_a && nan_b) || (m.nan && (nan_a || nan_b))) {
    return f.bytes == 8 ? 0xfff8000000000000u : canonical_nan(f);
  }
  const bool less = order_of(f, a) < order_of(f, b);
  const uint64_t d = nan_a ? b : nan_b ? a : less != max ? a : b;
  return m.xorsign ? (d & (sign_bit(f) - 1)) | sign : d;
}

uint64_t saturated(const FloatFormat& f, uint64_t bits) {
  const uint64_t one = uint64_t(-f.least + 1) << mantissa_bits(f);
  if (is_nan(f, bits) || is_negative(f, bits)) return 0;
  return bits > one ? one : bits;
}

struct Row {
  Opcode opcode;
  int sources;
  uint64_t (*model)(const FloatFormat& f, const Args& args, Rounding mode);
};
const Row kRows[] = {
    {Opcode::add, 2,
     [](const FloatFormat& f, const Args& x, Rounding m) { return add(f, x[0], x[1], m); }},
    {Opcode::sub, 2,
     [](const FloatFormat& f, const Args& x, Rounding m) {
       return is_nan(f, x[1]) ? nan_of(f, {x[0], x[1]}) : add(f, x[0], x[1] ^ sign_bit(f), m);
     }},
    {Opcode::mul, 2,
     [](const FloatFormat& f, const Args& x, Rounding m) { return mul(f, x[0], x[1], m); }},
    {Opcode::fma, 3,
     [](const FloatFormat& f, const Args& x, Rounding m) { return fma(f, x[0], x[1], x[2], m); }},
    {Opcode::mad, 3,
     [](const FloatFormat& f, const Args& x, Rounding m) { return fma(f, x[0], x[1], x[2], m); }},
    {Opcode::div, 2,
     [](const FloatFormat& f, const Args& x, Rounding m) { return divide(f, x[0], x[1], m); }},
    {Opcode::rcp, 1,
     [](const FloatFormat& f, const Args& x, Rounding m) {
       const uint64_t one = uint64_t(-f.least + 1) << mantissa_bits(f);
       return divide(f, one, x[0], m);
     }},
    {Opcode::sqrt, 1,
     [](const FloatFormat& f, const Args& x, Rounding m) { return root(f, x[0], m); }},
};

using Model = std::function<uint64_t(const Args&)>;

// The model with flushing, saturation and relu around it, for each half of a pair.
uint64_t around(const Form& form, const FloatFormat& f, const Args& args, const Model& model) {
  const Modifiers& m = form.modifiers;
  Args in = args;
  if (m.ftz) {
    for (uint64_t& bits : in) bits = flushed(f, bits);
  }
  uint64_t d = model(in);
  if (m.sat) d = saturated(f, d);
  if (m.relu && is_negative(f, d) && !is_nan(f, d)) d = is_zero(f, d) ? d : 0;
  return m.ftz ? flushed(f, d) : d;
}
void check_float(Form form, int sources, const std::vector<uint64_t>& values, const Model& model) {
  const FloatFormat f = format_of(form.type);
  form.widths.assign(sources + 1, is_pair(form.type) ? 4 : f.bytes);
  std::vector<Args> cases = some_of(product(std::vector(sources, values)), 4000);
  if (!is_pair(form.type)) {
    check(form, cases, [&](const Args& args) { return around(form, f, args, model); });
    return;
  }
  for (size_t k = 0; k < cases.size(); ++k) {
    for (int s = 0; s < sources; ++s) cases[k][s] |= cases[(k * 7 + 3) % cases.size()][s] << 16;
  }
  check(form, cases, [&](const Args& args) {
    Args low = {}, high = {};
    for (int s = 0; s < sources; ++s) low[s] = args[s] & 0xffff, high[s] = args[s] >> 16 & 0xffff;
    return around(form, f, high, model) << 16 | around(form, f, low, model);
  });
}

// Whether the PTX ISA has the modifiers for the type.
bool allowed(Opcode opcode, Type type, const Modifiers& m) {
  const bool is_rounded = opcode == Opcode::rcp || opcode == Opcode::sqrt || opcode == Opcode::div;
  if (m.sat && is_rounded) return false;
  if (type == Type::f32) return !m.relu;
  if (type == Type::f64) return !m.relu && !m.ftz && !m.sat;
  if (m.rounding != Rounding::rn && m.rounding != Rounding::none) return false;
  if (m.relu && (opcode != Opcode::fma || m.sat)) return false;
  return !is_bfloat(type) || (!m.ftz && !m.sat);
}

TEST(LanesFloat, ArithmeticRoundsAsTheExactResultDoes) {
  for (const Row& row : kRows) {
    for (Type type : types_of(row.opcode)) {
      if (!is_float(type)) continue;
      const FloatFormat f = format_of(type);
      const int count = row.sources == 1 ? 600 : row.sources == 2 ? 30 : f.bytes == 8 ? 0 : 3;
      const auto values = float_values(f, count);
      for (Rounding mode : kModes) {
        for (int bits = 0; bits < 8; ++bits) {
          const bool ftz = bits & 1, sat = bits & 2, relu = bits & 4;
          const Form form{row.opcode,
                          type,
                          Type::none,
                          {.rounding = mode, .ftz = ftz, .sat = sat, .relu = relu},
                          {}};
          if (!allowed(row.opcode, type, form.modifiers)) {
            EXPECT_TRUE(refused(form)) << describe(form);
            continue;
          }
          check_float(form, row.sources, values,
                      [&](const Args& args) { return row.model(f, args, mode); });
        }
      }
    }
  }
}

TEST(LanesFloat, MinAndMaxOrderZerosAndDropNan) {
  for (Opcode opcode : {Opcode::min, Opcode::max}) {
    for (Type type : types_of(opcode)) {
      if (!is_float(type)) continue;
      const FloatFormat f = format_of(type);
      for (int bits = 0; bits < 8; ++bits) {
        const Form form{
            opcode,
            type,
            Type::none,
            {.ftz = (bits & 1) != 0, .nan = (bits & 2) != 0, .xorsign = (bits & 4) != 0},
            {}};
        if ((type == Type::f64 && bits != 0) || (is_bfloat(type) && form.modifiers.ftz)) {
          EXPECT_TRUE(refused(form)) << describe(form);
          continue;
        }
        check_float(form, 2, float_values(f, 30), [&](const Args& args) {
          return extremum(f, args[0], args[1], form.modifiers, opcode == Opcode::max);
        });
      }
    }
  }
}

TEST(LanesFloat, SignsChangeAlone) {
  for (Opcode opcode : {Opcode::abs, Opcode::neg}) {
    for (Type type : types_of(opcode)) {
      if (!is_float(type)) continue;
      const FloatFormat f = format_of(type);
      for (bool ftz : {false, true}) {
        const Form form{opcode, type, Type::none, {.ftz = ftz}, {}};
        if (ftz && (type == Type::f64 || is_bfloat(type))) {
          EXPECT_TRUE(refused(form)) << describe(form);
          continue;
        }
        check_float(form, 1, float_values(f, 100), [&](const Args& args) {
          return opcode == Opcode::abs ? args[0] & (sign_bit(f) - 1) : args[0] ^ sign_bit(f);
        });
      }
    }
  }
  for (Type type : types_of(Opcode::copysign)) {
    const FloatFormat f = format_of(type);
    check_float(
        {Opcode::copysign, type, Type::none, {}, {}}, 2, float_values(f, 10),
        [&](const Args& args) { return (args[0] & sign_bit(f)) | (args[1] & (sign_bit(f) - 1)); });
  }
}

TEST(LanesFloat, Properties) {
  const struct {
    Word word;
    bool zero, subnormal, normal, infinite, nan;
  } kProperties[] = {{Word::finite, true, true, true, false, false},
                     {Word::infinite, false, false, false, true, false},
                     {Word::number, true, true, true, true, false},
                     {Word::notanumber, false, false, false, false, true},
                     {Word::normal, false, false, true, false, false},
                     {Word::subnormal, false, true, false, false, false}};
  for (Type type : types_of(Opcode::testp)) {
    const FloatFormat f = format_of(type);
    for (const auto& row : kProperties) {
      const Form form{Opcode::testp, type, Type::none, {.word = row.word}, {kPredicate, f.bytes}};
      check(form, product({float_values(f, 100)}), [&](const Args& args) -> uint64_t {
        if (is_nan(f, args[0])) return row.nan;
        if (is_infinite(f, args[0])) return row.infinite;
        if (is_zero(f, args[0])) return row.zero;
        return flushed(f, args[0]) == args[0] ? row.normal : row.subnormal;
      });
    }
  }
}

}  // namespace
}  // namespace stitch::ptxsim::lanes_test
