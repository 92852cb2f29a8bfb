#include "ptxsim/machine/schedule.h"

#include <algorithm>
#include <bit>
#include <numeric>
#include <string>

#include "base/words.h"
#include "ptxsim/machine/blocks.h"
#include "ptxsim/machine/interpret.h"
#include "ptxsim/machine/warp_operations.h"
#include "ptxsim/memory/memory.h"

namespace stitch::ptxsim {
namespace {

constexpr int64_t kLongest = 1 << 20;  // instructions, so that the budget is looked at
constexpr size_t kMostNamed = 8;       // waiters in a report

// The k-th block to start: k, from the end, or at a * k + b with a and the count coprime.
struct BlockOrder {
  uint64_t count = 0;
  uint64_t factor = 1;
  uint64_t shift = 0;

  uint64_t at(uint64_t k) const {
    using Wide = unsigned __int128;
    return static_cast<uint64_t>((Wide{factor} * k + shift) % count);
  }
};

BlockOrder order_blocks(Grid& grid, const Schedule& schedule) {
  BlockOrder blocks{.count = volume(schedule.launch->grid)};
  if (schedule.order == WarpOrder::in_order || blocks.count == 1) return blocks;
  blocks.shift = blocks.count - 1;
  blocks.factor = blocks.count - 1;  // -1
  if (schedule.order == WarpOrder::reversed) return blocks;
  blocks.shift = next_random(grid) % blocks.count;
  do {
    blocks.factor = next_random(grid) % blocks.count;
  } while (std::gcd(blocks.factor, blocks.count) != 1);
  return blocks;
}

struct Scheduler {
  Grid& grid;
  const Schedule& schedule;
  BlockOrder blocks;
  uint64_t started = 0;
  std::vector<std::unique_ptr<Place>> places = {};  // of blocks that have not ended
  size_t cursor = 0;                                // where the last warp ran
  uint64_t progress = 0;                            // Grid::progress when all slept last
  int idle_rounds = 0;                              // since then, without progress
};

// Starts the next block, in `place` or in a place of its own.
void start_next(Scheduler& scheduler, Place* place) {
  const Schedule& schedule = scheduler.schedule;
  if (!place) {
    scheduler.places.push_back(
        make_place(scheduler.grid, *schedule.launch, schedule.multiprocessors));
    place = scheduler.places.back().get();
  }
  start_block(*place, scheduler.blocks.at(scheduler.started++), *schedule.launch,
              schedule.multiprocessors);
}

bool can_start(const Scheduler& scheduler) {
  return scheduler.started < scheduler.blocks.count &&
         scheduler.places.size() < scheduler.schedule.resident;
}

// Places that the order likes to have in use.
uint64_t preferred_places(Grid& grid, WarpOrder order) {
  switch (order) {
    case WarpOrder::in_order:
      return 1;
    case WarpOrder::random:
      return 1 + next_random(grid) % 8;
    default:
      return 2 + next_random(grid) % 3;
  }
}

struct Run {
  size_t place = 0;
  int warp = -1;  // none is ready
  int64_t quantum = kLongest;
};

// Who goes first at a place: a warp by its number among the ready ones.
using Pick = int (*)(Grid& grid, uint32_t ready);
int pick_lowest(Grid&, uint32_t ready) { return lowest_lane(ready); }
int pick_highest(Grid&, uint32_t ready) { return 31 - std::countl_zero(ready); }
int pick_any(Grid& grid, uint32_t ready) {
  LaneSet rest(ready);
  for (uint64_t n = next_random(grid) % std::popcount(ready); n > 0; --n) ++rest;
  return *rest;
}

enum class Among { all, ahead, others };  // others: all but the warp ahead

// A ready warp of the next place, from `first` on, that has one.
Run find_ready(const Scheduler& scheduler, size_t first, Among among, Pick pick) {
  const size_t count = scheduler.places.size();
  for (size_t i = 0; i < count; ++i) {
    const size_t at = first + i < count ? first + i : first + i - count;
    const Place& place = *scheduler.places[at];
    const uint32_t chosen = among == Among::all     ? kAllLanes
                            : among == Among::ahead ? place.ahead
                                                    : ~place.ahead;
    if (const uint32_t ready = place.block.ready & chosen)
      return {at, pick(scheduler.grid, ready), kLongest};
  }
  return {};
}

Run choose(Scheduler& scheduler) {
  Grid& grid = scheduler.grid;
  const size_t cursor = scheduler.cursor < scheduler.places.size() ? scheduler.cursor : 0;
  switch (scheduler.schedule.order) {
    case WarpOrder::in_order:
      return find_ready(scheduler, cursor, Among::all, pick_lowest);
    case WarpOrder::reversed:
      return find_ready(scheduler, cursor, Among::all, pick_highest);
    case WarpOrder::random: {
      const size_t first = next_random(grid) % scheduler.places.size();
      Run run = find_ready(scheduler, first, Among::all, pick_any);
      if (run.warp >= 0) run.quantum = int64_t{1} << next_random(grid) % 11;
      return run;
    }
    default: {  // one ahead, one behind
      const bool is_ahead = scheduler.schedule.order == WarpOrder::one_ahead;
      const Among preferred = is_ahead ? Among::ahead : Among::others;
      const Among rest = is_ahead ? Among::others : Among::ahead;
      Run run = find_ready(scheduler, cursor, preferred, pick_lowest);
      if (run.warp < 0) run = find_ready(scheduler, cursor + 1, rest, pick_lowest);
      run.quantum = 256;
      return run;
    }
  }
}

void retire(Scheduler& scheduler, size_t index) {
  Place& place = *scheduler.places[index];
  if (scheduler.grid.memory) scheduler.grid.memory->end_block(place.block.linear);
  if (scheduler.started < scheduler.blocks.count) return start_next(scheduler, &place);
  scheduler.places.erase(scheduler.places.begin() + static_cast<ptrdiff_t>(index));
}

std::string describe_waiter(const Warp& warp, const Split& split) {
  const Instruction& at = warp.block->grid->module->code[split.pc];
  return concat("block ", index_name(warp.block->index), " warp ", warp.index, " (",
                std::popcount(split.mask), " lanes) ",
                split.wait == Wait::barrier ? concat("waits at barrier ", split.barrier) : "spins",
                " at ", line_name(at));
}

// Everybody waits for somebody: who, and where.
void report_stuck(Scheduler& scheduler) {
  if (scheduler.grid.is_divergent) return;
  std::string text;
  bool are_spinning = false;
  size_t waiters = 0;
  Site site;
  for (const auto& place : scheduler.places) {
    for (const Warp& warp : place->block.warps) {
      for (const Split& split : warp.splits) {
        if (!site.warp) {
          const Instruction& at = scheduler.grid.module->code[split.pc];
          site = {&warp, &at, lowest_lane(split.mask)};
        }
        are_spinning |= split.can_run();
        if (++waiters <= kMostNamed) text += "; " + describe_waiter(warp, split);
      }
    }
  }
  if (waiters > kMostNamed) text += concat("; and ", waiters - kMostNamed, " more");
  // Who waits at a barrier waits for its own block, whatever else would start.
  if (!are_spinning || scheduler.started == scheduler.blocks.count) {
    return scheduler.grid.reporter->report(FindingKind::deadlock, site,
                                           "waits for ever: nobody can go on" + text);
  }
  scheduler.grid.reporter->report(
      FindingKind::residency, site,
      concat("waits for ever: ", scheduler.places.size(), " of ", scheduler.blocks.count,
             " blocks fill the machine, none can end and no other start", text));
}

bool force_meetings(Scheduler& scheduler) {
  bool found = false;
  for (const auto& place : scheduler.places)
    for (Warp& warp : place->block.warps) found |= force_meeting(warp);
  return found;
}

bool wake_all(Scheduler& scheduler) {
  bool found = false;
  for (const auto& place : scheduler.places) {
    if (!place->block.sleeping) continue;
    for (Warp& warp : place->block.warps) wake(warp);
    found = true;
  }
  return found;
}

// Nobody is ready.  False: nothing helps, which has been reported.
bool go_on(Scheduler& scheduler) {
  const bool slept = wake_all(scheduler);
  const bool progressed = scheduler.progress != scheduler.grid.progress;
  scheduler.idle_rounds = progressed ? 0 : scheduler.idle_rounds + 1;
  if (slept) {
    if (can_start(scheduler)) {  // twice as many may do what these wait for
      for (size_t i = scheduler.places.size(); i > 0 && can_start(scheduler); --i)
        start_next(scheduler, nullptr);
      return true;
    }
    scheduler.progress = scheduler.grid.progress;
    // Each round is 32 looks of each at what it waits for.
    const auto most = static_cast<int>(std::max<uint64_t>(16, 256 / scheduler.places.size()));
    if (scheduler.idle_rounds < most) return true;
  }
  scheduler.idle_rounds = 0;
  if (force_meetings(scheduler)) return true;
  report_stuck(scheduler);
  return false;
}

void report_budget(Scheduler& scheduler, const Warp& warp) {
  const int pc = warp.splits.empty() ? scheduler.grid.kernel->first : warp.splits[0].pc;
  scheduler.grid.reporter->report(
      FindingKind::budget, {&warp, &scheduler.grid.module->code[pc], -1},
      concat("runs when the budget of ", scheduler.schedule.budget,
             " lane-instructions is spent: a loop without end, or a launch too large to simulate"));
}

}  // namespace

Ending run_grid(Grid& grid, const Schedule& schedule, uint64_t& lane_instructions) {
  Scheduler scheduler{.grid = grid, .schedule = schedule, .blocks = order_blocks(grid, schedule)};
  const uint64_t wanted = std::min(preferred_places(grid, schedule.order), schedule.resident);
  while (scheduler.places.size() < wanted && can_start(scheduler)) start_next(scheduler, nullptr);
  uint64_t executed = 0;
  Ending ending = Ending::complete;
  while (!scheduler.places.empty()) {
    const Run run = choose(scheduler);
    if (run.warp < 0) {
      if (go_on(scheduler)) continue;
      ending = Ending::stuck;
      break;
    }
    scheduler.cursor = run.place;
    Warp& warp = scheduler.places[run.place]->block.warps[run.warp];
    warp.executed = 0;
    run_warp(warp, run.quantum);
    executed += warp.executed;
    if (grid.trap) {
      ending = Ending::trapped;
      break;
    }
    if (executed > schedule.budget) {
      report_budget(scheduler, warp);
      ending = Ending::stuck;
      break;
    }
    if (!warp.live && std::ranges::none_of(warp.block->warps, &Warp::live))
      retire(scheduler, run.place);
  }
  lane_instructions += executed;
  return ending;
}

}  // namespace stitch::ptxsim
