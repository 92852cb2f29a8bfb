// Barriers of a block: bar and barrier, with and without counts, sync, arrive and red.
//
// Aligned barriers are executed by all lanes of a warp that have not exited, at one instruction.
// Without a count, all threads of the block must come; a thread that has exited is missing.
#pragma once

#include <cstddef>

#include "ptxsim/machine/machine.h"

namespace stitch::ptxsim {

// The split arrives: it waits, or goes on if it was the last to come or does not wait.
void arrive_at_barrier(Warp& warp, size_t index, const Instruction& instruction);

// Lanes of the block are gone: a barrier that waited for them may be complete without them.
void lanes_exited(Block& block);

}  // namespace stitch::ptxsim
