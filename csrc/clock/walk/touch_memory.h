// Which sectors and banks a warp's memory instruction touches, and what it loads as far as a launch
// says.
#pragma once

#include <algorithm>
#include <map>
#include <optional>
#include <unordered_map>
#include <vector>

#include "clock/walk/trace.h"
#include "clock/walk/warp.h"

namespace stitch::clock {

class MemoryWalk {
 public:
  MemoryWalk(size_t parameters, const Launch& launch, Trace& trace)
      : parameters_(parameters), stored_(launch.arguments.size()), launch_(launch), trace_(trace) {}

  void start_block(int64_t block) {
    block_ = block;
    waits_.clear();
  }
  // Position in Trace::accesses of what `lanes` touch, or Step::kNoAccess.
  int32_t touch(const Prepared& step, uint32_t lanes);
  // `local_end`: words of local memory of this warp's lanes and of those before it.
  void start_warp(uint64_t local_end) {
    barriers_ = 0;
    local_end_ = local_end;
    spilled_.clear();
  }
  void pass_barrier() { ++barriers_; }
  void wait_for_grid() {
    const auto at = std::ranges::lower_bound(waits_, barriers_);
    if (at == waits_.end() || *at != barriers_) waits_.insert(at, barriers_);
  }
  uint64_t outside_lanes() const { return outside_lanes_; }  // that left all arguments
  // Integers were taken as they are before the launch from memory that it also stores to.
  bool has_read_what_changes() const { return has_read_what_changes_; }
  bool has_local_arrays() const { return has_arrays_; }
  bool has_counted_blocks() const { return !first_added_.empty(); }

 private:
  struct Addresses {
    std::array<uint64_t, kLanes> lanes;
    uint32_t known = 0;
    int bytes = 0;  // at each
  };
  static size_t count_conflicts(const Addresses& addresses);
  Addresses find_addresses(const Prepared& step, const Operand& operand, uint32_t lanes) const;
  uint32_t inside_arguments(const Addresses& addresses);
  void touch_global(const Prepared& step, Addresses addresses, uint32_t lanes, Access& access);
  void move_spilled(const Prepared& step, const Addresses& addresses, uint32_t lanes,
                    Access& access);
  void add_sectors(const Addresses& addresses, uint32_t lanes, Access& access);
  void load_integers(const Prepared& step, const Addresses& addresses, uint32_t lanes);
  std::optional<uint32_t> read_word(size_t argument, uint64_t at, int bytes);
  void mark_stored(const Addresses& addresses);
  void add_atomically(const Prepared& step, const Addresses& addresses, uint32_t lanes);

  size_t parameters_;
  uint64_t outside_lanes_ = 0;
  bool has_read_what_changes_ = false, has_arrays_ = false;
  uint64_t local_end_ = 0;
  std::vector<std::vector<bool>> stored_;  // words, by argument whose integers are given
  const Launch& launch_;
  Trace& trace_;
  int64_t block_ = 0;
  // Barriers of the block that its warp has passed; how many lie before each wait for the grid,
  // which one warp makes and the others learn of at their next barrier.
  int barriers_ = 0;
  std::vector<int> waits_;                       // ascending
  std::map<uint64_t, uint32_t> first_added_;     // by block 0, at an address
  std::unordered_map<uint64_t, Value> spilled_;  // words of the warp's local memory
  std::vector<SectorRun> found_;
};

}  // namespace stitch::clock
