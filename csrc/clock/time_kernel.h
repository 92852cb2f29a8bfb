// The clock: how long a kernel takes on a GPU that is not here, by reading its SASS.
//
// read_cubin -> decode -> walk -> run_machine; each is a function on plain values.  What is not
// known is assumed and said in the result, never left out.
#pragma once

#include "clock/machine/machine.h"

namespace stitch::clock {

struct Use {
  std::string what;  // "memory", "issue", "alu" ...
  double share = 0;  // of the time, or of what can be issued
};

struct ClockResult {
  std::string kernel, device;
  double us = 0;  // of the kernel: no launch
  std::string bound;
  std::vector<Use> uses;                 // most first
  double instructions_per_16_bytes = 0;  // of threads, by bytes of global memory that lanes asked
  double instructions_per_thread = 0;
  double memory_bytes = 0;  // of the whole grid
  double asked_bytes = 0;
  Occupancy occupancy;
  int64_t resident_threads = 0;
  int registers = 0;
  double simulated_share = 0;  // of the blocks of one multiprocessor
  std::vector<std::string> assumptions;
  MachineRun run;  // of the blocks simulated
  double cycles_per_us = 0;
  int warps_per_block = 0;
};

// An empty name stands for the only kernel.  UserError, UnsupportedError: see the stages.
ClockResult time_kernel(std::string_view cubin, const std::string& kernel, const Launch& launch,
                        const DeviceSpec& device);

std::string print_result(const ClockResult& result);
std::string print_json(const ClockResult& result);
// Blocks and warps of one multiprocessor, as chrome://tracing reads them; nothing without a path.
// UserError where the file cannot be written.
void write_timeline(const ClockResult& result, const std::string& path);

}  // namespace stitch::clock
