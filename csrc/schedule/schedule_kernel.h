// The stages of one kernel -> StageSchedules: blocks of one size, and one mapping for stages that
// keep values in registers across grid barriers.
#pragma once

#include "schedule/persistent_values.h"
#include "schedule/schedule_stage.h"

namespace stitch {

struct KernelStages {
  std::vector<const PlannedStage*> stages;  // of all phases, in order
  StageGroups groups;                       // positions of stages that keep values; may be empty
  std::vector<PlannedChain> chains = {};    // by positions
  std::vector<Template> templates = {};     // of the stages that keep none; empty: all derived
};
KernelStages gather_stages(const PlannedKernel& kernel, const PlannedStages& stages);

// Schedules one kernel with several choices of groups and blocks: what stages have under any
// mapping is found once.
struct KernelScheduler {
  struct Described {
    ScheduleOrNot found;
    std::vector<SharedAccess> shared;
  };

  const Graph& graph;
  std::vector<const PlannedStage*> stages;
  const DeviceSpec& device;
  int worker_threads;
  SymbolTable& symbols;
  std::map<std::vector<int>, Described> described = {};  // by positions of stages

  StageSchedule schedule_alone(int stage, const BlockBounds& bounds);
  // `bounds`: the most threads, and whether homes are split.  `templates`: by stage, or none.
  Schedules schedule_apart(BlockBounds bounds = {}, const std::vector<Template>& templates = {});
  // Blocks as large as the registers allow that the kept values need (AStitch 3.5: assume, relax,
  // apply; the compiled kernel is checked in csrc/compile.cpp).  Nothing where no size does, or
  // where the stages do not go together.
  Schedules schedule_together(const StageGroups& groups, const BlockBounds& bounds = {});
  // By its chains where there are any, else together where there are groups and they go together,
  // else apart: then all `persistent` are empty.  Nothing where a chain has no schedule within the
  // bounds.  `kernel`: of the same stages.
  Schedules schedule(const KernelStages& kernel, const BlockBounds& bounds = {});
  // What stages have that share a mapping, by their positions.
  const Described& describe(const std::vector<int>& members);
  // With those that are not there yet, each alone; nothing where some stage has other blocks.
  Schedules add_others(Schedules schedules, const BlockBounds& bounds);
};

// Two stages of different mappings that one block runs one after the other (PlannedChain).
//
// The first stage keeps the mapping it would have alone: parallelism has priority.  The second, if
// it is element-wise, is mapped so that each block has the range of the first's results that the
// same block made (AStitch 3.4, proactive adaptation); one that reduces keeps its own mapping too,
// and its blocks must happen to have the same ranges (the passive check).
struct ChainSchedules {
  StageSchedule first, then;
};
// Nothing where sizes are not static, a block would need another one's results, or those of one
// block do not fit in its share of shared memory.  `chain`: by positions.
std::optional<ChainSchedules> schedule_chain(KernelScheduler& scheduler, const PlannedChain& chain,
                                             const BlockBounds& bounds);

}  // namespace stitch
