// DeviceSpec: every number the planner knows about a machine, one row per device.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace stitch {

inline constexpr int kMostBlocks = 32;  // resident on one multiprocessor, on every device

// Cycles of one warp, for a chain of which each step waits for the one before.
struct Latencies {
  double operation = 0;  // light arithmetic
  double special = 0;    // exp, log, tanh ...
  double exchange = 0;   // a value of another lane
  double shared = 0;     // what another warp of the block has stored on chip
  double barrier = 0;    // all warps of a block meet
  double cache = 0;      // a load that another block, or this one, has made before
  double memory = 0;     // a load that misses all caches
};

// Microseconds that bytes cost which no longer pass through memory: a line, fitted to measurements
// by benchmarks/calibrate.py (FusionStitching 2020, 20.21).
struct SavedMemory {
  double start_us = 0;  // as soon as there are any
  double bytes_per_us = 0;

  double us(double bytes) const { return bytes > 0 ? start_us + bytes / bytes_per_us : 0; }
};

struct DeviceSpec {
  const char* name;
  const char* arch;  // NVRTC's architecture; empty for the host
  bool is_cuda;
  int multiprocessors;  // host: worker threads are asked for at run time, this is a default
  double dram_bytes_per_us;
  double l2_bytes_per_us;
  int64_t l2_bytes;
  int64_t cached_bytes = 0;  // host: a launch that moves more stores past the caches
  int64_t shared_bytes_per_block = 0, shared_bytes_per_multiprocessor = 0;
  int registers_per_multiprocessor = 0;
  int threads_per_multiprocessor;
  double launch_us;          // from one kernel's end to the next one's start, plus ramp and tail
  double barrier_us = 0;     // all blocks of a resident grid meet; 0: they cannot
  double last_block_us = 0;  // the last block knows that it is, and has loaded what others stored
  double block_us = 0;       // from one block's start to the next one's, wherever they run
  double special_per_us;     // exp, log, tanh ...: results per us, whole device
  double flops_per_us;       // fp32 operations per us, whole device
  double cycles_per_us = 0;  // of a multiprocessor's clock
  Latencies latencies = {};
  SavedMemory saved;
  int vector_bytes;              // widest access of one thread
  bool multiplies_bf16 = false;  // a host with vector products of bf16, and no tiles
};

// UserError naming the known devices for another name.
const DeviceSpec& device_spec(const std::string& name);
const std::vector<DeviceSpec>& all_devices();

}  // namespace stitch
