// Loops over the lanes of a warp that compilers turn into vectors.
//
// For lanes_*.cpp alone, which are compiled once per instruction set; STITCH_LANES_ISA names the
// namespace, so that no function of one set can replace that of another when linked.  Every handler
// computes all lanes, into its destination if all are in the mask, else into a local row of which
// it copies those.  Operations therefore must bear any bits in lanes that are off, and a lane must
// read nothing but its own of a unit that may be the destination, in elements of the same size.
// Units are read as whatever type an instruction names: compile with -fno-strict-aliasing.
#pragma once

#include <cstring>
#include <type_traits>
#include <utility>

#include "ptxsim/lanes/lanes.h"
#include "ptxsim/lanes/rounding.h"
#include "ptxsim/machine/machine.h"

namespace stitch::ptxsim {

// State of the noise generator; 0: no noise.
extern thread_local uint64_t approximation_noise;

inline namespace STITCH_LANES_ISA {

// What find_handler is asked.
struct Query {
  Opcode opcode;
  Type type;
  Type source;
  const Modifiers& modifiers;
};

constexpr uint32_t kAllLanes = 0xffffffffu;

template <class Word>
struct LaneBits {
  Word bit[sizeof(Word) * 8 < kLanes ? sizeof(Word) * 8 : kLanes];
  constexpr LaneBits() : bit() {
    Word next = 1;
    for (Word& b : bit) {
      b = next;
      next = static_cast<Word>(next << 1);
    }
  }
};
template <class Word>
static constexpr LaneBits<Word> kLaneBits{};

template <int kBytes>
struct WordOf;
template <>
struct WordOf<2> {
  using Type = uint16_t;
};
template <>
struct WordOf<4> {
  using Type = uint32_t;
};
template <>
struct WordOf<8> {
  using Type = uint64_t;
};

// Copies the lanes of `mask` from `row` to a unit.
template <class T>
[[gnu::always_inline]] inline void blend(T* to, const T* row, uint32_t mask) {
  using Word = typename WordOf<sizeof(T)>::Type;
  constexpr int kAtOnce = sizeof(Word) * 8 < kLanes ? sizeof(Word) * 8 : kLanes;
  Word* out = reinterpret_cast<Word*>(to);
  const Word* in = reinterpret_cast<const Word*>(row);
  for (int first = 0; first < kLanes; first += kAtOnce) {
    const Word active = static_cast<Word>(mask >> first);
    for (int l = 0; l < kAtOnce; ++l)
      out[first + l] = active & kLaneBits<Word>.bit[l] ? in[first + l] : out[first + l];
  }
}

// Writes f(l) to the lanes of `mask`.  With 64 elements there are two 16-bit ones to a lane.
template <class D, int kCount = kLanes, class F>
[[gnu::always_inline]] inline void write(Warp& warp, uint32_t unit, uint32_t mask, F f) {
  alignas(64) D row[kCount];
  D* const to = mask == kAllLanes ? warp.lanes<D>(unit) : row;
#pragma GCC ivdep
  for (int l = 0; l < kCount; ++l) to[l] = f(l);
  if (mask == kAllLanes) return;
  using Lane = typename WordOf<sizeof(row) / kLanes>::Type;
  blend(warp.lanes<Lane>(unit), reinterpret_cast<const Lane*>(row), mask);
}

// d = Op::of(sources...), each source an operand of its own element type.
template <class Op, int kCount, class D, class... S>
[[gnu::always_inline]] inline void map(Warp& warp, const Instruction& i, uint32_t mask) {
  [&]<size_t... K>(std::index_sequence<K...>) __attribute__((always_inline)) {
    [&](const S*... row) __attribute__((always_inline)) {
      write<D, kCount>(warp, i.operands[0], mask, [&](int l) __attribute__((always_inline)) {
        return static_cast<D>(Op::of(row[l]...));
      });
    }(warp.lanes<const S>(i.operands[K + 1])...);
  }(std::index_sequence_for<S...>{});
}

template <class Op, class D, class... S>
void map_lanes(Warp& warp, const Instruction& i, uint32_t mask) {
  map<Op, kLanes, D, S...>(warp, i, mask);
}
template <class Op, class D, class... S>
void map_pairs(Warp& warp, const Instruction& i, uint32_t mask) {
  map<Op, 2 * kLanes, D, S...>(warp, i, mask);
}

template <class T>
constexpr Type kTypeOf = [] {
  constexpr bool kSigned = std::is_signed_v<T>;
  if (sizeof(T) == 2) return kSigned ? Type::s16 : Type::u16;
  if (sizeof(T) == 4) return kSigned ? Type::s32 : Type::u32;
  return kSigned ? Type::s64 : Type::u64;
}();
// What `make` gives for that of the integers T that `type` names; null: none of them.
template <class... T, class Make>
Handler choose(Type type, Make make) {
  if (type >= Type::b16 && type <= Type::b64)  // bits are taken as unsigned
    type = static_cast<Type>(int(type) - int(Type::b16) + int(Type::u16));
  Handler chosen = nullptr;
  ((type == kTypeOf<T> && (chosen = make.template operator()<T>())) || ...);
  return chosen;
}

// The lanes where f(l), as bits.
template <class Word, class F>
[[gnu::always_inline]] inline uint32_t gather(F f) {
  Word bits = 0;
  for (int l = 0; l < kLanes; ++l) bits |= f(l) ? kLaneBits<Word>.bit[l] : Word{0};
  return static_cast<uint32_t>(bits);
}

[[gnu::always_inline]] inline void write_predicate(Warp& warp, uint32_t unit, uint32_t mask,
                                                   uint32_t bits) {
  if (unit == kNoUnit) return;
  uint32_t& predicate = warp.predicate(unit);
  predicate = (predicate & ~mask) | (bits & mask);
}

// Families of handlers; null: not of the family, or types and modifiers that do not go together.
Handler find_integer(const Query& query);
Handler find_bits(const Query& query);
Handler find_float(const Query& query);
Handler find_half(const Query& query);
Handler find_approximate(const Query& query);
Handler find_select(const Query& query);
Handler find_convert(const Query& query);
// All of them.
Handler find_lanes(Opcode opcode, Type type, Type source, const Modifiers& modifiers);

}  // namespace STITCH_LANES_ISA
}  // namespace stitch::ptxsim
