// The stages of one kernel -> StageSchedules: blocks of one size, and one mapping for stages that
// keep values in registers across grid barriers.
#pragma once

#include "plan/stitch_plan.h"
#include "stage/persistent_values.h"
#include "stage/schedule_stage.h"

namespace stitch {

using KernelSchedules = std::map<int, StageSchedule>;  // by stage

// Schedules one kernel with several choices of groups and blocks: what stages have under any
// mapping is found once.
struct KernelScheduler {
  struct Described {
    ScheduleOrNot found;
    std::vector<SharedAccess> shared;
  };

  const Graph& graph;
  const Stages& stages;
  Target target;
  std::map<std::vector<int>, Described> described = {};  // by stages

  StageSchedule map_alone(int stage, const BlockBounds& bounds);  // without loops and homes
  StageSchedule schedule_alone(int stage, const BlockBounds& bounds);
  // By its templates, or as derived.  `bounds`: the most threads, and whether homes are split.
  KernelSchedules schedule_apart(const PlannedKernel& kernel, BlockBounds bounds = {});
  // Blocks as large as the registers allow that the kept values need (AStitch 3.5: assume, relax,
  // apply; the compiled kernel is checked in csrc/settle_kernels.cpp).  Nothing where no size does,
  // or where the stages do not go together.
  KernelSchedules schedule_together(const PlannedKernel& kernel, const BlockBounds& bounds = {});
  // By its chains where there are any, else together where there are groups and they go together,
  // else apart: then all `persistent` are empty.  Nothing where a chain has no schedule within the
  // bounds.
  KernelSchedules schedule(const PlannedKernel& kernel, const BlockBounds& bounds = {});
  // What stages have that share a mapping.
  const Described& describe(const std::vector<int>& members);
  // With the kernel's that are not there yet, each alone; nothing where some has other blocks.
  KernelSchedules add_others(const PlannedKernel& kernel, KernelSchedules schedules,
                             const BlockBounds& bounds);
};

// Stages of different mappings that the same blocks run one after the other, in their order.
//
// The first stage keeps the mapping it would have alone: parallelism has priority; or packs fewer
// rows, for as many blocks as a later one has ([2112, 64] before [2112, 3000]: 2,112, not 132).
// An element-wise one is mapped so that each block has the range of an earlier one's results that
// the same block made (AStitch 3.4, proactive adaptation); a later one that reduces keeps its own
// mapping, and its blocks must happen to have the same ranges (the passive check).
//
// Nothing where sizes are not static, a block would need another one's results, or those of one
// block do not fit in its share of shared memory.
Schedules schedule_chain(KernelScheduler& scheduler, const PlannedBlocks& chain,
                         const BlockBounds& bounds);

// Predicted times.

// What a stage loads from the second cache: an earlier phase of its kernel has touched it, and all
// that passes from there to the end of its own fits.  By stage, in the order of kernel.stages().
std::vector<HeldValues> find_held_values(const Graph& graph, const Stages& stages,
                                         const PlannedKernel& kernel, const DeviceSpec& device);

// Of the estimates of its stages, in the order of kernel.stages().
double estimate_kernel_us(const PlannedKernel& kernel, const std::vector<StageEstimate>& estimates,
                          const DeviceSpec& device);

}  // namespace stitch
