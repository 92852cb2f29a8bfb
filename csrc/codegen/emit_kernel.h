// Lowered stages -> KernelSource: the frame around the statements, and the kernel's name.
#pragma once

#include <vector>

#include "codegen/kernel_source.h"
#include "codegen/lower_stage.h"

namespace stitch {

struct KernelStage {
  const PlannedStage* stage;
  const StageSchedule* schedule;  // of as many threads as the kernel's others
  LoweredStage lowered;
  int group = -1;  // PlannedKernel::persistent_groups
};

// The stages of a kernel, by phase; `schedules` are those of all stages of the plan.  What comes
// out refers to both.
std::vector<std::vector<KernelStage>> lower_kernel(const Graph& graph, const StitchPlan& plan,
                                                   const PlannedKernel& kernel,
                                                   const std::vector<StageSchedule>& schedules,
                                                   const LoweringOptions& options);

// By phase.  A kernel of one stage is that stage's body.  Others call a function per stage from
// loops over the phase's blocks, so that any grid is right, and meet at a grid barrier between
// phases.
KernelSource emit_kernel(const Graph& graph, const std::vector<std::vector<KernelStage>>& phases,
                         const LoweringOptions& options);

}  // namespace stitch
