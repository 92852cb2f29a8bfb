#include "plan/stitch_stages.h"

#include "base/marks.h"
#include "plan/find_roots.h"
#include "plan/find_units.h"

namespace stitch {
namespace {

// Rounds of joining: each looks at every pair of neighbours once, so that a join that became
// possible through another one is found.  The first only takes joins that save this share of the
// longer kernel's time: a small one must not bend the mapping that a large one needs.
constexpr int kRounds = 4;
constexpr double kFirstGain = 0.3;
// How many of the units of a group before its next member are offered to that.
constexpr int kGroupReach = 32;
// How many later units with something in common one is offered to when nothing links them.
constexpr size_t kPartners = 4;
// Library calls run one after another, and large values that are made at once wait for theirs: a
// stage makes so many at most, and two that make some are one where that saves a share of the time.
constexpr size_t kMostWaiting = 4;
constexpr double kWaitingGain = 0.1;

// A stage under construction or a library call.
struct JoinedUnit : Unit {
  int position = 0;     // in an order in which all can run
  NodeList roots = {};  // empty for a library call
  StageScore score = {};
  int version = 0;             // joins it has been through
  std::set<int> read_by = {};  // units
  bool is_gone = false;
};

// Two units as they were when a join was tried.
struct Attempt {
  int a, version_a, b, version_b;
  friend auto operator<=>(const Attempt&, const Attempt&) = default;
};

class Joiner {
 public:
  Joiner(const PlanRequest& in, const NodeList& roots, JoinRule rule)
      : graph_(in.graph), in_(in), rule_(rule), alone_(find_units(in.graph, roots)) {
    for (const Unit& unit : alone_.list) {
      units_.push_back({unit, static_cast<int>(units_.size())});
      if (unit.is_call) continue;
      units_.back().roots = {unit.node};
      for (NodeId load : unit.cone.loads) readers_[load.index()].push_back(unit.node);
    }
    for (int u = 0; u < std::ssize(units_); ++u)
      for (int other : units_[u].reads) units_[other].read_by.insert(u);
    for (JoinedUnit& unit : units_)
      if (!unit.is_call) unit.score = in_.prices.of(describe(unit.roots, unit.cone));
  }

  void join_groups(const std::vector<NodeList>& groups) {
    for (const NodeList& group : groups) {
      std::vector<int> before;  // units of earlier members, by the last member of each
      for (NodeId member : group) {
        const int unit = unit_of_[member.index()];
        int left = kGroupReach;
        for (auto other = before.rbegin(); other != before.rend() && *other != unit; ++other)
          if (left-- == 0 || attempt(*other, unit)) break;
        const int joined = unit_of_[member.index()];
        std::erase_if(before, [&](int other) { return other == unit || other == joined; });
        before.push_back(joined);
      }
    }
  }

  void join_pairs() {
    const auto loads_of = [](const JoinedUnit& unit) { return unit.cone.loads; };
    // Of one level and shape: independent values in one loop.
    const auto shape_of = [&](const JoinedUnit& unit) {
      const DimList& shape = graph_[unit.roots.back()].type.shape;
      return std::vector{std::pair(unit.level, to_string(contiguous_type(DType::kF32, shape)))};
    };
    for (int round = 0; round < kRounds; ++round) {
      least_gain_ = round == 0 && rule_ == JoinRule::kFaster ? kFirstGain : 0;
      bool changed = join_along_edges();
      if (rule_ == JoinRule::kFaster) changed |= join_near(loads_of);
      if (rule_ == JoinRule::kFaster) changed |= join_near(shape_of);
      if (!changed && least_gain_ == 0) break;
    }
  }

  JoinedStages finish() {
    JoinedStages out;
    out.cuts = find_cuts();
    std::vector<std::vector<int>> waits;
    std::vector<int> step_of(units_.size(), -1);
    for (const Unit& unit : units_) waits.emplace_back(unit.reads.begin(), unit.reads.end());
    for (int u : order_by_waits(waits)) {  // else the order that the user wrote
      const JoinedUnit& unit = units_[u];
      if (unit.is_gone) continue;
      Stage stage = unit.is_call ? Stage() : describe(unit.roots, unit.cone);
      if (!unit.is_call && stage.stores.empty()) continue;
      step_of[u] = static_cast<int>(out.steps.size());
      const int number = unit.is_call ? -1 : static_cast<int>(out.stages.size());
      out.steps.push_back({number, unit.is_call ? unit.node : NodeId()});
      out.waits.push_back(map_to_vector(waits[u], [&](int read) { return step_of[read]; }));
      if (!unit.is_call) out.stages.push_back(std::move(stage));
    }
    return out;
  }

