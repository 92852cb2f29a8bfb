// How all blocks of a launch meet: at a barrier, or by the last that comes.
//
// Xiao and Feng, IPDPS 2010, with the counter of the CUDA toolkit's cooperative groups: block 0
// adds 2^31 less the others, each other block adds 1, so that every meeting turns the top bit and
// the counter never has to be reset.  It starts at zero; launches of one stream may share it. There
// is no host half: blocks of the host run in any order and never wait.
#pragma once

#include "device/stitch/block.cuh"

namespace stitch {

#if STITCH_CUDA

STITCH_DEVICE i64 grid_blocks() { return static_cast<i64>(gridDim.x); }

struct Arrival {
  u32 before, after;  // the counter
};
STITCH_DEVICE Arrival arrive(u32* counter) {
  const u32 mine = blockIdx.x == 0 ? 0x80000000u - (gridDim.x - 1u) : 1u;
  u32 before;
  asm volatile("atom.acq_rel.gpu.global.add.u32 %0, [%1], %2;"
               : "=r"(before)
               : "l"(counter), "r"(mine)
               : "memory");
  return {before, before + mine};
}
STITCH_DEVICE bool have_met(u32 before, u32 now) { return ((before ^ now) & 0x80000000u) != 0; }

// Programmatic dependent launch (PTX, "griddepcontrol"; compute capability 9.0 and up).  Past this,
// every thread sees what launches before this one wrote; nothing may be read or written before it.
STITCH_DEVICE void wait_for_earlier_launch() { asm volatile("griddepcontrol.wait;" ::: "memory"); }
// Once every block is here or has ended the next launch may begin.  It is promised nothing, and
// waits for the end of this one.
STITCH_DEVICE void admit_next_launch() {
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
}

// What any thread wrote before it, every thread sees after it.  All blocks must be resident, and
// every thread must come.
STITCH_DEVICE void grid_barrier(u32* counter) {
  block_barrier();
  if (tid() == 0) {
    const u32 before = arrive(counter).before;
    u32 now;
    do {
      asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(now) : "l"(counter) : "memory");
    } while (!have_met(before, now));
  }
  block_barrier();
}

// Are all other blocks past this?  Then the threads of this one see what any thread wrote before
// it.  Nobody waits, so that blocks need not be resident; every thread must come.
STITCH_DEVICE bool is_last_block(u32* counter) {
  block_barrier();
  bool is_last = false;
  if (tid() == 0) {
    const Arrival arrival = arrive(counter);
    is_last = have_met(arrival.before, arrival.after);
  }
  return __syncthreads_or(is_last) != 0;
}

#endif

}  // namespace stitch
