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
  int group = -1;  // of PlannedKernel::kept
  int number = 0;  // in the kernel
};

// As PlannedKernel: phases, of blocks, of the stages that these run in turn.
using LoweredBlocks = std::vector<KernelStage>;
struct LoweredPhase {
  Join join;
  std::vector<LoweredBlocks> blocks;

  auto stages() const { return blocks | std::views::join; }
};
using LoweredKernel = std::vector<LoweredPhase>;

inline auto stages_of(const LoweredKernel& kernel) {
  return kernel | std::views::transform(&LoweredPhase::blocks) | std::views::join |
         std::views::join;
}

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
