#include "plan/kernels/schedule_kernel.h"

#include <bit>

#include "stage/schedule_stage.h"
#include "stage/tiles.h"

namespace stitch {
namespace {

// Threads of blocks that keep values, as they are tried; the fewest of a multiprocessor that hide
// latency.  Two blocks of 512 do not wait at the same time; small ones fill what is there: 50 MB in
// 768 blocks of 64 threads, 4 KB of registers and 36 of shared memory each.
constexpr int kKeepingThreads[] = {512, 1024, 256, 128, 64}, kLeastThreads = 256;
constexpr int64_t kKeepingTrips = 64;  // of loops along what is kept, in arrays of static sizes

// Some root gives each thread work of its own: threads that repeat others' would hold the same.
bool uses_all_threads(const StageSchedule& schedule) {
  return std::ranges::any_of(schedule.spaces.roots, [&](const RootSpace& space) {
    return 1 << std::popcount(owned_thread_bits(schedule, space)) == schedule.threads;
  });
}

// A kernel with chains whose blocks have so many threads; nothing where some stage has others.
KernelSchedules schedule_chained(KernelScheduler& scheduler, const PlannedKernel& kernel,
                                 const BlockBounds& bounds) {
  KernelSchedules schedules;
  for (const PlannedBlocks& blocks : kernel.blocks()) {
    if (!blocks.is_chain()) continue;
    Schedules found = schedule_chain(scheduler, blocks, bounds);
    if (found.empty()) return {};
    for (size_t i = 0; i < found.size(); ++i) schedules[blocks.stages[i]] = std::move(found[i]);
  }
  return scheduler.add_others(kernel, std::move(schedules), bounds);
}

// Larger blocks hold larger ranges, of which longer runs are contiguous in either mapping, and
// leave fewer blocks: the fastest.
KernelSchedules schedule_chains(KernelScheduler& scheduler, const PlannedKernel& kernel,
                                const BlockBounds& bounds) {
  constexpr int kFewestThreads = 64;
  KernelSchedules best;
  double best_us = 0;
  for (int threads = kFewestThreads; threads <= bounds.most; threads *= 2) {
    BlockBounds equal = bounds;
    equal.least = equal.most = threads;
    KernelSchedules schedules = schedule_chained(scheduler, kernel, equal);
    double us = 0;
    for (const auto& [s, schedule] : schedules) {
      const StageWork work = measure_work(scheduler.graph, scheduler.stages[s], schedule);
      us += estimate_stage(work, scheduler.target.device, 1).us;
    }
    if (schedules.empty() || (!best.empty() && us >= best_us)) continue;
    best = std::move(schedules);
    best_us = us;
  }
  return best;
}

// Groups that keep values, under blocks of as many threads as `bounds` say.
struct KeepingGroups {
  struct Group {
    const KernelScheduler::Described* described;
    std::vector<int> members;
    StageSchedule mapped;
    std::vector<std::vector<PersistentValue>> kept = {};  // by member
  };

  KernelScheduler* scheduler;
  BlockBounds bounds;
  std::vector<Group> groups = {};
  int64_t saved_bytes = 0;
  bool is_complete = true;

  // False where a group has no such mapping.
  bool map(const StageGroups& all) {
    for (const std::vector<int>& members : all) {
      const KernelScheduler::Described& shared = scheduler->describe(members);
      if (!shared.found.verdict.ok) return false;
      StageSchedule& mapped =
          groups.emplace_back(Group{&shared, members, shared.found.schedule}).mapped;
      map_stages(scheduler->graph, scheduler->target.workers, bounds, mapped);
      if (mapped.threads != bounds.most || !uses_all_threads(mapped)) return false;
    }
    return true;
  }

  // The blocks of all groups meet at each barrier, one block's work in each.
  bool count_resident_blocks() {
    double blocks = 0;
    for (const Group& group : groups)
      blocks += count_planned_blocks(scheduler->graph, group.mapped);
    const DeviceSpec& device = scheduler->target.device;
    const int64_t each = divide_up(static_cast<int64_t>(blocks), device.multiprocessors);
    const int64_t resident = each * bounds.most;
    bounds.per_multiprocessor = static_cast<int>(each);
    bounds.resident_threads = 0;  // there are no others
    return each <= device.blocks_per_multiprocessor && resident >= kLeastThreads &&
           resident <= device.threads_per_multiprocessor;
  }

  // Of a block, beside what its stages need for reductions and tiles.
  int64_t count_shared_room() const {
    int64_t used = kMostPartialBytes * bounds.most;
    for (const Group& group : groups)
      for (const TiledLoad& tile : group.mapped.tiles) used += tile_bytes(scheduler->graph, tile);
    return count_shared_bytes(scheduler->target.device, bounds.per_multiprocessor) - used;
  }

