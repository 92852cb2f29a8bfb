// Loops over the lanes of a warp that compilers turn into vectors.
//
// For lanes_*.cpp alone, which are compiled once per instruction set; STITCH_LANES_ISA names the
// namespace, so that no function of one set can replace that of another when linked.  Every handler
// computes all lanes, into its destination if all are in the mask, else into a local row of which
// it copies those.  Operations therefore must bear any bits in lanes that are off, and a lane must
// read nothing but its own of a unit that may be the destination, in elements of the same size.
// Units are read as whatever type an instruction names: compile with -fno-strict-aliasing.
#pragma once

#include <bit>
#include <cstring>
#include <tuple>
#include <type_traits>
#include <utility>

#include "ptxsim/lanes/lanes.h"
#include "ptxsim/lanes/rounding.h"
#include "ptxsim/machine/machine.h"

namespace stitch::ptxsim {

// State of the noise generator; 0: no noise.
extern thread_local uint64_t approximation_noise;

inline namespace STITCH_LANES_ISA {

// What is as wide as an element of so many bytes.
template <size_t kBytes>
using WordOf = std::tuple_element_t<std::countr_zero(kBytes) - 1,
                                    std::tuple<uint16_t, uint32_t, uint64_t, unsigned __int128>>;

// Copies the lanes of `mask` from `row` to a unit.
template <class T>
[[gnu::always_inline]] inline void blend(T* to, const T* row, uint32_t mask) {
  using Word = WordOf<sizeof(T)>;
  constexpr int kAtOnce = sizeof(Word) * 8 < kLanes ? sizeof(Word) * 8 : kLanes;
  Word* out = reinterpret_cast<Word*>(to);
  const Word* in = reinterpret_cast<const Word*>(row);
  for (int first = 0; first < kLanes; first += kAtOnce) {
    const Word active = static_cast<Word>(mask >> first);
    for (int l = 0; l < kAtOnce; ++l)
      out[first + l] = active & kLaneBits<Word>[l] ? in[first + l] : out[first + l];
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
  using Lane = WordOf<sizeof(row) / kLanes>;
  blend(warp.lanes<Lane>(unit), reinterpret_cast<const Lane*>(row), mask);
}

// d = kOp(sources...), each source an operand of its own element type.
template <auto kOp, int kCount, class D, class... S>
[[gnu::always_inline]] inline void map(Warp& warp, const Instruction& i, uint32_t mask) {
  [&]<size_t... K>(std::index_sequence<K...>) __attribute__((always_inline)) {
    [&](const S*... row) __attribute__((always_inline)) {
      write<D, kCount>(warp, i.operands[0], mask, [&](int l) __attribute__((always_inline)) {
        return static_cast<D>(kOp(row[l]...));
      });
    }(warp.lanes<const S>(i.operands[K + 1])...);
  }(std::index_sequence_for<S...>{});
}
template <auto kOp, class D, class... S>
void map_lanes(Warp& warp, const Instruction& i, uint32_t mask) {
  map<kOp, kLanes, D, S...>(warp, i, mask);
}
template <auto kOp, class D, class... S>
void map_pairs(Warp& warp, const Instruction& i, uint32_t mask) {
  map<kOp, 2 * kLanes, D, S...>(warp, i, mask);
}

// The lanes where f(l), as bits.
template <class Word, class F>
[[gnu::always_inline]] inline uint32_t gather(F f) {
  Word bits = 0;
  for (int l = 0; l < kLanes; ++l) bits |= f(l) ? kLaneBits<Word>[l] : Word{0};
  return static_cast<uint32_t>(bits);
}

}  // namespace STITCH_LANES_ISA
}  // namespace stitch::ptxsim
