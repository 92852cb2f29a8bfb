// Traffic: the bytes that loads and stores of global memory moved, by the width of an access.
//
// Lanes of one instruction that read one address move its bytes once.  Ordered and volatile
// accesses are not counted (polls of a barrier, as often as the order of blocks has it), nor are
// atomics and asynchronous copies.
#pragma once

#include <array>
#include <bit>
#include <cstdint>

#include "ptxsim/machine/memory_operations.h"

namespace stitch::ptxsim {

struct Traffic {
  std::array<uint64_t, 6> bytes = {};  // [log2 of the bytes of one lane's access]

  void count(uint32_t access_bytes, uint32_t mask, const LaneAddresses& addresses) {
    uint32_t moved = 0;
    uint64_t last = ~uint64_t{0};
    for (LaneSet lane(mask); lane; ++lane) {
      moved += addresses[*lane] != last;
      last = addresses[*lane];
    }
    bytes[static_cast<size_t>(std::countr_zero(access_bytes))] += uint64_t{access_bytes} * moved;
  }
  void add(const Traffic& other) {
    for (size_t i = 0; i < bytes.size(); ++i) bytes[i] += other.bytes[i];
  }
};

}  // namespace stitch::ptxsim
