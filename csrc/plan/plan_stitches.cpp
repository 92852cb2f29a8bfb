#include "plan/plan_stitches.h"

#include <bit>
#include <tuple>

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

// By node: the first that scores do not tell from it, but by its operands.  Of arguments and
// results of calls, which stages load, they ask for op and type alone.  What accesses at indices,
// of which they look at more than a stage evaluates, and what may be stored in place are like no
// other.
std::vector<int> find_kinds(const Graph& graph, const std::map<NodeId, int>& replaceable) {
  const auto content_of = [](const Node& node) {
    return std::tuple(node.op, node.ints, node.dims, std::bit_cast<int64_t>(node.number),
                      node.integer, node.type.dtype, node.type.shape, node.type.strides,
                      node.origin.op);
  };
  std::map<decltype(content_of({})), int> firsts;
  std::vector<int> kinds = count_to(graph.nodes.size());
  for (int& kind : kinds) {
    const Node& node = graph.nodes[kind];
    const bool accesses = family(node) == Family::kReader || family(node) == Family::kWriter;
    if (accesses || replaceable.contains(NodeId(kind))) continue;
    const Node seen = is_materialised(node) ? Node{.op = node.op, .type = node.type} : node;
    kind = firsts.try_emplace(content_of(seen), kind).first->second;
  }
  return kinds;
}

// What a stage is, wherever it stands in the graph.
std::vector<int> outline_of(const StagePrices& prices, const Stage& stage) {
  const NodeList all = unite(stage.nodes, stage.loads);
  auto outline = map_to_vector(all, [&](NodeId id) { return prices.kinds[id.index()]; });
  const auto add_places = [&](const NodeList& ids) {
    for (const NodeId id : ids)
      outline.push_back(static_cast<int>(std::ranges::lower_bound(all, id) - all.begin()));
    outline.push_back(-1);
  };
  for (const NodeList* ids : {&stage.loads, &stage.roots, &stage.stores}) add_places(*ids);
  for (const NodeId id : stage.nodes) add_places(prices.graph[id].inputs);
  return outline;
}

Choice choice_of(const PlannedKernel& kernel) {
  if (kernel.has_chains()) return Choice::kChained;
  if (!kernel.kept.empty()) return Choice::kKept;
  const auto is_derived = [](const Template& own) { return own == Template{}; };
  return std::ranges::all_of(kernel.templates, is_derived) ? Choice::kDerived : Choice::kTemplates;
}

}  // namespace

const StageScore& StagePrices::of(const Stage& stage) {
  const auto [entry, is_new] = known.try_emplace(outline_of(*this, stage));
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
  std::map<NodeId, int> replaceable = find_replaceable(graph);
  std::vector<int> kinds = find_kinds(graph, replaceable);
  return {graph, target, std::move(replaceable), std::move(kinds)};
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
