// Joins kernels pairwise while checks and cost allow.
#pragma once

#include <memory>
#include <vector>

#include "plan/plan_stitches.h"
#include "plan/storage.h"

namespace stitch {

struct JoinedKernels {
  std::vector<PlannedKernel> kernels;
  std::vector<PlanStep> steps;  // kernels and library calls in an order that can run
  std::vector<Cut> cuts;
};

// One kernel per root to begin with.
JoinedKernels join_kernels(const Graph& graph, const std::vector<NodeId>& roots,
                           const Demands& demands, const KernelJudge& judge, bool join);

}  // namespace stitch
