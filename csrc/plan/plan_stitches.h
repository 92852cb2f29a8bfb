// Graph -> StitchPlan: which values share a kernel (AStitch A.2-A.8: stitch what may be stitched,
// cut where a check refuses, and where the cost model says that joining loses).
#pragma once

#include <functional>

#include "cost/estimate_kernel.h"
#include "plan/stitch_plan.h"

namespace stitch {

// What the schedule of a candidate stage would be like; the spine provides it.
struct StageScore {
  Verdict verdict;  // can it be scheduled at all?
  double us = 0;    // as a kernel of its own
  StageEstimate estimate = {};
  int statements = 0;  // of its text
};
using StageJudge = std::function<StageScore(const PlannedStage&)>;

struct PlanOptions {
  bool every_op = false;               // policy "none": one kernel per op
  const DeviceSpec* device = nullptr;  // stages are stitched where its blocks can meet; null: never
};

StitchPlan plan_stitches(const Graph& graph, const StageJudge& judge, const PlanOptions& options);

// Verdict rules of the planner.
inline constexpr int kRuleCycle = 1;    // something outside must run between the two
inline constexpr int kRuleSlower = 22;  // the model predicts more time than for two kernels
inline constexpr int kRuleLongKernel = 24;
inline constexpr int kRuleManyArguments = 25;

// Tensors of one launch: 8 bytes each of the 4 KB that every driver takes; the rest is for sizes
// and the error flag.
inline constexpr size_t kMostPointers = 480;

}  // namespace stitch
