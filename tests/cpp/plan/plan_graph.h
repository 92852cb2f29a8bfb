// Graph text planned and scheduled for one device.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "codegen/emit_kernel.h"
#include "plan/find_roots.h"
#include "plan/kernels/choose_template.h"
#include "plan/kernels/schedule_kernel.h"
#include "plan/plan_stitches.h"
#include "plan/stitch_stages.h"
#include "stage/reduction_arrays.h"
#include "support/read_graph.h"
#include "support/verify.h"

namespace stitch {

inline constexpr int kTestWorkers = 4;

struct Planned {
  Graph graph;
  StitchPlan plan;

  const StageSchedule& only() const {
    EXPECT_EQ(plan.schedules.size(), 1u) << to_string(plan, graph);
    return plan.schedules.front();
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

inline Target target_of(const std::string& name) { return {device_spec(name), kTestWorkers}; }

// What planners are given for a graph.
struct Planning {
  Planning(const Graph& planned, const Target& planned_for) : graph(planned), target(planned_for) {}

  const Graph& graph;
  Target target;
  Demands demands = find_demands(graph);
  StagePrices prices = price_stages(graph, target);
  TemplateMemo templates = {};

  PlanRequest request() { return {graph, demands, target, prices, templates}; }
};

inline Planned plan_graph(const std::string& text, const std::string& target,
                          const std::string& policy = "search") {
  Planned planned{read_graph(text), {}};
  planned.plan = plan_stitches(planned.graph, target_of(target), policy);
  name_blocks(planned.graph.symbols, planned.plan);
  verify_planned(planned.graph, planned.plan);
  return planned;
}

// The kernel's text.
inline KernelSource emit_planned(const Planned& planned, size_t kernel,
                                 const LoweringOptions& options = {}) {
  const PlannedKernel& planned_kernel = planned.plan.kernels[kernel];
  KernelSource source = emit_kernel(
      planned.graph, lower_kernel(planned.graph, planned.plan, planned_kernel, options), options);
  verify_source(source, *planned.plan.schedules[planned_kernel.stages()[0]].device);
  return source;
}

inline std::string column_sum(const std::string& type) {
  return "%x = input : " + type + "\n%y = sum(%x){axes=[0]}\noutputs (%y)\n";
}

// The schedule of a stage that is a kernel by itself.
inline StageSchedule schedule_stage(const Graph& graph, const Stage& stage,
                                    const DeviceSpec& device, SymbolTable& symbols) {
  const Stages stages = {stage};
  StageSchedule schedule =
      KernelScheduler{graph, stages, {device, kTestWorkers}}.schedule_alone(0, {});
  name_blocks(symbols, schedule);
  return schedule;
}

// All reductions and outputs in one stage, whatever it costs.
inline Planned schedule_together(const std::string& text, const std::string& target) {
  Planned planned{read_graph(text), {}};
  const Graph& graph = planned.graph;
  Stage stage;
  const Demands demands = find_demands(graph);
  stage.roots = find_roots(graph, demands, false, device_spec("h200"));
  for (int n = 0; n < graph.size(); ++n) {
    if (is_materialised(graph.nodes[n])) {
      stage.loads.push_back(NodeId(n));
    } else {
      stage.nodes.push_back(NodeId(n));
      if (demands.is_demanded[n]) stage.stores.push_back(NodeId(n));
    }
  }
  planned.plan.stages = {stage};
  planned.plan.kernels = {{.phases = {{.blocks = {PlannedBlocks{{0}}}}}}};
  planned.plan.schedules.push_back(
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
    bytes += planned_bytes(planned.graph, planned.plan.stages[s], planned.plan.schedules[s]);
  }
  return bytes;
}

inline bool holds(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace stitch
