// What instructions compute: integers, bits, comparisons and predicates, and what lanes tell each
// other.
#include <algorithm>
#include <bit>
#include <cmath>

#include "clock/walk/warp.h"

namespace stitch::clock {

void store(Value& to, const Value& result, uint32_t mask) {
  if (mask == kAllLanes) {
    to = result;
    return;
  }
  for (int i = 0; i < kLanes; ++i) to.lanes[i] = mask >> i & 1 ? result.lanes[i] : to.lanes[i];
  to.known = (to.known & ~mask) | (result.known & mask);
}
void store(Truth* to, Truth result, uint32_t mask) {
  if (!to) return;
  to->value = (to->value & ~mask) | (result.value & mask);
  to->known = (to->known & ~mask) | (result.known & mask);
}

void forget(const Prepared& step, uint32_t mask) {
  for (int k = 0; k < step.results; ++k) step.d[k].known &= ~mask;
  for (Truth* truth : {step.P, step.Q})
    if (truth) truth->known &= ~mask;
}

namespace {

uint64_t field(const Prepared& step, int first, int bits) {
  return step.instruction->field(first, bits);
}

// Sources as one lane has them.
struct Lane {
  uint32_t a, b, c;
  int index;
};
// What a lane makes of them.
struct Made {
  uint64_t bits;  // of the register: the lower 32
  bool P = false, Q = false;
};

// Stores the register that `make` makes, of bits or Made; known is what it makes of lanes whose
// sources are, and `others` with them.  The predicates are P and Q.
template <class Make>
std::array<Truth, 2> map_lanes(const Prepared& step, uint32_t mask, Make make,
                               uint32_t others = kAllLanes) {
  const uint32_t known = step.a->known & step.b->known & step.c->known & others;
  Value result{{}, known};
  Truth P{0, known}, Q{0, known};
  if (known & mask) {
    for (int i = 0; i < kLanes; ++i) {
      const Made made{make(Lane{step.a->lanes[i], step.b->lanes[i], step.c->lanes[i], i})};
      result.lanes[i] = static_cast<uint32_t>(made.bits);
      P.value |= uint32_t{made.P} << i;
      Q.value |= uint32_t{made.Q} << i;
    }
  }
  if (step.d) store(*step.d, result, mask);
  return {P, Q};
}

// An extended addition takes complements and carries in.
bool is_extended(const Prepared& step) { return field(step, 74, 1); }
Truth carry_in(const Prepared& step, const Condition& condition) {
  return is_extended(step) ? condition.read() : Truth::of(false);
}
// What a source adds, by its sign.
auto find_terms(const Prepared& step) {
  return [completes = !is_extended(step)](const Source& source, uint32_t x) {
    return source.negated ? uint64_t{~x} + completes : uint64_t{x};
  };
}

void add_three(const Prepared& step, uint32_t mask) {
  const Truth p = carry_in(step, step.p), q = carry_in(step, step.q);
  const auto term = find_terms(step);
  const auto add = [&](Lane x) {
    const uint64_t sum =
        term(step.a, x.a) + term(step.b, x.b) + term(step.c, x.c) + p.at(x.index) + q.at(x.index);
    return Made{sum, sum >> 32 > 0, sum >> 32 > 1};
  };
  const auto [first, second] = map_lanes(step, mask, add, p.known & q.known);
  store(step.P, first, mask);
  store(step.Q, second, mask);
}

uint64_t multiply(const Prepared& step, Lane x) {
  const bool is_signed = field(step, 73, 1);
  const uint64_t product =
      is_signed
          ? static_cast<uint64_t>(int64_t{static_cast<int32_t>(x.a)} * static_cast<int32_t>(x.b))
          : uint64_t{x.a} * x.b;
  return step.a.negated != step.b.negated ? -product : product;
}

void multiply_add(const Prepared& step, uint32_t mask) {
  const Truth p = carry_in(step, step.p);
  const auto term = find_terms(step);
  const auto make = [&](Lane x) { return multiply(step, x) + term(step.c, x.c) + p.at(x.index); };
  map_lanes(step, mask, make, p.known);
}

// 64 bits of a product and a pair, or the upper half alone.
void multiply_wide(const Prepared& step, uint32_t mask) {
  if (!step.d) return;
  const bool is_high = step.instruction->row->opcode == Opcode::imad_hi;
  const Truth p = carry_in(step, step.p);
  const Value& behind = step.c.value[1];
  Value upper;
  const auto make = [&](Lane x) {
    const uint64_t product = multiply(step, x), above = behind.lanes[x.index];
    const uint64_t sum = product + x.c + (above << 32) + p.at(x.index);
    upper.lanes[x.index] = static_cast<uint32_t>(sum >> 32);
    return Made{is_high ? sum >> 32 : sum, sum < product};
  };
  const Truth carry = map_lanes(step, mask, make, behind.known & p.known)[0];
  upper.known = carry.known;
  if (!is_high) store(step.d[1], upper, mask);
  store(step.P, carry, mask);
}

void scale_add(const Prepared& step, uint32_t mask) {
  const auto shift = static_cast<int>(field(step, 75, 5));
  const bool takes_high = field(step, 80, 1), extends_sign = field(step, 73, 1);
  const Truth p = carry_in(step, step.p);
  const auto term = find_terms(step);
  const auto make = [&](Lane x) {
    const uint32_t sign = static_cast<uint32_t>(static_cast<int32_t>(x.a) >> 31);
    uint64_t whole = uint64_t{extends_sign ? sign : x.c} << 32 | x.a;
    if (step.a.negated) whole = -whole;
    const auto scaled = static_cast<uint32_t>(whole << shift >> (takes_high ? 32 : 0));
    const uint64_t sum =
        uint64_t{scaled} + static_cast<uint32_t>(term(step.b, x.b)) + p.at(x.index);
    return Made{sum, sum >> 32 != 0};
  };
  store(step.P, map_lanes(step, mask, make, p.known)[0], mask);
}

void shift_funnel(const Prepared& step, uint32_t mask) {
  const auto type = field(step, 73, 2);  // s64 u64 s32 u32
  const bool right = field(step, 76, 1), takes_high = field(step, 80, 1);
  const bool is_wide = type < 2, is_signed = type % 2 == 0, wraps = field(step, 75, 1);
  map_lanes(step, mask, [&](Lane x) {
    const uint32_t count = wraps ? x.b & (is_wide ? 63 : 31) : std::min(x.b, is_wide ? 63u : 32u);
    const uint64_t whole = uint64_t{x.c} << 32 | x.a;
    const uint64_t moved = !right      ? whole << count
                           : is_signed ? static_cast<uint64_t>(static_cast<int64_t>(whole) >> count)
                                       : whole >> count;
    return static_cast<uint32_t>(takes_high ? moved >> 32 : moved);
  });
}

void combine_bits(const Prepared& step, uint32_t mask) {
  std::array<uint32_t, 8> table;
  for (int k = 0; k < 8; ++k) table[k] = step.instruction->bit(72 + k) ? kAllLanes : 0;
  const auto pick = [](uint32_t x, uint32_t if_one, uint32_t if_zero) {
    return (x & if_one) | (~x & if_zero);
  };
  const auto make = [&](Lane x) {
    const auto by_b_and_c = [&](int a) {
      return pick(x.b, pick(x.c, table[a + 3], table[a + 2]), pick(x.c, table[a + 1], table[a]));
    };
    const uint32_t bits = pick(x.a, by_b_and_c(4), by_b_and_c(0));
    return Made{bits, bits != 0};
  };
  const Truth nonzero = map_lanes(step, mask, make)[0], p = step.p.read();
  const bool is_and = field(step, 80, 1);
  store(step.P, is_and ? both(nonzero, p) : either(nonzero, p), mask);
}

// Signed numbers are in the order of unsigned ones once their sign bits are flipped.
uint32_t sign_flip(const Prepared& step) { return field(step, 73, 1) ? 0x80000000u : 0; }

void compare(const Prepared& step, uint32_t mask) {
  const auto order = field(step, 76, 3);  // bits: less, equal, greater
  const bool extended = field(step, 72, 1);
  const uint32_t flip = sign_flip(step);
  const Truth low = extended ? step.r.read() : Truth::of(false);  // what the lower halves said
  Truth found{0, step.a->known & step.b->known & low.known};
  for (int i = 0; i < kLanes; ++i) {
    const uint32_t a = step.a->lanes[i] ^ flip, b = step.b->lanes[i] ^ flip;
    const int outcome = a < b ? 0 : a == b ? 1 : 2;
    const bool holds = a == b && extended ? low.at(i) : order >> outcome & 1;
    found.value |= uint32_t{holds} << i;
  }
  const Truth p = step.p.read();
  const auto how = field(step, 74, 2);  // it is joined with p
  const auto join = [&](Truth x) {
    return how == 0 ? both(x, p) : how == 1 ? either(x, p) : differ(x, p);
  };
  store(step.P, join(found), mask);
  store(step.Q, join(negate(found)), mask);
}

void choose(const Prepared& step, uint32_t mask) {
  if (!step.d) return;
  const Truth p = step.p.read();
  Value result;
  for (int i = 0; i < kLanes; ++i) result.lanes[i] = (p.at(i) ? step.a : step.b)->lanes[i];
  result.known = p.known & ((p.value & step.a->known) | (~p.value & step.b->known));
  store(*step.d, result, mask);
}

void pick_bytes(const Prepared& step, uint32_t mask) {
  map_lanes(step, mask, [](Lane x) {
    const uint64_t whole = uint64_t{x.c} << 32 | x.a;
    uint32_t result = 0;
    for (int k = 0; k < 4; ++k) {
      const uint32_t selector = x.b >> 4 * k & 0xf;
      uint32_t byte = whole >> 8 * (selector & 7) & 0xff;
      if (selector & 8) byte = byte & 0x80 ? 0xff : 0;
      result |= byte << 8 * k;
    }
    return result;
  });
}

// The smaller or larger, by predicate, of a and b or of their sum and c.
void take_extreme(const Prepared& step, uint32_t mask) {
  const bool is_of_sum = step.instruction->row->opcode == Opcode::viaddmnmx;
  const Truth p = step.p.read();
  const uint32_t flip = sign_flip(step);
  const auto make = [&](Lane x) {
    const uint32_t first = is_of_sum ? x.a + (step.b.negated ? -x.b : x.b) : x.a;
    const uint32_t second = is_of_sum ? x.c : x.b;
    const bool takes_smaller = p.at(x.index);
    return ((first ^ flip) < (second ^ flip)) == takes_smaller ? first : second;
  };
  map_lanes(step, mask, make, p.known);
}

// One of two tables over three truths: possible values decide what is known.
Truth look_up(uint64_t table, const std::array<Truth, 3>& truths) {
  uint32_t may_be_true = 0, may_be_false = 0;
  for (int k = 0; k < 8; ++k) {
    uint32_t possible = kAllLanes;
    for (int j = 0; j < 3; ++j) {
      const Truth& truth = truths[j];
      possible &= ~truth.known | (k >> (2 - j) & 1 ? truth.value : ~truth.value);
    }
    (table >> k & 1 ? may_be_true : may_be_false) |= possible;
  }
  return {may_be_true, ~(may_be_true & may_be_false)};
}

void combine_truths(const Prepared& step, uint32_t mask) {
  const std::array<Truth, 3> truths = {step.p.read(), step.q.read(), step.r.read()};
  store(step.P, look_up(field(step, 64, 3) | field(step, 72, 5) << 3, truths), mask);
  store(step.Q, look_up(field(step, 16, 8), truths), mask);
}

void exchange(const Prepared& step, uint32_t mask) {
  enum { kIndex, kUp, kDown, kButterfly };
  if (!step.d) return;
  const auto how = field(step, 58, 2);
  Value result;
  Truth is_inside{0, step.b->known & step.c->known};
  for (int i = 0; i < kLanes; ++i) {
    const int segment = step.c->lanes[i] >> 8 & 31, clamp = step.c->lanes[i] & 31;
    const int offset = step.b->lanes[i] & 31, lowest = i & segment;
    const int highest = lowest | (clamp & ~segment);
    const int from = how == kIndex  ? lowest | (offset & ~segment)
                     : how == kUp   ? i - offset
                     : how == kDown ? i + offset
                                    : i ^ offset;
    const bool inside = how == kUp ? from >= highest : from <= highest;
    const int lane = inside ? from & 31 : i;
    result.lanes[i] = step.a->lanes[lane];
    result.known |= (step.a->known >> lane & is_inside.known >> i & 1u) << i;
    is_inside.value |= uint32_t{inside} << i;
  }
  store(*step.d, result, mask);
  store(step.P, is_inside, mask);
}

void take_vote(const Prepared& step, uint32_t mask) {
  enum { kAll, kAny, kEqual };
  const Truth p = step.p.read();
  const uint32_t ballot = p.value & mask;
  const auto how = field(step, 72, 2);
  const bool holds = how == kAny   ? ballot != 0
                     : how == kAll ? ballot == mask
                                   : ballot == 0 || ballot == mask;
  const bool is_known = (p.known & mask) == mask;
  if (step.d) *step.d = Value::of(ballot, is_known);
  store(step.P, Truth::of(holds, is_known), mask);
}

void take_first_lane(const Prepared& step, uint32_t mask) {
  const int lane = std::countr_zero(mask | 0x80000000u);
  if (step.d) *step.d = Value::of(step.a->lanes[lane], step.a->known >> lane & 1);
}

// All registers are the same: what is read so as a pair is zero.
void move(const Prepared& step, uint32_t mask) {
  for (int k = 0; k < step.results; ++k) store(step.d[k], *step.b.value, mask);
}
void take_absolute(const Prepared& step, uint32_t mask) {
  map_lanes(step, mask, [](Lane x) { return static_cast<int32_t>(x.b) < 0 ? -x.b : x.b; });
}
void count_ones(const Prepared& step, uint32_t mask) {
  map_lanes(step, mask, [](Lane x) { return static_cast<uint32_t>(std::popcount(x.b)); });
}
void extend_sign(const Prepared& step, uint32_t mask) {
  const bool is_signed = field(step, 73, 1);
  map_lanes(step, mask, [&](Lane x) {
    const uint32_t unused = 32 - std::min(x.b, 32u);
    if (unused > 31) return 0u;
    const uint32_t moved = x.a << unused;
    return is_signed ? static_cast<uint32_t>(static_cast<int32_t>(moved) >> unused)
                     : moved >> unused;
  });
}

// What division by a number known at run time needs: a reciprocal that is corrected afterwards.
void convert_integer(const Prepared& step, uint32_t mask) {
  const bool is_signed = field(step, 74, 1), rounds_up = field(step, 78, 2) == 2;
  map_lanes(step, mask, [&](Lane x) {
    const double exact = is_signed ? static_cast<int32_t>(x.b) : static_cast<double>(x.b);
    float rounded = static_cast<float>(exact);
    if (rounds_up && rounded < exact) rounded = std::nextafter(rounded, INFINITY);
    return std::bit_cast<uint32_t>(rounded);
  });
}
void invert(const Prepared& step, uint32_t mask) {
  constexpr uint64_t reciprocal = 4;
  if (field(step, 74, 4) != reciprocal) return forget(step, mask);
  map_lanes(step, mask,
            [](Lane x) { return std::bit_cast<uint32_t>(1 / std::bit_cast<float>(x.b)); });
}
void convert_float(const Prepared& step, uint32_t mask) {
  const bool is_signed = field(step, 72, 1);
  if (is_signed) return forget(step, mask);
  map_lanes(step, mask, [](Lane x) {
    const float number = std::bit_cast<float>(x.b);
    return number >= 0 && number < 4294967296.0f ? static_cast<uint32_t>(number) : 0;
  });
}

void read_constant(const Prepared& step, uint32_t mask) {
  const Operand& operand = *step.instruction->find('k');
  const ConstantBank& constants = step.warp->constants;
  const bool is_fixed = operand.index == kZeroRegister;
  const Value index = step.warp->registers.lane[operand.index];  // may be the destination
  const int bytes = std::min(4, access_bytes(*step.instruction));
  const bool is_signed = bytes < 4 && field(step, 73, 1);
  for (int k = 0; k < step.results; ++k) {
    const uint64_t at = operand.value + 4 * k;
    Value value;
    if (operand.uniform == 0 && is_fixed) value = constants.read(at, bytes, is_signed);
    for (int i = 0; operand.uniform == 0 && !is_fixed && !step.runs_once && i < kLanes; ++i) {
      const Value one = constants.read(at + index.lanes[i], bytes, is_signed);
      value.lanes[i] = one.lanes[i];
      value.known |= one.known & index.known & 1u << i;
    }
    store(step.d[k], value, mask);
  }
}

// Predicates as bits of a register, where b has ones.
void pack_predicates(const Prepared& step, uint32_t mask) {
  const auto& predicates = step.warp->registers.predicates;
  uint32_t known = kAllLanes;
  for (int k = 0; k < kTruePredicate; ++k)
    if (step.b->lanes[0] >> k & 1) known &= predicates[k].known;
  const auto make = [&](Lane x) {
    uint32_t bits = 0;
    for (int k = 0; k < kTruePredicate; ++k) bits |= predicates[k].at(x.index) << k;
    return (x.a & ~x.b) | (bits & x.b);
  };
  map_lanes(step, mask, make, known);
}
void unpack_predicates(const Prepared& step, uint32_t mask) {
  for (int k = 0; k < kTruePredicate; ++k) {
    if (!(step.b->lanes[0] >> k & 1)) continue;
    Truth truth{0, step.a->known & step.b->known};
    for (int i = 0; i < kLanes; ++i) truth.value |= (step.a->lanes[i] >> k & 1) << i;
    store(&step.warp->registers.predicates[k], truth, mask);
  }
}

// Products with zero move the constant that is added.
void move_constant(const Prepared& step, uint32_t mask) {
  const auto is_zero = [&](char letter) {
    const Operand& operand = *step.instruction->find(letter);
    return operand.kind == OperandKind::reg && operand.index == kZeroRegister;
  };
  if (!is_zero('a') || !is_zero('b')) return forget(step, mask);
  map_lanes(step, mask, [](Lane x) { return x.c; });
}

// Of an opcode that is not known: it may write to either kind of register.
void forget_register(const Prepared& step, uint32_t) {
  const auto index = field(step, 16, 8);
  Registers& registers = step.warp->registers;
  if (index != kZeroRegister) registers.lane[index].known = registers.uniform[index].known = 0;
}

}  // namespace

void evaluate(const Prepared& step, uint32_t mask) {
  static constexpr void (*by_opcode[])(const Prepared& step, uint32_t mask) = {
#define SASS_ROW(id, name, bits, operands, pipe, issue, latency, flow, source, evaluate, ...) \
  evaluate,
#define SASS_TWINS SASS_ROW
#include "clock/sass/sass.def"
#undef SASS_TWINS
#undef SASS_ROW
  };
  const auto opcode = static_cast<size_t>(step.instruction->row->opcode);
  by_opcode[opcode](step, step.runs_once ? kAllLanes : mask);
}

}  // namespace stitch::clock