  bool keep(const StageGroups& all, bool in_shared) {
    if (!map(all) || !count_resident_blocks()) return false;
    const int free =
        count_registers(scheduler->target.device, bounds, bounds.most) - kWorkingRegisters;
    ChipRoom room{free, in_shared ? count_shared_room() : 0};
    for (Group& group : groups) {
      Persistence found = find_persistent_values(scheduler->graph, group.described->shared,
                                                 group.members.size(), room, group.mapped);
      room = found.left;
      saved_bytes += found.saved_bytes;
      is_complete &= found.is_complete;
      group.kept = std::move(found.values);
    }
    bounds.persistent_registers = free - room.registers;
    bounds.persistent_shared_bytes = room.shared_begin;
    const int resident = bounds.per_multiprocessor * bounds.most;
    return saved_bytes > 0 && (is_complete || resident >= kLeastResidentThreads);
  }

  KernelSchedules finish(const PlannedKernel& kernel) {
    KernelSchedules schedules;
    for (Group& group : groups) {
      for (size_t i = 0; i < group.members.size(); ++i) {
        const Stage& stage = scheduler->stages[group.members[i]];
        StageSchedule& own = schedules[group.members[i]] = take_stage(stage, group.mapped);
        own.bounds = bounds;
        own.persistent = std::move(group.kept[i]);
        finish_stage(scheduler->graph, stage, own);
      }
    }
    return scheduler->add_others(kernel, std::move(schedules), bounds);
  }
};

}  // namespace

const KernelScheduler::Described& KernelScheduler::describe(const std::vector<int>& members) {
  const auto [entry, is_new] = described.try_emplace(members);
  Described& own = entry->second;
  if (!is_new) return own;
  const auto sharing = map_to_vector(members, [&](int s) { return &stages[s]; });
  own.found = describe_stages(graph, sharing, target.device);
  if (own.found.verdict.ok && sharing.size() > 1)
    own.shared = find_shared_accesses(graph, sharing, own.found.schedule);
  return own;
}

StageSchedule KernelScheduler::map_alone(int stage, const BlockBounds& bounds) {
  const ScheduleOrNot& found = describe({stage}).found;
  STITCH_CHECK(found.verdict.ok, "a planned stage cannot be scheduled: " << found.verdict.why);
  StageSchedule schedule = found.schedule;
  map_stages(graph, target.workers, bounds, schedule);
  return schedule;
}

StageSchedule KernelScheduler::schedule_alone(int stage, const BlockBounds& bounds) {
  StageSchedule schedule = map_alone(stage, bounds);
  finish_stage(graph, stages[stage], schedule);
  return schedule;
}

KernelSchedules KernelScheduler::add_others(const PlannedKernel& kernel, KernelSchedules schedules,
                                            const BlockBounds& bounds) {
  for (int s : kernel.stages()) {
    if (!schedules.contains(s)) schedules[s] = schedule_alone(s, bounds);
    if (schedules[s].threads != bounds.most) return {};
  }
  return schedules;
}

KernelSchedules KernelScheduler::schedule_apart(const PlannedKernel& kernel, BlockBounds bounds) {
  const std::vector<int> numbers = kernel.stages();
  auto schedule = [&](size_t at) {
    if (!kernel.templates.empty()) bounds.chosen = kernel.templates[at];
    return schedule_alone(numbers[at], bounds);
  };
  KernelSchedules schedules;
  for (size_t at = 0; at < numbers.size(); ++at) schedules[numbers[at]] = schedule(at);
  for (const auto& [s, own] : schedules) bounds.least = std::max(bounds.least, own.threads);
  for (size_t at = 0; at < numbers.size(); ++at)
    if (schedules[numbers[at]].threads != bounds.least) schedules[numbers[at]] = schedule(at);
  return schedules;
}

// The first blocks that keep all, else those that keep most; in registers alone where all fit.
KernelSchedules KernelScheduler::schedule_together(const PlannedKernel& kernel,
                                                   const BlockBounds& bounds) {
  const bool may_keep = std::ranges::any_of(
      kernel.kept, [&](const auto& members) { return !describe(members).shared.empty(); });
  if (!may_keep) return {};
  KeepingGroups best{this, bounds};
  for (bool in_shared : {false, true}) {
    // What spills with all in registers may not in shared memory.
    if (!in_shared && !bounds.splits_homes) continue;
    for (int threads : kKeepingThreads) {
      if (threads > bounds.most) continue;
      KeepingGroups attempt{this, bounds};
      attempt.bounds.least = attempt.bounds.most = threads;
      attempt.bounds.most_trips = kKeepingTrips;
      if (!attempt.keep(kernel.kept, in_shared)) continue;
      if (attempt.saved_bytes > best.saved_bytes) best = std::move(attempt);
      if (best.is_complete && best.saved_bytes > 0) return best.finish(kernel);
    }
  }
  return best.saved_bytes > 0 ? best.finish(kernel) : KernelSchedules();
}

KernelSchedules KernelScheduler::schedule(const PlannedKernel& kernel, const BlockBounds& bounds) {
  if (kernel.has_chains()) return schedule_chains(*this, kernel, bounds);
  KernelSchedules together = schedule_together(kernel, bounds);
  return together.empty() ? schedule_apart(kernel, bounds) : together;
}

}  // namespace stitch
