// Graph -> StitchPlan: which values share a kernel (AStitch A.2-A.8: stitch what may be stitched,
// cut where a check refuses, and where the cost model says that joining loses).
#pragma once

#include <functional>

#include "plan/stitch_plan.h"

namespace stitch {

// What the schedule of a candidate kernel would be like; the spine provides it.
struct KernelScore {
  Verdict verdict;  // can it be scheduled at all?
  double us = 0;
};
using KernelJudge = std::function<KernelScore(const PlannedKernel&)>;

struct PlanOptions {
  bool every_op = false;  // policy "none": one kernel per op
};

StitchPlan plan_stitches(const Graph& graph, const KernelJudge& judge, const PlanOptions& options);

// Verdict rules of the planner.
inline constexpr int kRuleCycle = 1;    // something outside must run between the two
inline constexpr int kRuleSlower = 22;  // the model predicts more time than for two kernels

}  // namespace stitch
