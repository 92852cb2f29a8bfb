// Warp operations: lanes that a mask names meet at one instruction and exchange values.
//
// shfl vote match redux elect activemask, and bar.warp.sync, which alone orders memory.  A lane
// waits until all lanes named are at the same instruction with the same mask; values are those of
// that moment.
#pragma once

#include <cstddef>

#include "ptxsim/machine/machine.h"

namespace stitch::ptxsim {

// If the instruction can be executed for all live lanes, which are all there, at once: does so.
bool meet_all_lanes(Warp& warp, const Instruction& instruction);

// Executes it for the groups of the split whose lanes are all there, which go on as a split of
// their own; the others wait.
void meet_lanes(Warp& warp, size_t index, const Instruction& instruction);

// The lanes of a split that waits at a warp operation or aligned barrier now go on without those
// that will not come.  Its next try reports them.
bool force_meeting(Warp& warp);

// Lanes that wait at the same instruction for others of the warp join the split at `index`.
void absorb_waiting(Warp& warp, size_t& index);

}  // namespace stitch::ptxsim