 private:
  // The unit that makes a stored value; -1 for graph inputs.
  int maker(NodeId id) const { return unit_of_[maker_of(graph_, id).index()]; }

  Stage describe(const NodeList& roots, const Cone& cone) const {
    return make_stage(graph_, roots, cone, [&](NodeId root) {
      const auto is_outside = [&](NodeId reader) {
        return unit_of_[reader.index()] != unit_of_[root.index()];
      };
      return in_.demands.is_demanded[root.index()] ||
             std::ranges::any_of(readers_[root.index()], is_outside);
    });
  }

  // The first and what waits for it, up to the second: what must go behind both for the two to
  // stand together.  Nothing where the second waits for one of these.
  std::optional<std::vector<int>> find_followers(int first, int second) {
    std::vector<int> followers = {first};
    seen_.assign(followers);
    for (size_t i = 0; i < followers.size(); ++i)
      for (int next : units_[followers[i]].read_by) {
        if (next == second && i > 0) return std::nullopt;
        if (units_[next].position < units_[second].position && seen_.insert(next))
          followers.push_back(next);
      }
    return followers;
  }

  Verdict try_join(int a, int b) {
    if (units_[a].level != units_[b].level)
      return Verdict::no(kRuleCycle, "a library call runs between the two");
    const bool is_first = units_[a].position < units_[b].position;
    const auto followers = find_followers(is_first ? a : b, is_first ? b : a);
    if (!followers)
      return Verdict::no(kRuleCycle, "something else must run between the two",
                         "a value that both sides need is made outside");
    const size_t waiting_a = count_waiting(a), waiting_b = count_waiting(b);
    if (waiting_a + waiting_b > kMostWaiting) return Verdict::no(kRuleWaiting);
    // Each root evaluates about what it did: scheduling the join to find that out takes longest.
    const int statements = units_[a].score.statements + units_[b].score.statements;
    if (statements > kMostStageStatements) return too_long(statements, kMostStageStatements);
    NodeList roots = unite(units_[a].roots, units_[b].roots);
    Cone cone = unite_cones(units_[a].cone, units_[b].cone, roots);
    for (NodeId root : units_[b].roots) unit_of_[root.index()] = a;
    StageScore score = in_.prices.of(describe(roots, cone));
    if (score.verdict && score.statements > kMostStageStatements)
      score.verdict = too_long(score.statements, kMostStageStatements);
    const double gain = std::max(least_gain_, waiting_a && waiting_b ? kWaitingGain : 0);
    if (score.verdict) score.verdict = check_rule(a, b, score, gain);
    if (!score.verdict) {
      for (NodeId root : units_[b].roots) unit_of_[root.index()] = b;
      return score.verdict;
    }
    units_[a].roots = std::move(roots);
    units_[a].cone = std::move(cone);
    units_[a].score = score;
    ++units_[a].version;
    place_together(a, b, *followers);
    merge(a, b);
    return score.verdict;
  }

  // Values of a stage that have memory of their own and that library calls read.
  size_t count_waiting(int unit) const {
    std::set<NodeId> values;
    for (int reader : units_[unit].read_by) {
      if (!units_[reader].is_call || is_join(graph_[units_[reader].node])) continue;
      for (NodeId load : units_[reader].cone.loads)
        if (maker(load) == unit && hint_bytes(graph_, load) > kMostInSlab) values.insert(load);
    }
    return values.size();
  }

