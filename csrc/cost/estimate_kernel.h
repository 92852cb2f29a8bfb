// What a kernel does, in numbers, and the time a device needs for it.
#pragma once

#include <cstdint>
#include <vector>

#include "cost/device_spec.h"

namespace stitch {

struct StageWork {
  double dram_bytes = 0;   // elements accessed, once per buffer and pass
  double cache_bytes = 0;  // read again by other blocks or later passes
  double operations = 0;   // light arithmetic results
  double specials = 0;     // exp, log, tanh ...
  double blocks = 1;
  int threads = 1;
};

// Microseconds of a stage that has the device to itself, without the launch: max(memory,
// arithmetic) / share.  The slowest resource decides, not the sum.
struct StageEstimate {
  double us = 0;
  double share = 1;  // of the device that its blocks keep busy
  double blocks = 1;
};
StageEstimate estimate_stage(const StageWork& work, const DeviceSpec& device, int worker_threads);

// Of two stages that each block runs one after the other.
StageEstimate run_in_turn(const StageEstimate& first, const StageEstimate& then);

// Of a phase whose stages run beside each other: until the device is full they cost as much as the
// longest.
struct PhaseTime {
  double longest_us = 0, full_us = 0, blocks = 0;

  void add(const StageEstimate& stage);
  double us() const { return longest_us > full_us ? longest_us : full_us; }
  // By one block of so many threads, one block's work after the other.
  double alone_us(int threads, const DeviceSpec& device) const;
};

// A kernel of one stage, its launch included.
double estimate_us(const StageEstimate& stage, const DeviceSpec& device);
// A kernel of several phases, with the barriers between them; those from `finish` on, if any, are
// run by its last block, of so many threads.
double estimate_us(const std::vector<PhaseTime>& phases, const DeviceSpec& device, int finish = -1,
                   int threads = 1);

}  // namespace stitch
