// Caches and memory as one multiprocessor sees them, while the others do the same beside it.
//
// A sector is found in the first cache if this multiprocessor loaded it within as many sectors as
// the cache holds, in the second if since then no more came from memory than its share of that;
// others come from memory.  Where blocks share what they read, each multiprocessor fetches its part
// of it: an argument's sectors are counted once over the grid in each phase, which is what lies
// between two barriers of the grid.  What only others touched in a phase before is as old as the
// same place of this multiprocessor's own part: all go through their parts at one pace.
#pragma once

#include <algorithm>
#include <memory>
#include <span>

#include "clock/machine/occupancy.h"
#include "clock/walk/trace.h"

namespace stitch::clock {

// What moves bytes at a rate, those of one access after those of another.
struct Server {
  double rate = 0, latency = 0;  // bytes a cycle; cycles
  double free_at = 0, busy = 0;  // cycles

  // When `bytes` that are asked for at `cycle` are there; `share`: of the multiprocessors, those
  // that ask.
  double serve(double bytes, double cycle, double share) {
    if (bytes == 0) return 0;
    const double taken = bytes / std::min(rate / share, kNumbers.port_bytes);
    free_at = std::max(free_at, cycle) + taken;
    busy += taken;
    return free_at + latency;
  }
};

class MemorySystem {
 public:
  MemorySystem(const Trace& trace, const Launch& launch, const DeviceSpec& device,
               const Occupancy& occupancy);

  struct Served {
    double done;
    double memory_bytes;
  };
  // Of an access that leaves the shared pipe at `cycle`.  `share`: of the multiprocessors, those
  // that run a block of the same round.
  Served access(const Access& access, const Instruction& instruction, double cycle, double share);
  const Server& memory() const { return memory_; }
  const Server& second_cache() const { return second_cache_; }

 private:
  static constexpr uint64_t kPageSectors = 512;
  static constexpr size_t kPhases = 8;  // later ones count as the last of these
  // When a sector was last touched, by each cache's clock.
  struct Stamp {
    uint32_t loaded = 0;         // 0: not, or stored since
    uint32_t kept : 31 = 0;      // 0: never touched
    uint32_t is_stored : 1 = 0;  // since it was last in memory alone
  };
  struct Page {
    std::array<Stamp, kPageSectors> stamps;
    uint32_t touched = 0, touched_before = 0;  // last; in phases before this one
  };
  struct Region {  // an argument
    Region() { fetched_share.fill(1); }
    Page& page_of(uint64_t sector);

    std::vector<std::unique_ptr<Page>> pages;
    std::array<double, kPhases> distinct = {};  // sectors that the trace touches
    // Of first touches, those that no other multiprocessor has made.
    std::array<double, kPhases> fetched_share;
  };
  enum class Found { kFirstCache, kSecondCache, kMemory };

  Region& region_of(uint64_t sector);
  Found find(uint64_t sector, bool is_store, bool is_cached);
  void share_arguments(const Launch& launch, double part, size_t phase);
  void count_distinct(const std::vector<Access>& accesses, uint32_t end);
  void start_phase();

  const std::vector<SectorRun>& runs_;
  std::vector<Region> regions_;
  uint32_t first_clock_ = 1;   // sectors loaded so far
  uint32_t second_clock_ = 1;  // sectors that came from memory, or will go there
  size_t phase_ = 0;
  uint32_t first_cache_sectors_, second_cache_sectors_;
  Server memory_{.latency = kNumbers.memory_latency};
  Server second_cache_{.latency = kNumbers.second_cache_latency};
  double memory_bytes_ = 0, stored_bytes_ = 0;
};

}  // namespace stitch::clock
