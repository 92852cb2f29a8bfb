// Comparison, selection, moves and address spaces.
#include <cmath>

#include "exact_reference.h"
#include "lanes_bench.h"
#include "ptxsim/memory/memory.h"

namespace stitch::ptxsim::lanes_test {
namespace {

const Covers kCovers = {Opcode::setp,    Opcode::set,     Opcode::selp,   Opcode::slct,
                        Opcode::mov,     Opcode::pack,    Opcode::unpack, Opcode::cvta,
                        Opcode::cvta_to, Opcode::isspacep};

bool is_float(Type type) {
  switch (type) {
    case Type::f16:
    case Type::bf16:
    case Type::f32:
    case Type::f64:
    case Type::f16x2:
    case Type::bf16x2:
      return true;
    default:
      return false;
  }
}
bool is_pair(Type type) { return type == Type::f16x2 || type == Type::bf16x2; }
bool is_signed(Type type) { return name_of(type)[0] == 's'; }
bool is_bits(Type type) { return type == Type::b16 || type == Type::b32 || type == Type::b64; }

std::vector<uint64_t> operands_of(Type type) {
  if (!is_float(type)) return integer_values(type_bytes(type), 12);
  const FloatFormat f = format_of(type);
  const uint64_t one = uint64_t(-f.least + 1) << mantissa_bits(f);
  std::vector<uint64_t> values = {0,
                                  1,
                                  one,
                                  one + 1,
                                  infinity_bits(f),
                                  infinity_bits(f) | 1,
                                  uint64_t{1} << mantissa_bits(f),
                                  infinity_bits(f) - 1,
                                  (uint64_t{1} << mantissa_bits(f)) - 1};
  const size_t positive = values.size();
  for (size_t k = 0; k < positive; ++k) values.push_back(values[k] | sign_bit(f));
  if (is_pair(type)) {
    for (size_t k = 0; k < values.size(); ++k)
      values[k] |= (values[(k * 5 + 2) % values.size()] & 0xffff) << 16;
  }
  return values;
}

// Less, equal, greater, unordered.
enum Relation { kLess, kEqual, kGreater, kUnordered };
Relation relate(Type type, uint64_t a, uint64_t b, bool ftz) {
  if (!is_float(type)) {
    const int shift = 64 - type_bytes(type) * 8;
    const int64_t x = int64_t(a << shift), y = int64_t(b << shift);
    if (x == y) return kEqual;
    return (is_signed(type) ? x < y : uint64_t(x) < uint64_t(y)) ? kLess : kGreater;
  }
  const FloatFormat f = format_of(type);
  const uint64_t whole = sign_bit(f) * 2 - 1;
  a &= whole, b &= whole;
  if (ftz) a = flushed(f, a), b = flushed(f, b);
  if (is_nan(f, a) || is_nan(f, b)) return kUnordered;
  const auto order = [&](uint64_t bits) {
    const int64_t magnitude = int64_t(bits & (sign_bit(f) - 1));
    return is_negative(f, bits) ? -magnitude : magnitude;
  };
  return order(a) < order(b) ? kLess : order(a) == order(b) ? kEqual : kGreater;
}

// For which relations each word holds, in the order of Relation.
struct WordRow {
  Compare word;
  bool on[4];
  bool integers, floats;
};
const WordRow kWords[] = {
    {Compare::eq, {0, 1, 0, 0}, true, true},   {Compare::ne, {1, 0, 1, 0}, true, true},
    {Compare::lt, {1, 0, 0, 0}, true, true},   {Compare::le, {1, 1, 0, 0}, true, true},
    {Compare::gt, {0, 0, 1, 0}, true, true},   {Compare::ge, {0, 1, 1, 0}, true, true},
    {Compare::lo, {1, 0, 0, 0}, true, false},  {Compare::ls, {1, 1, 0, 0}, true, false},
    {Compare::hi, {0, 0, 1, 0}, true, false},  {Compare::hs, {0, 1, 1, 0}, true, false},
    {Compare::equ, {0, 1, 0, 1}, false, true}, {Compare::neu, {1, 0, 1, 1}, false, true},
    {Compare::ltu, {1, 0, 0, 1}, false, true}, {Compare::leu, {1, 1, 0, 1}, false, true},
    {Compare::gtu, {0, 0, 1, 1}, false, true}, {Compare::geu, {0, 1, 1, 1}, false, true},
    {Compare::num, {1, 1, 1, 0}, false, true}, {Compare::nan, {0, 0, 0, 1}, false, true}};

bool takes(Type type, const WordRow& row) {
  if (is_float(type)) return row.floats;
  if (is_bits(type)) return row.word == Compare::eq || row.word == Compare::ne;
  const bool unsigned_word = row.word >= Compare::lo && row.word <= Compare::hs;
  return row.integers && !(unsigned_word && is_signed(type));
}
bool takes_ftz(Type type) { return type == Type::f32 || type == Type::f16 || type == Type::f16x2; }
bool combine(Word word, bool a, bool b) {
  switch (word) {
    case Word::and_:
      return a && b;
    case Word::or_:
      return a || b;
    case Word::xor_:
      return a != b;
    default:
      return a;
  }
}
const Word kBooleans[] = {Word::none, Word::and_, Word::or_, Word::xor_};

TEST(LanesSelect, SetPredicates) {
  for (Type type : types_of(Opcode::setp)) {
    const int bytes = is_pair(type) ? 4 : type_bytes(type);
    const auto values = operands_of(type);
    const auto cases = product({values, values, {0, 1}});
    for (const WordRow& row : kWords) {
      for (bool ftz : {false, true}) {
        Form form{Opcode::setp,
                  type,
                  Type::none,
                  {.compare = row.word, .ftz = ftz},
                  {kPredicate, kPredicate, bytes, bytes, kPredicate}};
        form.destinations = 2;
        if (!takes(type, row) || (ftz && !takes_ftz(type))) {
          EXPECT_TRUE(refused(form)) << describe(form);
          continue;
        }
        for (Word word : kBooleans) {
          form.modifiers.word = word;
          if (word == Word::none)
            form.widths[4] = kUnused;
          else
            form.widths[4] = kPredicate;
          check(form, cases, [&](const Args& args) {
            return combine(word, row.on[relate(type, args[0], args[1], ftz)], args[2] != 0);
          });
          check(
              form, cases,
              [&](const Args& args) {
                const bool other = is_pair(type)
                                       ? row.on[relate(type, args[0] >> 16, args[1] >> 16, ftz)]
                                       : !row.on[relate(type, args[0], args[1], ftz)];
                return combine(word, other, args[2] != 0);
              },
              1);
        }
      }
    }
  }
}

uint64_t truth_of(Type type) {
  switch (type) {
    case Type::f32:
      return 0x3f800000u;
    case Type::f16:
    case Type::f16x2:
      return 0x3c00;
    case Type::bf16:
    case Type::bf16x2:
      return 0x3f80;
    default:
      return ~uint64_t{0};
  }
}

TEST(LanesSelect, SetRegisters) {
  for (Type type : types_of(Opcode::set)) {
    for (Type source : sources_of(Opcode::set)) {
      const int bytes = is_pair(source) ? 4 : type_bytes(source);
      const auto values = operands_of(source);
      const auto cases = product({values, values, {0, 1}});
      for (const WordRow& row : kWords) {
        if (!takes(source, row)) continue;
        for (Word word : {Word::none, Word::xor_}) {
          const Form form{Opcode::set,
                          type,
                          source,
                          {.compare = row.word, .word = word},
                          {is_pair(type) ? 4 : type_bytes(type), bytes, bytes, kPredicate}};
          const bool whole = type == Type::u32 || type == Type::s32;
          if (is_pair(source) ? type != source && !whole : is_pair(type)) {
            EXPECT_TRUE(refused(form)) << describe(form);
            continue;
          }
          check(form, cases, [&](const Args& args) -> uint64_t {
            const bool low =
                combine(word, row.on[relate(source, args[0], args[1], false)], args[2] != 0);
            if (!is_pair(source)) return low ? truth_of(type) : 0;
            const bool high = combine(
                word, row.on[relate(source, args[0] >> 16, args[1] >> 16, false)], args[2] != 0);
            const uint64_t on = truth_of(type) & 0xffff;
            return (low ? on : 0) | (high ? on << 16 : 0);
          });
        }
      }
    }
  }
}

TEST(LanesSelect, Selects) {
  for (Type type : types_of(Opcode::selp)) {
    const int bytes = type_bytes(type);
    const Form form{Opcode::selp, type, Type::none, {}, {bytes, bytes, bytes, kPredicate}};
    const auto values = integer_values(bytes, 10);
    check(form, product({values, values, {0, 1}}),
          [](const Args& args) { return args[2] ? args[0] : args[1]; });
  }
  for (Type type : types_of(Opcode::slct)) {
    for (Type source : sources_of(Opcode::slct)) {
      for (bool ftz : {false, true}) {
        const int bytes = type_bytes(type);
        const Form form{Opcode::slct, type, source, {.ftz = ftz}, {bytes, bytes, bytes, 4}};
        if (ftz && source == Type::s32) {
          EXPECT_TRUE(refused(form)) << describe(form);
          continue;
        }
        const auto values = integer_values(bytes, 3);
        check(form, product({values, values, operands_of(source)}), [&](const Args& args) {
          const Relation r = relate(source, args[2], 0, ftz);
          return r == kGreater || r == kEqual ? args[0] : args[1];
        });
      }
    }
  }
}

TEST(LanesSelect, Moves) {
  for (Type type : types_of(Opcode::mov)) {
    if (type == Type::b128) continue;  // below, as halves
    const int bytes = type == Type::pred ? kPredicate : type_bytes(type);
    const Form form{Opcode::mov, type, Type::none, {}, {bytes, bytes}};
    check(form, product({bytes ? integer_values(bytes, 50) : std::vector<uint64_t>{0, 1}}),
          [](const Args& args) { return args[0]; });
  }
}

// Packs distinct elements, moves the whole when it is wide, and takes it apart.
void check_vector(Type type, int count) {
  const int bytes = type_bytes(type) / count;
  const auto pack = handlers_of({Opcode::pack, type, Type::none, {}, {}});
  const auto unpack = handlers_of({Opcode::unpack, type, Type::none, {}, {}});
  const auto move = handlers_of({Opcode::mov, type, Type::none, {}, {}});
  for (size_t set = 0; set < pack.size(); ++set) {
    for (uint32_t mask : {0xffffffffu, 0x0ff05aa1u}) {
      LaneBench bench;
      const auto element = [&](int k, int l) -> uint64_t {
        return (0x9e3779b97f4a7c15u * uint64_t(k * 32 + l + 1)) >> (64 - bytes * 8);
      };
      Instruction& i = bench.instruction();
      i.operand_count = uint8_t(count + 1);
      i.operands[0] = 10 * 4;
      for (int k = 0; k < count; ++k) {
        i.operands[k + 1] = uint32_t(k) * 4;
        for (int l = 0; l < kLanes; ++l) bench.set(k, bytes, l, element(k, l));
      }
      bench.run(pack[set], mask);
      i.operands[0] = 11 * 4;
      i.operands[1] = 10 * 4;
      bench.run(move[set], mask);
      for (int k = 0; k < count; ++k) {
        for (int l = 0; l < kLanes; ++l) bench.set(k, bytes, l, 0);
        i.operands[k] = k == 1 ? kNoUnit : uint32_t(k) * 4;
      }
      i.operands[count] = 11 * 4;
      bench.run(unpack[set], mask);
      for (int k = 0; k < count; ++k) {
        for (int l = 0; l < kLanes; ++l) {
          const bool written = (mask >> l & 1) != 0 && k != 1;
          EXPECT_EQ(bench.get(k, bytes, l), written ? element(k, l) : 0)
              << name_of(type) << " element " << k << " of " << count << " lane " << l;
        }
      }
    }
  }
}

TEST(LanesSelect, VectorsPackAndUnpack) {
  check_vector(Type::b32, 2);
  for (int count : {2, 4}) check_vector(Type::b64, count);
  for (int count : {2, 4}) check_vector(Type::b128, count);
}

TEST(LanesSelect, AddressSpaces) {
  const struct {
    Space space;
    uint64_t window;
  } kSpaces[] = {{Space::global, 0},
                 {Space::shared, window_of(Space::shared)},
                 {Space::local, window_of(Space::local)},
                 {Space::const_, window_of(Space::const_)},
                 {Space::param, window_of(Space::param)}};
  const std::vector<uint64_t> offsets = {0, 4, 1024, 0x7f0012345678};
  for (const auto& row : kSpaces) {
    const Modifiers m = {.space = row.space};
    check({Opcode::cvta, Type::u64, Type::none, m, {8, 8}}, product({offsets}),
          [&](const Args& args) { return args[0] + row.window; });
    for (const auto& other : kSpaces) {
      std::vector<uint64_t> there;
      for (uint64_t offset : offsets) there.push_back(other.window + offset);
      check({Opcode::isspacep, Type::b64, Type::none, m, {kPredicate, 8}}, product({there}),
            [&](const Args&) { return row.space == other.space; });
      if (row.space != other.space) continue;
      check({Opcode::cvta_to, Type::u64, Type::none, m, {8, 8}}, product({there}),
            [&](const Args& args) { return args[0] - row.window; });
    }
  }
}

// Every row of lane operations is tested, and every type of it has a handler in some spelling.
std::vector<Modifiers> spellings() {
  std::vector<Modifiers> all;
  for (Rounding r : {Rounding::none, Rounding::rn, Rounding::rni}) {
    for (Word w : {Word::none, Word::clamp, Word::finite}) {
      for (int bits = 0; bits < 4; ++bits) {
        all.push_back({.rounding = r,
                       .compare = Compare::eq,
                       .space = Space::shared,
                       .word = w,
                       .ftz = (bits & 1) != 0,
                       .approx = (bits & 2) != 0});
      }
    }
  }
  return all;
}
bool has_handler(Opcode opcode, Type type, Type source) {
  for (const Modifiers& m : spellings()) {
    if (!refused({opcode, type, source, m, {}})) return true;
  }
  return false;
}
// set: a comparison of pairs gives a pair or two masks, one of scalars gives no pair.
bool is_documented_refusal(Opcode opcode, Type type, Type source) {
  if (opcode != Opcode::set) return false;
  const bool whole = type == Type::u32 || type == Type::s32;
  return is_pair(source) ? type != source && !whole : is_pair(type);
}

TEST(LanesComplete, EveryRowAndTypeIsTestedAndHandled) {
  for (const Row& row : all_rows()) {
    if (row.flow != Flow::lanes) continue;
    EXPECT_TRUE(covered().count(row.opcode)) << row.name << " has no test";
    std::vector<Type> sources = sources_of(row.opcode);
    if (sources.empty()) sources.push_back(Type::none);
    for (Type type : types_of(row.opcode)) {
      for (Type source : sources) {
        EXPECT_NE(has_handler(row.opcode, type, source),
                  is_documented_refusal(row.opcode, type, source))
            << row.name << '.' << name_of(type) << '.' << name_of(source);
      }
    }
  }
}

}  // namespace
}  // namespace stitch::ptxsim::lanes_test
