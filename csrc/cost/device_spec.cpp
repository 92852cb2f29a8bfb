#include "cost/device_spec.h"

#include "base/error.h"

namespace stitch {

namespace {

// [A]: assumed, of the order that is published for these architectures (Jia et al. 2018, arXiv
// 1804.06826; Luo et al. 2024, arXiv 2402.13499), not measured here.  A special function is its
// instruction and the scaling around it.
constexpr Latencies kAmpere = {4, 32, 24, 30, 26, 260, 470};
constexpr Latencies kHopper = {4, 32, 24, 30, 26, 260, 480};
constexpr Latencies kBlackwell = {4, 32, 24, 30, 26, 300, 600};

bool host_multiplies_bf16() {
#if defined(__x86_64__)
  return __builtin_cpu_supports("avx512bf16") && !__builtin_cpu_supports("amx-tile");
#else
  return false;
#endif
}

}  // namespace

// Sources: [D] vendor datasheet or CUDA occupancy tables; [M] measured on the named machine, 2026;
// [P] published by others; [S] scaled from the H200's measured / datasheet ratio.
//
// dram: H200 copy 4.3 TB/s [M]; others 0.9 of the datasheet (1.56, 3.35, 8.0 TB/s) [S].
// l2: H800 3942 B/clk, planned as 5.5 TB/s on Hopper [M]; A100 and B200 by clock and width [S].
// launch: H100 graph node 1.0 us + ramp and drain 1.5 us [M].
// barrier: H100 1.10 us over 132 blocks, B300 1.8 to 3.5 us over 148 [P]; A100 as Hopper [S].
// last block: an atomic and a load that misses the first cache, 258 to 414 cycles each on an H800
// [P], and two barriers of the block; not measured as a whole.
//
// saved: the copy rate from the first byte on [A], until a calibration has fitted the line.
//
// special: 16 results a clock and multiprocessor [D].  flops: 128 FMA a clock and multiprocessor
// [D]. cycles: the clock that `special` was taken at.  cpu: one core moves about 10 GB/s and
// makes 1.2e9 exp a second with 16 lanes [M, 2026-11].
const std::vector<DeviceSpec>& all_devices() {
  static const std::vector<DeviceSpec> devices = {
      // name, arch, cuda, SMs, dram, l2, l2 bytes, smem/block, smem/SM, regs, threads, launch,
      // barrier, last block, special, flops, cycles, latencies, saved, vector, bf16
      {"a100", "sm_80", true, 108, 1.40e6, 4.0e6,  40 << 20, 166912,  167936,      65536,
       2048,   2.5,     1.1,  0.5, 2.4e6,  19.5e6, 1410,     kAmpere, {0, 1.40e6}, 16},
      {"h100", "sm_90a", true, 132, 3.01e6, 5.5e6, 50 << 20, 232448,  233472,      65536,
       2048,   2.5,      1.1,  0.5, 4.2e6,  66e6,  1980,     kHopper, {0, 3.01e6}, 16},
      {"h200", "sm_90a", true, 132, 4.30e6, 5.5e6, 60 << 20, 232448,  233472,      65536,
       2048,   2.5,      1.1,  0.5, 4.2e6,  66e6,  1980,     kHopper, {0, 4.30e6}, 16},
      {"b200", "sm_100a", true, 148, 7.20e6, 9.0e6, 126 << 20, 232448,     233472,      65536,
       2048,   2.5,       1.8,  0.8, 4.7e6,  74e6,  1980,      kBlackwell, {0, 7.20e6}, 16},
      {"cpu", "",    false, 2,  2.0e4,      1.0e5, 2 << 20,
       0,     0,     0,     1,  1.0,        0,     0,
       2.4e3, 1.0e5, 0,     {}, {0, 2.0e4}, 64,    host_multiplies_bf16()},
  };
  return devices;
}

const DeviceSpec& device_spec(const std::string& name) {
  std::string known;
  for (const DeviceSpec& device : all_devices()) {
    if (name == device.name) return device;
    known += (known.empty() ? "" : ", ") + std::string(device.name);
  }
  throw UserError("unknown target '" + name + "'; known targets are " + known);
}

}  // namespace stitch
