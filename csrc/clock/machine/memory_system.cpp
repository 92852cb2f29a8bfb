#include "clock/machine/memory_system.h"

#include <algorithm>

namespace stitch::clock {

namespace {

constexpr int kSectorBits = kArgumentBits - 5;  // of a sector in its argument

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
  memory_.rate = kNumbers.read_rate * device.dram_bytes_per_us / device.cycles_per_us / active;
  second_cache_.rate = device.l2_bytes_per_us / device.cycles_per_us / active;
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
  for (const Access& access : accesses) {
    if (access.first_run >= end) break;
    const size_t phase = std::min<size_t>(access.phase, kPhases - 1);
    for (const SectorRun& run : std::span(runs_).subspan(access.first_run, access.runs)) {
      for (uint64_t sector = run.first; sector < run.first + run.count; ++sector) {
        Region& region = region_of(sector);
        uint32_t& seen = region.page_of(sector).stamps[sector % kPageSectors].loaded;
        region.distinct[phase] += !(seen >> phase & 1);
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

MemorySystem::Region& MemorySystem::region_of(uint64_t sector) {
  const size_t argument = sector >> kSectorBits;
  if (argument >= regions_.size()) regions_.resize(argument + 1);
  return regions_[argument];
}
MemorySystem::Page& MemorySystem::Region::page_of(uint64_t sector) {
  const size_t page = (sector & ((uint64_t{1} << kSectorBits) - 1)) / kPageSectors;
  if (page >= pages.size()) pages.resize(page + 1);
  if (!pages[page]) pages[page] = std::make_unique<Page>();
  return *pages[page];
}

MemorySystem::Found MemorySystem::find(uint64_t sector, bool is_store, bool is_cached) {
  Region& region = region_of(sector);
  Page& page = region.page_of(sector);
  Stamp& stamp = page.stamps[sector % kPageSectors];
  const auto keeps = [&](uint32_t touched) {
    return touched != 0 && second_clock_ - touched < second_cache_sectors_;
  };
  const bool is_loaded = stamp.loaded != 0 && first_clock_ - stamp.loaded < first_cache_sectors_;
  const bool is_kept = keeps(stamp.kept), is_stored = is_kept && stamp.is_stored;
  // Which of the sharers moves a sector is even over its sectors.
  const double place = static_cast<double>((sector * 0x9e3779b97f4a7c15) >> 40) / (1 << 24);
  const bool is_moved = is_store ? !is_stored : !is_kept && !keeps(page.touched_before);
  const bool moves = is_moved && place < region.fetched_share[phase_];
  second_clock_ += moves;
  stamp = {is_cached ? first_clock_++ : 0, second_clock_, is_store || is_stored};
  page.touched = second_clock_;
  if (is_cached && is_loaded && !is_store) return Found::kFirstCache;
  return moves ? Found::kMemory : Found::kSecondCache;
}

MemorySystem::Served MemorySystem::access(const Access& access, const Instruction& instruction,
                                          double cycle, double share) {
  const Flow flow = instruction.row->flow;
  if (access.phase > phase_ && phase_ + 1 < kPhases) start_phase();
  double moved = static_cast<double>(access.unknown) * kSectorBytes, behind = moved;  // bytes
  for (const SectorRun& run : std::span(runs_).subspan(access.first_run, access.runs)) {
    for (uint64_t k = 0; k < run.count; ++k) {
      Found found = find(run.first + k, flow == Flow::store, is_cached(instruction));
      if (flow == Flow::atomic) found = Found::kSecondCache;
      if (found != Found::kFirstCache) behind += kSectorBytes;
      if (found == Found::kMemory) moved += kSectorBytes;
    }
  }
  memory_bytes_ += moved;
  double taken = moved;
  if (flow == Flow::store) {
    stored_bytes_ += moved;
    if (2 * stored_bytes_ <= memory_bytes_) taken *= 1 + kNumbers.turnaround;
  }
  const double found_at = cycle + kNumbers.first_cache_latency;
  return {std::max({found_at, second_cache_.serve(behind, cycle, share),
                    memory_.serve(taken, cycle, share)}),
          moved};
}

}  // namespace stitch::clock
