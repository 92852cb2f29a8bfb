// The scheduler: which block starts, which warp runs, and when nobody can.
//
// As few blocks as an order likes are there at once; more start, up to what the machine can hold,
// when those that are there only spin.  Nothing is allocated per block: a block takes the place of
// one that has ended.
#pragma once

#include <cstdint>

#include "ptxsim/machine/machine.h"
#include "ptxsim/machine/simulate.h"

namespace stitch::ptxsim {

// One order of one launch.
struct Schedule {
  const Launch* launch = nullptr;
  WarpOrder order = WarpOrder::in_order;
  uint64_t resident = 1;  // blocks that the machine can hold
  uint64_t budget = 0;    // lane-instructions
  int multiprocessors = 1;
};

enum class Ending : uint8_t {
  complete,
  stuck,  // deadlock, residency or budget: reported
  trapped,
};

// Runs all blocks of the launch.  Adds to `lane_instructions`.
Ending run_grid(Grid& grid, const Schedule& schedule, uint64_t& lane_instructions);

}  // namespace stitch::ptxsim
