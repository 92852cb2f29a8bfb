#include "ptxsim/machine/schedule.h"

#include <algorithm>
#include <bit>
#include <numeric>
#include <string>

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
  const auto& sizes = schedule.launch->grid;
  BlockOrder blocks{.count = uint64_t{sizes[0]} * sizes[1] * sizes[2]};
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

struct Choice {
  size_t place = 0;
  uint32_t warps = 0;  // ready ones to choose from; 0: none
};

// The next place, from the cursor on, with a ready warp that is (or is not) the one ahead.
Choice find_ready(const Scheduler& scheduler, size_t first, int ahead) {
  const size_t count = scheduler.places.size();
  for (size_t i = 0; i < count; ++i) {
    const size_t at = first + i < count ? first + i : first + i - count;
    const Place& place = *scheduler.places[at];
    const uint32_t warps = ahead < 0   ? place.block.ready
                           : ahead > 0 ? place.block.ready & place.ahead
                                       : place.block.ready & ~place.ahead;
    if (warps) return {at, warps};
  }
  return {};
}

int nth_warp(uint32_t warps, uint64_t n) {
  LaneSet rest(warps);
  for (; n > 0; --n) ++rest;
  return *rest;
}

struct Run {
  size_t place = 0;
  int warp = -1;  // none is ready
  int64_t quantum = kLongest;
};

Run choose(Scheduler& scheduler) {
  Grid& grid = scheduler.grid;
  const size_t cursor = scheduler.cursor < scheduler.places.size() ? scheduler.cursor : 0;
  switch (scheduler.schedule.order) {
    case WarpOrder::in_order: {
      const Choice choice = find_ready(scheduler, cursor, -1);
      return choice.warps ? Run{choice.place, lowest_lane(choice.warps)} : Run{};
    }
    case WarpOrder::reversed: {
      const Choice choice = find_ready(scheduler, cursor, -1);
      return choice.warps ? Run{choice.place, 31 - std::countl_zero(choice.warps)} : Run{};
    }
    case WarpOrder::random:
      break;
    case WarpOrder::one_ahead:
    case WarpOrder::one_behind: {
      const int preferred = scheduler.schedule.order == WarpOrder::one_ahead ? 1 : 0;
      Choice choice = find_ready(scheduler, cursor, preferred);
      if (!choice.warps) choice = find_ready(scheduler, cursor + 1, 1 - preferred);
      return choice.warps ? Run{choice.place, lowest_lane(choice.warps), 256} : Run{};
    }
  }
  const Choice choice = find_ready(scheduler, next_random(grid) % scheduler.places.size(), -1);
  if (!choice.warps) return {};
  const int warp = nth_warp(choice.warps, next_random(grid) % std::popcount(choice.warps));
  return {choice.place, warp, int64_t{1} << next_random(grid) % 11};
}

void retire(Scheduler& scheduler, size_t index) {
  Place& place = *scheduler.places[index];
  if (scheduler.grid.memory) scheduler.grid.memory->end_block(place.block.linear);
  if (scheduler.started < scheduler.blocks.count) return start_next(scheduler, &place);
  scheduler.places.erase(scheduler.places.begin() + static_cast<ptrdiff_t>(index));
}

std::string describe_waiter(const Warp& warp, const Split& split) {
  const Instruction& at = warp.block->grid->module->code[split.pc];
  std::string text = "block " + index_name(warp.block->index) + " warp " +
                     std::to_string(warp.index) + " (" + std::to_string(std::popcount(split.mask)) +
                     " lanes) ";
  if (split.wait == Wait::barrier)
    text += "waits at barrier " + std::to_string(split.barrier);
  else
    text += "spins";
  return text + " at " + line_name(at);
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
        are_spinning |= split.wait == Wait::sleep || split.wait == Wait::none;
        if (++waiters <= kMostNamed) text += "; " + describe_waiter(warp, split);
      }
    }
  }
  if (waiters > kMostNamed) text += "; and " + std::to_string(waiters - kMostNamed) + " more";
  // Who waits at a barrier waits for its own block, whatever else would start.
  if (!are_spinning || scheduler.started == scheduler.blocks.count) {
    return scheduler.grid.reporter->report(FindingKind::deadlock, site,
                                           "waits for ever: nobody can go on" + text);
  }
  scheduler.grid.reporter->report(FindingKind::residency, site,
                                  "waits for ever: " + std::to_string(scheduler.places.size()) +
                                      " of " + std::to_string(scheduler.blocks.count) +
                                      " blocks fill the machine, none can end and no other start" +
                                      text);
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
      "runs when the budget of " + std::to_string(scheduler.schedule.budget) +
          " lane-instructions is spent: a loop without end, or a launch too large to simulate");
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
    if (!warp.live && has_ended(*warp.block)) retire(scheduler, run.place);
  }
  lane_instructions += executed;
  return ending;
}

}  // namespace stitch::ptxsim
