#include <type_traits>

#include "ptxsim/lanes/lanes_table.h"

namespace stitch::ptxsim {
inline namespace STITCH_LANES_ISA {
namespace {

constexpr auto kAnd = [](auto a, auto b) { return a & b; };
constexpr auto kOr = [](auto a, auto b) { return a | b; };
constexpr auto kXor = [](auto a, auto b) { return a ^ b; };
constexpr auto kNot = [](auto a) { return ~a; };
constexpr auto kLogicalNot = [](auto a) { return a == 0; };
template <class T>
constexpr uint32_t kWidth = sizeof(T) * 8;
// 16-bit values shift in 32 bits, as C++ would have it.
template <class T>
using Shifted = std::conditional_t<(sizeof(T) < 4),
                                   std::conditional_t<std::is_signed_v<T>, int32_t, uint32_t>, T>;
constexpr auto kShiftLeft = []<class T>(T a, uint32_t n) {
  const T shifted = static_cast<T>(Shifted<T>(a) << (n & (kWidth<T> - 1)));
  return n < kWidth<T> ? shifted : T{0};
};
constexpr auto kShiftRight = []<class T>(T a, uint32_t n) {
  const T shifted = static_cast<T>(a >> (n & (kWidth<T> - 1)));
  const T none = std::is_signed_v<T> && a < 0 ? static_cast<T>(-1) : T{0};
  return n < kWidth<T> ? shifted : none;
};
template <bool kLeft, bool kClamp>
constexpr auto kFunnel = [](uint32_t low, uint32_t high, uint32_t n) {
  const uint32_t most = n < 32 ? n : 32;
  const uint32_t by = kClamp ? most : n & 31;
  const uint64_t both = uint64_t{high} << 32 | low;
  return static_cast<uint32_t>(kLeft ? (both << by) >> 32 : both >> by);
};

constexpr auto kPopulationCount = [](auto a) { return __builtin_popcountll(a); };
constexpr auto kLeadingZeros = []<class T>(T a) {
  constexpr uint32_t kExtra = 64 - kWidth<T>;
  return a == 0 ? kWidth<T> : static_cast<uint32_t>(__builtin_clzll(a)) - kExtra;
};
template <bool kShiftAmount>
constexpr auto kFindMostSignificant = []<class T>(T a) {
  using Bits = std::make_unsigned_t<T>;
  const Bits bits = static_cast<Bits>(std::is_signed_v<T> && a < 0 ? ~a : a);
  if (bits == 0) return ~0u;
  const uint32_t position = 63 - static_cast<uint32_t>(__builtin_clzll(bits));
  return kShiftAmount ? kWidth<T> - 1 - position : position;
};
constexpr auto kReverse = []<class T>(T a) {
  uint64_t x = a;
  x = (x >> 1 & 0x5555555555555555u) | (x & 0x5555555555555555u) << 1;
  x = (x >> 2 & 0x3333333333333333u) | (x & 0x3333333333333333u) << 2;
  x = (x >> 4 & 0x0f0f0f0f0f0f0f0fu) | (x & 0x0f0f0f0f0f0f0f0fu) << 4;
  return static_cast<T>(__builtin_bswap64(x) >> (64 - kWidth<T>));
};

template <class T>
T low_bits(uint32_t count) {
  return count < kWidth<T> ? static_cast<T>((T{1} << count) - 1) : static_cast<T>(~T{0});
}
constexpr auto kExtractField = []<class T>(T a, uint32_t b, uint32_t c) {
  using Bits = std::make_unsigned_t<T>;
  const uint32_t position = b & 0xff;
  const uint32_t length = c & 0xff;
  const uint32_t end = position + length;
  const uint32_t top = end - 1 < kWidth<T> ? end - 1 : kWidth<T> - 1;
  const bool fill = std::is_signed_v<T> && length != 0 && (static_cast<Bits>(a) >> top & 1) != 0;
  const uint32_t here = position < kWidth<T> ? kWidth<T> - position : 0;
  const Bits kept = low_bits<Bits>(length < here ? length : here);
  const Bits shifted = position < kWidth<T> ? static_cast<Bits>(a) >> position : Bits{0};
  return static_cast<T>((shifted & kept) | (fill ? static_cast<Bits>(~kept) : Bits{0}));
};
constexpr auto kInsertField = []<class T>(T a, T b, uint32_t c, uint32_t d) {
  const uint32_t position = c & 0xff;
  if (position >= kWidth<T>) return b;
  const T field = static_cast<T>(low_bits<T>(d & 0xff) << position);
  return (b & ~field) | (static_cast<T>(a << position) & field);
};
template <bool kClamp>
constexpr auto kBitMask = [](uint32_t a, uint32_t b) {
  const uint32_t first = a & 31;
  const uint32_t end = first + (b & 31);
  const bool overflow = end >= 32 || (kClamp && (a >= 32 || b >= 32));
  const uint32_t from = kClamp && a >= 32 ? 0 : ~0u << first;
  return from & ~(overflow ? 0 : ~0u << (end & 31));
};
template <bool kClamp>
constexpr auto kExtend = []<class T>(T a, uint32_t b) {
  const uint32_t bits = static_cast<uint32_t>(a), count = b & 31;
  const bool whole = kClamp && b >= 32;
  const uint32_t beyond = whole ? 0 : ~0u << count;
  const bool fill = std::is_signed_v<T> && !whole && count != 0 && (bits >> ((count - 1) & 31) & 1);
  return (bits & ~beyond) | (fill ? beyond : 0);
};
constexpr auto kFindNthSet = [](uint32_t bits, uint32_t base, int32_t offset) {
  if (base > 31) return ~0u;
  if (offset == 0) return bits >> base & 1 ? base : ~0u;
  int64_t left = offset > 0 ? offset : -int64_t{offset};
  for (int at = static_cast<int>(base); at >= 0 && at < 32; at += offset > 0 ? 1 : -1)
    if ((bits >> at & 1) != 0 && --left == 0) return static_cast<uint32_t>(at);
  return ~0u;
};

uint32_t byte_of(uint64_t both, uint32_t index) { return both >> (index * 8) & 0xff; }

constexpr auto kPermute = [](uint32_t a, uint32_t b, uint32_t selectors) {
  const uint64_t both = uint64_t{b} << 32 | a;
  uint32_t d = 0;
  for (uint32_t k = 0; k < 4; ++k) {
    const uint32_t selector = selectors >> (k * 4);
    const uint32_t byte = byte_of(both, selector & 7);
    const uint32_t sign = byte & 0x80 ? 0xff : 0;
    d |= (selector & 8 ? sign : byte) << (k * 8);
  }
  return d;
};
// By the mode: which byte becomes byte k.
template <Word kMode>
uint32_t chosen_byte(uint32_t k, uint32_t control) {
  switch (kMode) {
    case Word::f4e:
      return control + k;
    case Word::b4e:
      return (control - k) & 7;
    case Word::rc8:
      return control;
    case Word::ecl:
      return control > k ? control : k;
    case Word::ecr:
      return control < k ? control : k;
    default:
      return (control & 1) * 2 + (k & 1);  // rc16
  }
}
template <Word kMode>
constexpr auto kPermuteBy = [](uint32_t a, uint32_t b, uint32_t control) {
  const uint64_t both = uint64_t{b} << 32 | a;
  uint32_t d = 0;
  for (uint32_t k = 0; k < 4; ++k)
    d |= byte_of(both, chosen_byte<kMode>(k, control & 3)) << (k * 8);
  return d;
};

// Any function of three bits: Instruction::immediate is its truth table.
void lookup_bits(Warp& warp, const Instruction& i, uint32_t mask) {
  const uint32_t* a = warp.lanes<const uint32_t>(i.operands[1]);
  const uint32_t* b = warp.lanes<const uint32_t>(i.operands[2]);
  const uint32_t* c = warp.lanes<const uint32_t>(i.operands[3]);
  uint32_t on[8];
  for (int k = 0; k < 8; ++k) on[k] = i.immediate >> k & 1 ? ~0u : 0;
  write<uint32_t>(warp, i.operands[0], mask, [&](int l) {
    const uint32_t x = a[l], y = b[l], z = c[l];
    const uint32_t without =
        (~y & ((~z & on[0]) | (z & on[1]))) | (y & ((~z & on[2]) | (z & on[3])));
    const uint32_t with = (~y & ((~z & on[4]) | (z & on[5]))) | (y & ((~z & on[6]) | (z & on[7])));
    return (~x & without) | (x & with);
  });
}

// On the predicates of all lanes at once.
template <auto kOp, size_t... K>
void map_predicates(Warp& warp, const Instruction& i, uint32_t mask) {
  warp.set_predicate(i.operands[0], mask, kOp(warp.predicate(i.operands[K + 1])...));
}

template <auto kOp>
Handler unary(const Query& q) {
  return each_of<kOp, Words, Self, Self>(q);
}
template <auto kOp>
Handler logical(const Query& q) {
  return q.type == Type::pred ? map_predicates<kOp, 0, 1>
                              : each_of<kOp, Words, Self, Self, Self>(q);
}
Handler invert(const Query& q) {
  return q.type == Type::pred ? map_predicates<kNot, 0> : unary<kNot>(q);
}
template <auto kOp>
Handler count(const Query& q) {
  return each_of<kOp, LargeIntegers, uint32_t, Self>(q);
}
Handler find_most_significant(const Query& q) {
  return q.modifiers.word == Word::shiftamt ? count<kFindMostSignificant<true>>(q)
                                            : count<kFindMostSignificant<false>>(q);
}
template <auto kOp>
constexpr Handler kOfThree = map_lanes<kOp, uint32_t, uint32_t, uint32_t, uint32_t>;
template <Word... kModes>
Handler permute(const Query& q) {
  Handler chosen = q.modifiers.word == Word::none ? kOfThree<kPermute> : nullptr;
  ((q.modifiers.word == kModes && (chosen = kOfThree<kPermuteBy<kModes>>)) || ...);
  return chosen;
}
// One of the words must be there.
template <Handler (*kClamped)(const Query&), Handler (*kWrapped)(const Query&)>
Handler clamp_or_wrap(const Query& q) {
  const Word word = q.modifiers.word;
  return word == Word::clamp ? kClamped(q) : word == Word::wrap ? kWrapped(q) : nullptr;
}
template <bool kClamp>
constexpr auto kExtendRow =
    each_of<kExtend<kClamp>, Types<uint32_t, int32_t>, uint32_t, Self, uint32_t>;
template <bool kClamp>
constexpr auto kBitMaskRow = only<map_lanes<kBitMask<kClamp>, uint32_t, uint32_t, uint32_t>>;
template <bool kLeft, bool kClamp>
constexpr auto kFunnelRow = only<kOfThree<kFunnel<kLeft, kClamp>>>;

constexpr Operation kOperations[] = {
    {Opcode::and_, logical<kAnd>},
    {Opcode::or_, logical<kOr>},
    {Opcode::xor_, logical<kXor>},
    {Opcode::not_, invert},
    {Opcode::cnot, unary<kLogicalNot>},
    {Opcode::lop3, only<lookup_bits>},
    {Opcode::shl, each_of<kShiftLeft, Words, Self, Self, uint32_t>},
    {Opcode::shr, each_of<kShiftRight, Integers, Self, Self, uint32_t>},
    {Opcode::shf_l, clamp_or_wrap<kFunnelRow<true, true>, kFunnelRow<true, false>>},
    {Opcode::shf_r, clamp_or_wrap<kFunnelRow<false, true>, kFunnelRow<false, false>>},
    {Opcode::prmt, permute<Word::f4e, Word::b4e, Word::rc8, Word::ecl, Word::ecr, Word::rc16>},
    {Opcode::popc, count<kPopulationCount>},
    {Opcode::clz, count<kLeadingZeros>},
    {Opcode::bfind, find_most_significant},
    {Opcode::brev, unary<kReverse>},
    {Opcode::bfe, each_of<kExtractField, LargeIntegers, Self, Self, uint32_t, uint32_t>},
    {Opcode::bfi,
     each_of<kInsertField, Types<uint32_t, uint64_t>, Self, Self, Self, uint32_t, uint32_t>},
    {Opcode::bmsk, clamp_or_wrap<kBitMaskRow<true>, kBitMaskRow<false>>},
    {Opcode::szext, clamp_or_wrap<kExtendRow<true>, kExtendRow<false>>},
    {Opcode::fns, only<map_lanes<kFindNthSet, uint32_t, uint32_t, uint32_t, int32_t>>},
};

}  // namespace

Handler find_bits(const Query& q) { return find_operation(kOperations, q); }

}  // namespace STITCH_LANES_ISA
}  // namespace stitch::ptxsim
