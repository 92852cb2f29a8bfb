#include "plan/plan_stitches.h"

#include "base/words.h"
#include "plan/stitch_stages.h"
#include "plan/store_in_place.h"

namespace stitch {
namespace {

// Of the edges between stages only those between kernels are cuts: the others pass a barrier.
void keep_kernel_cuts(const Graph& graph, StitchPlan& plan) {
  std::vector<int> kernel_of(graph.size(), -1);  // by root
  for (int k = 0; k < std::ssize(plan.kernels); ++k)
    for (const PlannedStage* stage : stages_of(plan, plan.kernels[k]))
      for (NodeId root : stage->roots) kernel_of[root.index()] = k;
  std::erase_if(plan.cuts, [&](const Cut& cut) {
    const int kernel = kernel_of[cut.from.index()];
    return kernel >= 0 && kernel == kernel_of[cut.to.index()];
  });
}

// Time before torch's dispatcher has a kernel running, in launches of ours [A].
constexpr double kLaunchesOfACall = 2;

// A new value that is not stored over the old one is copied there: a call, one more read and write.
double predict_copies_us(const Graph& graph, const DeviceSpec& device,
                         const std::map<NodeId, int>& replaceable, const PlannedStage& stage) {
  const NodeList replaced = find_replaced(graph, replaceable, stage);
  double us = 0;
  for (NodeId store : stage.stores) {
    if (!replaceable.contains(store) || std::ranges::count(replaced, store)) continue;
    const auto bytes = static_cast<double>(hint_bytes(graph, store));
    us += kLaunchesOfACall * device.launch_us + 2 * bytes / device.dram_bytes_per_us;
  }
  return us;
}

// With the copies that stages need; each stage once, as explorers ask about many of the same.
StageJudge judge_once(const Graph& graph, const DeviceSpec& device, const StageJudge& judge) {
  using Key = std::array<NodeList, 3>;
  return [&graph, &device, &judge, replaceable = find_replaceable(graph),
          scores = std::map<Key, StageScore>()](const PlannedStage& stage) mutable {
    const auto [entry, is_new] = scores.try_emplace({stage.roots, stage.loads, stage.stores});
    StageScore& score = entry->second;
    if (!is_new) return score;
    check_stopping();  // planning takes seconds, one answer a millisecond
    score = judge(stage);
    if (!score.verdict) return score;
    score.copy_us = predict_copies_us(graph, device, replaceable, stage);
    score.us += score.copy_us;
    score.estimate.us += score.copy_us;
    return score;
  };
}

}  // namespace

StitchPlan plan_stitches(const Graph& graph, const StageJudge& judge, const DeviceSpec& device,
                         const std::string& policy, const KernelJudge& judge_kernel) {
  const Demands demands = find_demands(graph);
  const StageJudge judge_stage = judge_once(graph, device, judge);
  StitchPlan plan =
      plan_by_policy(policy, {graph, demands, judge_stage, device, judge_kernel}).plan;
  keep_kernel_cuts(graph, plan);
  plan.aliases = demands.aliases;
  plan.in_place = find_in_place(graph, plan);
  return plan;
}

Verdict too_long(int statements, int most) {
  return Verdict::no(kRuleLongKernel,
                     concat("the kernel would have ", statements, " statements, more than ", most,
                            " that compile in reasonable time"));
}

Verdict check_pointers(size_t pointers) {
  if (pointers <= kMostPointers) return Verdict::yes();
  return Verdict::no(kRuleManyArguments, concat("the kernel would have ", pointers,
                                                " tensors; a launch takes ", kMostPointers));
}

}  // namespace stitch
