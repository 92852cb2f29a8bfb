// Graph text planned and scheduled for one device, judged as the compiler judges candidates.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "codegen/emit_kernel.h"
#include "plan/find_roots.h"
#include "plan/plan_stitches.h"
#include "schedule/choose_template.h"
#include "schedule/reduction_arrays.h"
#include "schedule/schedule_kernel.h"
#include "support/read_graph.h"

namespace stitch {

inline constexpr int kTestWorkers = 4;

struct Planned {
  Graph graph;
  StitchPlan plan;
  std::vector<StageSchedule> schedules;

  const StageSchedule& only() const {
    EXPECT_EQ(schedules.size(), 1u) << to_string(plan, graph);
    return schedules.front();
  }
  // The stage that holds a root of this op, -1 for none.
  int stage_of(OpKind op) const {
    for (size_t s = 0; s < plan.stages.size(); ++s) {
      for (NodeId root : plan.stages[s].roots) {
        if (graph[root].op == op) return static_cast<int>(s);
      }
    }
    return -1;
  }
};

inline StageJudge judge_for(const Graph& graph, const DeviceSpec& device) {
  return judge_stages(graph, device, kTestWorkers);
}

inline Planned plan_graph(const std::string& text, const std::string& target,
                          const std::string& policy = "search") {
  Planned planned{read_graph(text), {}, {}};
  const DeviceSpec& device = device_spec(target);
  planned.plan = plan_stitches(planned.graph, judge_for(planned.graph, device), device, policy,
                               judge_kernels(planned.graph, device, kTestWorkers));
  planned.schedules.resize(planned.plan.stages.size());
  for (const PlannedKernel& kernel : planned.plan.kernels) {
    const std::vector<int> numbers = kernel.stages();
    const KernelStages stages = gather_stages(kernel, planned.plan.stages);
    KernelScheduler scheduler{planned.graph, stages.stages, device, kTestWorkers,
                              planned.graph.symbols};
    const std::vector<StageSchedule> schedules = scheduler.schedule(stages);
    for (size_t i = 0; i < numbers.size(); ++i) planned.schedules[numbers[i]] = schedules[i];
  }
  return planned;
}

// The kernel's text.
inline KernelSource emit_planned(const Planned& planned, size_t kernel,
                                 const LoweringOptions& options = {}) {
  const PlannedKernel& planned_kernel = planned.plan.kernels[kernel];
  return emit_kernel(
      planned.graph,
      lower_kernel(planned.graph, planned.plan, planned_kernel, planned.schedules, options),
      options);
}

inline std::string column_sum(const std::string& type) {
  return "%x = input : " + type + "\n%y = sum(%x){axes=[0]}\noutputs (%y)\n";
}

// The schedule of a stage that is a kernel by itself.
inline StageSchedule schedule_stage(const Graph& graph, const PlannedStage& stage,
                                    const DeviceSpec& device, SymbolTable& symbols) {
  return KernelScheduler{graph, {&stage}, device, kTestWorkers, symbols}.schedule_alone(0, {});
}

// All reductions and outputs in one stage, whatever it costs.
inline Planned schedule_together(const std::string& text, const std::string& target) {
  Planned planned{read_graph(text), {}, {}};
  const Graph& graph = planned.graph;
  PlannedStage stage;
  const Demands demands = find_demands(graph);
  stage.roots = find_roots(graph, demands, false);
  for (int n = 0; n < graph.size(); ++n) {
    if (is_materialised(graph.nodes[n])) {
      stage.loads.push_back(NodeId(n));
    } else {
      stage.nodes.push_back(NodeId(n));
      if (demands.is_demanded[n]) stage.stores.push_back(NodeId(n));
    }
  }
  planned.plan.stages = {stage};
  planned.plan.kernels = {{{{0}}}};
  planned.schedules.push_back(
      schedule_stage(graph, stage, device_spec(target), planned.graph.symbols));
  return planned;
}

// The ops of what the only stage keeps on chip.
inline std::vector<std::string> kept(const Planned& planned) {
  std::vector<std::string> ops;
  for (const auto& [value, index] : planned.only().kept_on_chip) {
    ops.push_back(info(planned.graph[value]).name);
  }
  return ops;
}

// Of memory, that all stages move.
inline int64_t bytes_of(const Planned& planned) {
  int64_t bytes = 0;
  for (size_t s = 0; s < planned.plan.stages.size(); ++s) {
    bytes += planned_bytes(planned.graph, planned.plan.stages[s], planned.schedules[s]);
  }
  return bytes;
}

inline bool holds(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace stitch
