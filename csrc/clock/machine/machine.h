// The machine: one multiprocessor and its resident blocks, cycle by cycle.
//
// Comes in: a Trace of blocks in the order in which they start here.  Goes out: when each started
// and ended, and how busy everything was.  Holds: four schedulers issue in order, one warp
// instruction a cycle each; a warp goes on when its stall count is over and the scoreboards of its
// wait mask are free, as the compiler has written into each instruction.
#pragma once

#include "clock/machine/memory_system.h"

namespace stitch::clock {

struct Span {
  double start = 0, end = 0;  // cycles
};
struct BlockSpan : Span {
  int slot = 0;                  // the resident place
  uint64_t issued_at_start = 0;  // warp instructions of all blocks until then
  double memory_bytes = 0;       // that its accesses moved
};

struct MachineRun {
  std::vector<BlockSpan> blocks;                  // as Trace::blocks
  std::vector<Span> warps;                        // as Trace::warps
  double cycles = 0;                              // until the last byte is stored
  uint64_t issued = 0;                            // warp instructions
  std::array<double, kPipes> busy = {};           // cycles, all schedulers
  double memory_busy = 0, second_cache_busy = 0;  // cycles
  bool waits_for_grid = false;
  bool has_stuck_barrier = false;  // warps of a block did not all come: they were let go on
};

// `whole_rounds`: blocks that every multiprocessor runs; those after it run on `last_share` of
// them.
struct Rounds {
  size_t whole = 0;
  double last_share = 1;
};

MachineRun run_machine(const Program& program, const Trace& trace, MemorySystem memory,
                       const Occupancy& occupancy, const DeviceSpec& device, Rounds rounds);

}  // namespace stitch::clock
