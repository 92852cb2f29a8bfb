#include "plan/join_stages.h"

#include <algorithm>
#include <compare>
#include <map>
#include <numeric>
#include <set>

#include "ops/library_effects.h"
#include "plan/find_roots.h"

namespace stitch {
namespace {

// Rounds of joining: each looks at every pair of neighbours once, so that a join that became
// possible through another one is found.  The first only takes joins that save this share of the
// longer kernel's time: a small one must not bend the mapping that a large one needs.
constexpr int kRounds = 4;
constexpr double kFirstGain = 0.3;
// How many later units with something in common one is offered to when nothing links them.
constexpr size_t kPartners = 4;

// A unit of execution: a kernel under construction or a library call.
struct Unit {
  std::vector<NodeId> roots;  // empty for a library call
  NodeId call;
  int level = 0;
  StageScore score;
  int version = 0;               // joins it has been through
  std::set<int> reads, read_by;  // units
  bool is_gone = false;
};

// Two units as they were when a join was tried.
struct Attempt {
  int a, version_a, b, version_b;
  friend auto operator<=>(const Attempt&, const Attempt&) = default;
};

class Joiner {
 public:
  Joiner(const Graph& graph, const std::vector<NodeId>& roots, const Demands& demands,
         const StageJudge& judge)
      : graph_(graph), demands_(demands), judge_(judge), levels_(find_levels(graph)) {
    unit_of_.assign(graph.size(), -1);
    for (int n = 0; n < graph.size(); ++n) {
      const bool is_root = std::binary_search(roots.begin(), roots.end(), NodeId(n));
      if (graph.nodes[n].op == OpKind::k_library || is_root) add_unit(NodeId(n), is_root);
    }
    for (size_t u = 0; u < units_.size(); ++u) link(static_cast<int>(u));
    keep_effects_in_order();
    for (Unit& unit : units_) {
      if (unit.roots.empty()) continue;
      unit.score = judge_(describe(unit.roots));
    }
  }

  void join_groups(const std::vector<std::vector<NodeId>>& groups, bool keep_parallel) {
    rule_ = keep_parallel ? Rule::kParallel : Rule::kAlways;
    for (const std::vector<NodeId>& group : groups) {
      for (size_t i = 1; i < group.size(); ++i) {
        for (size_t k = i; k-- > 0 && unit_of_[group[k].index()] != unit_of_[group[i].index()];) {
          if (attempt(unit_of_[group[k].index()], unit_of_[group[i].index()])) break;
        }
      }
    }
  }

  void run_parallel() {
    rule_ = Rule::kParallel;
    for (int round = 0; round < kRounds && join_along_edges(); ++round) {
    }
  }

  void run_faster() {
    rule_ = Rule::kFaster;
    for (int round = 0; round < kRounds; ++round) {
      least_gain_ = round == 0 ? kFirstGain : 0;
      bool changed = join_along_edges();
      changed |= join_siblings();
      changed |= join_independent();
      if (!changed && round > 0) break;
    }
  }

  JoinedStages finish() {
    JoinedStages out;
    out.cuts = find_cuts();
    for (int u : topological_order()) {
      const Unit& unit = units_[u];
      if (unit.roots.empty()) {
        out.steps.push_back({PlanStep::Kind::kLibrary, -1, unit.call});
        continue;
      }
      PlannedStage stage = describe(unit.roots);
      if (stage.stores.empty()) continue;
      out.steps.push_back({PlanStep::Kind::kKernel, static_cast<int>(out.stages.size()), NodeId()});
      out.stages.push_back(std::move(stage));
    }
    return out;
  }

 private:
  void add_unit(NodeId id, bool is_root) {
    Unit unit;
    if (is_root) {
      unit.roots = {id};
    } else {
      unit.call = id;
    }
    unit.level = levels_[id.index()];
    unit_of_[id.index()] = static_cast<int>(units_.size());
    units_.push_back(std::move(unit));
  }

  // The stored values a unit's evaluation stops at.
  std::set<NodeId> find_reads(const std::vector<NodeId>& starts, int own) const {
    return stitch::find_reads(graph_, starts, [&](NodeId id) {
      const int unit = unit_of_[id.index()];
      return is_materialised(graph_[id]) || (unit >= 0 && unit != own);
    });
  }

  // The unit that makes a stored value; -1 for graph inputs.
  int maker(NodeId id) const {
    if (graph_[id].op == OpKind::k_get) return unit_of_[graph_[id].inputs[0].index()];
    return unit_of_[id.index()];
  }

  void link(int u) {
    const std::vector<NodeId> starts =
        units_[u].roots.empty() ? std::vector<NodeId>{units_[u].call} : units_[u].roots;
    for (NodeId read : find_reads(starts, u)) {
      const int from = maker(read);
      if (from < 0 || from == u) continue;
      units_[u].reads.insert(from);
      units_[from].read_by.insert(u);
    }
  }

