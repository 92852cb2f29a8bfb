#include "plan/plan_stitches.h"

#include "plan/kernels/chain_stages.h"
#include "plan/kernels/choose_template.h"
#include "plan/stitch_stages.h"
#include "plan/store_in_place.h"

namespace stitch {
namespace {

// Time before torch's dispatcher has a kernel running, in launches of ours [A].
constexpr double kLaunchesOfACall = 2;

// A new value that is not stored over the old one is copied there: a call, one more read and write.
double predict_copies_us(const Graph& graph, const DeviceSpec& device,
                         const std::map<NodeId, int>& replaceable, const Stage& stage) {
  const NodeList replaced = find_replaced(graph, replaceable, stage);
  double us = 0;
  for (NodeId store : stage.stores) {
    if (!replaceable.contains(store) || std::ranges::count(replaced, store)) continue;
    const auto bytes = static_cast<double>(hint_bytes(graph, store));
    us += kLaunchesOfACall * device.launch_us + 2 * bytes / device.dram_bytes_per_us;
  }
  return us;
}

Choice choice_of(const PlannedKernel& kernel) {
  if (kernel.has_chains()) return Choice::kChained;
  if (!kernel.kept.empty()) return Choice::kKept;
  const auto is_derived = [](const Template& own) { return own == Template{}; };
  return std::ranges::all_of(kernel.templates, is_derived) ? Choice::kDerived : Choice::kTemplates;
}

}  // namespace

const StageScore& StagePrices::of(const Stage& stage) {
  const auto [entry, is_new] = known.try_emplace({stage.roots, stage.loads, stage.stores});
  StageScore& own = entry->second;
  if (!is_new) return own;
  check_stopping();  // planning takes seconds, one answer a millisecond
  own = score(graph, stage, target);
  if (!own.verdict) return own;
  own.copy_us = predict_copies_us(graph, target.device, replaceable, stage);
  own.us += own.copy_us;
  own.estimate.us += own.copy_us;
  return own;
}

StagePrices price_stages(const Graph& graph, const Target& target) {
  return {graph, target, find_replaceable(graph)};
}

void schedule_kernel(const Graph& graph, const Target& target, const BlockBounds& bounds, size_t k,
                     StitchPlan& plan) {
  PlannedKernel& kernel = plan.kernels[k];
  kernel.choice = choice_of(kernel);
  TemplateMemo memo;
  KernelChooser chooser{graph, plan.stages, kernel, target, memo};
  KernelSchedules schedules = chooser.schedule({bounds, kernel.templates, kernel.kept});
  kernel.us = chooser.predict_us(schedules);
  for (auto& [s, schedule] : schedules) plan.schedules[s] = std::move(schedule);
}

void keep_kernel_cuts(const Graph& graph, StitchPlan& plan) {
  std::vector<int> kernel_of(graph.size(), -1);  // by root
  for (int k = 0; k < std::ssize(plan.kernels); ++k)
    for (const Stage* stage : stages_of(plan, plan.kernels[k]))
      for (NodeId root : stage->roots) kernel_of[root.index()] = k;
  std::erase_if(plan.cuts, [&](const Cut& cut) {
    const int kernel = kernel_of[cut.from.index()];
    return kernel >= 0 && kernel == kernel_of[cut.to.index()];
  });
}

StitchPlan plan_stitches(const Graph& graph, const Target& target, const std::string& policy) {
  const Demands demands = find_demands(graph);
  StagePrices prices = price_stages(graph, target);
  TemplateMemo templates;
  const PlanRequest in{graph, demands, target, prices, templates};
  StitchPlan plan = plan_by_policy(policy, in);
  plan.aliases = demands.aliases;
  plan.in_place = find_in_place(graph, plan);
  plan = chain_stages(graph, std::move(plan), target);
  keep_kernel_cuts(graph, plan);
  if (!target.device.is_cuda) plan.stored_over = find_stored_over(graph, plan);
  plan.schedules.resize(plan.stages.size());
  for_each_kernel(graph, plan, [&](size_t k) { schedule_kernel(graph, target, {}, k, plan); });
  return plan;
}

void name_blocks(SymbolTable& symbols, StitchPlan& plan) {
  for (StageSchedule& schedule : plan.schedules) name_blocks(symbols, schedule);
}

}  // namespace stitch
