#include "plan/plan_stitches.h"

#include <sstream>

#include "plan/find_roots.h"
#include "plan/join_kernels.h"
#include "plan/store_in_place.h"

namespace stitch {

StitchPlan plan_stitches(const Graph& graph, const KernelJudge& judge, const PlanOptions& options) {
  const Demands demands = find_demands(graph);
  const std::vector<NodeId> roots = find_roots(graph, demands, options.every_op);
  JoinedKernels joined = join_kernels(graph, roots, demands, judge, !options.every_op);
  StitchPlan plan;
  plan.kernels = std::move(joined.kernels);
  plan.steps = std::move(joined.steps);
  plan.cuts = std::move(joined.cuts);
  plan.aliases = demands.aliases;
  plan.in_place = find_in_place(graph, plan);
  return plan;
}

std::string to_string(const StitchPlan& plan, const Graph& graph) {
  std::ostringstream out;
  auto list = [&](const char* title, const std::vector<NodeId>& nodes) {
    out << "  " << title << ":";
    for (NodeId node : nodes) out << " %" << node;
    out << "\n";
  };
  for (size_t k = 0; k < plan.kernels.size(); ++k) {
    const PlannedKernel& kernel = plan.kernels[k];
    out << "kernel " << k << "\n";
    list("loads", kernel.loads);
    out << "  roots:";
    for (NodeId root : kernel.roots) out << " " << info(graph[root]).name << " %" << root;
    out << "\n";
    list("stores", kernel.stores);
  }
  out << "steps:";
  for (const PlanStep& step : plan.steps) {
    if (step.kind == PlanStep::Kind::kKernel) {
      out << " kernel " << step.kernel;
    } else {
      out << " %" << step.call;
    }
  }
  out << "\n";
  for (const PlannedAlias& alias : plan.aliases) {
    out << "alias %" << alias.node << " of %" << alias.base << " + " << to_string(alias.offset)
        << "\n";
  }
  for (size_t m = 0; m < plan.in_place.size(); ++m) {
    out << "mutation %" << graph.mutations[m].input << " <- %" << graph.mutations[m].value
        << (plan.in_place[m] ? " in place" : " by copy") << "\n";
  }
  for (const Cut& cut : plan.cuts) {
    out << "cut %" << cut.from << " -> %" << cut.to << " rule " << cut.reason.rule << ": "
        << cut.reason.why << "\n";
  }
  return out.str();
}

}  // namespace stitch
