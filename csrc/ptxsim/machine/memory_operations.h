// Memory operations: what ld, st, atom, red and cp.async do to the bytes.
//
// With checks, Memory looks at the addresses of all lanes first; then the bytes of the lanes that
// it allows move.  Without, they just move.
#pragma once

#include <array>
#include <cstdint>
#include <unordered_map>

#include "ptxsim/machine/machine.h"
#include "ptxsim/memory/memory.h"
#include "ptxsim/memory/races.h"

namespace stitch::ptxsim {

// A Flow::memory instruction.
void run_memory(Warp& warp, const Instruction& instruction, uint32_t mask);

// Some asynchronous copies of the warp complete, by chance.
void progress_copies(Warp& warp);
// All copies of lanes that exit complete, and are forgotten.
void drop_copies(Warp& warp, uint32_t mask);

// Update of one lane: the bits that become of `old`.  `a` and `b` are the operands.
using AtomicUpdate = uint64_t (*)(uint64_t old, uint64_t a, uint64_t b);
// Null: the operation has no such type.  Additions in global memory flush subnormals of fp32.
AtomicUpdate find_atomic(Word operation, Type type, Space space);

// Addresses of one instruction, as its space counts them: host addresses or offsets.
struct alignas(64) LaneAddresses : std::array<uint64_t, kLanes> {};

// What strong loads may still find though another lane of their warp has stored since: shuffles and
// votes order no memory.  In one order each lane is given one of each store, once: a correct kernel
// ends in the same bits.
struct OldValues {
  struct Store {
    const Instruction* by = nullptr;
    Moment moment = {};
    int lane = 0;
    uint32_t settled = 0;          // lanes that were given `bytes` or may know what is there now
    unsigned char bytes[16] = {};  // that were there
  };
  std::unordered_map<uint64_t, Store> stores;  // the last strong ones, by host address
  Findings found;                              // defects if the kernel ends in other bits
  void keep(const Site& store, uint64_t at);
  uint64_t choose(const Site& load, uint64_t at);  // where the load finds its value
};

// An atom or red for lanes of one space.
void run_atomic(Warp& warp, const Instruction& instruction, const WarpAccess& access);

// Where a space begins: the byte at address x of a lane is at base + stride * lane + x.
struct Origin {
  uint64_t base = 0;
  uint64_t stride = 0;
  uint64_t at(int lane) const { return base + stride * static_cast<uint64_t>(lane); }
};
Origin origin_of(const Warp& warp, Space space);

}  // namespace stitch::ptxsim
