// Roots -> stages: they are joined pairwise, while checks and cost allow.  Stages -> kernels:
// remote stitching and the global scheme (AStitch A.2, A.3, A.5, A.15).
//
// Between two library calls everything may be one launch: dependent stages in phases with a grid
// barrier between them, independent ones side by side in a phase.
#pragma once

#include "plan/kernels/choose_template.h"
#include "plan/plan_stitches.h"
#include "stage/schedule_stage.h"

namespace stitch {

// Each number comes after all that `waits` lists for it, of those that can come next the lowest.
std::vector<int> order_by_waits(const std::vector<std::vector<int>>& waits);

// What candidate stages cost.  Each is scheduled once: explorers ask about many of the same, and
// the stages of equal layers differ in their place alone.
struct StagePrices {
  const Graph& graph;
  Target target;
  std::map<NodeId, int> replaceable;  // plan/store_in_place.h
  std::vector<int> kinds;             // by node
  std::function<StageScore(const Graph&, const Stage&, const Target&)> score = score_stage;
  std::map<std::vector<int>, StageScore> known = {};  // by nodes' kinds and how they are linked

  // The stage's score, with the copies that its stores need.
  const StageScore& of(const Stage& stage);
};

StagePrices price_stages(const Graph& graph, const Target& target);

struct PlanRequest {
  const Graph& graph;
  const Demands& demands;
  Target target;
  StagePrices& prices;
  TemplateMemo& templates;
};

inline KernelChooser choose_for(const PlanRequest& in, const Stages& stages,
                                const PlannedKernel& kernel) {
  return {in.graph, stages, kernel, in.target, in.templates};
}

struct JoinedStages {
  Stages stages;
  std::vector<PlanStep> steps;          // stages and library calls in an order that can run
  std::vector<std::vector<int>> waits;  // by step: those before it whose results it reads
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
JoinedStages join_stages(const PlanRequest& in, const NodeList& roots, JoinRule rule,
                         const std::vector<NodeList>& groups = {});

// One mapping may take this many times the time of two: beyond it, blocks repeat others' work.
inline constexpr double kMostRepeated = 2;

// One kernel per stage where the device cannot hold a grid at a barrier.  Cuts are between stages
// that could have been one, then between those that could have shared a kernel.
StitchPlan stitch_stages(const PlanRequest& in, JoinedStages joined, const StitchRule& rule);

// Of what a kernel's stages cannot store in place; no prediction of kernels counts them.
double sum_copies_us(const PlanRequest& in, const Stages& stages, const PlannedKernel& kernel);

// Stages of several phases that read one large value keep it in registers (PlannedKernel::
// kept) in every kernel that is predicted to gain by it (AStitch A.12).
void keep_in_registers(const PlanRequest& in, StitchPlan& plan);

// Last phases that the last block alone ends sooner become its own (Join::kLastBlock).
void finish_in_last_block(const PlanRequest& in, StitchPlan& plan);

// How roots become stages and stages kernels, one row per policy (policies.cpp): each paper's way
// can run alone, so that its claims can be reproduced, compared and regressed (DESIGN.md 4.4).
// "auto": the candidate predicted to take the least time.  UserError for an unknown name.
StitchPlan plan_by_policy(const std::string& policy, const PlanRequest& request);

// FusionStitching 2020's exploration over the roots of a graph: its units, its delta evaluator.
// Up to three plans, the best first: sets of roots to share a kernel, each ascending.  Patterns are
// scored without a schedule, by the bytes and launches that they save (20.20-20.23), and refused
// where one mapping cannot serve them (20.17).
std::vector<std::vector<NodeList>> plan_patterns(const PlanRequest& in, const NodeList& roots);

}  // namespace stitch
