#include "plan/stitch_stages.h"

#include "base/marks.h"
#include "plan/find_levels.h"
#include "plan/store_in_place.h"

namespace stitch {
namespace {

// Of one kernel: NVRTC needs about a millisecond for each, and compiles one kernel on one core.
constexpr int kMostStatements = 1200;

// One unit waits for another, `levels` levels below it.
struct Wait {
  int unit, levels;
};

// A step before stitching: a stage or a library call.
struct StepUnit {
  PlanStep step;
  bool is_join = false;                // a call that nothing runs for
  std::vector<Wait> awaited, waiting;  // units that it waits for, and that wait for it
  int level = 0;                       // library calls on the longest path to it
  int latest = 0;                      // the last level that what waits for it allows
  int kernel = -1, phase = 0;          // of a stage

  bool is_call() const { return step.call.valid(); }
};

// A kernel under construction.
struct Draft {
  PlannedKernel kernel;
  std::vector<PhaseTime> times;
  std::set<NodeId> pointers;
  int statements = 0;
  // Stages of so many statements and microseconds: near enough those of one text.
  std::map<std::pair<int, double>, int> equal = {};
};

struct Stitcher {
  const PlanRequest& in;
  const JoinedStages& joined;
  StitchRule rule;
  const Graph& graph = in.graph;
  std::vector<StepUnit> units = {};
  std::vector<int> order = {};  // each unit after all that it waits for, else as given
  std::vector<Draft> drafts = {};
  std::map<int, std::vector<int>> drafts_of_level = {};
  const std::map<NodeId, int>& replaceable = in.prices.replaceable;
  StitchPlan out = {};

  const Stage& stage(int unit) const { return joined.stages[units[unit].step.kernel]; }

  // What replaces an input in place waits for what reads its old value.
  void find_waits() {
    std::map<NodeId, int> storing;
    std::map<NodeId, std::vector<int>> reading;
    units.resize(joined.steps.size());
    for (int u = 0; u < std::ssize(units); ++u) {
      const NodeId call = joined.steps[u].call;
      units[u].step = joined.steps[u];
      units[u].is_join = call.valid() && is_join(graph[call]);
      for (int read : joined.waits[u]) wait(u, read);
      for (NodeId value : call.valid() ? graph[call].inputs : stage(u).loads)
        reading[storage_base(graph, value)].push_back(u);
      if (!call.valid())
        for (NodeId store : stage(u).stores) storing[store] = u;
    }
    for (const auto& [value, m] : replaceable)
      if (const auto at = storing.find(value); at != storing.end())
        for (int reader : reading[graph.mutations[m].input]) store_after(at->second, reader);
  }

  // What runs later than it could, so that memory is held for less long (plan/find_levels.h), waits
  // for a call of the level before its own.
  void postpone() {
    const std::vector<int> level_of = stitch::find_levels(graph);
    const auto level = [&](int u) {
      const NodeId call = joined.steps[u].call;
      return level_of[(call.valid() ? call : stage(u).roots[0]).index()];
    };
    std::map<int, int> call_of;  // by level
    for (int u = 0; u < std::ssize(units); ++u)
      if (units[u].is_call() && !units[u].is_join) call_of.emplace(level(u), u);
    for (int u = 0; u < std::ssize(units); ++u) {
      const bool is_held = std::ranges::any_of(units[u].awaited, [&](const Wait& wait) {
        return level(wait.unit) + wait.levels >= level(u);
      });
      const auto before = call_of.find(level(u) - 1);
      if (!is_held && before != call_of.end()) add_wait(u, before->second, 1);
    }
  }

  void add_wait(int unit, int other, int levels) {
    units[unit].awaited.push_back({other, levels});
    units[other].waiting.push_back({unit, levels});
  }

  bool has_effects(int unit) const {
    return units[unit].is_call() && stitch::has_effects(graph[units[unit].step.call]);
  }

