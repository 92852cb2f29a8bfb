// The stages of one kernel -> StageSchedules: blocks of one size, and one mapping for stages that
// keep values in registers across grid barriers.
#pragma once

#include "schedule/stage_schedule.h"

namespace stitch {

struct KernelStages {
  std::vector<const PlannedStage*> stages;  // of all phases, in order
  std::vector<std::vector<int>> groups;     // positions of stages that keep values; may be empty
};
KernelStages gather_stages(const PlannedKernel& kernel, const std::vector<PlannedStage>& stages);

// Blocks as large as the registers allow that the kept values need (AStitch 3.5: assume, relax,
// apply; the compiled kernel is checked in csrc/compile.cpp).  Where no size does, or where the
// stages do not go together, none is kept: then all `persistent` are empty.
std::vector<StageSchedule> schedule_kernel(const Graph& graph, const KernelStages& kernel,
                                           const DeviceSpec& device, int worker_threads,
                                           SymbolTable& symbols, int most_threads = kMostThreads);

}  // namespace stitch
