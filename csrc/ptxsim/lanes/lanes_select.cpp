#include <type_traits>

#include "ptxsim/lanes/lanes_half.h"
#include "ptxsim/memory/memory.h"

namespace stitch::ptxsim {
inline namespace STITCH_LANES_ISA {
namespace {

// Lanes where two operands compare; of 16-bit pairs the lower elements, then the upper ones.
struct PairBits {
  uint32_t low;
  uint32_t high;
};

// Compare as the signed or unsigned type; the words of unordered comparison are true for NaN.
template <Compare kCompare, class T>
[[gnu::always_inline]] inline bool holds(T a, T b) {
  switch (kCompare) {
    case Compare::eq:
      return a == b;
    case Compare::ne:
      return a < b || a > b;
    case Compare::lt:
      return a < b;
    case Compare::le:
      return a <= b;
    case Compare::gt:
      return a > b;
    case Compare::ge:
      return a >= b;
    case Compare::equ:
      return !(a < b || a > b);
    case Compare::neu:
      return a != b;
    case Compare::ltu:
      return !(a >= b);
    case Compare::leu:
      return !(a > b);
    case Compare::gtu:
      return !(a <= b);
    case Compare::geu:
      return !(a < b);
    case Compare::num:
      return a == a && b == b;
    default:
      return a != a || b != b;  // nan
  }
}

// How one type is compared.
template <class T, bool kFlush>
struct Compared {
  static constexpr bool kIsFloat = std::is_floating_point_v<T>;
  template <Compare kCompare>
  [[gnu::always_inline]] static uint32_t compare_rows(const T* a, const T* b) {
    return gather<std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>>([&](int l) {
      if constexpr (kFlush) return holds<kCompare>(flush<true>(a[l]), flush<true>(b[l]));
      return holds<kCompare>(a[l], b[l]);
    });
  }
  template <Compare kCompare>
  static PairBits bits(Warp& warp, uint32_t a, uint32_t b) {
    return {compare_rows<kCompare>(warp.lanes<const T>(a), warp.lanes<const T>(b)), 0};
  }
};
template <class T, bool kFlush>
struct ComparedHalves {
  static constexpr bool kIsFloat = true;
  template <Compare kCompare>
  static PairBits bits(Warp& warp, uint32_t a, uint32_t b) {
    constexpr int kCount = HalfRow<T>::kCount;
    float x[kCount], y[kCount];
    load_halves<T, kFlush>(x, warp, a);
    load_halves<T, kFlush>(y, warp, b);
    if constexpr (kCount == kLanes)
      return {Compared<float, false>::compare_rows<kCompare>(x, y), 0};
    PairBits bits = {0, 0};
    for (int l = 0; l < kLanes; ++l) {
      bits.low |= uint32_t{holds<kCompare>(x[2 * l], y[2 * l])} << l;
      bits.high |= uint32_t{holds<kCompare>(x[2 * l + 1], y[2 * l + 1])} << l;
    }
    return bits;
  }
};

uint32_t combine(Word word, uint32_t bits, uint32_t with) {
  switch (word) {
    case Word::and_:
      return bits & with;
    case Word::or_:
      return bits | with;
    case Word::xor_:
      return bits ^ with;
    default:
      return bits;
  }
}
uint32_t combined_with(Warp& warp, const Instruction& i, int operand) {
  return i.modifiers.word == Word::none ? 0 : warp.predicate(i.operands[operand]);
}

// Operands: p, q (the opposite of p; of pairs the upper element), a, b, the predicate to combine.
template <class Kind, Compare kCompare, bool kPairs>
void set_predicate(Warp& warp, const Instruction& i, uint32_t mask) {
  const PairBits bits = Kind::template bits<kCompare>(warp, i.operands[2], i.operands[3]);
  const uint32_t with = combined_with(warp, i, 4);
  const uint32_t other = kPairs ? bits.high : ~bits.low;
  warp.set_predicate(i.operands[0], mask, combine(i.modifiers.word, bits.low, with));
  warp.set_predicate(i.operands[1], mask, combine(i.modifiers.word, other, with));
}

struct Comparison {
  Handler setp = nullptr;
  PairBits (*bits)(Warp& warp, uint32_t a, uint32_t b) = nullptr;
};
constexpr bool is_unsigned(Compare compare) {
  return compare >= Compare::lo && compare <= Compare::hs;
}
// Integers have eq to ge, floats also equ to nan.
template <class Kind, Compare kCompare, bool kPairs>
constexpr Comparison make_comparison() {
  if constexpr (kCompare == Compare::none || is_unsigned(kCompare) ||
                (kCompare > Compare::hs && !Kind::kIsFloat))
    return {};
  else
    return {set_predicate<Kind, kCompare, kPairs>, Kind::template bits<kCompare>};
}
template <class Kind, bool kPairs = false>
Comparison comparison_of(Compare compare) {
  static constexpr auto kByWord = []<size_t... K>(std::index_sequence<K...>) {
    return std::array{make_comparison<Kind, Compare(K), kPairs>()...};
  }(std::make_index_sequence<size_t(Compare::nan) + 1>{});
  return kByWord[static_cast<size_t>(compare)];
}

Comparison find_comparison(Type type, const Modifiers& m) {
  Compare compare = m.compare;
  if (is_unsigned(compare)) {
    if (type < Type::u16 || type > Type::u64) return {};
    compare = static_cast<Compare>(int(compare) - int(Compare::lo) + int(Compare::lt));
  }
  const bool is_bits = type >= Type::b16 && type <= Type::b64;
  if (is_bits && compare > Compare::ne) return {};
  if (m.ftz) {
    if (type == Type::f32) return comparison_of<Compared<float, true>>(compare);
    return choose(Types<Half, Pair<Half>>{}, type, [&]<class T> {
      return comparison_of<ComparedHalves<T, true>, HalfRow<T>::kCount != kLanes>(compare);
    });
  }
  const Comparison found = choose(Halves{}, type, [&]<class T> {
    return comparison_of<ComparedHalves<T, false>, HalfRow<T>::kCount != kLanes>(compare);
  });
  if (found.bits) return found;
  using Scalars = Types<uint16_t, uint32_t, uint64_t, int16_t, int32_t, int64_t, float, double>;
  return choose(Scalars{}, type,
                [&]<class T> { return comparison_of<Compared<T, false>>(compare); });
}

// The same into a register: all ones or 1.0 where it holds.
uint32_t true_bits(Type type) {
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
      return 0xffffffffu;
  }
}
PairBits compared(Warp& warp, const Instruction& i) {
  const Word word = i.modifiers.word;
  const uint32_t with = combined_with(warp, i, 3);
  const Comparison comparison = find_comparison(i.source_type, i.modifiers);
  const PairBits bits = comparison.bits(warp, i.operands[1], i.operands[2]);
  return {combine(word, bits.low, with), combine(word, bits.high, with)};
}
template <class D>
void set_lanes(Warp& warp, const Instruction& i, uint32_t mask) {
  const uint32_t set = compared(warp, i).low;
  const D holds = static_cast<D>(true_bits(i.type));
  write<D>(warp, i.operands[0], mask, [&](int l) { return set >> l & 1 ? holds : D{0}; });
}
void set_pairs(Warp& warp, const Instruction& i, uint32_t mask) {
  const PairBits set = compared(warp, i);
  const uint32_t holds = true_bits(i.type) & 0xffff;
  write<uint32_t>(warp, i.operands[0], mask, [&](int l) {
    return (set.low >> l & 1 ? holds : 0) | (set.high >> l & 1 ? holds << 16 : 0);
  });
}
Handler find_set(const Query& q) {
  if (find_comparison(q.source, q.modifiers).bits == nullptr) return nullptr;
  const bool is_word = q.type == Type::u32 || q.type == Type::s32;
  if (q.source == Type::f16x2 || q.source == Type::bf16x2)
    return is_word || q.type == q.source ? set_pairs : nullptr;
  if (is_word || q.type == Type::f32) return set_lanes<uint32_t>;
  const auto of = []<class>() -> Handler { return set_lanes<uint16_t>; };
  return choose(Types<uint16_t, int16_t, Half, BFloat>{}, q.type, of);
}
Handler find_setp(const Query& q) { return find_comparison(q.type, q.modifiers).setp; }

template <class T>
void select_lanes(Warp& warp, const Instruction& i, uint32_t mask) {
  const T* a = warp.lanes<const T>(i.operands[1]);
  const T* b = warp.lanes<const T>(i.operands[2]);
  const uint32_t chosen = warp.predicate(i.operands[3]);
  using Word = std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>;
  write<T>(warp, i.operands[0], mask,
           [&](int l) { return (chosen & kLaneBits<Word>[l]) != 0 ? a[l] : b[l]; });
}
Handler find_selp(const Query& q) {
  return choose_size(type_bytes(q.type), []<class T>() -> Handler { return select_lanes<T>; });
}
// slct: a where c is not negative; -0 is not, NaN is.
constexpr auto kSelectBySign = [](auto a, auto b, auto c) { return c >= 0 ? a : b; };
constexpr auto kSelectByFlushed = [](auto a, auto b, float c) {
  return flush<true>(c) >= 0 ? a : b;
};
Handler find_slct(const Query& q) {
  const bool is_integer = q.source == Type::s32, ftz = q.modifiers.ftz;
  return choose_size(type_bytes(q.type), [&]<class T>() -> Handler {
    if (is_integer && ftz) return nullptr;
    if (is_integer) return map_lanes<kSelectBySign, T, T, T, int32_t>;
    if (ftz) return map_lanes<kSelectByFlushed, T, T, T, float>;
    return map_lanes<kSelectBySign, T, T, T, float>;
  });
}

using Bits128 = unsigned __int128;
constexpr auto kCopy = [](auto a) { return a; };
void copy_predicate(Warp& warp, const Instruction& i, uint32_t mask) {
  warp.set_predicate(i.operands[0], mask, warp.predicate(i.operands[1]));
}
Handler find_mov(const Query& q) {
  if (q.type == Type::pred) return copy_predicate;
  if (q.type == Type::b128) return map_lanes<kCopy, Bits128, Bits128>;
  const auto of = []<class T>() -> Handler { return map_lanes<kCopy, T, T>; };
  return choose_size(type_bytes(q.type), of);
}

// The register of an element is as wide as the element.
template <class Whole, class Part>
void pack(Warp& warp, const Instruction& i, uint32_t mask) {
  constexpr int kParts = sizeof(Whole) / sizeof(Part);
  const Part* from[kParts];
  for (int k = 0; k < kParts; ++k) from[k] = warp.lanes<const Part>(i.operands[k + 1]);
  write<Whole>(warp, i.operands[0], mask, [&](int l) {
    Whole whole = 0;
    for (int k = 0; k < kParts; ++k) whole |= Whole{from[k][l]} << (k * sizeof(Part) * 8);
    return whole;
  });
}
template <class Whole, class Part>
void unpack(Warp& warp, const Instruction& i, uint32_t mask) {
  constexpr int kParts = sizeof(Whole) / sizeof(Part);
  Whole row[kLanes];
  std::memcpy(row, warp.lanes<const Whole>(i.operands[kParts]), sizeof row);
  for (int k = 0; k < kParts; ++k) {
    if (i.operands[k] == kNoUnit) continue;
    write<Part>(warp, i.operands[k], mask,
                [&](int l) { return static_cast<Part>(row[l] >> (k * sizeof(Part) * 8)); });
  }
}
// In halves or quarters.
template <bool kPacks, class Whole, class Half, class Quarter>
void move_parts(Warp& warp, const Instruction& i, uint32_t mask) {
  constexpr auto kHalves = kPacks ? pack<Whole, Half> : unpack<Whole, Half>;
  constexpr auto kQuarters = kPacks ? pack<Whole, Quarter> : unpack<Whole, Quarter>;
  return i.operand_count == 3 ? kHalves(warp, i, mask) : kQuarters(warp, i, mask);
}
template <bool kPacks>
Handler find_parts(const Query& q) {
  switch (q.type) {
    case Type::b32:  // quarters of which do not exist
      return move_parts<kPacks, uint32_t, uint16_t, uint16_t>;
    case Type::b64:
      return move_parts<kPacks, uint64_t, uint32_t, uint16_t>;
    default:
      return move_parts<kPacks, Bits128, uint64_t, uint32_t>;
  }
}

// To generic addresses, or back.
template <bool kBack>
void move_window(Warp& warp, const Instruction& i, uint32_t mask) {
  const uint64_t* a = warp.lanes<const uint64_t>(i.operands[1]);
  const uint64_t window = window_of(i.modifiers.space);
  write<uint64_t>(warp, i.operands[0], mask,
                  [&](int l) { return a[l] + (kBack ? 0 - window : window); });
}
void is_in_space(Warp& warp, const Instruction& i, uint32_t mask) {
  const uint64_t* a = warp.lanes<const uint64_t>(i.operands[1]);
  const Space space = i.modifiers.space;
  warp.set_predicate(i.operands[0], mask,
                     gather<uint32_t>([&](int l) { return space_of(a[l]) == space; }));
}

constexpr Operation kOperations[] = {
    {Opcode::setp, find_setp},
    {Opcode::set, find_set},
    {Opcode::selp, find_selp},
    {Opcode::slct, find_slct},
    {Opcode::mov, find_mov},
    {Opcode::pack, find_parts<true>},
    {Opcode::unpack, find_parts<false>},
    {Opcode::cvta, only<move_window<false>>},
    {Opcode::cvta_to, only<move_window<true>>},
    {Opcode::isspacep, only<is_in_space>},
};

}  // namespace

Handler find_select(const Query& q) { return find_operation(kOperations, q); }

}  // namespace STITCH_LANES_ISA
}  // namespace stitch::ptxsim