  void keep_effects_in_order() {
    int before = -1;
    for (size_t u = 0; u < units_.size(); ++u) {
      if (!units_[u].roots.empty() || !has_effects(graph_[units_[u].call].name)) continue;
      if (before >= 0) {
        units_[u].reads.insert(before);
        units_[before].read_by.insert(static_cast<int>(u));
      }
      before = static_cast<int>(u);
    }
  }

  PlannedStage describe(const std::vector<NodeId>& roots) const {
    const std::set<NodeId> own(roots.begin(), roots.end());
    return describe_stage(
        graph_, roots,
        [&](NodeId id) {
          return is_materialised(graph_[id]) || (unit_of_[id.index()] >= 0 && !own.count(id));
        },
        [&](NodeId id) { return demands_.is_demanded[id.index()] || is_read_outside(id, own); });
  }

  bool is_read_outside(NodeId root, const std::set<NodeId>& own) const {
    const int unit = unit_of_[root.index()];
    for (int reader : units_[unit].read_by) {
      const Unit& other = units_[reader];
      if (other.roots.empty()) continue;  // library operands are demanded already
      const bool joined = std::all_of(other.roots.begin(), other.roots.end(),
                                      [&](NodeId r) { return own.count(r) > 0; });
      if (!joined && find_reads(other.roots, reader).count(root)) return true;
    }
    return false;
  }

  // Is there a way from `from` to `to` through a third unit?
  bool has_detour(int from, int to) const {
    std::vector<int> stack;
    std::set<int> visited;
    for (int next : units_[from].read_by) {
      if (next != to) stack.push_back(next);
    }
    while (!stack.empty()) {
      const int at = stack.back();
      stack.pop_back();
      if (at == to) return true;
      if (!visited.insert(at).second) continue;
      if (units_[at].level > units_[to].level) continue;
      stack.insert(stack.end(), units_[at].read_by.begin(), units_[at].read_by.end());
    }
    return false;
  }

  Verdict try_join(int a, int b) {
    if (units_[a].level != units_[b].level) {
      return Verdict::no(kRuleCycle, "a library call runs between the two");
    }
    if (has_detour(a, b) || has_detour(b, a)) {
      return Verdict::no(kRuleCycle, "something else must run between the two",
                         "a value that both sides need is made outside");
    }
    // Each root evaluates about what it did: scheduling the join to find that out takes longest.
    const int statements = units_[a].score.statements + units_[b].score.statements;
    if (statements > kMostStageStatements) return too_long(statements, kMostStageStatements);
    std::vector<NodeId> roots = units_[a].roots;
    roots.insert(roots.end(), units_[b].roots.begin(), units_[b].roots.end());
    std::sort(roots.begin(), roots.end());
    for (NodeId root : units_[b].roots) unit_of_[root.index()] = a;
    StageScore score = judge_(describe_joined(a, b, roots));
    if (score.verdict) score.verdict = check_rule(units_[a].score, units_[b].score, score);
    if (!score.verdict) {
      for (NodeId root : units_[b].roots) unit_of_[root.index()] = b;
      return score.verdict;
    }
    merge(a, b, std::move(roots), score);
    return score.verdict;
  }

  Verdict check_rule(const StageScore& a, const StageScore& b, const StageScore& joined) const {
    if (rule_ == Rule::kFaster && joined.us + least_gain_ * std::max(a.us, b.us) > a.us + b.us) {
      return Verdict::no(kRuleSlower, "one kernel is predicted to take longer than two");
    }
    const StageEstimate& larger = a.us > b.us ? a.estimate : b.estimate;
    if (rule_ == Rule::kParallel && joined.estimate.share < larger.share) {
      return Verdict::no(kRuleLessParallel, "one mapping for both keeps less of the device busy");
    }
    return Verdict::yes();
  }

  PlannedStage describe_joined(int a, int b, const std::vector<NodeId>& roots) {
    // Readers of either are readers of the joined unit while it is described.
    std::set<int> saved = units_[a].read_by;
    units_[a].read_by.insert(units_[b].read_by.begin(), units_[b].read_by.end());
    units_[a].read_by.erase(a);
    units_[a].read_by.erase(b);
    PlannedStage stage = describe(roots);
    units_[a].read_by = std::move(saved);
    return stage;
  }

  void merge(int a, int b, std::vector<NodeId> roots, const StageScore& score) {
    Unit &into = units_[a], &from = units_[b];
    into.roots = std::move(roots);
    into.score = score;
    ++into.version;
    for (int u : from.reads) {
      units_[u].read_by.erase(b);
      if (u != a) {
        units_[u].read_by.insert(a);
        into.reads.insert(u);
      }
    }
    for (int u : from.read_by) {
      units_[u].reads.erase(b);
      if (u != a) {
        units_[u].reads.insert(a);
        into.read_by.insert(u);
      }
    }
    into.reads.erase(b);
    into.read_by.erase(b);
    from.is_gone = true;
  }