  // A call divides what comes before from what comes after, but for calls with effects, which only
  // keep their order.  So does a join, though nothing runs for it: who reads it would read under
  // another name what its own kernel has written.
  void wait(int unit, int other) {
    const bool divides = units[other].is_call() && !(has_effects(unit) && has_effects(other));
    add_wait(unit, other, divides ? 1 : 0);
  }

  // What replaces an input in place waits for a reader of its old value, unless that needs the new.
  void store_after(int storing, int reader) {
    Marks seen(units.size());
    std::vector<int> reached = {storing};
    for (size_t i = 0; i < reached.size(); ++i) {
      if (reached[i] == reader) return;
      for (const Wait& next : units[reached[i]].waiting)
        if (seen.insert(next.unit)) reached.push_back(next.unit);
    }
    wait(storing, reader);
  }

  int earliest(const StepUnit& unit) const {
    int level = 0;
    for (const auto& [other, levels] : unit.awaited)
      level = std::max(level, units[other].level + levels);
    return level;
  }

  // No call is between stages of a level; one that may wait joins the first level with stages.
  void find_levels() {
    order = order_by_waits(map_to_vector(
        units, [](const StepUnit& unit) { return map_to_vector(unit.awaited, &Wait::unit); }));
    int last = 0;
    for (int u : order) {
      units[u].level = earliest(units[u]);
      last = std::max(last, units[u].level);
    }
    for (int u : order | std::views::reverse) {
      StepUnit& unit = units[u];
      unit.latest = last;
      for (const auto& [other, levels] : unit.waiting)
        unit.latest = std::min(unit.latest, units[other].latest - levels);
    }
    std::set<int> occupied;
    for (const StepUnit& unit : units)
      if (!unit.is_call() && unit.level == unit.latest) occupied.insert(unit.level);
    for (int u : order) {
      StepUnit& unit = units[u];
      unit.level = earliest(unit);
      if (unit.is_call() || unit.latest == unit.level) continue;
      const auto level = occupied.lower_bound(unit.level);
      if (level != occupied.end() && *level <= unit.latest) unit.level = *level;
      occupied.insert(unit.level);
    }
  }

  Verdict try_add(int unit, int at, const StageScore& score) {
    int phase = 0;  // after all of the draft that it reads
    for (const Wait& read : units[unit].awaited)
      if (units[read.unit].kernel == at) phase = std::max(phase, units[read.unit].phase + 1);
    Draft grown = add(drafts[at], unit, phase, score);
    if (Verdict verdict = check_pointers(grown.pointers.size()); !verdict) return verdict;
    if (grown.statements > kMostStatements) return too_long(grown.statements, kMostStatements);
    if (phase > 0 && !rule.barriers) return Verdict::no(kRuleNoBarrier);
    const double apart_us = estimate_us(drafts[at].times, in.target.device) + score.us;
    if (rule.by_cost && estimate_us(grown.times, in.target.device) > apart_us)
      return Verdict::no(kRuleSlower);
    drafts[at] = std::move(grown);
    units[unit].kernel = at;
    units[unit].phase = phase;
    return Verdict::yes();
  }

  // The draft with the stage in a phase of it.
  Draft add(Draft draft, int unit, int phase, const StageScore& score) const {
    const Stage& added = stage(unit);
    draft.pointers.insert(added.loads.begin(), added.loads.end());
    for (NodeId store : added.stores) {  // what may replace an input is where that is
      const auto at = replaceable.find(store);
      draft.pointers.insert(at == replaceable.end() ? store : graph.mutations[at->second].input);
    }
    int& equal = draft.equal[{score.statements, score.us}];
    draft.statements += score.statements * (count_texts(equal + 1) - count_texts(equal));
    ++equal;
    const bool is_new = std::ssize(draft.times) == phase;
    const Join join = phase == 0 ? Join::kLaunch : Join::kGrid;
    if (is_new) draft.times.push_back({join});
    if (is_new) draft.kernel.phases.push_back({join});
    draft.times[phase].add(score.estimate);
    draft.kernel.phases[phase].blocks.push_back({{units[unit].step.kernel}});
    return draft;
  }

