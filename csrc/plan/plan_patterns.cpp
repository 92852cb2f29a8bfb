#include <algorithm>
#include <set>

#include "analysis/iteration_space.h"
#include "base/marks.h"
#include "plan/explore_patterns.h"
#include "plan/find_levels.h"
#include "plan/stitch_stages.h"

namespace stitch {
namespace {

struct Load {
  NodeId value;
  int unit;  // that makes it in a kernel, else -1
  double bytes;
};

// What a pattern's units do to memory, and which part of the device each keeps busy.
struct UnitFacts {
  NodeId root;  // invalid: a library call
  std::vector<Load> loads = {};
  double bytes = 0;  // of its root
  StageScore score = {};
};

class PatternPlanner {
 public:
  PatternPlanner(const PlanRequest& in, const std::vector<NodeId>& roots)
      : graph_(in.graph), demands_(in.demands), device_(in.device) {
    list_units(roots, in.judge);
    own_ = Marks(units_.size());
  }

  const UnitGraph& links() const { return links_; }

  // 20.20: what units save that share a kernel, or nothing where their text would be too long.
  std::optional<double> gain(const std::vector<int>& pattern) {
    int statements = 0;
    for (int u : pattern) statements += units_[u].score.statements;
    if (statements > kMostStageStatements) return std::nullopt;
    own_.assign(pattern);
    return saved_bytes(pattern) / device_.dram_bytes_per_us - penalty_us(pattern) +
           static_cast<double>(pattern.size() - 1) * device_.launch_us;  // 20.22
  }

  // 20.17: can one mapping serve the pattern, with the values of all other units in memory?
  bool fits(const std::vector<int>& pattern) {
    own_.assign(pattern);
    std::vector<NodeId> roots;
    for (NodeId root : roots_of(pattern))
      if (family(graph_[root]) == Family::kReduce || is_stored_by_own(unit_of_[root.index()]))
        roots.push_back(root);
    std::vector<bool> is_load(graph_.size(), false);
    for (int u : pattern)
      for (const Load& load : units_[u].loads)
        if (!is_made_by_own(load)) is_load[load.value.index()] = true;
    return find_spaces(graph_, roots, LoadsOfRoots(roots.size(), &is_load)).verdict.ok;
  }

  std::vector<NodeId> roots_of(const std::vector<int>& pattern) const {
    std::vector<NodeId> roots = map_to_vector(pattern, [&](int u) { return units_[u].root; });
    std::ranges::sort(roots);
    return roots;
  }

 private:
  void list_units(const std::vector<NodeId>& roots, const StageJudge& judge) {
    const std::vector<int> levels = find_levels(graph_);
    for (int n = 0; n < graph_.size(); ++n) {
      const NodeId id(n);
      const bool is_root = std::ranges::binary_search(roots, id);
      const bool is_call = graph_[id].op == OpKind::k_library;
      if (!is_root && !is_call) continue;
      unit_of_[n] = static_cast<int>(units_.size());
      units_.push_back({is_root ? id : NodeId()});
      links_.is_fixed.push_back(is_call);
      links_.packing_class.push_back(levels[n]);
    }
    links_.consumers.resize(units_.size());
    for (int n = 0; n < graph_.size(); ++n)
      if (unit_of_[n] >= 0) describe(NodeId(n), units_[unit_of_[n]], judge);
  }

  double bytes(NodeId id) const { return static_cast<double>(hint_bytes(graph_, id)); }

  void describe(NodeId id, UnitFacts& unit, const StageJudge& judge) {
    Cone cone = find_cone(graph_, id, [&](NodeId value) {
      return is_materialised(graph_[value]) || unit_of_[value.index()] >= 0;
    });
    std::set<int> makers;
    for (NodeId read : cone.loads) {
      const NodeId maker = graph_[read].op == OpKind::k_get ? graph_[read].inputs[0] : read;
      if (const int at = unit_of_[maker.index()]; at >= 0) makers.insert(at);
      unit.loads.push_back({read, unit_of_[read.index()], bytes(read)});
    }
    for (NodeId evaluated : cone.nodes) {
      for (NodeId call : definers_[evaluated.index()])
        if (const int at = unit_of_[call.index()]; at >= 0) makers.insert(at);
    }
    for (int maker : makers) links_.consumers[maker].push_back(unit_of_[id.index()]);
    if (!unit.root.valid()) return;
    unit.bytes = bytes(id);
    // As inside a pattern, where what only other units read is not stored.
    unit.score = judge(make_stage(graph_, {id}, std::move(cone),
                                  [&](NodeId root) { return demands_.is_demanded[root.index()]; }));
  }

  bool is_stored_by_own(int unit) const {
    const std::vector<int>& readers = links_.consumers[unit];
    return demands_.is_demanded[units_[unit].root.index()] ||
           std::ranges::any_of(readers, [&](int u) { return !own_.has(u); });
  }

  bool is_made_by_own(const Load& load) const { return load.unit >= 0 && own_.has(load.unit); }

  // 20.21: bytes that no longer pass through memory.  The paper's line in them starts at 0 [A],
  // until benchmarks/calibrate.py has fitted one on a GPU.
  double saved_bytes(const std::vector<int>& pattern) {
    double saved = 0;
    loaded_.clear();
    for (int u : pattern) {
      if (!is_stored_by_own(u)) saved += units_[u].bytes;
      for (const Load& load : units_[u].loads)
        if (is_made_by_own(load) || !loaded_.insert(load.value.index())) saved += load.bytes;
    }
    return saved;
  }

  // 20.23, with the paper's own shortcut of no schedule: all run with the blocks of the unit that
  // keeps least of the device busy.
  double penalty_us(const std::vector<int>& pattern) const {
    double least = 1, apart = 0, full = 0;
    for (int u : pattern) {
      const StageEstimate& estimate = units_[u].score.estimate;
      if (family(graph_[units_[u].root]) == Family::kReduce)
        least = std::min(least, estimate.share);
      apart += estimate.us;
      full += estimate.us * estimate.share;
    }
    return std::max(0.0, full / least - apart);
  }

  const Graph& graph_;
  const Demands& demands_;
  std::vector<std::vector<NodeId>> definers_ = find_definers(graph_);
  const DeviceSpec& device_;
  std::vector<UnitFacts> units_;
  std::vector<int> unit_of_ = std::vector<int>(graph_.size(), -1);  // by node, of stored values
  UnitGraph links_;
  Marks own_ = Marks(0), loaded_ = Marks(graph_.size());  // of the pattern: units, loads
};

}  // namespace

std::vector<std::vector<std::vector<NodeId>>> plan_patterns(const PlanRequest& in,
                                                            const std::vector<NodeId>& roots) {
  PatternPlanner planner(in, roots);
  const std::vector<FusionPlan> plans = explore_patterns(
      planner.links(), [&](const std::vector<int>& pattern) { return planner.gain(pattern); }, {},
      [&](const std::vector<int>& pattern) { return planner.fits(pattern); });
  const auto roots_of = [&](const std::vector<int>& pattern) { return planner.roots_of(pattern); };
  return map_to_vector(
      plans, [&](const FusionPlan& plan) { return map_to_vector(plan.patterns, roots_of); });
}

}  // namespace stitch