  // Of two stages that stay apart: as phases of one kernel where one waits for the other, as one
  // phase where no value links them, else as kernels of their own, since others that one kernel
  // holds read for themselves what they share.
  double predict_apart_us(int a, int b) const {
    const StageScore &first = units_[a].score, &second = units_[b].score;
    const double us = first.us + second.us;
    const bool waits = is_read_by(a, b) || is_read_by(b, a);
    const bool shares = std::ranges::any_of(units_[a].cone.loads, [&](NodeId load) {
      return hint_elements(graph_, load) > 1 && contains(units_[b].cone.loads, load);
    });
    if (in_.target.device.barrier_us == 0 || (shares && !waits)) return us;
    std::vector<PhaseTime> phases = {{Join::kLaunch}};
    if (waits) phases.push_back({Join::kGrid});
    phases.front().add(first.estimate);
    phases.back().add(second.estimate);
    return std::min(us, estimate_us(phases, in_.target.device));
  }

  bool is_read_by(int producer, int consumer) const {
    return units_[consumer].reads.contains(producer);
  }

  // `gain` is what must be saved, as a share of the longer kernel's time.
  Verdict check_rule(int first, int second, const StageScore& joined, double gain) const {
    const StageScore &a = units_[first].score, &b = units_[second].score;
    const double joined_us = joined.us + gain * std::max(a.us, b.us);
    const bool is_linked = is_read_by(first, second) || is_read_by(second, first);
    if (rule_ == JoinRule::kNever) return Verdict::yes();
    if (rule_ == JoinRule::kFaster || !is_linked)
      return joined_us > predict_apart_us(first, second) ? Verdict::no(kRuleSlower)
                                                         : Verdict::yes();
    if (joined.reduces_again) return Verdict::no(kRuleReducesAgain);
    if (joined.us > kMostRepeated * (a.us + b.us)) return Verdict::no(kRuleSlower);
    if (joined.copy_us > a.copy_us + b.copy_us) return Verdict::no(kRuleCopied);
    if (joined.estimate.share < share_to_keep(first, second)) return Verdict::no(kRuleLessParallel);
    return Verdict::yes();
  }

  // The part with more work keeps its mapping; but element-wise groups take that of the reductions
  // they read, so that a block consumes what it produced (AStitch 3.4, passive and proactive).
  double share_to_keep(int first, int second) const {
    for (const auto& [producer, consumer] : {std::pair(first, second), std::pair(second, first)}) {
      const bool follows =
          is_read_by(producer, consumer) && !reduces(graph_, units_[consumer].roots);
      if (follows && reduces(graph_, units_[producer].roots))
        return units_[producer].score.estimate.share;
    }
    return units_[units_[first].score.us > units_[second].score.us ? first : second]
        .score.estimate.share;
  }

  // Reorders what stands from the one to the other; b, which is to go, keeps a place beside a.
  void place_together(int a, int b, const std::vector<int>& followers) {
    const auto [first, last] = std::minmax({units_[a].position, units_[b].position});
    seen_.assign(followers);
    const auto is_one = [&](int unit) { return unit == a || unit == b; };
    const auto is_before = [&](int unit) { return !is_one(unit) && !seen_.has(unit); };
    const auto range = std::span(order_).subspan(first, last - first + 1);
    std::ranges::stable_partition(std::ranges::stable_partition(range, is_before), is_one);
    for (int at = first; at <= last; ++at) units_[order_[at]].position = at;
  }

  void merge(int a, int b) {
    JoinedUnit &into = units_[a], &from = units_[b];
    auto redirect = [&](std::set<int> JoinedUnit::* edges, std::set<int> JoinedUnit::* back) {
      for (int u : from.*edges) {
        (units_[u].*back).erase(b);
        if (u == a) continue;
        (units_[u].*back).insert(a);
        (into.*edges).insert(u);
      }
      (into.*edges).erase(b);
    };
    redirect(&JoinedUnit::reads, &JoinedUnit::read_by);
    redirect(&JoinedUnit::read_by, &JoinedUnit::reads);
    from.is_gone = true;
    from.cone = {};
    from.reads = {};
  }

  bool attempt(int a, int b) {
    if (a == b || units_[a].is_gone || units_[b].is_gone) return false;
    if (units_[a].is_call || units_[b].is_call) return false;
    const Attempt attempt{a, units_[a].version, b, units_[b].version};
    if (refused_.count(attempt)) return false;
    Verdict verdict = try_join(a, b);
    // A join that saves too little for the first round may still save something.
    if (!verdict && (least_gain_ == 0 || verdict.rule != kRuleSlower)) refused_[attempt] = verdict;
    return verdict.ok;
  }