  void open(int unit, const StageScore& score) {
    units[unit].kernel = static_cast<int>(drafts.size());
    drafts_of_level[units[unit].level].push_back(units[unit].kernel);
    drafts.push_back(add({}, unit, 0, score));
  }

  // Kernels of a level run in order, so a stage may join any from the last that it reads on.
  void place(int unit) {
    const StageScore& score = in.prices.of(stage(unit));
    if (in.target.device.barrier_us <= 0 || !rule.packs) return open(unit, score);
    const std::vector<int>& level = drafts_of_level[units[unit].level];
    int first = level.empty() ? 0 : level.front();
    for (const Wait& read : units[unit].awaited)
      if (units[read.unit].level == units[unit].level)
        first = std::max(first, units[read.unit].kernel);
    std::vector<Cut> refused;
    for (int at : level) {
      if (at < first) continue;
      const Verdict verdict = try_add(unit, at, score);
      if (verdict) return;
      add_cuts(unit, at, verdict, refused);
    }
    out.cuts.insert(out.cuts.end(), refused.begin(), refused.end());
    open(unit, score);
  }

  void add_cuts(int unit, int draft, const Verdict& verdict, std::vector<Cut>& cuts) const {
    for (const Wait& read : units[unit].awaited) {
      if (units[read.unit].kernel != draft) continue;
      for (NodeId load : stage(unit).loads)
        if (std::ranges::count(stage(read.unit).stores, load))
          cuts.push_back({load, stage(unit).roots.back(), verdict});
    }
  }

