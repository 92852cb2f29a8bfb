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
    case Compare::lo:
    case Compare::lt:
      return a < b;
    case Compare::ls:
    case Compare::le:
      return a <= b;
    case Compare::hi:
    case Compare::gt:
      return a > b;
    case Compare::hs:
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

template <Compare kCompare, class T, bool kFlush>
[[gnu::always_inline]] inline uint32_t compare_rows(const T* a, const T* b) {
  using Lane = std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>;
  return gather<Lane>([&](int l) {
    if constexpr (kFlush) return holds<kCompare>(flush<true>(a[l]), flush<true>(b[l]));
    return holds<kCompare>(a[l], b[l]);
  });
}

// How one type is compared.
template <class T, bool kFlush = false>
struct Scalar {
  template <Compare kCompare>
  static PairBits bits(Warp& warp, uint32_t a, uint32_t b) {
    return {compare_rows<kCompare, T, kFlush>(warp.lanes<const T>(a), warp.lanes<const T>(b)), 0};
  }
};
template <class Format, bool kFlush, bool kPairs>
struct Halves {
  template <Compare kCompare>
  static PairBits bits(Warp& warp, uint32_t a, uint32_t b) {
    constexpr int kCount = kPairs ? 2 * kLanes : kLanes;
    float x[kCount], y[kCount];
    load(x, warp.lanes<const uint16_t>(a));
    load(y, warp.lanes<const uint16_t>(b));
    if constexpr (!kPairs) return {compare_rows<kCompare, float, false>(x, y), 0};
    PairBits bits = {0, 0};
    for (int l = 0; l < kLanes; ++l) {
      bits.low |= uint32_t{holds<kCompare>(x[2 * l], y[2 * l])} << l;
      bits.high |= uint32_t{holds<kCompare>(x[2 * l + 1], y[2 * l + 1])} << l;
    }
    return bits;
  }
  template <int kCount>
  static void load(float (&to)[kCount], const uint16_t* from) {
    uint16_t row[kCount];
    std::memcpy(row, from, sizeof row);
    if (kFlush)
      for (uint16_t& x : row) x = flush_half(x);
    widen<Format, kCount>(to, row);
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
  write_predicate(warp, i.operands[0], mask, combine(i.modifiers.word, bits.low, with));
  write_predicate(warp, i.operands[1], mask, combine(i.modifiers.word, other, with));
}

struct Comparison {
  Handler setp = nullptr;
  PairBits (*bits)(Warp& warp, uint32_t a, uint32_t b) = nullptr;
};
template <class Kind, Compare kCompare, bool kPairs>
constexpr Comparison kComparison = {set_predicate<Kind, kCompare, kPairs>,
                                    Kind::template bits<kCompare>};

// clang-format off
template <class Kind, bool kPairs = false>
Comparison compare_floats(Compare compare) {
  switch (compare) {
#define STITCH_COMPARE(word) \
  case Compare::word:        \
    return kComparison<Kind, Compare::word, kPairs>;
    STITCH_COMPARE(eq) STITCH_COMPARE(ne) STITCH_COMPARE(lt) STITCH_COMPARE(le)
    STITCH_COMPARE(gt) STITCH_COMPARE(ge) STITCH_COMPARE(equ) STITCH_COMPARE(neu)
    STITCH_COMPARE(ltu) STITCH_COMPARE(leu) STITCH_COMPARE(gtu) STITCH_COMPARE(geu)
    STITCH_COMPARE(num) STITCH_COMPARE(nan)
    default:
      return {};
  }
}
// clang-format on
template <class T>
Comparison compare_bits(Compare compare) {
  switch (compare) {
    case Compare::eq:
      return kComparison<Scalar<T>, Compare::eq, false>;
    case Compare::ne:
      return kComparison<Scalar<T>, Compare::ne, false>;
    default:
      return {};
  }
}
template <class T>
Comparison compare_integers(Compare compare) {
  using Kind = Scalar<T>;
  switch (compare) {
    case Compare::lt:
      return kComparison<Kind, Compare::lt, false>;
    case Compare::le:
      return kComparison<Kind, Compare::le, false>;
    case Compare::gt:
      return kComparison<Kind, Compare::gt, false>;
    case Compare::ge:
      return kComparison<Kind, Compare::ge, false>;
    default:
      break;
  }
  if (std::is_unsigned_v<T>) {
    switch (compare) {
      case Compare::lo:
        return kComparison<Kind, Compare::lt, false>;
      case Compare::ls:
        return kComparison<Kind, Compare::le, false>;
      case Compare::hi:
        return kComparison<Kind, Compare::gt, false>;
      case Compare::hs:
        return kComparison<Kind, Compare::ge, false>;
      default:
        break;
    }
  }
  return compare_bits<T>(compare);
}
#undef STITCH_COMPARE

Comparison find_comparison(Type type, const Modifiers& m) {
  const Compare compare = m.compare;
  if (m.ftz) {
    switch (type) {
      case Type::f32:
        return compare_floats<Scalar<float, true>>(compare);
      case Type::f16:
        return compare_floats<Halves<Half, true, false>>(compare);
      case Type::f16x2:
        return compare_floats<Halves<Half, true, true>, true>(compare);
      default:
        return {};
    }
  }
  switch (type) {
    case Type::b16:
      return compare_bits<uint16_t>(compare);
    case Type::b32:
      return compare_bits<uint32_t>(compare);
    case Type::b64:
      return compare_bits<uint64_t>(compare);
    case Type::u16:
      return compare_integers<uint16_t>(compare);
    case Type::u32:
      return compare_integers<uint32_t>(compare);
    case Type::u64:
      return compare_integers<uint64_t>(compare);
    case Type::s16:
      return compare_integers<int16_t>(compare);
    case Type::s32:
      return compare_integers<int32_t>(compare);
    case Type::s64:
      return compare_integers<int64_t>(compare);
    case Type::f32:
      return compare_floats<Scalar<float>>(compare);
    case Type::f64:
      return compare_floats<Scalar<double>>(compare);
    case Type::f16:
      return compare_floats<Halves<Half, false, false>>(compare);
    case Type::bf16:
      return compare_floats<Halves<BFloat, false, false>>(compare);
    case Type::f16x2:
      return compare_floats<Halves<Half, false, true>, true>(compare);
    case Type::bf16x2:
      return compare_floats<Halves<BFloat, false, true>, true>(compare);
    default:
      return {};
  }
}

// The same into a register: all ones or 1.0 where it holds.
template <class D, D kTrue>
void set_lanes(Warp& warp, const Instruction& i, uint32_t mask) {
  const Comparison comparison = find_comparison(i.source_type, i.modifiers);
  const uint32_t with = combined_with(warp, i, 3);
  const PairBits bits = comparison.bits(warp, i.operands[1], i.operands[2]);
  const uint32_t set = combine(i.modifiers.word, bits.low, with);
  write<D>(warp, i.operands[0], mask, [&](int l) { return set >> l & 1 ? kTrue : D{0}; });
}
template <uint16_t kTrue>
void set_pairs(Warp& warp, const Instruction& i, uint32_t mask) {
  const Comparison comparison = find_comparison(i.source_type, i.modifiers);
  const uint32_t with = combined_with(warp, i, 3);
  const PairBits bits = comparison.bits(warp, i.operands[1], i.operands[2]);
  const uint32_t low = combine(i.modifiers.word, bits.low, with);
  const uint32_t high = combine(i.modifiers.word, bits.high, with);
  write<uint32_t>(warp, i.operands[0], mask, [&](int l) {
    return (low >> l & 1 ? kTrue : 0u) | (high >> l & 1 ? uint32_t{kTrue} << 16 : 0u);
  });
}
Handler set_handler(Type type, Type source, const Modifiers& m) {
  if (find_comparison(source, m).bits == nullptr) return nullptr;
  if (source == Type::f16x2 || source == Type::bf16x2) {
    if (type == Type::u32 || type == Type::s32) return set_pairs<0xffff>;
    if (type != source) return nullptr;
    return type == Type::f16x2 ? set_pairs<0x3c00> : set_pairs<0x3f80>;
  }
  switch (type) {
    case Type::u16:
    case Type::s16:
      return set_lanes<uint16_t, 0xffff>;
    case Type::u32:
    case Type::s32:
      return set_lanes<uint32_t, 0xffffffffu>;
    case Type::f32:
      return set_lanes<uint32_t, 0x3f800000u>;
    case Type::f16:
      return set_lanes<uint16_t, 0x3c00>;
    case Type::bf16:
      return set_lanes<uint16_t, 0x3f80>;
    default:
      return nullptr;
  }
}

template <class T>
void select_lanes(Warp& warp, const Instruction& i, uint32_t mask) {
  const T* a = warp.lanes<const T>(i.operands[1]);
  const T* b = warp.lanes<const T>(i.operands[2]);
  const uint32_t chosen = warp.predicate(i.operands[3]);
  using Word = std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>;
  write<T>(warp, i.operands[0], mask,
           [&](int l) { return (chosen & kLaneBits<Word>.bit[l]) != 0 ? a[l] : b[l]; });
}
// slct: a where c is not negative; -0 is not, NaN is.
struct SelectBySign {
  template <class T>
  static T of(T a, T b, int32_t c) {
    return c >= 0 ? a : b;
  }
  template <class T>
  static T of(T a, T b, float c) {
    return c >= 0 ? a : b;
  }
};
struct SelectBySignFlushed {
  template <class T>
  static T of(T a, T b, float c) {
    return flush<true>(c) >= 0 ? a : b;
  }
};
template <class T>
Handler select_by_sign(Type source, bool ftz) {
  if (source == Type::s32) return ftz ? nullptr : map_lanes<SelectBySign, T, T, T, int32_t>;
  return ftz ? map_lanes<SelectBySignFlushed, T, T, T, float>
             : map_lanes<SelectBySign, T, T, T, float>;
}

template <class T>
void copy_lanes(Warp& warp, const Instruction& i, uint32_t mask) {
  const T* a = warp.lanes<const T>(i.operands[1]);
  write<T>(warp, i.operands[0], mask, [&](int l) { return a[l]; });
}
void copy_predicate(Warp& warp, const Instruction& i, uint32_t mask) {
  write_predicate(warp, i.operands[0], mask, warp.predicate(i.operands[1]));
}
// Copies `bytes` per lane at offsets within registers of other widths.
void copy_part(Warp& warp, const uint32_t (&units)[2], const int (&strides)[2],
               const int (&offsets)[2], int bytes, uint32_t mask) {
  unsigned char* to = warp.lanes<unsigned char>(units[0]) + offsets[0];
  const unsigned char* from = warp.lanes<const unsigned char>(units[1]) + offsets[1];
  for (int l = 0; l < kLanes; ++l)
    if (mask >> l & 1) std::memcpy(to + l * strides[0], from + l * strides[1], bytes);
}
constexpr int kWidest = 16;  // bytes of a b128 register
void copy_wide(Warp& warp, const Instruction& i, uint32_t mask) {
  copy_part(warp, {i.operands[0], i.operands[1]}, {kWidest, kWidest}, {0, 0}, kWidest, mask);
}
// The register of an element is as wide as the element, but for b8, which has 16 bits.
template <int kBytes>
void pack_vector(Warp& warp, const Instruction& i, uint32_t mask) {
  const int count = i.operand_count - 1;
  const int bytes = kBytes / count;
  alignas(64) unsigned char row[kLanes * kBytes];
  for (int k = 0; k < count; ++k) {
    const unsigned char* from = warp.lanes<const unsigned char>(i.operands[k + 1]);
    const int stride = bytes < 2 ? 2 : bytes;
    for (int l = 0; l < kLanes; ++l)
      std::memcpy(row + l * kBytes + k * bytes, from + l * stride, bytes);
  }
  unsigned char* to = warp.lanes<unsigned char>(i.operands[0]);
  for (int l = 0; l < kLanes; ++l)
    if (mask >> l & 1) std::memcpy(to + l * kBytes, row + l * kBytes, kBytes);
}
template <int kBytes>
void unpack_vector(Warp& warp, const Instruction& i, uint32_t mask) {
  const int count = i.operand_count - 1;
  const int bytes = kBytes / count;
  alignas(64) unsigned char row[kLanes * kBytes];
  std::memcpy(row, warp.lanes<const unsigned char>(i.operands[count]), sizeof row);
  for (int k = 0; k < count; ++k) {
    if (i.operands[k] == kNoUnit) continue;
    unsigned char* to = warp.lanes<unsigned char>(i.operands[k]);
    const int stride = bytes < 2 ? 2 : bytes;
    for (int l = 0; l < kLanes; ++l) {
      if ((mask >> l & 1) == 0) continue;
      std::memset(to + l * stride, 0, stride);
      std::memcpy(to + l * stride, row + l * kBytes + k * bytes, bytes);
    }
  }
}
// The ones met often: a pair of halves of the wide register.
template <class Whole, class Part>
void pack_two(Warp& warp, const Instruction& i, uint32_t mask) {
  const Part* low = warp.lanes<const Part>(i.operands[1]);
  const Part* high = warp.lanes<const Part>(i.operands[2]);
  write<Whole>(warp, i.operands[0], mask, [&](int l) {
    return Whole{low[l]} | static_cast<Whole>(Whole{high[l]} << (sizeof(Part) * 8));
  });
}
template <class Whole, class Part>
void unpack_two(Warp& warp, const Instruction& i, uint32_t mask) {
  Whole row[kLanes];
  std::memcpy(row, warp.lanes<const Whole>(i.operands[2]), sizeof row);
  for (int k = 0; k < 2; ++k) {
    if (i.operands[k] == kNoUnit) continue;
    const int shift = k * static_cast<int>(sizeof(Part)) * 8;
    write<Part>(warp, i.operands[k], mask,
                [&](int l) { return static_cast<Part>(row[l] >> shift); });
  }
}
template <int kBytes>
void pack(Warp& warp, const Instruction& i, uint32_t mask) {
  using Whole = std::conditional_t<kBytes == 4, uint32_t, uint64_t>;
  using Part = std::conditional_t<kBytes == 4, uint16_t, uint32_t>;
  if (kBytes != kWidest && i.operand_count == 3) return pack_two<Whole, Part>(warp, i, mask);
  pack_vector<kBytes>(warp, i, mask);
}
template <int kBytes>
void unpack(Warp& warp, const Instruction& i, uint32_t mask) {
  using Whole = std::conditional_t<kBytes == 4, uint32_t, uint64_t>;
  using Part = std::conditional_t<kBytes == 4, uint16_t, uint32_t>;
  if (kBytes != kWidest && i.operand_count == 3) return unpack_two<Whole, Part>(warp, i, mask);
  unpack_vector<kBytes>(warp, i, mask);
}

// Where a space lies among generic addresses; global memory is itself.
constexpr uint64_t window_of(Space space) {
  switch (space) {
    case Space::shared:
      return kSharedWindow;
    case Space::local:
      return kLocalWindow;
    case Space::const_:
      return kConstWindow;
    case Space::param:
      return kParamWindow;
    default:
      return 0;
  }
}
void to_generic(Warp& warp, const Instruction& i, uint32_t mask) {
  const uint64_t* a = warp.lanes<const uint64_t>(i.operands[1]);
  const uint64_t window = window_of(i.modifiers.space);
  write<uint64_t>(warp, i.operands[0], mask, [&](int l) { return a[l] + window; });
}
void from_generic(Warp& warp, const Instruction& i, uint32_t mask) {
  const uint64_t* a = warp.lanes<const uint64_t>(i.operands[1]);
  const uint64_t window = window_of(i.modifiers.space);
  write<uint64_t>(warp, i.operands[0], mask, [&](int l) { return a[l] - window; });
}
bool is_in(Space space, uint64_t address) {
  const uint64_t high = address & kWindowMask;
  if (space != Space::global) return high == window_of(space);
  return high != kSharedWindow && high != kLocalWindow && high != kConstWindow &&
         high != kParamWindow;
}
void is_in_space(Warp& warp, const Instruction& i, uint32_t mask) {
  const uint64_t* a = warp.lanes<const uint64_t>(i.operands[1]);
  const Space space = i.modifiers.space;
  uint32_t bits = 0;
  for (int l = 0; l < kLanes; ++l) bits |= uint32_t{is_in(space, a[l])} << l;
  write_predicate(warp, i.operands[0], mask, bits);
}

// What depends on a type's size alone.
Handler move_handler(Opcode opcode, Type type, Type source, bool ftz) {
  const int bytes = type_bytes(type);
  switch (opcode) {
    case Opcode::mov:
      if (type == Type::pred) return copy_predicate;
      if (bytes == kWidest) return copy_wide;
      return bytes == 2   ? copy_lanes<uint16_t>
             : bytes == 4 ? copy_lanes<uint32_t>
                          : copy_lanes<uint64_t>;
    case Opcode::selp:
      return bytes == 2   ? select_lanes<uint16_t>
             : bytes == 4 ? select_lanes<uint32_t>
                          : select_lanes<uint64_t>;
    case Opcode::slct:
      return bytes == 2   ? select_by_sign<uint16_t>(source, ftz)
             : bytes == 4 ? select_by_sign<uint32_t>(source, ftz)
                          : select_by_sign<uint64_t>(source, ftz);
    case Opcode::pack:
      return bytes == 4 ? pack<4> : bytes == 8 ? pack<8> : pack<kWidest>;
    case Opcode::unpack:
      return bytes == 4 ? unpack<4> : bytes == 8 ? unpack<8> : unpack<kWidest>;
    default:
      return nullptr;
  }
}

}  // namespace

Handler find_select(const Query& q) {
  const Modifiers& m = q.modifiers;
  switch (q.opcode) {
    case Opcode::setp:
      return find_comparison(q.type, m).setp;
    case Opcode::set:
      return set_handler(q.type, q.source, m);
    case Opcode::cvta:
      return to_generic;
    case Opcode::cvta_to:
      return from_generic;
    case Opcode::isspacep:
      return is_in_space;
    default:
      return move_handler(q.opcode, q.type, q.source, m.ftz);
  }
}

}  // namespace STITCH_LANES_ISA
}  // namespace stitch::ptxsim
