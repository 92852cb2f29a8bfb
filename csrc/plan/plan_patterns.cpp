#include "plan/plan_patterns.h"

#include <algorithm>
#include <map>
#include <set>

#include "analysis/iteration_space.h"
#include "plan/explore_patterns.h"
#include "plan/find_roots.h"

namespace stitch {
namespace {

// What a pattern's units do to memory, and which part of the device each keeps busy.
struct UnitFacts {
  NodeId root;  // invalid: a library call
  Cone cone;
  StageScore score;
};

struct PatternPlanner {
  const Graph& graph;
  const Demands& demands;
  const StageJudge& judge;
  const DeviceSpec& device;
  std::vector<UnitFacts> units = {};
  std::map<NodeId, int> unit_of = {};  // of stored values
  UnitGraph links = {};

  bool is_stored(NodeId id) const { return is_materialised(graph[id]) || unit_of.count(id); }

  double bytes(NodeId id) const { return static_cast<double>(hint_bytes(graph, id)); }

  void list_units(const std::vector<NodeId>& roots) {
    const std::vector<int> levels = find_levels(graph);
    for (int n = 0; n < graph.size(); ++n) {
      const NodeId id(n);
      const bool is_root = std::binary_search(roots.begin(), roots.end(), id);
      const bool is_call = graph[id].op == OpKind::k_library;
      if (!is_root && !is_call) continue;
      unit_of[id] = static_cast<int>(units.size());
      units.push_back({is_root ? id : NodeId(), {}, {}});
      links.is_fixed.push_back(is_call);
      links.packing_class.push_back(levels[n]);
    }
    links.consumers.resize(units.size());
    for (const auto& [id, u] : unit_of) {
      units[u].cone = find_cone(graph, id, [&](NodeId value) { return is_stored(value); });
      std::set<int> makers;
      for (NodeId read : units[u].cone.loads) {
        const NodeId maker = graph[read].op == OpKind::k_get ? graph[read].inputs[0] : read;
        if (auto at = unit_of.find(maker); at != unit_of.end()) makers.insert(at->second);
      }
      for (int maker : makers) links.consumers[maker].push_back(u);
      if (units[u].root.valid()) units[u].score = judge(stage_of({u}));
    }
  }

  // As a stage, with the values of all other units in memory.
  PlannedStage stage_of(const std::vector<int>& pattern) const {
    std::vector<NodeId> roots;
    for (int u : pattern) roots.push_back(units[u].root);
    std::sort(roots.begin(), roots.end());
    Cone cone;
    for (int u : pattern) cone = unite_cones(cone, units[u].cone, roots);
    return make_stage(graph, roots, std::move(cone), [&](NodeId id) {
      return demands.is_demanded[id.index()] || is_read_outside(id, roots);
    });
  }

  bool is_read_outside(NodeId root, const std::vector<NodeId>& own) const {
    const std::vector<int>& readers = links.consumers[unit_of.at(root)];
    return std::any_of(readers.begin(), readers.end(), [&](int u) {
      return !units[u].root.valid() || !std::binary_search(own.begin(), own.end(), units[u].root);
    });
  }

  // 20.20: what units save that share a kernel, or nothing where they cannot.
  std::optional<double> gain(const std::vector<int>& pattern) const {
    int statements = 0;
    for (int u : pattern) statements += units[u].score.statements;
    if (statements > kMostStageStatements) return std::nullopt;
    const PlannedStage stage = stage_of(pattern);
    std::vector<bool> is_load(graph.size(), false);
    for (NodeId load : stage.loads) is_load[load.index()] = true;
    if (!find_spaces(graph, stage.roots, is_load).verdict) return std::nullopt;
    return saved_memory_us(pattern, stage) - penalty_us(pattern) +
           static_cast<double>(pattern.size() - 1) * device.launch_us;  // 20.22
  }

  // 20.21: bytes that no longer pass through memory.
  double saved_memory_us(const std::vector<int>& pattern, const PlannedStage& stage) const {
    double saved = 0;
    for (int u : pattern) {
      saved += bytes(units[u].root);
      for (NodeId load : units[u].cone.loads) saved += bytes(load);
    }
    for (NodeId load : stage.loads) saved -= bytes(load);
    for (NodeId store : stage.stores) saved -= bytes(store);
    return saved / device.dram_bytes_per_us;
  }

  // 20.23, with the paper's own shortcut of no schedule: all run with the blocks of the unit that
  // keeps least of the device busy.
  double penalty_us(const std::vector<int>& pattern) const {
    double least = 1, apart = 0, full = 0;
    for (int u : pattern) {
      const StageEstimate& estimate = units[u].score.estimate;
      if (family(graph[units[u].root]) == Family::kReduce) least = std::min(least, estimate.share);
      apart += estimate.us;
      full += estimate.us * estimate.share;
    }
    return std::max(0.0, full / least - apart);
  }
};

}  // namespace

std::vector<std::vector<std::vector<NodeId>>> plan_patterns(const Graph& graph,
                                                            const std::vector<NodeId>& roots,
                                                            const Demands& demands,
                                                            const StageJudge& judge,
                                                            const DeviceSpec& device) {
  PatternPlanner planner{graph, demands, judge, device};
  planner.list_units(roots);
  const std::vector<FusionPlan> plans = explore_patterns(
      planner.links, [&](const std::vector<int>& pattern) { return planner.gain(pattern); });
  std::vector<std::vector<std::vector<NodeId>>> answer;
  for (const FusionPlan& plan : plans) {
    answer.emplace_back();
    for (const std::vector<int>& pattern : plan.patterns) {
      answer.back().emplace_back();
      for (int u : pattern) answer.back().back().push_back(planner.units[u].root);
      std::sort(answer.back().back().begin(), answer.back().back().end());
    }
  }
  return answer;
}

}  // namespace stitch
