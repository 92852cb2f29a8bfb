// What a kernel does, in numbers, and the time a device needs for it.
#pragma once

#include <cstdint>

#include "cost/device_spec.h"

namespace stitch {

struct KernelWork {
  double dram_bytes = 0;   // elements accessed, once per buffer and pass
  double cache_bytes = 0;  // read again by other blocks or later passes
  double operations = 0;   // light arithmetic results
  double specials = 0;     // exp, log, tanh ...
  double blocks = 1;
  int threads = 1;
};

// Microseconds: T = launch + max(memory, arithmetic) / occupancy of the device.  The slowest
// resource decides, not the sum.
double estimate_us(const KernelWork& work, const DeviceSpec& device, int worker_threads);

}  // namespace stitch
