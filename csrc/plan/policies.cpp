#include "plan/find_levels.h"
#include "plan/find_roots.h"
#include "plan/group_dominants.h"
#include "plan/stitch_stages.h"

namespace stitch {
namespace {

struct Policy {
  const char* name;
  StitchPlan (*plan)(const PlanRequest&);
  bool (*is_in_auto)(const PlanRequest&, const StitchPlan& best);  // of the rows before
};

// Of plans that are predicted to take as long, to a thousandth, the one with fewer kernels.
bool is_better(const StitchPlan& plan, const StitchPlan& best) {
  const double us = plan.us(), best_us = best.us();
  const size_t kernels = plan.kernels.size(), fewest = best.kernels.size();
  return kernels == fewest || std::abs(us - best_us) > best_us / 1000 ? us < best_us
                                                                      : kernels < fewest;
}

// The full latency evaluator, templates enumerated, over final plans (20.9, 20.19); what stays on
// chip across barriers was priced with its mapping.
void enumerate_templates(const PlanRequest& in, StitchPlan& plan) {
  for (PlannedKernel& kernel : plan.kernels) {
    if (!in.target.device.is_cuda || !kernel.kept.empty()) continue;
    KernelChoice choice = choose_for(in, plan.stages, kernel).choose();
    kernel.us = choice.us + sum_copies_us(in, plan.stages, kernel);
    kernel.templates = std::move(choice.templates);
  }
}

NodeList list_roots(const PlanRequest& in, bool every_op) {
  return find_roots(in.graph, in.demands, every_op, in.target.device);
}

// What stitching is compared with: nothing shares a kernel but the values of one root.
StitchPlan plan_each_root(const PlanRequest& in, bool every_op) {
  JoinedStages joined = join_stages(in, list_roots(in, every_op), JoinRule::kNever);
  return stitch_stages(in, std::move(joined), {.barriers = false, .packs = false});
}

// Pairs joined while the model gains, the largest gains first, then kernels of them.
StitchPlan join_pairs(const PlanRequest& in, bool every_op) {
  NodeList roots = list_roots(in, every_op);
  if (every_op) roots = drop_cheap(in.graph, in.demands, std::move(roots));
  return stitch_stages(in, join_stages(in, roots, JoinRule::kFaster), {});
}

// AStitch: groups by their dominants (A.6-A.10), joined where the blocks of one mapping hold what
// the consumer needs (regional, A.11), all of a scope in one kernel (A.2-A.4).
StitchPlan plan_astitch(const PlanRequest& in) {
  const std::vector<NodeList> scopes = find_scopes(in.graph, in.demands);
  const std::vector<DominantGroup> found =
      group_dominants(in.graph, scopes, find_scope_outputs(in.graph, in.demands, scopes));
  const NodeList certain = list_roots(in, false);
  std::set<NodeId> roots(certain.begin(), certain.end());
  for (const DominantGroup& group : found) {
    roots.insert(group.dominant);
    roots.insert(group.sub_dominants.begin(), group.sub_dominants.end());
  }
  std::vector<NodeList> groups = map_to_vector(found, &DominantGroup::members);
  for (NodeList& group : groups)
    std::erase_if(group, [&](NodeId member) { return !roots.contains(member); });
  JoinedStages joined = join_stages(in, {roots.begin(), roots.end()}, JoinRule::kParallel, groups);
  return stitch_stages(in, std::move(joined), {.by_cost = false});
}

// Stages by the patterns that gain most, kernels by the best of the rules.  Expensive element-wise
// values are enumerated both ways: computed once and passed on, or by each reader (20.8, 20.9).
StitchPlan plan_best_patterns(const PlanRequest& in, const std::vector<StitchRule>& rules) {
  const NodeList certain = list_roots(in, false);
  std::vector<NodeList> groupings = {certain};
  for (const NodeList& more : {add_expensive(in.graph, certain), add_gathered(in.graph, certain)})
    add_once(groupings, more);
  StitchPlan best, best_finished;  // what is kept in registers is chosen before what is finished
  for (const NodeList& roots : groupings) {
    for (const auto& patterns : plan_patterns(in, roots)) {
      const JoinedStages joined = join_stages(in, roots, JoinRule::kNever, patterns);
      for (const StitchRule& rule : rules) {
        StitchPlan candidate = stitch_stages(in, joined, rule);
        if (is_enumerated(in.graph)) enumerate_templates(in, candidate);
        StitchPlan finished = candidate;
        finish_in_last_block(in, finished);
        if (is_enumerated(in.graph)) enumerate_templates(in, finished);
        if (!best.stages.empty() && !is_better(finished, best_finished)) continue;
        best = std::move(candidate);
        best_finished = std::move(finished);
      }
    }
  }
  return best;
}

constexpr StitchRule kNoBarriers = {.barriers = false};

bool is_never(const PlanRequest&, const StitchPlan&) { return false; }

// On the host kernels are stages, and pairs that gain are all that joins.
bool has_barriers(const PlanRequest& in, const StitchPlan&) {
  return in.target.device.barrier_us > 0;
}

// Scoring patterns takes several times as long as joining pairs, for plans that differ less the
// more there is to plan.
bool is_small(const PlanRequest& in, const StitchPlan& best) {
  return has_barriers(in, best) && is_enumerated(in.graph);
}

// Only what is read at other indices makes kernels of several ops evaluate more than those of one.
bool moves_values(const PlanRequest& in, const StitchPlan&) {
  return std::ranges::any_of(in.graph.nodes, moves_elements);
}

// Roots that evaluate each other's values again are worse than all values stored, on a host soon by
// a third of a graph's time: what lies between is worth a look.  A scan written as a tree stores a
// value for each level and joins the rest.  GPUs plan longer, and look where the whole graph lost.
bool may_evaluate_again(const PlanRequest& in, const StitchPlan& best) {
  return in.target.device.is_cuda ? best.policy == "none" : moves_values(in, best);
}

using In = const PlanRequest&;
constexpr Policy kPolicies[] = {
    {"search", [](In in) { return join_pairs(in, false); },
     [](In, const StitchPlan&) { return true; }},
    {"astitch", &plan_astitch, &has_barriers},
    // FusionStitching 2020's as the stages of kernels that AStitch's global scheme joins; then its
    // own: no communication between blocks (20.6), what the latency evaluator likes best (20.19).
    {"stitched patterns", [](In in) { return plan_best_patterns(in, {kNoBarriers, {}}); },
     &is_small},
    {"fusionstitching2020", [](In in) { return plan_best_patterns(in, {kNoBarriers}); }, &is_never},
    {"loops", [](In in) { return plan_each_root(in, false); }, &is_never},
    {"none", [](In in) { return plan_each_root(in, true); }, &moves_values},
    {"joined ops", [](In in) { return join_pairs(in, true); }, &may_evaluate_again},
};

StitchPlan plan_row(const Policy& row, const PlanRequest& in) {
  StitchPlan candidate = row.plan(in);
  candidate.policy = row.name;
  keep_in_registers(in, candidate);
  finish_in_last_block(in, candidate);
  if (is_enumerated(in.graph)) enumerate_templates(in, candidate);
  return candidate;
}

}  // namespace

StitchPlan plan_by_policy(const std::string& policy, const PlanRequest& request) {
  StitchPlan best;
  for (const Policy& row : kPolicies) {
    if (policy == "auto" ? !row.is_in_auto(request, best) : policy != row.name) continue;
    StitchPlan candidate = plan_row(row, request);
    if (best.policy.empty() || is_better(candidate, best)) best = std::move(candidate);
  }
  if (best.policy.empty()) throw UserError("unknown policy '" + policy + "'");
  if (!is_enumerated(request.graph)) enumerate_templates(request, best);
  for (PlannedKernel& kernel : best.kernels)
    kernel.us -= sum_copies_us(request, best.stages, kernel);
  return best;
}

}  // namespace stitch
