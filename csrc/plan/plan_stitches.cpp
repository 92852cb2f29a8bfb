#include "plan/plan_stitches.h"

#include <algorithm>
#include <array>
#include <map>

#include "base/stop.h"
#include "plan/policies.h"
#include "plan/store_in_place.h"

namespace stitch {
namespace {

// Of the edges between stages only those between kernels are cuts: the others pass a barrier.
std::vector<Cut> keep_kernel_cuts(const StitchPlan& plan, std::vector<Cut> cuts) {
  std::map<NodeId, size_t> kernel_of;
  for (size_t k = 0; k < plan.kernels.size(); ++k) {
    for (const PlannedStage* stage : stages_of(plan, plan.kernels[k]))
      for (NodeId root : stage->roots) kernel_of[root] = k;
  }
  std::erase_if(cuts, [&](const Cut& cut) {
    const auto from = kernel_of.find(cut.from), to = kernel_of.find(cut.to);
    return from != kernel_of.end() && to != kernel_of.end() && from->second == to->second;
  });
  return cuts;
}

// Time before torch's dispatcher has a kernel running, in launches of ours [A].
constexpr double kLaunchesOfACall = 2;

// A new value that the stage cannot store over the old one is copied there: a library call, and the
// value read and written once more.
using CopyTimes = std::function<double(const PlannedStage&)>;

CopyTimes predict_copies(const Graph& graph, const DeviceSpec& device) {
  return [&graph, &device, replaceable = find_replaceable(graph)](const PlannedStage& stage) {
    const std::vector<NodeId> replaced = find_replaced(graph, replaceable, stage);
    double us = 0;
    for (NodeId store : stage.stores) {
      if (!replaceable.contains(store) || std::ranges::count(replaced, store)) continue;
      const auto bytes = static_cast<double>(hint_bytes(graph, store));
      us += kLaunchesOfACall * device.launch_us + 2 * bytes / device.dram_bytes_per_us;
    }
    return us;
  };
}

StageJudge add_copies(const StageJudge& judge, const CopyTimes& copies) {
  return [&judge, &copies](const PlannedStage& stage) {
    StageScore score = judge(stage);
    if (!score.verdict) return score;
    score.copy_us = copies(stage);
    score.us += score.copy_us;
    score.estimate.us += score.copy_us;
    return score;
  };
}

KernelJudge add_copies(const KernelJudge& judge, const CopyTimes& copies) {
  if (!judge) return {};
  return [&judge, &copies](const std::vector<PlannedStage>& stages,
                           const PlannedKernel& kernel) -> GroupsJudge {
    double copies_us = 0;
    for (int s : kernel.stages()) copies_us += copies(stages[s]);
    return [judge_groups = judge(stages, kernel),
            copies_us](const std::vector<std::vector<int>>& groups) {
      std::optional<double> us = judge_groups(groups);
      if (us) *us += copies_us;
      return us;
    };
  };
}

// Answers from memory where a stage was judged before: explorers ask about many of the same.
StageJudge ask_once(const StageJudge& judge) {
  using Key = std::array<std::vector<NodeId>, 3>;
  return [&judge, scores = std::map<Key, StageScore>()](const PlannedStage& stage) mutable {
    const auto [entry, is_new] = scores.try_emplace({stage.roots, stage.loads, stage.stores});
    if (is_new) {
      check_stopping();  // planning takes seconds, one answer a millisecond
      entry->second = judge(stage);
    }
    return entry->second;
  };
}

}  // namespace

StitchPlan plan_stitches(const Graph& graph, const StageJudge& judge, const DeviceSpec& device,
                         const std::string& policy, const KernelJudge& judge_kernel) {
  const Demands demands = find_demands(graph);
  const CopyTimes copies = predict_copies(graph, device);
  const StageJudge judge_all = add_copies(judge, copies);
  const StageJudge judge_once = ask_once(judge_all);
  const KernelJudge judge_whole = add_copies(judge_kernel, copies);
  PlanCandidate chosen = plan_by_policy(policy, {graph, demands, judge_once, device, judge_whole});
  StitchPlan plan{.policy = chosen.policy,
                  .stages = std::move(chosen.joined.stages),
                  .kernels = std::move(chosen.stitched.kernels),
                  .steps = std::move(chosen.stitched.steps)};
  std::vector<Cut> cuts = std::move(chosen.joined.cuts);
  cuts.insert(cuts.end(), chosen.stitched.cuts.begin(), chosen.stitched.cuts.end());
  plan.cuts = keep_kernel_cuts(plan, std::move(cuts));
  plan.aliases = demands.aliases;
  plan.in_place = find_in_place(graph, plan);
  return plan;
}

Verdict too_long(int statements, int most) {
  return Verdict::no(kRuleLongKernel, "the kernel would have " + std::to_string(statements) +
                                          " statements, more than " + std::to_string(most) +
                                          " that compile in reasonable time");
}

Verdict check_pointers(size_t pointers) {
  if (pointers <= kMostPointers) return Verdict::yes();
  return Verdict::no(kRuleManyArguments, "the kernel would have " + std::to_string(pointers) +
                                             " tensors; a launch takes " +
                                             std::to_string(kMostPointers));
}

}  // namespace stitch
