#include "plan/stitch_plan.h"

#include <iomanip>

#include "base/words.h"

namespace stitch {

KernelError::KernelError(const Error& cause, const Graph& graph, const StitchPlan& plan,
                         const std::vector<size_t>& kernels)
    : InternalError(cause) {
  std::set<int> positions;
  for (size_t k : kernels)
    for (const NodeId node : nodes_of(plan, static_cast<int>(k)))
      if (graph[node].origin.position >= 0) positions.insert(graph[node].origin.position);
  ops.assign(positions.begin(), positions.end());
}

std::set<NodeId> find_shared_values(const StitchPlan& plan) {
  std::set<NodeId> values;
  for (const PlannedKernel& kernel : plan.kernels)
    for (const PlannedBlocks& blocks : kernel.blocks())
      values.insert(blocks.in_shared.begin(), blocks.in_shared.end());
  return values;
}

NodeList nodes_of(const StitchPlan& plan, int kernel) {
  std::set<NodeId> nodes;
  for (const Stage* stage : stages_of(plan, plan.kernels[kernel]))
    nodes.insert(stage->nodes.begin(), stage->nodes.end());
  return {nodes.begin(), nodes.end()};
}

static std::string list(const NodeList& nodes) {
  return join(nodes, "", [](NodeId node) { return concat(" %", node.value()); });
}

static void print(const StitchPlan& plan, const PlannedKernel& kernel, const PlannedBlocks& blocks,
                  const Graph& graph, std::ostringstream& out) {
  const Stage* before = nullptr;
  const auto place = [&](NodeId value) {
    return contains(before->stores, value) ? concat(", %", value.value(), " in shared memory") : "";
  };
  for (int s : blocks.stages) {
    if (before) out << "  block barrier" << join(blocks.in_shared, "", place) << "\n";
    before = &plan.stages[s];
    out << "  loads:" << list(before->loads) << "\n  roots:";
    for (NodeId root : before->roots) out << " " << info(graph[root]).name << " %" << root;
    out << "\n  stores:" << list(before->stores) << "\n";
    const int group = kernel.group_of(s);
    if (group >= 0) out << "  persistent group " << group << "\n";
  }
}

std::string to_string(const StitchPlan& plan, const Graph& graph) {
  std::ostringstream out;
  for (size_t k = 0; k < plan.kernels.size(); ++k) {
    const PlannedKernel& kernel = plan.kernels[k];
    out << "kernel " << k;
    if (kernel.us > 0)
      out << ": " << std::fixed << std::setprecision(1) << kernel.us << " us, "
          << to_string(kernel.choice);
    out << "\n";
    for (const PlannedPhase& phase : kernel.phases) {
      if (phase.join != Join::kLaunch) out << " " << to_string(phase.join) << "\n";
      for (const PlannedBlocks& blocks : phase.blocks) print(plan, kernel, blocks, graph, out);
    }
  }
  out << "steps:";
  for (const auto& [kernel, call] : plan.steps)
    out << (call.valid() ? " %" : " kernel ") << (call.valid() ? call.value() : kernel);
  out << "\n";
  for (const Alias& alias : plan.aliases)
    out << "alias %" << alias.node << " of %" << alias.base << " + " << to_string(alias.offset)
        << "\n";
  for (size_t m = 0; m < plan.in_place.size(); ++m)
    out << "mutation %" << graph.mutations[m].input << " <- %" << graph.mutations[m].value
        << (plan.in_place[m] ? " in place" : " by copy") << "\n";
  for (const auto& [store, load] : plan.stored_over)
    out << "%" << store << " over %" << load << "\n";
  for (const Cut& cut : plan.cuts)
    out << "cut %" << cut.from << " -> %" << cut.to << " rule " << cut.reason.rule << ": "
        << cut.reason.why << "\n";
  return out.str();
}

}  // namespace stitch
