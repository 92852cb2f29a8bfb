#include "base/marks.h"
#include "plan/find_roots.h"
#include "plan/find_units.h"
#include "plan/patterns/explore_patterns.h"
#include "plan/stitch_stages.h"

namespace stitch {
namespace {

// Of what the reductions alone keep busy: the rest is within what the model can tell [A].
constexpr double kLeastKept = 0.5;

struct PatternPlanner {
  const PlanRequest& in;
  const Graph& graph = in.graph;
  const PlanUnits found;
  const std::vector<Unit>& units = found.list;
  std::vector<StageScore> scores = std::vector<StageScore>(units.size());
  std::vector<double> bytes = std::vector<double>(graph.size());  // by node
  UnitGraph links = {std::vector<std::vector<int>>(units.size())};
  Marks own = Marks(units.size()), loaded = Marks(graph.size());  // of the pattern: units, loads

  // 20.20: what units save that share a kernel, or nothing where their text would be too long.
  std::optional<double> gain(const std::vector<int>& pattern) {
    int statements = 0;
    for (int u : pattern) statements += scores[u].statements;
    if (statements > kMostStageStatements) return std::nullopt;
    own.assign(pattern);
    return saved_bytes(pattern) / in.target.device.dram_bytes_per_us - penalty_us(pattern) +
           static_cast<double>(pattern.size() - 1) * in.target.device.launch_us;  // 20.22
  }

  // 20.17: can one mapping serve the pattern, with the values of all other units in memory, in at
  // most twice the time of its units apart, and keep as much of the device busy as the reductions
  // do alone?  Sums over rows and over columns of a matrix in one stage leave one block.
  bool fits(const std::vector<int>& pattern) {
    own.assign(pattern);
    const NodeList roots = roots_of(pattern);
    Cone cone;
    for (int u : pattern) cone = unite_cones(cone, units[u].cone, roots);
    const auto is_stored = [&](NodeId root) { return is_stored_by_own(found.of[root.index()]); };
    const StageScore score = in.prices.of(make_stage(graph, roots, std::move(cone), is_stored));
    double apart_us = 0;
    for (int u : pattern) apart_us += scores[u].us;
    if (!score.verdict.ok || score.us > kMostRepeated * apart_us) return false;
    // Element-wise values take any blocks.
    return !reduces(graph, roots) || score.estimate.share >= kLeastKept * least_share(pattern);
  }

  // Of the device, which the reduction that keeps least of it busy does.
  double least_share(const std::vector<int>& pattern) const {
    double least = 1;
    for (int u : pattern)
      if (family(graph[units[u].node]) == Family::kReduce)
        least = std::min(least, scores[u].estimate.share);
    return least;
  }

  NodeList roots_of(const std::vector<int>& pattern) const {
    NodeList roots = map_to_vector(pattern, [&](int u) { return units[u].node; });
    std::ranges::sort(roots);
    return roots;
  }

  void link_units() {
    for (int n = 0; n < graph.size(); ++n)
      bytes[n] = static_cast<double>(hint_bytes(graph, NodeId(n)));
    for (int u = 0; u < std::ssize(units); ++u) {
      for (int maker : units[u].reads) links.consumers[maker].push_back(u);
      links.is_fixed.push_back(units[u].is_call);
      links.packing_class.push_back(units[u].level);
      if (units[u].is_call) continue;
      // As inside a pattern, where what only other units read is not stored.
      const auto is_stored = [&](NodeId root) { return in.demands.is_demanded[root.index()]; };
      scores[u] = in.prices.of(make_stage(graph, {units[u].node}, units[u].cone, is_stored));
    }
  }

  bool is_stored_by_own(int unit) const {
    const std::vector<int>& readers = links.consumers[unit];
    return in.demands.is_demanded[units[unit].node.index()] ||
           std::ranges::any_of(readers, [&](int u) { return !own.has(u); });
  }

  // 20.21: bytes that no longer pass through memory.  The paper's line in them starts at 0 [A],
  // until benchmarks/calibrate.py has fitted one on a GPU.
  double saved_bytes(const std::vector<int>& pattern) {
    double saved = 0;
    loaded.clear();
    for (int u : pattern) {
      if (!is_stored_by_own(u)) saved += bytes[units[u].node.index()];
      for (NodeId load : units[u].cone.loads) {
        const int maker = found.of[load.index()];
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
      const StageEstimate& estimate = scores[u].estimate;
      apart += estimate.us;
      full += estimate.us * estimate.share;
    }
    return std::max(0.0, full / least_share(pattern) - apart);
  }
};

}  // namespace

std::vector<std::vector<NodeList>> plan_patterns(const PlanRequest& in, const NodeList& roots) {
  PatternPlanner planner{in, in.graph, find_units(in.graph, roots)};
  planner.link_units();
  const std::vector<FusionPlan> plans = explore_patterns(
      planner.links, [&](const std::vector<int>& pattern) { return planner.gain(pattern); }, {},
      [&](const std::vector<int>& pattern) { return planner.fits(pattern); });
  const auto roots_of = [&](const std::vector<int>& pattern) { return planner.roots_of(pattern); };
  return map_to_vector(
      plans, [&](const FusionPlan& plan) { return map_to_vector(plan.patterns, roots_of); });
}

}  // namespace stitch
