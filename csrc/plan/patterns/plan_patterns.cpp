#include "base/marks.h"
#include "plan/find_levels.h"
#include "plan/patterns/explore_patterns.h"
#include "plan/stitch_stages.h"

namespace stitch {
namespace {

// Of what the reductions alone keep busy: the rest is within what the model can tell [A].
constexpr double kLeastKept = 0.5;

// What a pattern's units do to memory, and which part of the device each keeps busy.
struct UnitFacts {
  NodeId root;  // invalid: a library call
  Cone cone = {};
  StageScore score = {};
};

struct PatternPlanner {
  const PlanRequest& in;
  const Graph& graph = in.graph;
  std::vector<NodeList> definers = find_definers(graph);
  std::vector<UnitFacts> units = {};
  std::vector<int> unit_of = std::vector<int>(graph.size(), -1);  // by node, of stored values
  std::vector<double> bytes = std::vector<double>(graph.size());  // by node
  UnitGraph links = {};
  Marks own = Marks(0), loaded = Marks(graph.size());  // of the pattern: units, loads

  // 20.20: what units save that share a kernel, or nothing where their text would be too long.
  std::optional<double> gain(const std::vector<int>& pattern) {
    int statements = 0;
    for (int u : pattern) statements += units[u].score.statements;
    if (statements > kMostStageStatements) return std::nullopt;
    own.assign(pattern);
    return saved_bytes(pattern) / in.target.device.dram_bytes_per_us - penalty_us(pattern) +
           static_cast<double>(pattern.size() - 1) * in.target.device.launch_us;  // 20.22
  }

  // 20.17: can one mapping serve the pattern, with the values of all other units in memory, and
  // keep as much of the device busy as the reductions do alone?  Sums over rows and over columns of
  // a matrix in one stage leave one block.
  bool fits(const std::vector<int>& pattern) {
    own.assign(pattern);
    const NodeList roots = roots_of(pattern);
    Cone cone;
    for (int u : pattern) cone = unite_cones(cone, units[u].cone, roots);
    const auto is_stored = [&](NodeId root) { return is_stored_by_own(unit_of[root.index()]); };
    const StageScore score = in.prices.of(make_stage(graph, roots, std::move(cone), is_stored));
    return score.verdict.ok && score.estimate.share >= kLeastKept * least_share(pattern);
  }

  // Of the device, which the reduction that keeps least of it busy does.
  double least_share(const std::vector<int>& pattern) const {
    double least = 1;
    for (int u : pattern)
      if (family(graph[units[u].root]) == Family::kReduce)
        least = std::min(least, units[u].score.estimate.share);
    return least;
  }

  NodeList roots_of(const std::vector<int>& pattern) const {
    NodeList roots = map_to_vector(pattern, [&](int u) { return units[u].root; });
    std::ranges::sort(roots);
    return roots;
  }

  void list_units(const NodeList& roots) {
    const std::vector<int> levels = find_levels(graph);
    for (int n = 0; n < graph.size(); ++n) {
      const NodeId id(n);
      bytes[n] = static_cast<double>(hint_bytes(graph, id));
      const bool is_root = contains(roots, id);
      const bool is_call = graph[id].op == OpKind::k_library;
      if (!is_root && !is_call) continue;
      unit_of[n] = static_cast<int>(units.size());
      units.push_back({is_root ? id : NodeId()});
      links.is_fixed.push_back(is_call);
      links.packing_class.push_back(levels[n]);
    }
    links.consumers.resize(units.size());
    for (int n = 0; n < graph.size(); ++n)
      if (unit_of[n] >= 0) describe(NodeId(n), units[unit_of[n]]);
    own = Marks(units.size());
  }

  void describe(NodeId id, UnitFacts& unit) {
    unit.cone = find_cone(graph, id, [&](NodeId value) {
      return is_materialised(graph[value]) || unit_of[value.index()] >= 0;
    });
    std::set<int> makers;
    for (NodeId read : unit.cone.loads) makers.insert(unit_of[maker_of(graph, read).index()]);
    for (NodeId evaluated : unit.cone.nodes)
      for (NodeId call : definers[evaluated.index()]) makers.insert(unit_of[call.index()]);
    makers.erase(-1);  // of inputs
    for (int maker : makers) links.consumers[maker].push_back(unit_of[id.index()]);
    if (!unit.root.valid()) return;
    // As inside a pattern, where what only other units read is not stored.
    unit.score = in.prices.of(make_stage(
        graph, {id}, unit.cone, [&](NodeId root) { return in.demands.is_demanded[root.index()]; }));
  }

  bool is_stored_by_own(int unit) const {
    const std::vector<int>& readers = links.consumers[unit];
    return in.demands.is_demanded[units[unit].root.index()] ||
           std::ranges::any_of(readers, [&](int u) { return !own.has(u); });
  }

  // 20.21: bytes that no longer pass through memory.  The paper's line in them starts at 0 [A],
  // until benchmarks/calibrate.py has fitted one on a GPU.
  double saved_bytes(const std::vector<int>& pattern) {
    double saved = 0;
    loaded.clear();
    for (int u : pattern) {
      if (!is_stored_by_own(u)) saved += bytes[units[u].root.index()];
      for (NodeId load : units[u].cone.loads) {
        const int maker = unit_of[load.index()];
        if ((maker >= 0 && own.has(maker)) || !loaded.insert(load.index()))
          saved += bytes[load.index()];
      }
    }
    return saved;
  }

  // 20.23, with the paper's own shortcut of no schedule: all run with the blocks of the unit that
  // keeps least of the device busy.
  double penalty_us(const std::vector<int>& pattern) const {
    double apart = 0, full = 0;
    for (int u : pattern) {
      const StageEstimate& estimate = units[u].score.estimate;
      apart += estimate.us;
      full += estimate.us * estimate.share;
    }
    return std::max(0.0, full / least_share(pattern) - apart);
  }
};

}  // namespace

std::vector<std::vector<NodeList>> plan_patterns(const PlanRequest& in, const NodeList& roots) {
  PatternPlanner planner{in};
  planner.list_units(roots);
  const std::vector<FusionPlan> plans = explore_patterns(
      planner.links, [&](const std::vector<int>& pattern) { return planner.gain(pattern); }, {},
      [&](const std::vector<int>& pattern) { return planner.fits(pattern); });
  const auto roots_of = [&](const std::vector<int>& pattern) { return planner.roots_of(pattern); };
  return map_to_vector(
      plans, [&](const FusionPlan& plan) { return map_to_vector(plan.patterns, roots_of); });
}

}  // namespace stitch
