#include "schedule/schedule_kernel.h"

#include <algorithm>
#include <bit>

#include "schedule/map_axes.h"
#include "schedule/persistent_values.h"
#include "schedule/schedule_stage.h"

namespace stitch {
namespace {

constexpr int kLeastThreads = 256;  // of a block that keeps values: the fewest that hide latency
constexpr int kMostBlocks = 32;     // resident on one multiprocessor, on every device

struct KernelScheduler {
  const Graph& graph;
  const KernelStages& kernel;
  const DeviceSpec& device;
  int worker_threads;
  SymbolTable& symbols;

  struct Group {
    std::vector<const PlannedStage*> stages;
    std::vector<StageSchedule> schedules;
  };
  struct Attempt {
    std::vector<Group> groups;
    BlockBounds bounds;
    PersistenceCost cost;
  };

  std::vector<StageSchedule> schedule_apart(int most_threads) {
    BlockBounds bounds{1, most_threads};
    std::vector<StageSchedule> schedules;
    for (const PlannedStage* stage : kernel.stages) {
      schedules.push_back(schedule_stage(graph, *stage, device, worker_threads, symbols, bounds));
    }
    for (const StageSchedule& own : schedules) bounds.least = std::max(bounds.least, own.threads);
    for (size_t s = 0; s < kernel.stages.size(); ++s) {
      if (schedules[s].threads == bounds.least) continue;
      schedules[s] =
          schedule_stage(graph, *kernel.stages[s], device, worker_threads, symbols, bounds);
    }
    return schedules;
  }

  // Some root of the stages gives each thread work of its own: threads that repeat what others do
  // would hold the same elements.
  static bool uses_all_threads(const std::vector<StageSchedule>& schedules, int threads) {
    return std::any_of(schedules.begin(), schedules.end(), [&](const StageSchedule& own) {
      return std::any_of(own.spaces.roots.begin(), own.spaces.roots.end(),
                         [&](const RootSpace& space) {
                           return 1 << std::popcount(owned_thread_bits(own, space)) == threads;
                         });
    });
  }

  // Groups under blocks of `threads`; false where a group has no mapping of that many.
  bool map_groups(int threads, Attempt& attempt) {
    attempt.bounds = {threads, threads};
    for (const std::vector<int>& members : kernel.groups) {
      Group group;
      for (int s : members) group.stages.push_back(kernel.stages[s]);
      group.schedules =
          map_stages(graph, group.stages, device, worker_threads, symbols, attempt.bounds)
              .schedules;
      if (group.schedules.empty() || group.schedules[0].threads != threads) return false;
      if (!uses_all_threads(group.schedules, threads)) return false;
      attempt.groups.push_back(std::move(group));
    }
    return true;
  }

  // The blocks of all groups meet at each barrier, one block's work in each.
  bool count_resident_blocks(Attempt& attempt, int threads) const {
    int64_t blocks = 0;
    for (const Group& group : attempt.groups) {
      const Dim& grid = group.schedules[0].grid;
      if (!grid.is_constant() || grid.value() <= 0) return false;
      blocks += grid.value();
    }
    const int64_t each = (blocks + device.multiprocessors - 1) / device.multiprocessors;
    if (each > kMostBlocks || each * threads > device.threads_per_multiprocessor) return false;
    attempt.bounds.per_multiprocessor = static_cast<int>(each);
    return true;
  }

  bool keep(int threads, Attempt& attempt) {
    if (!map_groups(threads, attempt) || !count_resident_blocks(attempt, threads)) return false;
    int free = count_registers(device, attempt.bounds, threads) - kWorkingRegisters;
    for (Group& group : attempt.groups) {
      const PersistenceCost cost =
          find_persistent_values(graph, group.stages, free, group.schedules);
      free -= cost.registers;
      attempt.cost.registers += cost.registers;
      attempt.cost.saved_bytes += cost.saved_bytes;
      attempt.cost.is_complete &= cost.is_complete;
    }
    attempt.bounds.persistent_registers = attempt.cost.registers;
    return attempt.cost.saved_bytes > 0;
  }

  std::vector<StageSchedule> finish(Attempt attempt) {
    std::vector<StageSchedule> schedules(kernel.stages.size());
    for (size_t g = 0; g < attempt.groups.size(); ++g) {
      for (size_t i = 0; i < kernel.groups[g].size(); ++i) {
        StageSchedule& own = attempt.groups[g].schedules[i];
        own.bounds = attempt.bounds;
        finish_stage(graph, *attempt.groups[g].stages[i], own);
        schedules[kernel.groups[g][i]] = std::move(own);
      }
    }
    for (size_t s = 0; s < schedules.size(); ++s) {
      if (schedules[s].device) continue;
      schedules[s] =
          schedule_stage(graph, *kernel.stages[s], device, worker_threads, symbols, attempt.bounds);
      if (schedules[s].threads != attempt.bounds.most) return {};
    }
    return schedules;
  }

  // The largest blocks that keep all, else those that keep most.
  std::vector<StageSchedule> schedule_together(int most_threads) {
    Attempt best;
    for (int threads = most_threads; threads >= kLeastThreads; threads /= 2) {
      Attempt attempt;
      if (!keep(threads, attempt)) continue;
      if (attempt.cost.saved_bytes > best.cost.saved_bytes) best = std::move(attempt);
      if (best.cost.is_complete && best.cost.saved_bytes > 0) break;
    }
    if (best.cost.saved_bytes == 0) return {};
    return finish(std::move(best));
  }
};

}  // namespace

KernelStages gather_stages(const PlannedKernel& kernel, const std::vector<PlannedStage>& stages) {
  KernelStages out;
  const std::vector<int> numbers = kernel.stages();
  for (int s : numbers) out.stages.push_back(&stages[s]);
  for (const std::vector<int>& group : kernel.persistent_groups) {
    out.groups.emplace_back();
    for (int s : group) {
      const auto at = std::find(numbers.begin(), numbers.end(), s);
      out.groups.back().push_back(static_cast<int>(at - numbers.begin()));
    }
  }
  return out;
}

std::vector<StageSchedule> schedule_kernel(const Graph& graph, const KernelStages& kernel,
                                           const DeviceSpec& device, int worker_threads,
                                           SymbolTable& symbols, int most_threads) {
  KernelScheduler scheduler{graph, kernel, device, worker_threads, symbols};
  if (!kernel.groups.empty()) {
    std::vector<StageSchedule> schedules = scheduler.schedule_together(most_threads);
    if (!schedules.empty()) return schedules;
  }
  return scheduler.schedule_apart(most_threads);
}

}  // namespace stitch
