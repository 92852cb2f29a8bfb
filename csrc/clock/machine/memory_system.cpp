#include "clock/machine/memory_system.h"

#include <algorithm>

namespace stitch::clock {

namespace {

bool is_cached_load(const Instruction& instruction) {
  return instruction.row->flow == Flow::load && is_weak(instruction);
}

}  // namespace

MemorySystem::MemorySystem(const Trace& trace, const Launch& launch, const DeviceSpec& device,
                           const Occupancy& occupancy)
    : runs_(trace.runs) {
  const double active =
      static_cast<double>(std::min<int64_t>(launch.blocks(), device.multiprocessors));
  const double port = kNumbers.port_bytes;
  memory_rate_ =
      std::min(port, kNumbers.read_rate * device.dram_bytes_per_us / device.cycles_per_us / active);
  second_cache_rate_ = std::min(port, device.l2_bytes_per_us / device.cycles_per_us / active);
  first_cache_sectors_ = static_cast<uint32_t>(occupancy.first_cache_bytes / kSectorBytes);
  second_cache_sectors_ = static_cast<uint32_t>(
      kNumbers.second_cache_share * static_cast<double>(device.l2_bytes) / kSectorBytes / active);
  // The last block walked may differ from all others: they say what is shared.
  const size_t walked = trace.blocks.size(), alike = std::max<size_t>(1, walked - 1);
  count_distinct(walked == 1 ? trace.runs.size() : trace.blocks.back().first_run);
  share_arguments(launch, static_cast<double>(alike) / static_cast<double>(launch.blocks()));
}

// `part`: of the grid, what was walked.  An argument of which it touches more than its part is
// shared by blocks, unless the others have arguments of their own.
void MemorySystem::share_arguments(const Launch& launch, double part) {
  double excess = 0, untouched = 0;  // sectors
  const auto own_sectors = [&](size_t i) {
    return part * static_cast<double>(launch.arguments[i - 1].bytes) / kSectorBytes;
  };
  regions_.resize(std::max(regions_.size(), launch.arguments.size() + 1));
  for (size_t i = 1; i <= launch.arguments.size(); ++i) {
    const auto touched = static_cast<double>(regions_[i].distinct);
    excess += std::max(0.0, touched - own_sectors(i));
    if (touched == 0) untouched += own_sectors(i);
  }
  constexpr double rounding = 1.25;
  if (excess <= rounding * untouched) return;
  for (size_t i = 1; i <= launch.arguments.size(); ++i) {
    const auto touched = static_cast<double>(regions_[i].distinct);
    if (touched > own_sectors(i)) regions_[i].fetched_share = own_sectors(i) / touched;
  }
}

void MemorySystem::count_distinct(size_t runs) {
  Region* region;
  for (const SectorRun& run : std::span(runs_).first(runs)) {
    for (uint64_t k = 0; k < run.count; ++k) {
      uint32_t& stamp = stamp_of(run.first + k, region);
      region->distinct += stamp == 0;
      stamp = 1;
    }
  }
  for (Region& touched : regions_) {
    for (auto& page : touched.pages)
      if (page) page->fill(0);
  }
}

uint32_t& MemorySystem::stamp_of(uint64_t sector, Region*& region) {
  constexpr int shift = kArgumentBits - 5;
  const size_t argument = sector >> shift;
  const uint64_t inside = sector & ((uint64_t{1} << shift) - 1);
  if (argument >= regions_.size()) regions_.resize(argument + 1);
  region = &regions_[argument];
  const size_t page = inside / kPageSectors;
  if (page >= region->pages.size()) region->pages.resize(page + 1);
  if (!region->pages[page]) region->pages[page] = std::make_unique<Page>(Page{});
  return (*region->pages[page])[inside % kPageSectors];
}

MemorySystem::Found MemorySystem::find(uint64_t sector, bool is_store, bool is_cached) {
  Region* region;
  uint32_t& stamp = stamp_of(sector, region);
  const uint32_t age = clock_ - (stamp & kStamp);
  const bool is_first = stamp == 0, is_kept = !is_first && age < second_cache_sectors_;
  const bool was_loaded = stamp & kLoaded, was_stored = is_kept && (stamp & kStored);
  stamp = (clock_++ & kStamp) | (is_cached ? kLoaded : 0) | (is_store || was_stored ? kStored : 0);
  if (is_cached && was_loaded && age < first_cache_sectors_) return Found::kFirstCache;
  if (is_kept && (!is_store || was_stored)) return Found::kSecondCache;
  // Which of the sharers moves a sector is even over its sectors.
  const double place = static_cast<double>((sector * 0x9e3779b97f4a7c15) >> 40) / (1 << 24);
  return place < region->fetched_share ? Found::kMemory : Found::kSecondCache;
}

double MemorySystem::access(const Access& access, const Instruction& instruction, double cycle,
                            double share) {
  const Flow flow = instruction.row->flow;
  const bool is_cached = is_cached_load(instruction);
  std::array<double, 3> bytes = {0, 0, static_cast<double>(access.unknown) * kSectorBytes};
  for (uint32_t r = access.first_run; r < access.first_run + access.runs; ++r) {
    const SectorRun& run = runs_[r];
    for (uint64_t k = 0; k < run.count; ++k) {
      const Found found = find(run.first + k, flow == Flow::store, is_cached);
      bytes[static_cast<size_t>(flow == Flow::atomic ? Found::kSecondCache : found)] +=
          kSectorBytes;
    }
  }
  traffic_.first_cache_bytes += bytes[0];
  traffic_.second_cache_bytes += bytes[1];
  traffic_.memory_bytes += bytes[2];
  double done = cycle + kNumbers.first_cache_latency;
  const auto serve = [&](double moved, double rate, double latency, double& free, double& busy) {
    if (moved == 0) return;
    free = std::max(free, cycle) + moved / rate;
    busy += moved / rate;
    done = std::max(done, free + latency);
  };
  const double behind = bytes[1] + bytes[2];
  if (flow == Flow::store) {
    stored_bytes_ += bytes[2];
    if (2 * stored_bytes_ <= traffic_.memory_bytes) bytes[2] *= 1 + kNumbers.turnaround;
  }
  serve(behind, std::min(second_cache_rate_ / share, kNumbers.port_bytes),
        kNumbers.second_cache_latency, second_cache_free_, second_cache_busy_);
  serve(bytes[2], std::min(memory_rate_ / share, kNumbers.port_bytes), kNumbers.memory_latency,
        memory_free_, memory_busy_);
  return done;
}

}  // namespace stitch::clock
