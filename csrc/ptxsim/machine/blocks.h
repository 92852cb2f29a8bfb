// Places for blocks: the storage of a resident block, used by one block after the other.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "ptxsim/machine/machine.h"
#include "ptxsim/machine/simulate.h"

namespace stitch::ptxsim {

// What shared memory and outputs hold before they are written: a signalling NaN in fp32 and bf16,
// a NaN in fp16, no small integer.
constexpr uint32_t kPoison = 0x7fa17fa1u;
void poison(unsigned char* bytes, uint64_t count);

struct alignas(64) RegisterUnit {
  unsigned char bytes[kUnitBytes];
};

struct Place {
  Block block;
  std::vector<RegisterUnit> registers;  // of all warps
  std::vector<uint32_t> valid;          // the same
  uint32_t ahead = 0;                   // the warp that an order prefers or puts off, as a bit
};

// A place with all that is the same for each block of the launch.
std::unique_ptr<Place> make_place(Grid& grid, const Launch& launch, int multiprocessors);
void start_block(Place& place, uint64_t linear, const Launch& launch, int multiprocessors);

}  // namespace stitch::ptxsim
