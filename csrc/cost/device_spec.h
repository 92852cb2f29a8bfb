// DeviceSpec: every number the planner knows about a machine, one row per device.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace stitch {

struct DeviceSpec {
  const char* name;
  const char* arch;  // NVRTC's architecture; empty for the host
  bool is_cuda;
  int multiprocessors;  // host: worker threads are asked for at run time, this is a default
  double dram_bytes_per_us;
  double l2_bytes_per_us;
  int64_t l2_bytes;
  int64_t shared_bytes_per_block, shared_bytes_per_multiprocessor;
  int registers_per_multiprocessor;
  int threads_per_multiprocessor;
  double launch_us;       // from one kernel's end to the next one's start, plus ramp and tail
  double barrier_us;      // all blocks of a resident grid meet; 0: they cannot
  double last_block_us;   // the last block knows that it is, and has loaded what others stored
  double special_per_us;  // exp, log, tanh ...: results per us, whole device
  double flops_per_us;    // fp32 operations per us, whole device
  int vector_bytes;       // widest access of one thread
  bool multiplies_bf16 = false;  // a host with vector products of bf16, and no tiles
};

// UserError naming the known devices for another name.
const DeviceSpec& device_spec(const std::string& name);
const std::vector<DeviceSpec>& all_devices();

}  // namespace stitch
