// Caches and memory as one multiprocessor sees them, while the others do the same beside it.
//
// A sector is found in the first cache if this multiprocessor loaded it within as many sectors as
// the cache holds, in the second if it touched it within its share of that; others come from
// memory.  Where blocks share what they read, each multiprocessor fetches its part of it: an
// argument's sectors are counted once over the grid.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "clock/machine/numbers.h"
#include "clock/machine/occupancy.h"
#include "clock/walk/trace.h"
#include "cost/device_spec.h"

namespace stitch::clock {

struct Traffic {
  double first_cache_bytes = 0, second_cache_bytes = 0, memory_bytes = 0;
};

class MemorySystem {
 public:
  MemorySystem(const Trace& trace, const Launch& launch, const DeviceSpec& device,
               const Occupancy& occupancy);

  // When an access that leaves the shared pipe at `cycle` is done.  `share`: of the
  // multiprocessors, those that run a block of the same round.
  double access(const Access& access, const Instruction& instruction, double cycle, double share);
  double idle_at() const { return std::max(memory_free_, second_cache_free_); }
  double memory_busy() const { return memory_busy_; }
  double second_cache_busy() const { return second_cache_busy_; }
  const Traffic& traffic() const { return traffic_; }

 private:
  static constexpr uint64_t kPageSectors = 4096;
  // Flags of a stamp: since it was last in memory alone, the sector was loaded, or stored.
  static constexpr uint32_t kLoaded = 1u << 31, kStored = 1u << 30, kStamp = kStored - 1;
  using Page = std::array<uint32_t, kPageSectors>;
  struct Region {
    std::vector<std::unique_ptr<Page>> pages;
    uint64_t distinct = 0;     // sectors that the trace touches
    double fetched_share = 1;  // of first touches, those that no other multiprocessor has made
  };
  enum class Found { kFirstCache, kSecondCache, kMemory };

  uint32_t& stamp_of(uint64_t sector, Region*& region);
  Found find(uint64_t sector, bool is_store, bool is_cached);
  void share_arguments(const Launch& launch, double part);
  void count_distinct(size_t runs);

  const std::vector<SectorRun>& runs_;
  std::vector<Region> regions_;
  uint32_t clock_ = 1;  // sectors touched so far
  uint32_t first_cache_sectors_, second_cache_sectors_;
  double memory_rate_, second_cache_rate_;  // bytes a cycle
  double memory_free_ = 0, second_cache_free_ = 0;
  double memory_busy_ = 0, second_cache_busy_ = 0, stored_bytes_ = 0;
  Traffic traffic_;
};

}  // namespace stitch::clock
