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

// The blocks of a phase that one block of the launch runs, one of each round of the grid: of 1000
// blocks on 264 block 3 runs 3, 267, 531 and 795.
template <class Index>
struct Forward {
  Index block, end, step;
  STITCH_DEVICE bool are_left() const { return block < end; }
  STITCH_DEVICE void next() { block += step; }
};
template <class Index>
STITCH_DEVICE Forward<Index> forward(Index blocks) {
  return {static_cast<Index>(block_index()), blocks, static_cast<Index>(grid_blocks())};
}

// Last to first, so that a phase begins with what the one before it has read last and the second
// cache still holds: block 3 runs 996, 732, 468 and 204.  `in_rows`: each block had one turn there,
// and all came to the ends of their parts together, so that each gets neighbours here too: block 3
// runs 15, 14, 13 and 12.
template <class Index>
struct Backward {
  Index block, left, step;
  STITCH_DEVICE bool are_left() const { return left > 0; }
  STITCH_DEVICE void next() {
    block -= step;
    --left;
  }
};
template <class Index>
STITCH_DEVICE Backward<Index> backward(Index blocks, bool in_rows) {
  const Index own = static_cast<Index>(block_index()), grid = static_cast<Index>(grid_blocks());
  const Index each = blocks / grid, more = blocks - each * grid;
  const Index left = each + (own < more ? 1 : 0);
  if (in_rows) return {own * each + (own < more ? own : more) + left - 1, left, 1};
  return {blocks - 1 - own, left, grid};
}

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
