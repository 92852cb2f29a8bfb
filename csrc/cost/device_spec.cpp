#include "cost/device_spec.h"

#include <cmath>
#include <map>

#include "base/error.h"
#include "base/fork_mutex.h"
#include "base/words.h"

namespace stitch {
namespace {

struct Product {
  const char* name;
  DeviceAttributes attributes;
  const DeviceRates* rates = nullptr;  // null: derived
};

// Sources: [D] vendor datasheet or CUDA occupancy tables; [M] measured on the named machine,
// 2026-11 (benchmarks/device_numbers.py); [P] published by others; [A] assumed; [S] as an H200.
// dram: H200 4.07 TB/s of copies, 4.23 of reads [M]; others 0.9 of the datasheet [A].
// l2: H200 8.2 TB/s of what is read again, up to 56 MB [M]; H100 [S]; A100 and B200 [A].
// launch: H200 1.35 to 1.46 us in a stream, 1.0 in a graph with ramp and drain [M].
// barrier: H200 0.84 to 0.96 us by blocks and threads, and 0.2 that a cooperative launch takes more
// [M]; B300 1.8 to 3.5 us over 148 [P].
// last block: H200 0.9 us of 132 blocks [M], with what it then does, which is counted by itself.
// block: H200 0.607 ns [M].  What is not said of others is [S].
// special: 16 results a clock and multiprocessor [D].  flops: 128 FMA a clock and multiprocessor,
// 64 on an A100 [D].  cycles: the clock that `special` was taken at.
// latencies: Hopper's are an H200's [M]; the others' last two are of the order that is published
// for them [A].  A special function is its instruction, 17 cycles, and the scaling around it.
// cpu: one core moves about 10 GB/s and makes 1.2e9 exp a second with 16 lanes; with a last cache
// of 32 MB, streaming 24 MB beside the 24 that are read, and reading them again, takes as long as
// leaving that to the caches [M, 2026-11].
constexpr Latencies kHopper = {4, 32, 24, 23, 29, 275, 684};
constexpr DeviceRates kA100 = {1.40e6, 4.0e6, 1.5,    1.1,
                               0.5,    2.4e6, 19.5e6, {4, 32, 24, 23, 29, 260, 470}};
constexpr DeviceRates kH100 = {3.01e6, 8.2e6, 1.5, 1.1, 0.5, 4.2e6, 66e6, kHopper};
constexpr DeviceRates kH200 = {4.07e6, 8.2e6, 1.5, 1.1, 0.5, 4.2e6, 66e6, kHopper};
constexpr DeviceRates kB200 = {7.20e6, 9.0e6, 2.5,  1.8,
                               0.8,    4.7e6, 74e6, {4, 32, 24, 23, 29, 300, 600}};
constexpr double kBlockUs = 0.607e-3, kShareOfPeak = 0.9, kSpecialsPerCycle = 16;  // as above

// By capability; the columns are DeviceAttributes'.  Clocks, memory and L2: datasheets [D], and
// what deviceQuery and nvbench print of A100, RTX 4090 and RTX 5090 [P]; clocks of H20 and B200 as
// an H100's, L2 of the B300 as a B200's [A].  Limits of a multiprocessor: CUDA programming guide,
// "Technical Specifications per Compute Capability" [D]; blocks on 12.0 as on 8.9 [A].
constexpr Product kProducts[] = {
    {"a100", {80, 108, 1410000, 1215000, 5120, 40 << 20, 166912, 167936, 65536, 2048, 32}, &kA100},
    {"a10", {86, 72, 1695000, 6251000, 384, 6 << 20, 101376, 102400, 65536, 1536, 16}},
    {"rtx4090", {89, 128, 2520000, 10501000, 384, 72 << 20, 101376, 102400, 65536, 1536, 24}},
    {"l4", {89, 58, 2040000, 6251000, 192, 48 << 20, 101376, 102400, 65536, 1536, 24}},
    {"h20", {90, 78, 1980000, 2619000, 6144, 60 << 20, 232448, 233472, 65536, 2048, 32}},
    {"h200", {90, 132, 1980000, 3201000, 6144, 60 << 20, 232448, 233472, 65536, 2048, 32}, &kH200},
    {"h100", {90, 132, 1980000, 2619000, 5120, 50 << 20, 232448, 233472, 65536, 2048, 32}, &kH100},
    {"b200",
     {100, 148, 1980000, 3996000, 8192, 126 << 20, 232448, 233472, 65536, 2048, 32},
     &kB200},
    {"b300", {103, 148, 1920000, 3906000, 8192, 126 << 20, 232448, 233472, 65536, 2048, 32}},
    {"rtx5090", {120, 170, 2407000, 14001000, 512, 96 << 20, 101376, 102400, 65536, 1536, 24}},
};

bool host_multiplies_bf16() {
#if defined(__x86_64__)
  return __builtin_cpu_supports("avx512bf16") && !__builtin_cpu_supports("amx-tile");
#else
  return false;
#endif
}

// Of memory, at both edges of its clock; zero where the driver does not say.
double peak_bytes_per_us(const DeviceAttributes& gpu) {
  return 2.0 * gpu.memory_clock_khz / 1e3 * gpu.memory_bus_bits / 8;
}

// Clocks differ from board to board, and B200s say 7680 or 8192 bits by their driver.
bool is_product(const DeviceAttributes& found, const DeviceAttributes& product) {
  const auto agree = [](double a, double b) { return a == 0 || std::abs(a / b - 1) < 0.1; };
  return found.capability == product.capability &&
         found.multiprocessors == product.multiprocessors &&
         agree(found.l2_bytes, product.l2_bytes) &&
         agree(peak_bytes_per_us(found), peak_bytes_per_us(product));
}

std::string encode_name(const DeviceAttributes& gpu) {
  std::string name = concat("sm_", gpu.capability);
  for (const auto& [member, number] : kAttributes) name += concat("-", gpu.*member);
  return name;
}

DeviceSpec make_device(const std::string& name, const DeviceAttributes& gpu,
                       const DeviceRates& rates) {
  // From Hopper on a binary may be for its own architecture only (`a`).  What is newer than all
  // that are known here has a plain architecture; an NVRTC too old for it says so.
  const bool has_own = gpu.capability >= 90 && gpu.capability < 130;
  DeviceSpec device = {gpu, rates, name, concat("sm_", gpu.capability, has_own ? "a" : "")};
  device.block_us = kBlockUs;
  device.cycles_per_us = gpu.clock_khz / 1e3;
  return device;
}

// What is unsaid is that of the last row that is not newer [A]; cycles and times of launches and
// barriers, and L2 by multiprocessor and cycle, that of the last one with rates of its own [A].
DeviceSpec derive_device(const std::string& name, const DeviceAttributes& said) {
  const Product *near = kProducts, *row = kProducts;
  for (const Product& product : kProducts) {
    if (product.attributes.capability > said.capability) break;
    near = &product;
    if (product.rates) row = &product;
  }
  const DeviceAttributes &own = row->attributes, &nearest = near->attributes;
  DeviceAttributes gpu = said;
  for (const auto& [member, number] : kAttributes)
    if (gpu.*member == 0) gpu.*member = nearest.*member;
  double peak = peak_bytes_per_us(said), near_peak = peak_bytes_per_us(nearest);
  if (peak == 0) peak = near_peak * gpu.multiprocessors / nearest.multiprocessors;
  const double cycles = gpu.multiprocessors * (gpu.clock_khz / 1e3);
  DeviceRates rates = *row->rates;
  rates.dram_bytes_per_us = kShareOfPeak * peak;
  rates.l2_bytes_per_us *= cycles / (own.multiprocessors * (own.clock_khz / 1e3));
  rates.l2_bytes_per_us = std::max(rates.l2_bytes_per_us, rates.dram_bytes_per_us);
  rates.special_per_us = kSpecialsPerCycle * cycles;
  rates.flops_per_us = 2 * cycles * (gpu.capability == 80 ? 64 : 128);
  DeviceSpec device = make_device(name, gpu, rates);
  device.derived = concat(device.arch, ", ", gpu.multiprocessors, " multiprocessors at ",
                          gpu.clock_khz / 1000, " MHz, memory of ", std::lround(peak / 1e3),
                          " GB/s; assumed: latencies, launches and barriers of the ", row->name);
  if (encode_name(gpu) != encode_name(said))
    device.derived += concat(", and what its driver does not say of the ", near->name);
  return device;
}

auto& derived_mutex = *new ForkMutex;
auto& derived_devices = *new std::map<std::string, DeviceSpec>;  // by name

}  // namespace

const std::vector<DeviceSpec>& all_devices() {
  static const std::vector<DeviceSpec> devices = [] {
    std::vector<DeviceSpec> all;
    for (const auto& [name, gpu, rates] : kProducts)
      all.push_back(rates ? make_device(name, gpu, *rates) : derive_device(name, gpu));
    DeviceSpec cpu = {{.multiprocessors = 2, .l2_bytes = 2 << 20}, {2.0e4, 1.0e5, 1.0}, "cpu"};
    cpu.threads_per_multiprocessor = cpu.blocks_per_multiprocessor = 1;
    cpu.special_per_us = 2.4e3;
    cpu.flops_per_us = 1.0e5;
    cpu.is_cuda = false;
    cpu.vector_bytes = 64;
    cpu.cached_bytes = 48 << 20;
    cpu.multiplies_bf16 = host_multiplies_bf16();
    all.push_back(cpu);
    return all;
  }();
  return devices;
}

const DeviceSpec& device_spec(const std::string& name) {
  const std::vector<DeviceSpec>& devices = all_devices();
  const auto found = std::ranges::find(devices, name, &DeviceSpec::name);
  if (found != devices.end()) return *found;
  DeviceAttributes gpu;
  std::istringstream text(name.substr(std::min<size_t>(name.size(), 3)));  // behind "sm_"
  text >> gpu.capability;
  for (const auto& [member, number] : kAttributes)
    if (text >> gpu.*member) gpu.*member *= -1;         // of "-58"
  if (gpu.capability < 80 || encode_name(gpu) != name)  // bf16 is not converted before
    throw UserError("unknown target '" + name + "'; known targets are " +
                    join(devices, ", ", &DeviceSpec::name));
  std::lock_guard lock(derived_mutex);
  return derived_devices.try_emplace(name, derive_device(name, gpu)).first->second;
}

const DeviceSpec& find_device(const DeviceAttributes& found) {
  for (const DeviceSpec& device : all_devices())
    if (is_product(found, device)) return device;
  return device_spec(encode_name(found));
}

}  // namespace stitch
