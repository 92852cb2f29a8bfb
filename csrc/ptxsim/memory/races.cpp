#include "ptxsim/memory/races.h"

#include <algorithm>
#include <array>
#include <unordered_map>

#include "base/error.h"
#include "ptxsim/machine/machine.h"

namespace stitch::ptxsim {
namespace {

constexpr int32_t kWholeBlock = -1;
constexpr uint32_t kManyBlocks = 0xffffffffu;

// Of the lanes named, everything before `time`.
struct Part {
  uint32_t block;
  int32_t warp;  // kWholeBlock: of every warp
  uint32_t mask;
  uint32_t time;
  bool operator==(const Part&) const = default;
};
// Sorted by block and warp; a lane is in at most one part beside that of its whole block.
using Clock = std::vector<Part>;
using ClockPtr = std::shared_ptr<const Clock>;

bool is_before(const Part& a, const Part& b) {
  return a.block != b.block ? a.block < b.block : a.warp < b.warp;
}

// Builds a clock from parts that come in order, leaving out what others imply.
struct ClockBuilder {
  Clock clock;
  size_t start = 0;  // of the last block

  void append(Part part) {
    if (start < clock.size() && clock[start].block != part.block) start = clock.size();
    if (start < clock.size() && clock[start].warp == kWholeBlock) {
      if (clock[start].time >= part.time) return;
      if (part.warp == kWholeBlock) {
        clock[start].time = part.time;
        return;
      }
    }
    for (size_t i = clock.size(); i > start && clock[i - 1].warp == part.warp; --i) {
      Part& other = clock[i - 1];
      if (other.time >= part.time) {
        part.mask &= ~other.mask;
      } else {
        other.mask &= ~part.mask;
        if (!other.mask) clock.erase(clock.begin() + ptrdiff_t(i) - 1);
      }
    }
    if (part.mask) clock.push_back(part);
  }
};

ClockPtr join(const ClockPtr& a, const ClockPtr& b) {
  if (!a || a == b) return b;
  if (!b) return a;
  ClockBuilder joined;
  joined.clock.reserve(a->size() + b->size());
  auto left = a->begin(), right = b->begin();
  while (left != a->end() || right != b->end()) {
    const bool take_left = right == b->end() || (left != a->end() && !is_before(*right, *left));
    joined.append(take_left ? *left++ : *right++);
  }
  if (joined.clock == *a) return a;  // one object for equal clocks: they are compared by address
  if (joined.clock == *b) return b;
  return std::make_shared<const Clock>(std::move(joined.clock));
}

ClockPtr single(const Part& part) { return std::make_shared<const Clock>(Clock{part}); }

// Lanes of the earlier warp whose doings at that moment the clock covers.
uint32_t covered(const ClockPtr& clock, const Moment& earlier) {
  if (!clock) return 0;
  auto part = std::lower_bound(clock->begin(), clock->end(), Part{earlier.block, kWholeBlock, 0, 0},
                               is_before);
  uint32_t lanes = 0;
  for (; part != clock->end() && part->block == earlier.block; ++part) {
    if (part->time <= earlier.clock) continue;
    if (part->warp == kWholeBlock) return kAllLanes;
    if (part->warp == earlier.warp) lanes |= part->mask;
  }
  return lanes;
}

bool is_wide(Scope scope) { return scope != Scope::cta && scope != Scope::cluster; }
bool acquires(Order order) { return order == Order::acquire || order >= Order::acq_rel; }
bool releases(Order order) { return order >= Order::release; }

// What a thread has for itself.
struct Lane {
  ClockPtr alone;           // known beside what its block and warp know
  ClockPtr collected_wide;  // read by strong reads of gpu scope, not yet acquired by a fence
  ClockPtr collected_near;  // the same, from this block
  ClockPtr fenced;          // known at its last fence; with what it did itself before fenced_at,
  uint32_t fenced_at = 0;   // that is what its strong writes publish
  bool fenced_wide = false;
  bool fenced_total = false;  // by fence.sc
  ClockPtr seen;  // the last that a strong read found: a thread that spins finds it again

