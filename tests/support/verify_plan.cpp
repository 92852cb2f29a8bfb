#include "base/verify.h"
#include "base/words.h"
#include "support/verify.h"

namespace stitch {
namespace {

void verify_once(const char* rule, size_t count, std::vector<int> numbers) {
  std::ranges::sort(numbers);
  rules_of("plan", join(numbers, " "), " of ", count)(numbers == count_to(count), rule);
}

void verify_kernel(const StitchPlan& plan, size_t k) {
  const PlannedKernel& kernel = plan.kernels[k];
  const auto hold = rules_of("plan", "kernel ", k);
  const std::vector<int> stages = kernel.stages();
  std::map<int, size_t> phase_of;  // of stages that are none of a chain's
  Join before = Join::kGrid;
  hold(!kernel.phases.empty(), "kernel-has-phases");
  for (size_t p = 0; p < kernel.phases.size(); ++p) {
    const auto& [join, blocks] = kernel.phases[p];
    hold((join == Join::kLaunch) == (p == 0), "first-phase-is-launch");
    hold(before != Join::kLastBlock || join == before, "last-block-is-alone");
    hold(!blocks.empty(), "phase-has-blocks");
    for (const PlannedBlocks& own : blocks) {
      hold(!own.stages.empty(), "phase-has-blocks");
      if (!own.is_chain()) phase_of[own.stages[0]] = p;
    }
    before = join;
  }
  for (const std::vector<int>& group : kernel.kept) {
    for (int s : group) hold(phase_of.contains(s), "kept-outside-chains");
    const auto phases = map_to_vector(group, [&](int s) { return phase_of[s]; });
    hold(std::ranges::is_sorted(phases, std::less_equal()), "kept-one-of-a-phase");
  }
  hold(kernel.templates.empty() || kernel.templates.size() == stages.size(), "template-per-stage");
  for (int s : stages)
    hold(plan.schedules[s].threads == plan.schedules[stages[0]].threads, "blocks-of-one-size");
}

// The steps, as a call runs them.
struct PlanRun {
  const Graph& graph;
  const StitchPlan& plan;
  const std::set<NodeId> on_chip = find_shared_values(plan);
  std::vector<bool> is_there = mark_nodes(graph, graph.inputs);
  std::set<NodeId> stored = {};
  std::map<NodeId, NodeId> memory_of = {};  // by store: what it is stored over
  std::set<NodeId> overwritten = {};        // memory

  bool is_stored(NodeId id) const {
    const NodeId made = maker_of(graph, storage_base(graph, id));
    const auto is_part_there = [&](NodeId part) { return is_there[part.index()]; };
    return is_there[id.index()] || is_there[made.index()] ||
           (is_join(graph[made]) && std::ranges::all_of(graph[made].inputs, is_part_there));
  }

  // `stores`: of the same stage, which may store over what it has read.
  void read(NodeId value, const std::string& reader, const NodeList& stores = {}) const {
    const auto hold = rules_of("plan", reader, " reads %", value);
    hold(is_stored(value), "load-before-store");
    const NodeId memory = storage_base(graph, value);
    const auto is_over = [&](NodeId store) { return find_memory(store) == memory; };
    hold(!overwritten.contains(memory) || std::ranges::any_of(stores, is_over),
         "read-before-overwritten");
  }

  NodeId find_memory(NodeId store) const {
    const auto at = memory_of.find(store);
    return at == memory_of.end() ? NodeId() : at->second;
  }

  void run_blocks(const PlannedBlocks& blocks, const std::string& kernel) const {
    NodeList made;  // by earlier stages of these blocks
    for (int s : blocks.stages) {
      const Stage& stage = plan.stages[s];
      for (NodeId load : stage.loads)
        if (!std::ranges::count(made, load)) read(load, kernel, stage.stores);
      for (NodeId node : stage.nodes)
        for (NodeId operand : read_operands(graph[node]))
          rules_of("plan", "stage ", s, " has %", node, " of %", operand)(
              contains(stage.nodes, operand) || contains(stage.loads, operand), "operand-is-there");
      made.insert(made.end(), stage.stores.begin(), stage.stores.end());
    }
  }

  void run_phase(const PlannedPhase& phase, const std::string& kernel) {
    for (int s : phase.stages())
      for (NodeId store : plan.stages[s].stores) overwritten.insert(find_memory(store));
    for (const PlannedBlocks& blocks : phase.blocks) run_blocks(blocks, kernel);
    for (int s : phase.stages())
      for (NodeId store : plan.stages[s].stores) {
        rules_of("plan", kernel, " stores %", store)(stored.insert(store).second, "one-store");
        is_there[store.index()] = !on_chip.contains(store);
      }
  }

  void run() {
    for (size_t m = 0; m < plan.in_place.size(); ++m)
      for (NodeId store : find_stores(graph, graph.mutations[m].value))
        if (plan.in_place[m]) memory_of[store] = graph.mutations[m].input;
    for (const auto& [store, load] : plan.stored_over) {
      const TensorType &from = graph[load].type, &to = graph[store].type;
      rules_of("plan", "%", store, " over %", load)(
          from.dtype == to.dtype && element_count(from.shape) == element_count(to.shape),
          "stored-over-fits");
      memory_of[store] = load;
    }
    for (const auto& [kernel, call] : plan.steps) {
      if (call.valid()) {
        for (NodeId input : graph[call].inputs) read(input, concat("call %", call.value()));
        is_there[call.index()] = true;
      } else {
        for (const PlannedPhase& phase : plan.kernels[kernel].phases)
          run_phase(phase, concat("kernel ", kernel));
      }
    }
    for (const Mutation& mutation : graph.mutations) overwritten.erase(mutation.input);
    for (NodeId kept : find_kept(graph)) read(kept, "the caller");
  }
};

}  // namespace

void verify_plan(const Graph& graph, const StitchPlan& plan) {
  std::vector<int> stages, kernels;
  for (const PlannedKernel& kernel : plan.kernels)
    for (int s : kernel.stages()) stages.push_back(s);
  for (const PlanStep& step : plan.steps)
    if (!step.call.valid()) kernels.push_back(step.kernel);
  verify_once("stage-in-one-kernel", plan.stages.size(), stages);
  verify_once("kernel-in-one-step", plan.kernels.size(), kernels);
  rules_of("plan", plan.schedules.size())(plan.schedules.size() == stages.size(),
                                          "schedule-per-stage");
  for (size_t k = 0; k < plan.kernels.size(); ++k) verify_kernel(plan, k);
  PlanRun{graph, plan}.run();
}

}  // namespace stitch