  bool attempt(int a, int b) {
    if (a == b || units_[a].is_gone || units_[b].is_gone) return false;
    if (units_[a].roots.empty() || units_[b].roots.empty()) return false;
    const Attempt attempt{a, units_[a].version, b, units_[b].version};
    if (refused_.count(attempt)) return false;
    Verdict verdict = try_join(a, b);
    // A join that saves too little for the first round may still save something.
    if (!verdict && (least_gain_ == 0 || verdict.rule != kRuleSlower)) refused_[attempt] = verdict;
    return verdict.ok;
  }

  bool join_along_edges() {
    bool changed = false;
    for (size_t u = 0; u < units_.size(); ++u) {
      const std::set<int> producers = units_[u].reads;
      for (int producer : producers) {
        if (attempt(producer, static_cast<int>(u))) {
          changed = true;
          break;  // u is gone: its consumers meet the joined unit
        }
      }
    }
    return changed;
  }

  // Each unit of a group is offered to the few that follow it.
  template <typename Key>
  bool join_near(const std::map<Key, std::vector<int>>& groups) {
    bool changed = false;
    for (const auto& [key, units] : groups) {
      for (size_t i = 0; i + 1 < units.size(); ++i) {
        for (size_t j = i + 1; j < units.size() && j <= i + kPartners; ++j) {
          changed |= attempt(units[i], units[j]);
        }
      }
    }
    return changed;
  }

  // Units that read the same value, the widest-read first.
  bool join_siblings() {
    std::map<NodeId, std::vector<int>> readers;
    for (size_t u = 0; u < units_.size(); ++u) {
      if (units_[u].is_gone || units_[u].roots.empty()) continue;
      for (NodeId read : find_reads(units_[u].roots, static_cast<int>(u))) {
        readers[read].push_back(static_cast<int>(u));
      }
    }
    return join_near(readers);
  }

  // Units of one level whose roots have one shape: independent values in one loop.
  bool join_independent() {
    std::map<std::pair<int, std::string>, std::vector<int>> alike;
    for (size_t u = 0; u < units_.size(); ++u) {
      if (units_[u].is_gone || units_[u].roots.empty()) continue;
      TensorType type = graph_[units_[u].roots.back()].type;
      type.dtype = DType::kF32;
      alike[{units_[u].level, to_string(contiguous_type(type.dtype, type.shape))}].push_back(
          static_cast<int>(u));
    }
    return join_near(alike);
  }

  int unit_now(int unit) const { return unit_of_[units_[unit].roots.back().index()]; }

  // A cut names a value that one side makes and the root of the other that reads it.
  std::vector<Cut> find_cuts() const {
    std::vector<Cut> cuts;
    std::set<std::pair<NodeId, NodeId>> listed;
    for (const auto& [attempt, verdict] : refused_) {
      const int a = unit_now(attempt.a), b = unit_now(attempt.b);
      if (a == b) continue;
      for (NodeId reader : units_[b].roots) {
        for (NodeId read : find_reads({reader}, b)) {
          if (maker(read) != a || !listed.insert({read, reader}).second) continue;
          cuts.push_back({read, reader, verdict});
        }
      }
    }
    return cuts;
  }

  std::vector<int> topological_order() const {
    std::vector<int> missing(units_.size(), 0), order;
    std::set<int> ready;  // lowest first: the order the user wrote
    for (size_t u = 0; u < units_.size(); ++u) {
      missing[u] = static_cast<int>(units_[u].reads.size());
      if (!units_[u].is_gone && missing[u] == 0) ready.insert(static_cast<int>(u));
    }
    while (!ready.empty()) {
      const int u = *ready.begin();
      ready.erase(ready.begin());
      order.push_back(u);
      for (int reader : units_[u].read_by) {
        if (--missing[reader] == 0) ready.insert(reader);
      }
    }
    return order;
  }

  const Graph& graph_;
  const Demands& demands_;
  const StageJudge& judge_;
  std::vector<int> levels_;
  std::vector<Unit> units_;
  std::vector<int> unit_of_;
  enum class Rule { kAlways, kFaster, kParallel } rule_ = Rule::kFaster;
  double least_gain_ = 0;  // share of the longer kernel's time
  std::map<Attempt, Verdict> refused_;
};

}  // namespace

JoinedStages join_stages(const Graph& graph, const std::vector<NodeId>& roots,
                         const Demands& demands, const StageJudge& judge, JoinRule rule,
                         const std::vector<std::vector<NodeId>>& groups) {
  Joiner joiner(graph, roots, demands, judge);
  joiner.join_groups(groups, rule == JoinRule::kParallel);
  if (rule == JoinRule::kFaster) joiner.run_faster();
  if (rule == JoinRule::kParallel) joiner.run_parallel();
  return joiner.finish();
}

}  // namespace stitch
