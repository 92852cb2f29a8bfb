#include <type_traits>

#include "ptxsim/lanes/lanes_loop.h"

namespace stitch::ptxsim {
inline namespace STITCH_LANES_ISA {
namespace {

struct And {
  template <class T>
  static T of(T a, T b) {
    return a & b;
  }
};
struct Or {
  template <class T>
  static T of(T a, T b) {
    return a | b;
  }
};
struct Xor {
  template <class T>
  static T of(T a, T b) {
    return a ^ b;
  }
};
struct Not {
  template <class T>
  static T of(T a) {
    return static_cast<T>(~a);
  }
};
struct LogicalNot {
  template <class T>
  static T of(T a) {
    return a == 0;
  }
};
template <class T>
constexpr uint32_t kWidth = sizeof(T) * 8;
// 16-bit values shift in 32 bits, as C++ would have it.
template <class T>
using Shifted = std::conditional_t<(sizeof(T) < 4),
                                   std::conditional_t<std::is_signed_v<T>, int32_t, uint32_t>, T>;
struct ShiftLeft {
  template <class T>
  static T of(T a, uint32_t n) {
    const T shifted = static_cast<T>(Shifted<T>(a) << (n & (kWidth<T> - 1)));
    return n < kWidth<T> ? shifted : T{0};
  }
};
struct ShiftRight {
  template <class T>
  static T of(T a, uint32_t n) {
    const T shifted = static_cast<T>(a >> (n & (kWidth<T> - 1)));
    const T none = std::is_signed_v<T> && a < 0 ? static_cast<T>(-1) : T{0};
    return n < kWidth<T> ? shifted : none;
  }
};
template <bool kLeft, bool kClamp>
struct Funnel {
  static uint32_t of(uint32_t low, uint32_t high, uint32_t n) {
    const uint32_t most = n < 32 ? n : 32;
    const uint32_t by = kClamp ? most : n & 31;
    const uint64_t both = uint64_t{high} << 32 | low;
    return static_cast<uint32_t>(kLeft ? (both << by) >> 32 : both >> by);
  }
};

struct PopulationCount {
  template <class T>
  static uint32_t of(T a) {
    return static_cast<uint32_t>(__builtin_popcountll(a));
  }
};
struct LeadingZeros {
  template <class T>
  static uint32_t of(T a) {
    constexpr uint32_t kExtra = 64 - kWidth<T>;
    return a == 0 ? kWidth<T> : static_cast<uint32_t>(__builtin_clzll(a)) - kExtra;
  }
};
template <bool kShiftAmount>
struct FindMostSignificant {
  template <class T>
  static uint32_t of(T a) {
    using Bits = std::make_unsigned_t<T>;
    const Bits bits = static_cast<Bits>(std::is_signed_v<T> && a < 0 ? ~a : a);
    if (bits == 0) return ~0u;
    const uint32_t position = 63 - static_cast<uint32_t>(__builtin_clzll(bits));
    return kShiftAmount ? kWidth<T> - 1 - position : position;
  }
};
struct Reverse {
  template <class T>
  static T of(T a) {
    uint64_t x = a;
    x = (x >> 1 & 0x5555555555555555u) | (x & 0x5555555555555555u) << 1;
    x = (x >> 2 & 0x3333333333333333u) | (x & 0x3333333333333333u) << 2;
    x = (x >> 4 & 0x0f0f0f0f0f0f0f0fu) | (x & 0x0f0f0f0f0f0f0f0fu) << 4;
    return static_cast<T>(__builtin_bswap64(x) >> (64 - kWidth<T>));
  }
};

template <class T>
T low_bits(uint32_t count) {
  return count < kWidth<T> ? static_cast<T>((T{1} << count) - 1) : static_cast<T>(~T{0});
}
struct ExtractField {
  template <class T>
  static T of(T a, uint32_t b, uint32_t c) {
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
  }
};
struct InsertField {
  template <class T>
  static T of(T a, T b, uint32_t c, uint32_t d) {
    const uint32_t position = c & 0xff;
    if (position >= kWidth<T>) return b;
    const T field = static_cast<T>(low_bits<T>(d & 0xff) << position);
    return (b & ~field) | (static_cast<T>(a << position) & field);
  }
};
template <bool kClamp>
struct BitMask {
  static uint32_t of(uint32_t a, uint32_t b) {
    const uint32_t first = a & 31;
    const uint32_t end = first + (b & 31);
    const bool overflow = end >= 32 || (kClamp && (a >= 32 || b >= 32));
    const uint32_t from = kClamp && a >= 32 ? 0 : ~0u << first;
    return from & ~(overflow ? 0 : ~0u << (end & 31));
  }
};
template <class T, bool kClamp>
struct Extend {
  static uint32_t of(uint32_t a, uint32_t b) {
    const uint32_t count = b & 31;
    const bool whole = kClamp && b >= 32;
    const uint32_t beyond = whole ? 0 : ~0u << count;
    const bool fill = std::is_signed_v<T> && !whole && count != 0 && (a >> ((count - 1) & 31) & 1);
    return (a & ~beyond) | (fill ? beyond : 0);
  }
};
struct FindNthSet {
  static uint32_t of(uint32_t bits, uint32_t base, int32_t offset) {
    if (base > 31) return ~0u;
    if (offset == 0) return bits >> base & 1 ? base : ~0u;
    int64_t left = offset > 0 ? offset : -int64_t{offset};
    for (int at = static_cast<int>(base); at >= 0 && at < 32; at += offset > 0 ? 1 : -1)
      if ((bits >> at & 1) != 0 && --left == 0) return static_cast<uint32_t>(at);
    return ~0u;
  }
};

uint32_t byte_of(uint64_t both, uint32_t index) { return both >> (index * 8) & 0xff; }

struct Permute {
  static uint32_t of(uint32_t a, uint32_t b, uint32_t selectors) {
    const uint64_t both = uint64_t{b} << 32 | a;
    uint32_t d = 0;
    for (uint32_t k = 0; k < 4; ++k) {
      const uint32_t selector = selectors >> (k * 4);
      const uint32_t byte = byte_of(both, selector & 7);
      const uint32_t sign = byte & 0x80 ? 0xff : 0;
      d |= (selector & 8 ? sign : byte) << (k * 8);
    }
    return d;
  }
};
template <Word kMode>
struct PermuteBy {
  static uint32_t index(uint32_t k, uint32_t control) {
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
  static uint32_t of(uint32_t a, uint32_t b, uint32_t c) {
    const uint64_t both = uint64_t{b} << 32 | a;
    uint32_t d = 0;
    for (uint32_t k = 0; k < 4; ++k) d |= byte_of(both, index(k, c & 3)) << (k * 8);
    return d;
  }
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

template <class Op>
void predicates(Warp& warp, const Instruction& i, uint32_t mask) {
  write_predicate(warp, i.operands[0], mask,
                  Op::of(warp.predicate(i.operands[1]), warp.predicate(i.operands[2])));
}
void not_predicate(Warp& warp, const Instruction& i, uint32_t mask) {
  write_predicate(warp, i.operands[0], mask, ~warp.predicate(i.operands[1]));
}

template <class Op>
Handler logical(Type type) {
  if (type == Type::pred) return predicates<Op>;
  return choose<uint16_t, uint32_t, uint64_t>(type, []<class T> { return map_lanes<Op, T, T, T>; });
}
template <class Op>
Handler unary(Type type) {
  return choose<uint16_t, uint32_t, uint64_t>(type, []<class T> { return map_lanes<Op, T, T>; });
}
template <class Op>
Handler shift(Type type) {
  return choose<uint16_t, uint32_t, uint64_t, int16_t, int32_t, int64_t>(
      type, []<class T> { return map_lanes<Op, T, T, uint32_t>; });
}
template <class Make>
Handler choose_large(Type type, Make make) {
  return choose<uint32_t, uint64_t, int32_t, int64_t>(type, make);
}
template <class Op>
Handler count(Type type) {
  return choose_large(type, []<class T> { return map_lanes<Op, uint32_t, T>; });
}
Handler extract(Type type) {
  return choose_large(type,
                      []<class T> { return map_lanes<ExtractField, T, T, uint32_t, uint32_t>; });
}
template <class Op>
constexpr Handler kOfThree = map_lanes<Op, uint32_t, uint32_t, uint32_t, uint32_t>;
template <class Op>
constexpr Handler kOfTwo = map_lanes<Op, uint32_t, uint32_t, uint32_t>;

Handler insert(Type type) {
  if (type == Type::b32)
    return map_lanes<InsertField, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t>;
  return map_lanes<InsertField, uint64_t, uint64_t, uint64_t, uint32_t, uint32_t>;
}
Handler permute(Word mode) {
  switch (mode) {
    case Word::none:
      return kOfThree<Permute>;
    case Word::f4e:
      return kOfThree<PermuteBy<Word::f4e>>;
    case Word::b4e:
      return kOfThree<PermuteBy<Word::b4e>>;
    case Word::rc8:
      return kOfThree<PermuteBy<Word::rc8>>;
    case Word::ecl:
      return kOfThree<PermuteBy<Word::ecl>>;
    case Word::ecr:
      return kOfThree<PermuteBy<Word::ecr>>;
    case Word::rc16:
      return kOfThree<PermuteBy<Word::rc16>>;
    default:
      return nullptr;
  }
}
Handler extend(Type type, bool clamp) {
  if (type == Type::s32)
    return clamp ? kOfTwo<Extend<int32_t, true>> : kOfTwo<Extend<int32_t, false>>;
  return clamp ? kOfTwo<Extend<uint32_t, true>> : kOfTwo<Extend<uint32_t, false>>;
}

}  // namespace

Handler find_bits(const Query& q) {
  const bool clamp = q.modifiers.word == Word::clamp;
  const bool chosen = clamp || q.modifiers.word == Word::wrap;
  switch (q.opcode) {
    case Opcode::and_:
      return logical<And>(q.type);
    case Opcode::or_:
      return logical<Or>(q.type);
    case Opcode::xor_:
      return logical<Xor>(q.type);
    case Opcode::not_:
      return q.type == Type::pred ? not_predicate : unary<Not>(q.type);
    case Opcode::cnot:
      return unary<LogicalNot>(q.type);
    case Opcode::lop3:
      return lookup_bits;
    case Opcode::shl:
      return shift<ShiftLeft>(q.type);
    case Opcode::shr:
      return shift<ShiftRight>(q.type);
    case Opcode::shf_l:
      return !chosen ? nullptr
             : clamp ? kOfThree<Funnel<true, true>>
                     : kOfThree<Funnel<true, false>>;
    case Opcode::shf_r:
      return !chosen ? nullptr
             : clamp ? kOfThree<Funnel<false, true>>
                     : kOfThree<Funnel<false, false>>;
    case Opcode::prmt:
      return permute(q.modifiers.word);
    case Opcode::popc:
      return count<PopulationCount>(q.type);
    case Opcode::clz:
      return count<LeadingZeros>(q.type);
    case Opcode::bfind:
      return q.modifiers.word == Word::shiftamt ? count<FindMostSignificant<true>>(q.type)
                                                : count<FindMostSignificant<false>>(q.type);
    case Opcode::brev:
      return unary<Reverse>(q.type);
    case Opcode::bfe:
      return extract(q.type);
    case Opcode::bfi:
      return insert(q.type);
    case Opcode::bmsk:
      return !chosen ? nullptr : clamp ? kOfTwo<BitMask<true>> : kOfTwo<BitMask<false>>;
    case Opcode::szext:
      return chosen ? extend(q.type, clamp) : nullptr;
    case Opcode::fns:
      return map_lanes<FindNthSet, uint32_t, uint32_t, uint32_t, int32_t>;
    default:
      return nullptr;
  }
}

}  // namespace STITCH_LANES_ISA
}  // namespace stitch::ptxsim