  bool is_empty() const { return !alone && !collected_wide && !collected_near && !fenced; }
};

struct WarpOrder {
  uint32_t mask = 0;                                // lanes that exist
  uint32_t sync = 0;                                // all lanes know all that all did before
  std::unique_ptr<std::array<Lane, kLanes>> lanes;  // null: all are empty
};

// What was published at an address and by whom.
struct Location {
  ClockPtr wide, near;
  uint32_t wide_block = 0;  // whose threads published; kManyBlocks: of several
  uint32_t near_block = 0;
};
using Locations = std::unordered_map<uint64_t, Location>;

struct BlockOrder {
  uint32_t id = 0;
  uint32_t now = 1;
  uint32_t barrier = 0;  // all threads know all that all did before
  ClockPtr base;         // of other blocks, what all threads know
  // A fence.sc before a barrier and a strong access after it order as if one thread had made both,
  // because any two fence.sc are ordered: __threadfence(); __syncthreads(); then thread 0 tells.
  ClockPtr fenced, collected;
  bool has_lanes = false;
  std::vector<WarpOrder> warps;
  Locations shared;
};

// What threads that meet tell each other.
struct Told {
  ClockPtr alone, fenced, collected;
};

void tell_fenced(Told& told, const BlockOrder& block, int warp, uint32_t mask) {
  const auto& lanes = *block.warps[warp].lanes;
  for (uint32_t rest = mask; rest;) {
    const Lane& first = lanes[lowest_lane(rest)];
    uint32_t same = 0;
    for (LaneSet set(rest); set; ++set) {
      const Lane& lane = lanes[*set];
      if (lane.fenced == first.fenced && lane.fenced_at == first.fenced_at) same |= 1u << *set;
    }
    rest &= ~same;
    if (!first.fenced || !first.fenced_total || !first.fenced_wide) continue;
    told.fenced = join(told.fenced, first.fenced);
    told.fenced = join(told.fenced, single({block.id, warp, same, first.fenced_at}));
  }
}

void tell(Told& told, const BlockOrder& block, int warp, uint32_t mask) {
  if (!block.warps[warp].lanes) return;
  for (LaneSet set(mask); set; ++set) {
    const Lane& lane = (*block.warps[warp].lanes)[*set];
    told.alone = join(told.alone, lane.alone);
    told.collected = join(told.collected, lane.collected_wide);
  }
  tell_fenced(told, block, warp, mask);
}

std::array<Lane, kLanes>& lanes_of(BlockOrder& block, int warp) {
  auto& lanes = block.warps[warp].lanes;
  if (!lanes) lanes = std::make_unique<std::array<Lane, kLanes>>();
  block.has_lanes = true;
  return *lanes;
}

void hear(BlockOrder& block, int warp, uint32_t mask, const Told& told) {
  auto& lanes = lanes_of(block, warp);
  for (LaneSet set(mask); set; ++set) {
    Lane& lane = lanes[*set];
    lane.alone = told.alone;  // it told the same, so this is no less
    lane.collected_wide = told.collected;
    if (!told.fenced) continue;
    if (!lane.fenced) lane.fenced_wide = lane.fenced_total = true;
    lane.fenced = join(lane.fenced, told.fenced);
  }
}

// After all have told what they know: only what the block does not share stays with a lane.
void forget_told(BlockOrder& block) {
  block.has_lanes = false;
  for (WarpOrder& warp : block.warps) {
    if (!warp.lanes) continue;
    bool is_empty = true;
    for (Lane& lane : *warp.lanes) {
      lane.alone = lane.collected_wide = lane.seen = nullptr;
      if (lane.fenced_total && lane.fenced_wide) lane.fenced = nullptr;
      is_empty &= lane.is_empty();
    }
    if (is_empty) warp.lanes = nullptr;
    block.has_lanes |= !is_empty;
  }
}

// What the whole warp and one lane more know now.
ClockPtr warp_knowledge(const BlockOrder& block, int warp, const ClockPtr& alone) {
  const WarpOrder& order = block.warps[warp];
  ClockBuilder own;
  if (block.barrier) own.append({block.id, kWholeBlock, kAllLanes, block.barrier});
  if (order.sync) own.append({block.id, warp, order.mask, order.sync});
  return join(join(std::make_shared<const Clock>(std::move(own.clock)), block.base), alone);
}

}  // namespace

struct HappensBefore::State {
  static constexpr size_t kRecent = 64;
  std::vector<uint32_t> warp_masks;
  std::unordered_map<uint64_t, BlockOrder> blocks;
  Locations global;
  mutable std::array<BlockOrder*, kRecent> recent = {};

