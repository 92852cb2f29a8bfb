// Graph -> StitchPlan: which values share a kernel (AStitch A.2-A.8: stitch what may be stitched,
// cut where a check refuses, and where the cost model says that joining loses).
#pragma once

#include "cost/estimate_kernel.h"
#include "plan/stitch_plan.h"

namespace stitch {

// What the schedule of a candidate stage would be like; the spine provides it.
struct StageScore {
  Verdict verdict;  // can it be scheduled at all?
  double us = 0;    // as a kernel of its own
  StageEstimate estimate = {};
  int statements = 0;  // of its text
  int threads = 0;     // of a block
  double copy_us = 0;  // of `us` and of the estimate: copies that its stores need
};
using StageJudge = std::function<StageScore(const PlannedStage&)>;

// Predicted microseconds of one kernel with persistent groups; nothing where they keep nothing.
using GroupsJudge = std::function<std::optional<double>(const StageGroups&)>;
// The judge of a kernel of these stages, which outlive it.
using KernelJudge = std::function<GroupsJudge(const PlannedStages&, const PlannedKernel&)>;

// Plans of graphs of so many values are compared by the best mappings of their kernels, those of
// larger ones by the derived mappings.
inline constexpr int kMostEnumerated = 512;

// Without a judge of kernels nothing stays in registers across grid barriers.
StitchPlan plan_stitches(const Graph& graph, const StageJudge& judge, const DeviceSpec& device,
                         const std::string& policy = "auto", const KernelJudge& judge_kernel = {});

// Verdict rules of the planner.
inline constexpr int kRuleCycle = 1;    // something outside must run between the two
inline constexpr int kRuleSlower = 22;  // the model predicts more time than for two kernels
inline constexpr int kRuleLessParallel = 26;
inline constexpr int kRuleNoBarrier = 27;  // the policy has no communication between blocks
inline constexpr int kRuleCopied = 28;     // a store in place would become a copy
inline constexpr int kRuleWaiting = 42;    // many large values would wait for their library calls
inline constexpr int kRuleLongKernel = 24;
inline constexpr int kRuleManyArguments = 25;

// Compile time grows faster than text (NVRTC 13: 1,000 statements take 0.6 s, 4,000 take 3.6 s).
inline constexpr int kMostStageStatements = 600;
Verdict too_long(int statements, int most);

// Tensors of one launch: 8 bytes each of the 4 KB that every driver takes, less sizes and flags.
inline constexpr size_t kMostPointers = 480;
Verdict check_pointers(size_t pointers);

}  // namespace stitch
