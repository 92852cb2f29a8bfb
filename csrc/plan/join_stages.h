// Joins roots into stages, pairwise, while checks and cost allow.
#pragma once

#include <memory>
#include <vector>

#include "plan/plan_stitches.h"
#include "plan/storage.h"

namespace stitch {

struct JoinedStages {
  std::vector<PlannedStage> stages;
  std::vector<PlanStep> steps;  // stages and library calls in an order that can run
  std::vector<Cut> cuts;
};

// One stage per root to begin with.
JoinedStages join_stages(const Graph& graph, const std::vector<NodeId>& roots,
                         const Demands& demands, const StageJudge& judge, bool join);

}  // namespace stitch