  BlockOrder& find(uint64_t block) {
    BlockOrder*& slot = recent[block % kRecent];
    if (!slot || slot->id != block) slot = &blocks.at(block);
    return *slot;
  }
  void collect(BlockOrder& block, const StrongAccess& access);
  void publish(BlockOrder& block, const StrongAccess& access);
};

HappensBefore::HappensBefore(int threads_per_block) : state_(std::make_unique<State>()) {
  for (int first = 0; first < threads_per_block; first += kLanes) {
    const int lanes = std::min(kLanes, threads_per_block - first);
    state_->warp_masks.push_back(lanes == kLanes ? kAllLanes : (1u << lanes) - 1);
  }
}
HappensBefore::~HappensBefore() = default;

void HappensBefore::start_block(uint64_t block) {
  STITCH_CHECK(block < kManyBlocks, "block " << block << " is beyond what is counted");
  BlockOrder& order = state_->blocks[block];
  order.id = uint32_t(block);
  order.warps.resize(state_->warp_masks.size());
  for (size_t i = 0; i < order.warps.size(); ++i) order.warps[i].mask = state_->warp_masks[i];
}

void HappensBefore::end_block(uint64_t block) {
  state_->recent[block % State::kRecent] = nullptr;
  state_->blocks.erase(block);
}

void HappensBefore::block_barrier(uint64_t id) {
  BlockOrder& block = state_->find(id);
  block.barrier = ++block.now;
  if (!block.has_lanes) return;
  Told told;
  for (size_t i = 0; i < block.warps.size(); ++i) tell(told, block, int(i), block.warps[i].mask);
  if (told.alone) {
    Clock others;
    for (const Part& part : *told.alone)
      if (part.block != block.id) others.push_back(part);
    if (!others.empty())
      block.base = join(block.base, std::make_shared<const Clock>(std::move(others)));
  }
  block.fenced = join(block.fenced, told.fenced);
  block.collected = join(block.collected, told.collected);
  forget_told(block);
}

void HappensBefore::barrier(uint64_t id, const std::vector<uint32_t>& arriving,
                            const std::vector<uint32_t>& leaving) {
  BlockOrder& block = state_->find(id);
  const auto is_all = [&](const std::vector<uint32_t>& lanes) {
    return std::equal(lanes.begin(), lanes.end(), state_->warp_masks.begin(),
                      state_->warp_masks.end());
  };
  if (is_all(arriving) && is_all(leaving)) return block_barrier(id);
  const uint32_t time = ++block.now;
  Told told;
  ClockBuilder arrived;
  for (int warp = 0; warp < int(arriving.size()); ++warp) {
    if (!arriving[warp]) continue;
    const WarpOrder& order = block.warps[warp];
    if (order.sync) arrived.append({block.id, warp, order.mask, order.sync});
    arrived.append({block.id, warp, arriving[warp], time});
    tell(told, block, warp, arriving[warp]);
  }
  told.alone = join(told.alone, std::make_shared<const Clock>(std::move(arrived.clock)));
  for (int warp = 0; warp < int(leaving.size()); ++warp)
    if (leaving[warp]) hear(block, warp, leaving[warp], told);
}

void HappensBefore::warp_barrier(uint64_t id, int warp, uint32_t mask) {
  BlockOrder& block = state_->find(id);
  WarpOrder& order = block.warps[warp];
  const uint32_t time = ++block.now;
  const bool is_full = (mask & order.mask) == order.mask;
  if (is_full) order.sync = time;
  if (is_full && !order.lanes) return;
  Told told;
  tell(told, block, warp, mask & order.mask);
  if (!is_full) told.alone = join(told.alone, single({block.id, warp, mask & order.mask, time}));
  hear(block, warp, mask & order.mask, told);
}

void HappensBefore::fence(uint64_t id, int warp, uint32_t mask, Scope scope, Order order) {
  BlockOrder& block = state_->find(id);
  auto& lanes = lanes_of(block, warp);
  const uint32_t time = ++block.now;
  const Lane* last = nullptr;
  for (LaneSet set(mask); set; ++set) {
    Lane& lane = lanes[*set];
    if (acquires(order)) {
      lane.alone = join(lane.alone, lane.collected_near);
      lane.collected_near = nullptr;
      if (is_wide(scope)) {
        lane.alone = join(join(lane.alone, lane.collected_wide), block.collected);
        lane.collected_wide = nullptr;
      }
    }
    if (!releases(order)) continue;
    const bool is_same = last && last->alone == lane.alone;
    lane.fenced = is_same ? last->fenced : warp_knowledge(block, warp, lane.alone);
    lane.fenced_at = time;
    lane.fenced_wide = is_wide(scope);
    lane.fenced_total = order == Order::sc;
    last = &lane;
  }
}

void HappensBefore::State::collect(BlockOrder& block, const StrongAccess& access) {
  const Locations& locations = access.is_shared ? block.shared : global;
  const auto found = locations.find(access.address);
  if (found == locations.end()) return;
  const Location& location = found->second;
  const bool wide_is_near = location.wide_block == block.id;
  ClockPtr near = location.near_block == block.id ? location.near : nullptr;
  if (wide_is_near) near = join(near, location.wide);
  const ClockPtr wide = is_wide(access.scope) && !wide_is_near ? location.wide : nullptr;
  if (!near && !wide) return;
  Lane& lane = lanes_of(block, access.thread.warp)[access.thread.lane];
  const ClockPtr found_clock = join(near, wide);
  if (acquires(access.order)) {
    if (lane.seen != found_clock) lane.alone = join(lane.alone, found_clock);
    lane.seen = found_clock;
    return;
  }
  lane.collected_near = join(lane.collected_near, near);
  lane.collected_wide = join(lane.collected_wide, wide);
}

void HappensBefore::State::publish(BlockOrder& block, const StrongAccess& access) {
  const ThreadId& by = access.thread;
  const Lane* lane = block.warps[by.warp].lanes ? &(*block.warps[by.warp].lanes)[by.lane] : nullptr;
  bool wide = is_wide(access.scope);
  ClockPtr clock;
  if (releases(access.order)) {
    clock = warp_knowledge(block, by.warp, lane ? lane->alone : nullptr);
    clock = join(clock, single({block.id, by.warp, 1u << by.lane, ++block.now}));
  } else {
    if (wide && block.fenced) clock = block.fenced;
    if (lane && lane->fenced) {
      wide &= lane->fenced_wide;
      clock = join(clock, lane->fenced);
      clock = join(clock, single({block.id, by.warp, 1u << by.lane, lane->fenced_at}));
    }
  }
  Locations& locations = access.is_shared ? block.shared : global;
  if (!clock) {
    if (!access.continues) locations.erase(access.address);
    return;
  }
  Location& location = locations[access.address];
  if (!access.continues) location = {};
  ClockPtr& published = wide ? location.wide : location.near;
  uint32_t& publisher = wide ? location.wide_block : location.near_block;
  if (!published || publisher == block.id) {
    publisher = block.id;
  } else if (wide) {
    publisher = kManyBlocks;
  } else {
    published = nullptr;  // of another block, which this one's readers may not use
    publisher = block.id;
  }
  published = join(published, clock);
}

void HappensBefore::strong_access(const StrongAccess& access) {
  BlockOrder& block = state_->find(access.thread.block);
  if (access.collects) state_->collect(block, access);
  if (access.publishes) state_->publish(block, access);
}

HappensBefore::Times HappensBefore::times(uint64_t block) const {
  const BlockOrder& order = state_->find(block);
  return {order.now, order.barrier};
}

HappensBefore::Known HappensBefore::known(const Moment& earlier, uint64_t id, int warp) const {
  const BlockOrder& block = state_->find(id);
  const WarpOrder& order = block.warps[warp];
  if (earlier.block == block.id) {
    if (earlier.clock < block.barrier) return Known::all;
    if (earlier.warp == warp && earlier.clock < order.sync) return Known::all;
  }
  const uint32_t all = state_->warp_masks[earlier.warp];
  uint32_t lanes = covered(block.base, earlier);
  if (order.lanes && (lanes & all) != all) {
    const ClockPtr& first = (*order.lanes)[0].alone;
    for (LaneSet set(order.mask); set; ++set)
      if ((*order.lanes)[*set].alone != first) return Known::some;
    lanes |= covered(first, earlier);
  }
  return (lanes & all) == all ? Known::all : lanes & all ? Known::some : Known::own;
}

bool HappensBefore::known(const Moment& earlier, int earlier_lane, const ThreadId& now) const {
  const BlockOrder& block = state_->find(now.block);
  const WarpOrder& order = block.warps[now.warp];
  if (earlier.block == block.id) {
    if (earlier.clock < block.barrier) return true;
    if (earlier.warp == now.warp && (earlier.clock < order.sync || earlier_lane == now.lane))
      return true;
  }
  if (covered(block.base, earlier) >> earlier_lane & 1) return true;
  return order.lanes && (covered((*order.lanes)[now.lane].alone, earlier) >> earlier_lane & 1);
}

}  // namespace stitch::ptxsim
