// Integer arithmetic, bits, comparisons and predicates, and what lanes tell each other.
#include <algorithm>
#include <bit>

#include "clock/walk/lanes.h"

namespace stitch::clock {

namespace {

// What an extended addition carries in.
Truth carry_in(const Prepared& step, const Truth* truth, bool negated) {
  const bool extended = field(step, 74, 1);
  return extended && truth ? read_truth(truth, negated) : Truth{0, kAllLanes};
}
Truth carry_in(const Prepared& step) { return carry_in(step, step.p, step.negates_p); }

// IADD3 and its twins: an extended one takes complements and carries in.
void add_three(const Prepared& step, uint32_t mask) {
  const bool extended = field(step, 74, 1);
  const Truth p = carry_in(step), q = carry_in(step, step.q, step.negates_q);
  const auto term = [&](uint32_t x, bool negated) {
    return !negated ? uint64_t{x} : uint64_t{~x} + (extended ? 0 : 1);
  };
  Truth carry{0, step.a->known & step.b->known & step.c->known & p.known & q.known};
  Truth second = carry;
  map_lanes(step, mask, [&](uint32_t a, uint32_t b, uint32_t c, int i) {
    const uint64_t sum = term(a, step.negates_a) + term(b, step.negates_b) +
                         term(c, step.negates_c) + (p.value >> i & 1) + (q.value >> i & 1);
    carry.value |= static_cast<uint32_t>((sum >> 32) > 0) << i;
    second.value |= static_cast<uint32_t>((sum >> 32) > 1) << i;
    return static_cast<uint32_t>(sum);
  });
  if (step.d) step.d->known &= ~mask | carry.known;
  store(step.P, carry, mask);
  store(step.Q, second, mask);
}

uint64_t multiply(const Prepared& step, uint32_t a, uint32_t b) {
  const bool is_signed = field(step, 73, 1);
  const uint64_t product =
      is_signed ? static_cast<uint64_t>(int64_t{static_cast<int32_t>(a)} * static_cast<int32_t>(b))
                : uint64_t{a} * b;
  return step.negates_a != step.negates_b ? -product : product;
}

void multiply_add(const Prepared& step, uint32_t mask) {
  const bool extended = field(step, 74, 1);
  const Truth p = carry_in(step);
  map_lanes(step, mask, [&](uint32_t a, uint32_t b, uint32_t c, int i) {
    const uint32_t term = step.negates_c ? (extended ? ~c : -c) : c;
    return static_cast<uint32_t>(multiply(step, a, b)) + term + (p.value >> i & 1);
  });
  if (step.d) step.d->known &= ~mask | p.known;
}

// 64 bits of a product and a pair; `high`: the upper half alone.
template <bool high>
void multiply_wide(const Prepared& step, uint32_t mask) {
  if (!step.d) return;
  const Truth p = carry_in(step);
  Value lower, upper;
  Truth carry;
  lower.known = upper.known = carry.known =
      step.a->known & step.b->known & step.c->known & step.c_high->known & p.known;
  for (int i = 0; i < kLanes && lower.known; ++i) {
    const uint64_t product = multiply(step, step.a->lanes[i], step.b->lanes[i]);
    const uint64_t sum =
        product + step.c->lanes[i] + (uint64_t{step.c_high->lanes[i]} << 32) + (p.value >> i & 1);
    lower.lanes[i] = static_cast<uint32_t>(sum);
    upper.lanes[i] = static_cast<uint32_t>(sum >> 32);
    carry.value |= static_cast<uint32_t>(sum < product) << i;
  }
  store(*step.d, high ? upper : lower, mask);
  if (!high) store(*(step.d + 1), upper, mask);
  store(step.P, carry, mask);
}

void scale_add(const Prepared& step, uint32_t mask) {  // LEA
  const auto shift = static_cast<int>(field(step, 75, 5));
  const bool takes_high = field(step, 80, 1), extends_sign = field(step, 73, 1);
  const bool extended = field(step, 74, 1);
  const Truth p = carry_in(step);
  Truth carry{0, step.a->known & step.b->known & step.c->known & p.known};
  map_lanes(step, mask, [&](uint32_t a, uint32_t b, uint32_t c, int i) {
    const uint32_t upper = extends_sign ? static_cast<uint32_t>(static_cast<int32_t>(a) >> 31) : c;
    uint64_t whole = uint64_t{upper} << 32 | a;
    if (step.negates_a) whole = -whole;
    const auto scaled = static_cast<uint32_t>(whole << shift >> (takes_high ? 32 : 0));
    const uint32_t other = step.negates_b ? (extended ? ~b : -b) : b;
    const uint64_t sum = uint64_t{scaled} + other + (p.value >> i & 1);
    carry.value |= static_cast<uint32_t>(sum >> 32 != 0) << i;
    return static_cast<uint32_t>(sum);
  });
  if (step.d) step.d->known &= ~mask | carry.known;
  store(step.P, carry, mask);
}

void shift_funnel(const Prepared& step, uint32_t mask) {  // SHF
  const auto type = field(step, 73, 2);                   // s64 u64 s32 u32
  const bool right = field(step, 76, 1), takes_high = field(step, 80, 1);
  const bool is_wide = type < 2, is_signed = type % 2 == 0, wraps = field(step, 75, 1);
  map_lanes(step, mask, [&](uint32_t a, uint32_t b, uint32_t c, int) {
    const uint32_t most = is_wide ? 63 : 32;
    const uint32_t count = wraps ? b & (is_wide ? 63 : 31) : std::min(b, most);
    const uint64_t whole = uint64_t{c} << 32 | a;
    const uint64_t moved = !right      ? whole << count
                           : is_signed ? static_cast<uint64_t>(static_cast<int64_t>(whole) >> count)
                                       : whole >> count;
    return static_cast<uint32_t>(takes_high ? moved >> 32 : moved);
  });
}

void combine_bits(const Prepared& step, uint32_t mask) {  // LOP3
  const auto table = static_cast<uint32_t>(field(step, 72, 8));
  Truth nonzero{0, step.a->known & step.b->known & step.c->known};
  map_lanes(step, mask, [&](uint32_t a, uint32_t b, uint32_t c, int i) {
    uint32_t bits = 0;
    for (int k = 0; k < 8; ++k)
      if (table >> k & 1) bits |= (k & 4 ? a : ~a) & (k & 2 ? b : ~b) & (k & 1 ? c : ~c);
    nonzero.value |= static_cast<uint32_t>(bits != 0) << i;
    return bits;
  });
  const Truth p = read_p(step);
  const bool is_and = field(step, 80, 1);
  store(step.P, is_and ? both(nonzero, p) : either(nonzero, p), mask);
}

// Bits 74 and 75: how a comparison is joined with a predicate.
Truth join(const Prepared& step, Truth found) {
  const Truth p = read_p(step);
  const auto how = field(step, 74, 2);
  return how == 0 ? both(found, p) : how == 1 ? either(found, p) : differ(found, p);
}

// Signed numbers are in the order of unsigned ones once their sign bits are flipped.
uint32_t sign_flip(const Prepared& step) { return field(step, 73, 1) ? 0x80000000u : 0; }

void compare(const Prepared& step, uint32_t mask) {  // ISETP
  const auto order = field(step, 76, 3);             // false lt eq le gt ne ge true
  const bool extended = field(step, 72, 1);
  const uint32_t flip = sign_flip(step);
  const Truth low = extended ? read_truth(step.r, step.negates_r) : Truth{0, kAllLanes};
  Truth found{0, step.a->known & step.b->known & low.known};
  for (int i = 0; i < kLanes; ++i) {
    const uint32_t a = step.a->lanes[i] ^ flip, b = step.b->lanes[i] ^ flip;
    const bool below = low.value >> i & 1;  // what the lower halves said
    const bool is_less = a < b, is_equal = a == b;
    const bool holds = is_equal && extended ? below
                       : is_less            ? order & 1
                       : is_equal           ? order >> 1 & 1
                                            : order >> 2 & 1;
    found.value |= static_cast<uint32_t>(holds) << i;
  }
  store(step.P, join(step, found), mask);
  store(step.Q, join(step, negate(found)), mask);
}

void choose(const Prepared& step, uint32_t mask) {  // SEL
  if (!step.d) return;
  const Truth p = read_p(step);
  Value result;
  for (int i = 0; i < kLanes; ++i)
    result.lanes[i] = p.value >> i & 1 ? step.a->lanes[i] : step.b->lanes[i];
  result.known = p.known & ((p.value & step.a->known) | (~p.value & step.b->known));
  store(*step.d, result, mask);
}

void pick_bytes(const Prepared& step, uint32_t mask) {  // PRMT
  map_lanes(step, mask, [&](uint32_t a, uint32_t b, uint32_t c, int) {
    const uint64_t whole = uint64_t{c} << 32 | a;
    uint32_t result = 0;
    for (int k = 0; k < 4; ++k) {
      const uint32_t selector = b >> 4 * k & 0xf;
      uint32_t byte = whole >> 8 * (selector & 7) & 0xff;
      if (selector & 8) byte = byte & 0x80 ? 0xff : 0;
      result |= byte << 8 * k;
    }
    return result;
  });
}

// The smaller or larger, by predicate, of a and b or of their sum and c.
template <bool of_sum>
void take_extreme(const Prepared& step, uint32_t mask) {
  const Truth p = read_p(step);
  const uint32_t flip = sign_flip(step);
  map_lanes(step, mask, [&](uint32_t a, uint32_t b, uint32_t c, int i) {
    const uint32_t first = of_sum ? a + (step.negates_b ? -b : b) : a, second = of_sum ? c : b;
    const bool takes_smaller = p.value >> i & 1;
    return ((first ^ flip) < (second ^ flip)) == takes_smaller ? first : second;
  });
  if (step.d) step.d->known &= ~mask | p.known;
}

// One of two tables over three truths: possible values decide what is known.
Truth look_up(uint32_t table, const std::array<Truth, 3>& truths) {
  uint32_t may_be_true = 0, may_be_false = 0;
  for (int k = 0; k < 8; ++k) {
    uint32_t possible = kAllLanes;
    for (int j = 0; j < 3; ++j) {
      const Truth& truth = truths[j];
      const bool wanted = k >> (2 - j) & 1;
      possible &= ~truth.known | (wanted ? truth.value : ~truth.value);
    }
    (table >> k & 1 ? may_be_true : may_be_false) |= possible;
  }
  return {may_be_true, ~(may_be_true & may_be_false)};
}

void combine_truths(const Prepared& step, uint32_t mask) {  // PLOP3
  const std::array<Truth, 3> truths = {read_p(step), read_truth(step.q, step.negates_q),
                                       read_truth(step.r, step.negates_r)};
  const auto first = static_cast<uint32_t>(field(step, 64, 3) | field(step, 72, 5) << 3);
  store(step.P, look_up(first, truths), mask);
  store(step.Q, look_up(static_cast<uint32_t>(field(step, 16, 8)), truths), mask);
}

void exchange(const Prepared& step, uint32_t mask) {  // SHFL
  enum { kIndex, kUp, kDown, kButterfly };
  if (!step.d) return;
  Value result;
  Truth is_inside{0, step.b->known & step.c->known};
  for (int i = 0; i < kLanes; ++i) {
    const int segment = step.c->lanes[i] >> 8 & 31, clamp = step.c->lanes[i] & 31;
    const int offset = step.b->lanes[i] & 31, lowest = i & segment;
    const int highest = lowest | (clamp & ~segment);
    const auto how = field(step, 58, 2);
    const int from = how == kIndex  ? lowest | (offset & ~segment)
                     : how == kUp   ? i - offset
                     : how == kDown ? i + offset
                                    : i ^ offset;
    const bool inside = how == kUp ? from >= highest : from <= highest;
    const int lane = inside ? from & 31 : i;
    result.lanes[i] = step.a->lanes[lane];
    result.known |= (step.a->known >> lane & is_inside.known >> i & 1u) << i;
    is_inside.value |= static_cast<uint32_t>(inside) << i;
  }
  store(*step.d, result, mask);
  store(step.P, is_inside, mask);
}

void take_vote(const Prepared& step, uint32_t mask) {
  enum { kAll, kAny, kEqual };
  const Truth p = read_p(step);
  const uint32_t ballot = p.value & mask;
  const bool is_known = (p.known & mask) == mask;
  const auto how = field(step, 72, 2);
  const bool holds = how == kAny   ? ballot != 0
                     : how == kAll ? ballot == mask
                                   : ballot == 0 || ballot == mask;
  Value result = Value::of(ballot);
  result.known = is_known ? kAllLanes : 0;
  if (step.d) store(*step.d, result, kAllLanes);
  store(step.P, {holds ? kAllLanes : 0, result.known}, mask);
}

void take_first_lane(const Prepared& step, uint32_t mask) {  // R2UR
  const int lane = std::countr_zero(mask | 0x80000000u);
  Value result = Value::of(step.a->lanes[lane]);
  result.known = step.a->known >> lane & 1 ? kAllLanes : 0;
  if (step.d) *step.d = result;
}

// Of b alone.
template <uint32_t (*make)(uint32_t)>
void map_b(const Prepared& step, uint32_t mask) {
  map_lanes(step, mask, [](uint32_t, uint32_t b, uint32_t, int) { return make(b); });
}
uint32_t move(uint32_t b) { return b; }
uint32_t take_absolute(uint32_t b) { return static_cast<int32_t>(b) < 0 ? -b : b; }
uint32_t count_ones(uint32_t b) { return static_cast<uint32_t>(std::popcount(b)); }

void add_two(const Prepared& step, uint32_t mask) {  // VIADD
  map_lanes(step, mask, [&](uint32_t a, uint32_t b, uint32_t, int) {
    return (step.negates_a ? -a : a) + (step.negates_b ? -b : b);
  });
}

void extend_sign(const Prepared& step, uint32_t mask) {  // SGXT
  const bool is_signed = field(step, 73, 1);
  map_lanes(step, mask, [&](uint32_t a, uint32_t b, uint32_t, int) {
    const uint32_t unused = 32 - std::min(b, 32u);
    if (unused > 31) return 0u;
    const uint32_t moved = a << unused;
    return is_signed ? static_cast<uint32_t>(static_cast<int32_t>(moved) >> unused)
                     : moved >> unused;
  });
}

using Evaluate = void (*)(const Prepared& step, uint32_t mask);
struct Operation {
  Evaluate evaluate;
  Opcode opcode;
  Opcode twin = opcode;  // does the same, most of them in the uniform datapath
};
constexpr Operation kOperations[] = {
    {add_three, Opcode::iadd3, Opcode::uiadd3},
    {multiply_add, Opcode::imad, Opcode::uimad},
    {multiply_wide<false>, Opcode::imad_wide, Opcode::uimad_wide},
    {multiply_wide<true>, Opcode::imad_hi},
    {scale_add, Opcode::lea, Opcode::ulea},
    {shift_funnel, Opcode::shf, Opcode::ushf},
    {combine_bits, Opcode::lop3, Opcode::ulop3},
    {compare, Opcode::isetp, Opcode::uisetp},
    {choose, Opcode::sel, Opcode::usel},
    {pick_bytes, Opcode::prmt, Opcode::uprmt},
    {take_extreme<false>, Opcode::imnmx, Opcode::vimnmx},
    {take_extreme<true>, Opcode::viaddmnmx},
    {map_b<move>, Opcode::mov, Opcode::umov},
    {map_b<take_absolute>, Opcode::iabs},
    {map_b<count_ones>, Opcode::popc, Opcode::upopc},
    {add_two, Opcode::viadd},
    {extend_sign, Opcode::sgxt},
    {exchange, Opcode::shfl},
    {take_vote, Opcode::vote, Opcode::voteu},
    {take_first_lane, Opcode::r2ur, Opcode::r2ur_ampere},
    {combine_truths, Opcode::plop3, Opcode::uplop3},
};

using ByOpcode = std::array<Evaluate, static_cast<size_t>(Opcode::count)>;
ByOpcode index_operations() {
  ByOpcode found = {};
  for (const auto& [evaluate, opcode, twin] : kOperations)
    found[static_cast<size_t>(opcode)] = found[static_cast<size_t>(twin)] = evaluate;
  return found;
}

}  // namespace

bool evaluate_integer(const Prepared& step, uint32_t mask) {
  static const ByOpcode by_opcode = index_operations();
  const Evaluate evaluate = by_opcode[static_cast<size_t>(step.instruction->row->opcode)];
  if (evaluate) evaluate(step, mask);
  return evaluate != nullptr;
}

}  // namespace stitch::clock
