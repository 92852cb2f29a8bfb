// Joins roots into stages, pairwise, while checks and cost allow.
#pragma once

#include <vector>

#include "plan/plan_stitches.h"
#include "plan/storage.h"

namespace stitch {

struct PlanRequest {
  const Graph& graph;
  const Demands& demands;
  const StageJudge& judge;
  const DeviceSpec& device;
  KernelJudge judge_kernel = {};
};

struct JoinedStages {
  std::vector<PlannedStage> stages;
  std::vector<PlanStep> steps;  // stages and library calls in an order that can run
  std::vector<Cut> cuts;
};

enum class JoinRule {
  kNever,     // but for groups
  kFaster,    // where the model predicts less time, of what stays apart in phases of one kernel
  kParallel,  // along edges, where the part with more work keeps as much of the device, or the
              // reductions that an element-wise part follows do (AStitch 3.4), and what is stored
              // in place is so still
};

// One stage per root to begin with.  Roots of one group, each ascending, are then joined while
// checks and the rule allow, by kNever whatever it costs; then pairs of stages by the rule.
JoinedStages join_stages(const PlanRequest& in, const std::vector<NodeId>& roots, JoinRule rule,
                         const std::vector<std::vector<NodeId>>& groups = {});

}  // namespace stitch
