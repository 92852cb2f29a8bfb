#include "clock/machine/memory_system.h"

#include <algorithm>

namespace stitch::clock {

namespace {

// Spills too: it keeps their stores, which go on to the second.
bool is_cached(const Instruction& instruction) {
  return is_local(instruction) || (instruction.row->flow == Flow::load && is_weak(instruction));
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
  // Blocks that are alike say what is shared.
  const size_t alike = trace.blocks.size() - trace.last_differs;
  count_distinct(trace.accesses, trace.last_differs ? trace.blocks.back().first_run : UINT32_MAX);
  regions_.resize(std::max(regions_.size(), launch.arguments.size() + 1));
  const double part = static_cast<double>(alike) / static_cast<double>(launch.blocks());
  for (size_t phase = 0; phase < kPhases; ++phase) share_arguments(launch, part, phase);
}

// `part`: of the grid, what was walked.  An argument of which it touches more than its part is
// shared by blocks, unless the others have arguments of their own.
void MemorySystem::share_arguments(const Launch& launch, double part, size_t phase) {
  double excess = 0, untouched = 0;  // sectors
  const auto own_sectors = [&](size_t i) {
    return part * static_cast<double>(launch.arguments[i - 1].bytes) / kSectorBytes;
  };
  for (size_t i = 1; i <= launch.arguments.size(); ++i) {
    excess += std::max(0.0, regions_[i].distinct[phase] - own_sectors(i));
    if (regions_[i].pages.empty()) untouched += own_sectors(i);
  }
  constexpr double rounding = 1.25;
  if (excess <= rounding * untouched) return;
  for (size_t i = 1; i <= launch.arguments.size(); ++i) {
    const double touched = regions_[i].distinct[phase];
    if (touched > own_sectors(i)) regions_[i].fetched_share[phase] = own_sectors(i) / touched;
  }
}

// Of accesses to sectors before the run `end`.
void MemorySystem::count_distinct(const std::vector<Access>& accesses, uint32_t end) {
  Region* region;
  for (const Access& access : accesses) {
    if (access.first_run >= end) break;
    const size_t phase = std::min<size_t>(access.phase, kPhases - 1);
    for (const SectorRun& run : std::span(runs_).subspan(access.first_run, access.runs)) {
      for (uint64_t sector = run.first; sector < run.first + run.count; ++sector) {
        uint32_t& seen = page_of(sector, region).stamps[sector % kPageSectors].loaded;
        region->distinct[phase] += !(seen >> phase & 1);
        seen |= 1u << phase;
      }
    }
  }
  for (Region& touched : regions_) {
    for (auto& page : touched.pages)
      if (page) page->stamps.fill({});
  }
}

// Pages that only others have touched so far repeat the ages of those before them in a row.
void MemorySystem::start_phase() {
  ++phase_;
  for (Region& region : regions_) {
    std::vector<uint32_t> ages(region.pages.size());
    size_t own = 0;  // pages in a row
    bool was_own = false;
    for (size_t i = 0; i < ages.size(); ++i) {
      const auto& page = region.pages[i];
      const bool is_own = page && page->touched != 0;
      if (is_own) own = was_own ? own + 1 : 1;
      was_own = is_own;
      ages[i] = is_own ? page->touched : ages[i - own];
      if (page) page->touched_before = ages[i];
    }
  }
}

MemorySystem::Page& MemorySystem::page_of(uint64_t sector, Region*& region) {
  constexpr int shift = kArgumentBits - 5;
  const size_t argument = sector >> shift;
  if (argument >= regions_.size()) regions_.resize(argument + 1);
  region = &regions_[argument];
  const size_t page = (sector & ((uint64_t{1} << shift) - 1)) / kPageSectors;
  if (page >= region->pages.size()) region->pages.resize(page + 1);
  if (!region->pages[page]) region->pages[page] = std::make_unique<Page>();
  return *region->pages[page];
}

MemorySystem::Found MemorySystem::find(uint64_t sector, bool is_store, bool is_cached) {
  Region* region;
  Page& page = page_of(sector, region);
  Stamp& stamp = page.stamps[sector % kPageSectors];
  const auto keeps = [&](uint32_t touched) {
    return touched != 0 && second_clock_ - touched < second_cache_sectors_;
  };
  const bool is_loaded = stamp.loaded != 0 && first_clock_ - stamp.loaded < first_cache_sectors_;
  const bool is_kept = keeps(stamp.kept), is_stored = is_kept && stamp.is_stored;
  // Which of the sharers moves a sector is even over its sectors.
  const double place = static_cast<double>((sector * 0x9e3779b97f4a7c15) >> 40) / (1 << 24);
  const bool is_moved = is_store ? !is_stored : !is_kept && !keeps(page.touched_before);
  const bool moves = is_moved && place < region->fetched_share[phase_];
  second_clock_ += moves;
  stamp = {is_cached ? first_clock_++ : 0, second_clock_, is_store || is_stored};
  page.touched = second_clock_;
  if (is_cached && is_loaded && !is_store) return Found::kFirstCache;
  return moves ? Found::kMemory : Found::kSecondCache;
}

double MemorySystem::access(const Access& access, const Instruction& instruction, double cycle,
                            double share) {
  const Flow flow = instruction.row->flow;
  if (access.phase > phase_ && phase_ + 1 < kPhases) start_phase();
  std::array<double, 3> bytes = {0, 0, static_cast<double>(access.unknown) * kSectorBytes};
  for (uint32_t r = access.first_run; r < access.first_run + access.runs; ++r) {
    const SectorRun& run = runs_[r];
    for (uint64_t k = 0; k < run.count; ++k) {
      const Found found = find(run.first + k, flow == Flow::store, is_cached(instruction));
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
