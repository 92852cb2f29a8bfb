#include "cost/device_spec.h"

#include <algorithm>

#include "base/error.h"
#include "base/words.h"

namespace stitch {
namespace {

// Hopper's are an H200's [M]; the others' last two are of the order that is published for them [A].
// A special function is its instruction, 17 cycles, and the scaling around it.
constexpr Latencies kHopper = {4, 32, 24, 23, 29, 275, 684};
constexpr Latencies kAmpere = {4, 32, 24, 23, 29, 260, 470};
constexpr Latencies kBlackwell = {4, 32, 24, 23, 29, 300, 600};

bool host_multiplies_bf16() {
#if defined(__x86_64__)
  return __builtin_cpu_supports("avx512bf16") && !__builtin_cpu_supports("amx-tile");
#else
  return false;
#endif
}

// Sources: [D] vendor datasheet or CUDA occupancy tables; [M] measured on the named machine,
// 2026-11 (benchmarks/device_numbers.py); [P] published by others; [A] assumed; [S] as an H200.
//
// dram: H200 4.07 TB/s of copies, 4.23 of reads [M]; others 0.9 of the datasheet [A].
// l2: H200 8.2 TB/s of what is read again, up to 56 MB [M]; H100 [S]; A100 and B200 [A].
// launch: H200 1.35 to 1.46 us in a stream, 1.0 in a graph with ramp and drain [M].
// barrier: H200 0.84 to 0.96 us by blocks and threads, and 0.2 that a cooperative launch takes more
// [M]; B300 1.8 to 3.5 us over 148 [P].
// last block: H200 0.9 us of 132 blocks [M], with what it then does, which is counted by itself.
// block: H200 0.607 ns [M].  What is not said of others is [S].
//
// saved: the copy rate from the first byte on [A], until a calibration has fitted the line.
//
// special: 16 results a clock and multiprocessor [D].  flops: 128 FMA a clock and multiprocessor
// [D]. cycles: the clock that `special` was taken at.  cpu: one core moves about 10 GB/s and
// makes 1.2e9 exp a second with 16 lanes; with a last cache of 32 MB, streaming 24 MB beside the 24
// that are read, and reading them again, takes as long as leaving that to the caches [M, 2026-11].
constexpr DeviceSpec kH100 = {.name = "h100",
                              .arch = "sm_90a",
                              .is_cuda = true,
                              .multiprocessors = 132,
                              .dram_bytes_per_us = 3.01e6,
                              .l2_bytes_per_us = 8.2e6,
                              .l2_bytes = 50 << 20,
                              .shared_bytes_per_block = 232448,
                              .shared_bytes_per_multiprocessor = 233472,
                              .registers_per_multiprocessor = 65536,
                              .threads_per_multiprocessor = 2048,
                              .launch_us = 1.5,
                              .barrier_us = 1.1,
                              .last_block_us = 0.5,
                              .block_us = 0.607e-3,
                              .special_per_us = 4.2e6,
                              .flops_per_us = 66e6,
                              .cycles_per_us = 1980,
                              .latencies = kHopper,
                              .saved = {0, 3.01e6},
                              .vector_bytes = 16};
constexpr DeviceSpec kA100 = [] {
  DeviceSpec device = kH100;
  device.name = "a100";
  device.arch = "sm_80";
  device.multiprocessors = 108;
  device.dram_bytes_per_us = device.saved.bytes_per_us = 1.40e6;
  device.l2_bytes_per_us = 4.0e6;
  device.l2_bytes = 40 << 20;
  device.shared_bytes_per_block = 166912;
  device.shared_bytes_per_multiprocessor = 167936;
  device.special_per_us = 2.4e6;
  device.flops_per_us = 19.5e6;
  device.cycles_per_us = 1410;
  device.latencies = kAmpere;
  return device;
}();
// An H100 with more and faster memory.
constexpr DeviceSpec kH200 = [] {
  DeviceSpec device = kH100;
  device.name = "h200";
  device.dram_bytes_per_us = device.saved.bytes_per_us = 4.07e6;
  device.l2_bytes = 60 << 20;
  return device;
}();
// Multiprocessors as large as an H100's.
constexpr DeviceSpec kB200 = [] {
  DeviceSpec device = kH100;
  device.name = "b200";
  device.arch = "sm_100a";
  device.multiprocessors = 148;
  device.dram_bytes_per_us = device.saved.bytes_per_us = 7.20e6;
  device.l2_bytes_per_us = 9.0e6;
  device.l2_bytes = 126 << 20;
  device.barrier_us = 1.8;
  device.launch_us = 2.5;
  device.last_block_us = 0.8;
  device.special_per_us = 4.7e6;
  device.flops_per_us = 74e6;
  device.latencies = kBlackwell;
  return device;
}();

}  // namespace

const std::vector<DeviceSpec>& all_devices() {
  static const std::vector<DeviceSpec> devices = {
      kA100,
      kH100,
      kH200,
      kB200,
      {.name = "cpu",
       .arch = "",
       .is_cuda = false,
       .multiprocessors = 2,
       .dram_bytes_per_us = 2.0e4,
       .l2_bytes_per_us = 1.0e5,
       .l2_bytes = 2 << 20,
       .cached_bytes = 48 << 20,
       .threads_per_multiprocessor = 1,
       .launch_us = 1.0,
       .special_per_us = 2.4e3,
       .flops_per_us = 1.0e5,
       .saved = {0, 2.0e4},
       .vector_bytes = 64,
       .multiplies_bf16 = host_multiplies_bf16()},
  };
  return devices;
}

const DeviceSpec& device_spec(const std::string& name) {
  const std::vector<DeviceSpec>& devices = all_devices();
  const auto found = std::ranges::find(devices, name, &DeviceSpec::name);
  if (found != devices.end()) return *found;
  throw UserError("unknown target '" + name + "'; known targets are " +
                  join(devices, ", ", &DeviceSpec::name));
}

}  // namespace stitch