  bool join_along_edges() {
    bool changed = false;
    for (int u = 0; u < std::ssize(units_); ++u) {
      const std::set<int> producers = units_[u].reads;
      // After the first, u is gone: its consumers meet the joined unit.
      changed |= std::ranges::any_of(producers, [&](int producer) { return attempt(producer, u); });
    }
    return changed;
  }

  // Each unit is offered to the few that follow it among those that share a key with it.
  template <typename KeysOf>
  bool join_near(const KeysOf& keys_of) {
    std::map<typename decltype(keys_of(JoinedUnit()))::value_type, std::vector<int>> groups;
    for (int u = 0; u < std::ssize(units_); ++u) {
      if (units_[u].is_gone || units_[u].is_call) continue;
      for (const auto& key : keys_of(units_[u])) groups[key].push_back(u);
    }
    bool changed = false;
    for (const auto& [key, units] : groups)
      for (size_t i = 0; i + 1 < units.size(); ++i)
        for (size_t j = i + 1; j < units.size() && j <= i + kPartners; ++j)
          changed |= attempt(units[i], units[j]);
    return changed;
  }

  // A cut: a value that one side makes and a root of the other that reads it, maybe through others.
  std::vector<Cut> find_cuts() const {
    std::vector<Cut> cuts;
    std::set<std::pair<int, int>> listed;
    const auto unit_now = [&](int u) { return unit_of_[units_[u].roots.back().index()]; };
    for (const auto& [attempt, verdict] : refused_) {
      const int a = unit_now(attempt.a), b = unit_now(attempt.b);
      if (a == b || !listed.insert({a, b}).second) continue;
      std::map<NodeId, std::set<NodeId>> reads;  // of each root
      for (NodeId reader : units_[b].roots) {
        std::set<NodeId>& own = reads[reader];
        for (NodeId load : alone_.list[alone_.of[reader.index()]].cone.loads) {
          if (maker(load) == a) own.insert(load);
          if (auto through = reads.find(load); through != reads.end())
            own.insert(through->second.begin(), through->second.end());
        }
        for (NodeId read : own) cuts.push_back({read, reader, verdict});
      }
    }
    return cuts;
  }

  const Graph& graph_;
  const PlanRequest& in_;
  const JoinRule rule_;
  const PlanUnits alone_;
  std::vector<JoinedUnit> units_;
  std::vector<int> order_ = count_to(alone_.list.size());  // units by position
  Marks seen_ = Marks(alone_.list.size());
  std::vector<int> unit_of_ = alone_.of;                                  // by node: now
  std::vector<NodeList> readers_ = std::vector<NodeList>(graph_.size());  // by node: roots
  double least_gain_ = 0;  // share of the longer kernel's time
  std::map<Attempt, Verdict> refused_;
};

}  // namespace

std::vector<int> order_by_waits(const std::vector<std::vector<int>>& waits) {
  std::vector<std::vector<int>> followers(waits.size());
  std::vector<size_t> missing(waits.size());
  std::set<int> ready;
  for (int n = 0; n < std::ssize(waits); ++n) {
    for (int first : waits[n]) followers[first].push_back(n);
    missing[n] = waits[n].size();
    if (missing[n] == 0) ready.insert(n);
  }
  std::vector<int> order;
  while (!ready.empty()) {
    order.push_back(ready.extract(ready.begin()).value());
    for (int follower : followers[order.back()])
      if (--missing[follower] == 0) ready.insert(follower);
  }
  STITCH_CHECK(order.size() == waits.size(), "what is to be ordered waits for itself");
  return order;
}

JoinedStages join_stages(const PlanRequest& in, const NodeList& roots, JoinRule rule,
                         const std::vector<NodeList>& groups) {
  Joiner joiner(in, roots, rule);
  joiner.join_groups(groups);
  if (rule != JoinRule::kNever) joiner.join_pairs();
  return joiner.finish();
}

}  // namespace stitch