  // Kernels and calls in an order that can run, as near to the one before as may be.
  void order_steps() {
    std::vector<int> first, group(units.size());  // unit of each kernel or call; its number
    std::map<int, int> group_of;                  // by kernel
    for (int u : order) {
      const int next = static_cast<int>(first.size());
      group[u] =
          units[u].is_call() ? next : group_of.try_emplace(units[u].kernel, next).first->second;
      if (group[u] == next) first.push_back(u);
    }
    std::vector<std::vector<int>> waits(first.size());
    for (size_t u = 0; u < units.size(); ++u)
      for (const Wait& wait : units[u].awaited)
        if (group[wait.unit] != group[u]) waits[group[u]].push_back(group[wait.unit]);
    for (int next : order_by_waits(waits)) {
      const StepUnit& unit = units[first[next]];
      if (unit.is_join) continue;
      if (unit.is_call()) {
        out.steps.push_back(unit.step);
        continue;
      }
      Draft& draft = drafts[unit.kernel];
      out.steps.push_back({static_cast<int>(out.kernels.size())});
      draft.kernel.us = estimate_us(draft.times, in.target.device);
      out.kernels.push_back(std::move(draft.kernel));
    }
  }
};

// Groups of one kernel that are tried, each with a schedule of the kernel: few fit in registers.
constexpr size_t kMostPersistentGroups = 4;
// A value this much smaller than the kernel's largest is not worth a mapping of its stages.
constexpr int64_t kWorthwhileShare = 16;

// Stages of different phases that access one large value, the largest first; each is in one group.
StageGroups find_persistent_groups(const Graph& graph, const Stages& stages,
                                   const PlannedKernel& kernel) {
  std::map<NodeId, std::vector<int>> readers;
  for (const PlannedPhase& phase : kernel.phases) {
    std::set<NodeId> met;  // by a stage of this phase
    for (int s : phase.stages())
      for (const NodeList* values : {&stages[s].loads, &stages[s].stores})
        for (NodeId value : *values)
          if (met.insert(value).second) readers[value].push_back(s);
  }
  auto bytes = [&](NodeId value) { return hint_bytes(graph, value); };
  int64_t largest = 1;
  for (const auto& [value, found] : readers) largest = std::max(largest, bytes(value));
  NodeList values;
  for (const auto& [value, found] : readers)
    if (found.size() > 1 && bytes(value) * kWorthwhileShare >= largest) values.push_back(value);
  std::ranges::stable_sort(values, std::greater(), bytes);
  std::set<int> taken;
  StageGroups groups;
  for (NodeId value : values) {
    std::vector<int> group = readers[value];
    std::erase_if(group, [&](int s) { return taken.contains(s); });
    if (group.size() < 2 || groups.size() == kMostPersistentGroups) continue;
    taken.insert(group.begin(), group.end());
    groups.push_back(std::move(group));
  }
  return groups;
}

// Do the stages have blocks of one size by themselves?  Then nothing changes in the kernel, and its
// predicted time is what their own estimates add up to; copies are added apart.
bool has_equal_blocks(const Stages& stages, const PlannedKernel& kernel, StagePrices& prices) {
  int threads = 0;
  for (int s : kernel.stages()) {
    const StageScore& score = prices.of(stages[s]);
    if (score.copy_us > 0 || (threads > 0 && score.threads != threads)) return false;
    threads = score.threads;
  }
  return true;
}

}  // namespace

StitchPlan stitch_stages(const PlanRequest& in, JoinedStages joined, const StitchRule& rule) {
  Stitcher stitcher{in, joined, rule};
  stitcher.out.cuts = std::move(joined.cuts);
  stitcher.out.rule = rule;
  stitcher.find_waits();
  stitcher.postpone();
  stitcher.find_levels();
  for (int u : stitcher.order)
    if (!stitcher.units[u].is_call()) stitcher.place(u);
  stitcher.order_steps();
  stitcher.out.stages = std::move(joined.stages);
  return std::move(stitcher.out);
}

double sum_copies_us(const PlanRequest& in, const Stages& stages, const PlannedKernel& kernel) {
  double us = 0;
  for (int s : kernel.stages()) us += in.prices.of(stages[s]).copy_us;
  return us;
}

void keep_in_registers(const PlanRequest& in, StitchPlan& plan) {
  const Stages& stages = plan.stages;
  for (PlannedKernel& kernel : plan.kernels) {
    if (kernel.phases.size() < 2) continue;
    KernelChooser chooser = choose_for(in, stages, kernel);
    const double copies_us = sum_copies_us(in, stages, kernel);
    if (!has_equal_blocks(stages, kernel, in.prices))
      kernel.us = copies_us +
                  (is_enumerated(in.graph) ? chooser.choose().us : chooser.predict_us({}).value());
    // One by one, for each needs room beside the others.
    for (const std::vector<int>& group : find_persistent_groups(in.graph, stages, kernel)) {
      kernel.kept.push_back(group);
      const std::optional<double> kept_us = chooser.predict_us(kernel.kept);
      if (kept_us && *kept_us + copies_us < kernel.us)
        kernel.us = *kept_us + copies_us;
      else
        kernel.kept.pop_back();
    }
  }
}

void finish_in_last_block(const PlanRequest& in, StitchPlan& plan) {
  const auto estimate_of = [&](int s) { return in.prices.of(plan.stages[s]).estimate; };
  for (PlannedKernel& kernel : plan.kernels) {
    if (kernel.phases.size() < 2) continue;
    const std::vector<StageEstimate> estimates = map_to_vector(kernel.stages(), estimate_of);
    const auto is_kept = [&](int s) { return kernel.group_of(s) >= 0; };
    std::vector<PlannedPhase>& phases = kernel.phases;
    size_t first = phases.size();  // of the phases that share nothing on chip with others
    while (first > 1 && std::ranges::none_of(phases[first - 1].stages(), is_kept)) --first;
    const auto finish_at = [&](size_t finish) {
      for (size_t p = first; p < phases.size(); ++p)
        phases[p].join = p < finish ? Join::kGrid : Join::kLastBlock;
      return estimate_kernel_us(kernel, estimates, in.target.device);
    };
    const double meeting_us = finish_at(phases.size());
    double best_us = meeting_us;
    size_t best = phases.size();
    for (size_t p = first; p < phases.size(); ++p) {
      const double us = finish_at(p);
      if (us < best_us) best = p;
      best_us = std::min(best_us, us);
    }
    finish_at(best);
    kernel.us += best_us - meeting_us;
  }
}

}  // namespace stitch
