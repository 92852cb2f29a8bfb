// Graph text planned and scheduled for one device, judged as the compiler judges candidates.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "cost/estimate_kernel.h"
#include "ir/parse_graph.h"
#include "plan/find_roots.h"
#include "plan/plan_stitches.h"
#include "schedule/measure_work.h"
#include "schedule/reduction_arrays.h"
#include "schedule/schedule_kernel.h"

namespace stitch {

inline constexpr int kTestWorkers = 4;

struct Planned {
  Graph graph;
  StitchPlan plan;
  std::vector<KernelSchedule> schedules;

  const KernelSchedule& only() const {
    EXPECT_EQ(schedules.size(), 1u) << to_string(plan, graph);
    return schedules.front();
  }
  // The kernel that holds a root of this op, -1 for none.
  int kernel_of(OpKind op) const {
    for (size_t k = 0; k < plan.kernels.size(); ++k) {
      for (NodeId root : plan.kernels[k].roots) {
        if (graph[root].op == op) return static_cast<int>(k);
      }
    }
    return -1;
  }
};

inline KernelJudge judge_for(const Graph& graph, const DeviceSpec& device) {
  return [&graph, &device](const PlannedKernel& kernel) -> KernelScore {
    SpacesOrNot found = find_spaces(graph, kernel.roots, find_loads(graph, kernel));
    if (!found.verdict) return {found.verdict, 0};
    SymbolTable symbols = graph.symbols;
    const KernelSchedule schedule = schedule_kernel(graph, kernel, device, kTestWorkers, symbols);
    if (Verdict fits = check_arrays(graph, schedule); !fits) return {fits, 0};
    if (Verdict sized = check_statements(schedule); !sized) return {sized, 0};
    const KernelWork work = measure_work(graph, kernel, schedule);
    return {Verdict::yes(), estimate_us(work, device, kTestWorkers)};
  };
}

inline Planned plan_graph(const std::string& text, const std::string& target,
                          const PlanOptions& options = {}) {
  Planned planned{parse_graph(text), {}, {}};
  const DeviceSpec& device = device_spec(target);
  planned.plan = plan_stitches(planned.graph, judge_for(planned.graph, device), options);
  for (const PlannedKernel& kernel : planned.plan.kernels) {
    planned.schedules.push_back(
        schedule_kernel(planned.graph, kernel, device, kTestWorkers, planned.graph.symbols));
  }
  return planned;
}

// All reductions and outputs in one kernel, whatever it costs.
inline Planned schedule_together(const std::string& text, const std::string& target) {
  Planned planned{parse_graph(text), {}, {}};
  const Graph& graph = planned.graph;
  PlannedKernel kernel;
  const Demands demands = find_demands(graph);
  kernel.roots = find_roots(graph, demands, false);
  for (int n = 0; n < graph.size(); ++n) {
    if (is_materialised(graph.nodes[n])) {
      kernel.loads.push_back(NodeId(n));
    } else {
      kernel.nodes.push_back(NodeId(n));
      if (demands.is_demanded[n]) kernel.stores.push_back(NodeId(n));
    }
  }
  planned.plan.kernels = {kernel};
  planned.schedules.push_back(
      schedule_kernel(graph, kernel, device_spec(target), kTestWorkers, planned.graph.symbols));
  return planned;
}

}  // namespace stitch
