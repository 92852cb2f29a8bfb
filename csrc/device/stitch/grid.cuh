// A barrier of all blocks of a cooperative launch.
//
// Xiao and Feng, IPDPS 2010, with the counter of the CUDA toolkit's cooperative groups: block 0
// adds 2^31 less the others, each other block adds 1, so that every barrier turns the top bit and
// the counter never has to be reset.  It starts at zero; launches of one stream may share it. There
// is no host half: blocks of the host run in any order and never wait.
#pragma once

#include "device/stitch/block.cuh"

namespace stitch {

#if STITCH_CUDA

STITCH_DEVICE i64 grid_blocks() { return static_cast<i64>(gridDim.x); }

// What any thread wrote before it, every thread sees after it.  All blocks must be resident, and
// every thread must come.
STITCH_DEVICE void grid_barrier(u32* counter) {
  block_barrier();
  if (tid() == 0) {
    const u32 mine = blockIdx.x == 0 ? 0x80000000u - (gridDim.x - 1u) : 1u;
    u32 before, now;
    asm volatile("atom.acq_rel.gpu.global.add.u32 %0, [%1], %2;"
                 : "=r"(before)
                 : "l"(counter), "r"(mine)
                 : "memory");
    do {
      asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(now) : "l"(counter) : "memory");
    } while (((before ^ now) & 0x80000000u) == 0);
  }
  block_barrier();
}

#endif

}  // namespace stitch
