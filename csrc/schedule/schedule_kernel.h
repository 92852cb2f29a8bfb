// The stages of one kernel -> StageSchedules: blocks of one size, and one mapping for stages that
// keep values in registers across grid barriers.
#pragma once

#include <map>
#include <optional>

#include "schedule/persistent_values.h"
#include "schedule/schedule_stage.h"

namespace stitch {

struct KernelStages {
  std::vector<const PlannedStage*> stages;  // of all phases, in order
  std::vector<std::vector<int>> groups;     // positions of stages that keep values; may be empty
  std::vector<PlannedChain> chains = {};    // by positions
  std::vector<Template> templates = {};     // of the stages that keep none; empty: all derived
};
KernelStages gather_stages(const PlannedKernel& kernel, const std::vector<PlannedStage>& stages);

// Schedules one kernel with several choices of groups and blocks: what stages have under any
// mapping is found once.
struct KernelScheduler {
  using Groups = std::vector<std::vector<int>>;  // KernelStages::groups
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
  std::vector<StageSchedule> schedule_apart(BlockBounds bounds = {},
                                            const std::vector<Template>& templates = {});
  // Blocks as large as the registers allow that the kept values need (AStitch 3.5: assume, relax,
  // apply; the compiled kernel is checked in csrc/compile.cpp).  Nothing where no size does, or
  // where the stages do not go together.
  std::vector<StageSchedule> schedule_together(const Groups& groups,
                                               const BlockBounds& bounds = {});
  // By its chains where there are any, else together where there are groups and they go together,
  // else apart: then all `persistent` are empty.  Nothing where a chain has no schedule within the
  // bounds.  `kernel`: of the same stages.
  std::vector<StageSchedule> schedule(const KernelStages& kernel, const BlockBounds& bounds);

 private:
  struct Group;
  struct Attempt;

  const Described& describe(const std::vector<int>& members);
  bool map_groups(const Groups& groups, Attempt& attempt);
  bool count_resident_blocks(Attempt& attempt) const;
  int64_t count_shared_room(const Attempt& attempt) const;
  bool keep(const Groups& groups, bool in_shared, Attempt& attempt);
  std::vector<StageSchedule> finish(Attempt attempt);
};

// KernelScheduler::schedule of a kernel that is scheduled once.
std::vector<StageSchedule> schedule_kernel(const Graph& graph, const KernelStages& kernel,
                                           const DeviceSpec& device, int worker_threads,
                                           SymbolTable& symbols, const BlockBounds& bounds = {});

// Two stages of different mappings that one block runs one after the other (PlannedChain).
//
// The first stage keeps the mapping it would have alone: parallelism has priority.  The second, if
// it is element-wise, is mapped so that each block has the range of the first's results that the
// same block made (AStitch 3.4, proactive adaptation); one that reduces keeps its own mapping too,
// and its blocks must happen to have the same ranges (the passive check).
struct ChainedStages {
  const PlannedStage *first, *then;
  const std::vector<NodeId>& in_shared;
};
struct ChainSchedules {
  StageSchedule first, then;
};
// Nothing where sizes are not static, a block would need another one's results, or those of one
// block do not fit in its share of shared memory.
std::optional<ChainSchedules> schedule_chain(const Graph& graph, const ChainedStages& chain,
                                             const DeviceSpec& device, SymbolTable& symbols,
                                             const BlockBounds& bounds);

}  // namespace stitch
