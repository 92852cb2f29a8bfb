// The interpreter: runs a warp, split by split.
//
// A split runs until it must wait, sleeps because it spins, ends, or has caught up with another
// split of its warp, with which it merges.  The split of the smallest counter goes first: behind an
// if and else the lanes are together again.  What an instruction does is elsewhere: lane operations
// are handlers, the rest is in memory_operations, warp_operations and barriers.
#pragma once

#include <cstdint>

#include "ptxsim/machine/machine.h"
#include "ptxsim/memory/finding.h"

namespace stitch::ptxsim {

// Runs until all splits wait, sleep or have exited, or `quantum` instructions are done; then says
// so in Block::ready and Block::sleeping.
void run_warp(Warp& warp, int64_t quantum);

// Splits that sleep can run again.
void wake(Warp& warp);

// Lanes of `mask` whose value in `unit` was written.  Others are reported as an uninitialised
// `what` and count as written from then on: one defect is one finding.
uint32_t check_known(Warp& warp, const Instruction& instruction, uint32_t unit, uint32_t mask,
                     const char* what);
inline uint32_t require_known(Warp& warp, const Instruction& instruction, uint32_t unit,
                              uint32_t mask, const char* what) {
  return warp.valid && unit != kNoUnit ? check_known(warp, instruction, unit, mask, what) : mask;
}

// The lanes' value in `unit` is known from now on.
inline void set_known(Warp& warp, uint32_t unit, uint32_t mask) {
  if (warp.valid && unit != kNoUnit) warp.valid[unit] |= mask;
}

}  // namespace stitch::ptxsim
