// How many blocks of a launch a multiprocessor holds, and what decides it.
#pragma once

#include "clock/machine/numbers.h"
#include "clock/sass/cubin.h"
#include "clock/walk/launch.h"
#include "cost/device_spec.h"

namespace stitch::clock {

inline constexpr int kSchedulers = 4;  // of a multiprocessor

struct Occupancy {
  int64_t blocks = 0;             // resident, at most as many as the grid gives a multiprocessor
  std::string limit;              // "registers", "threads", "shared memory", "blocks", "the grid"
  int64_t first_cache_bytes = 0;  // what shared memory leaves
};

// UserError where the launch is none that the device takes.
Occupancy find_occupancy(const Cubin& cubin, const CubinKernel& kernel, const Launch& launch,
                         const DeviceSpec& device);

}  // namespace stitch::clock
