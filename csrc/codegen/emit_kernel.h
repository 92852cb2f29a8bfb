// Lowered stages -> KernelSource: the frame around the statements, and the kernel's name.
#pragma once

#include "codegen/lower_stage.h"
#include "config/settings.h"
#include "plan/stitch_plan.h"

namespace stitch {

struct KernelStage {
  const Stage* stage;
  const StageSchedule* schedule;  // of as many threads as the kernel's others
  LoweredStage lowered;
  int group = -1;  // PlannedKernel::persistent_groups
  // Follows the stage before it in its phase, in the same blocks (PlannedChain).
  bool continues = false;
};

struct LoweredKernel {
  std::vector<std::vector<KernelStage>> phases;
  int finish = -1;  // PlannedKernel::finish
};

// What all kernels of a plan are lowered with.
LoweringOptions choose_lowering(const Graph& graph, const StitchPlan& plan,
                                const DeviceSpec& device, const Settings& settings);

// What comes out refers to the plan.
LoweredKernel lower_kernel(const Graph& graph, const StitchPlan& plan, const PlannedKernel& kernel,
                           const LoweringOptions& options);

// A kernel of one stage is that stage's body.  Others call a function per stage from loops over the
// phase's blocks, so that any grid is right, and meet at a grid barrier between phases, or end in
// the last block to come.
KernelSource emit_kernel(const Graph& graph, const LoweredKernel& kernel,
                         const LoweringOptions& options);

}  // namespace stitch
