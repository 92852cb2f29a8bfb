// DeviceSpec: every number the planner knows about a machine.
//
// Comes in: a name, or what a driver says of a GPU.  Goes out: a spec, whose name alone finds it in
// every process: that of a row, or "sm_86-80-..." of what a driver says of any other GPU.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace stitch {

// What a driver says of a GPU.  Zero: it does not say.
struct DeviceAttributes {
  int capability = 0;       // 89: compute capability 8.9
  int multiprocessors = 0;  // host: worker threads are asked for at run time, this is a default
  int clock_khz = 0, memory_clock_khz = 0, memory_bus_bits = 0, l2_bytes = 0;
  int shared_bytes_per_block = 0, shared_bytes_per_multiprocessor = 0;
  int registers_per_multiprocessor = 0;
  int threads_per_multiprocessor = 0, blocks_per_multiprocessor = 0;
};
// All but the capability, in the order of a derived name, and CU_DEVICE_ATTRIBUTE_* of cuda.h.
using Gpu = DeviceAttributes;
// clang-format off
inline constexpr std::pair<int DeviceAttributes::*, int> kAttributes[] = {
    {&Gpu::multiprocessors, 16}, {&Gpu::clock_khz, 13}, {&Gpu::memory_clock_khz, 36},
    {&Gpu::memory_bus_bits, 37}, {&Gpu::l2_bytes, 38}, {&Gpu::shared_bytes_per_block, 97},
    {&Gpu::shared_bytes_per_multiprocessor, 81}, {&Gpu::registers_per_multiprocessor, 82},
    {&Gpu::threads_per_multiprocessor, 39}, {&Gpu::blocks_per_multiprocessor, 106}};
// clang-format on

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

// What no driver says.
struct DeviceRates {
  double dram_bytes_per_us;
  double l2_bytes_per_us;
  double launch_us;           // from one kernel's end to the next one's start, plus ramp and tail
  double barrier_us = 0;      // all blocks of a resident grid meet; 0: they cannot
  double last_block_us = 0;   // the last block knows that it is, and has loaded what others stored
  double special_per_us = 0;  // exp, log, tanh ...: results per us, whole device
  double flops_per_us = 0;    // fp32 operations per us, whole device
  Latencies latencies = {};
};

struct DeviceSpec : DeviceAttributes, DeviceRates {
  std::string name;
  std::string arch = {};  // NVRTC's architecture; empty for the host
  bool is_cuda = true;
  int vector_bytes = 16;         // widest access of one thread
  double block_us = 0;           // from one block's start to the next one's, wherever they run
  double cycles_per_us = 0;      // of a multiprocessor's clock
  std::string derived = {};      // from what, in words; empty: the numbers are its own
  int64_t cached_bytes = 0;      // host: a launch that moves more stores past the caches
  bool multiplies_bf16 = false;  // a host with vector products of bf16, and no tiles
};

// What is planned for: a device, and of a host the threads of the pool that share its work.
struct Target {
  const DeviceSpec& device;
  int workers = 1;
};

// UserError naming the known devices for a name that is none, nor a derived one.
const DeviceSpec& device_spec(const std::string& name);
// The row that it is, or what follows from its generation's; UserError below capability 8.0.
const DeviceSpec& find_device(const DeviceAttributes& found);
const std::vector<DeviceSpec>& all_devices();  // the rows

}  // namespace stitch
