// What a kernel does, in numbers, and the time a device needs for it.
#pragma once

#include "cost/device_spec.h"

namespace stitch {

// Threads per multiprocessor with a 16-byte access each that keep DRAM busy: 46 KB in flight on an
// H200 (bandwidth times latency).  Half as many do with two accesses each.
inline constexpr int kBusyThreads = 1024;
// Those that issue an instruction in each cycle, waiting for each other's results [A].
inline constexpr int kIssuingThreads = 512;

struct StageWork {
  double dram_bytes = 0;   // elements accessed, once per buffer and pass
  double cache_bytes = 0;  // read again by other blocks or later passes
  double operations = 0;   // light arithmetic results; on a GPU instructions of threads
  double specials = 0;     // exp, log, tanh ...; on a GPU those of the special pipe
  double blocks = 1;
  int threads = 1;
  // On a GPU:
  double busy = 1;       // share of the threads that have elements of their own
  double in_flight = 1;  // iterations of a thread that do not wait for each other
  double lines = 0;      // of 128 bytes that the accesses of warps touch, once per access
  double cycles = 0;     // of one warp from its first to its last step, as if it were alone
  int registers = 0;     // of a thread
  int shared_bytes = 0;  // of a block
};

// Microseconds of a stage that has the device to itself, without the launch:
//
//   max(memory, arithmetic, lines) / share   what the device can do at most, and
//   waves * cycles                           one warp after the other (FusionStitching 2020, 20.10)
//   blocks * block_us                        what starts blocks
//
// Each is a bound that the others do not see: many warps hide one warp's waiting, and then the
// slowest resource decides; few do not, and then their chains do.  So the larger counts, and of the
// other what blocks after the first wave do not hide from each other: where one is resident, all;
// of r, 1 / r^2 (fitted to csrc/clock over 96 kernels, 2026-11).  The first access of the first
// wave is part of the launch.
struct StageEstimate {
  double us = 0;
  double share = 1;  // of the device that its blocks keep busy
  double blocks = 1;
  double least_us = 0;  // with all of the device, whatever the mapping
  double alone_us = 0;  // by one block, one block's work after the other
};
StageEstimate estimate_stage(const StageWork& work, const DeviceSpec& device, int worker_threads);

// Of what each block runs one after the other.
StageEstimate run_in_turn(const StageEstimate& first, const StageEstimate& then);

// What stands before a phase of a kernel.
enum class Join {
  kLaunch,     // of the kernel: its first phase
  kGrid,       // a barrier of all blocks
  kLastBlock,  // of the blocks the last to end goes on alone, through all later phases too
};
inline const char* to_string(Join join) {
  return std::array{"launch", "grid barrier", "last block"}[static_cast<size_t>(join)];
}

// Of a phase's stages, side by side: until the device is full they cost as much as the longest.
struct PhaseTime {
  Join join = Join::kLaunch;
  double longest_us = 0, full_us = 0, alone_us = 0;

  void add(const StageEstimate& stage);
  double us() const { return longest_us > full_us ? longest_us : full_us; }
};

// A kernel of several phases, with its launches and what stands between them.
double estimate_us(const std::vector<PhaseTime>& phases, const DeviceSpec& device);

}  // namespace stitch
