// Trace: what the warps of one multiprocessor's blocks execute, and which memory they touch.
//
// Comes from walking a Program; goes into running a machine.  Holds: steps of a warp are in the
// order in which it executes them; sectors of an access are disjoint runs.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "clock/sass/program.h"
#include "clock/walk/launch.h"

namespace stitch::clock {

constexpr int kSectorBytes = 32, kLineBytes = 128;
// Arguments lie this many bits apart, so that an address names its argument.
constexpr int kArgumentBits = 36;

// Sectors [first, first + count) of the address space.
struct SectorRun {
  uint64_t first = 0;
  uint32_t count = 0;
};

// One memory instruction of one warp.
struct Access {
  uint32_t first_run = 0;
  uint16_t runs = 0;
  uint16_t wavefronts = 0;  // cycles of the shared pipe: lines touched, or bank conflicts
  uint16_t unknown = 0;     // lanes whose address depends on data: a sector each, never seen again
  uint16_t bytes = 0;       // that its lanes asked for
  uint16_t phase = 0;       // barriers of the grid that its warp has passed
};

struct Step {
  static constexpr int32_t kNoAccess = -1, kGridWait = -2;
  uint32_t instruction = 0;
  int32_t access = kNoAccess;  // position in Trace::accesses; kGridWait: until all blocks arrive
};

struct WarpTrace {
  uint64_t first = 0, end = 0;  // steps
};

struct BlockTrace {
  int64_t block = 0;             // linear index in the grid
  uint32_t first_warp = 0;       // of Trace::warps
  uint32_t first_run = 0;        // of Trace::runs
  uint64_t steps = 0;            // of all its warps
  uint64_t requested_bytes = 0;  // of global memory
};

struct Trace {
  std::vector<Step> steps;
  std::vector<Access> accesses;
  std::vector<SectorRun> runs;
  std::vector<WarpTrace> warps;
  std::vector<BlockTrace> blocks;  // in the order in which they start
  bool last_differs = false;       // the last of them may do what no other does
  int warps_per_block = 0;
  std::vector<std::string> assumptions;  // sentences, each once
};

// Which blocks are walked, one after the other: all, or `together` of them at a time (those that
// are resident together) until `least` are done and more than `enough_steps` are there.
struct Sample {
  std::vector<int64_t> blocks;
  size_t together = 1, least = 1;
  uint64_t enough_steps = 0;
  bool last_differs = false;
};

// UnsupportedError where control flow cannot be followed; UserError when the arguments do not fit
// the kernel or a loop does not end.
Trace walk(const Program& program, const Launch& launch, const Sample& sample);

}  // namespace stitch::clock
