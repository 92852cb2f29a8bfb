#include "plan/store_in_place.h"

#include <algorithm>

#include "analysis/accesses.h"

namespace stitch {
namespace {

bool reads_only_stored_element(const Graph& graph, const PlannedKernel& kernel,
                               const Mutation& mutation) {
  std::vector<bool> is_load(graph.size(), false);
  for (NodeId load : kernel.loads) is_load[load.index()] = true;
  SpacesOrNot found = find_spaces(graph, kernel.roots, is_load);
  if (!found.verdict) return false;
  Accesses accesses =
      find_accesses(graph, found.spaces, is_load, {kernel.stores.begin(), kernel.stores.end()});
  const IndexExpr* stored = nullptr;
  const RootSpace* space = nullptr;
  for (const Access& access : accesses.list) {
    if (access.is_store && access.value == mutation.value) stored = &access.offset;
  }
  for (const RootSpace& candidate : found.spaces.roots) {
    if (candidate.root == mutation.value) space = &candidate;
  }
  if (!stored || !space || !space->reduced_atoms.empty()) return false;
  for (const Access& access : accesses.list) {
    if (access.is_store || access.value != mutation.input) continue;
    if (access.offset != *stored || access.is_guarded) return false;
    // What a reduction reads is for all threads to know.
    if (family(graph[access.root]) == Family::kReduce) return false;
    // Only roots of the very same loops: the thread that stores this element reads it, before any
    // store, and no other thread does.
    for (const RootSpace& reader : found.spaces.roots) {
      if (reader.root != access.root) continue;
      if (reader.kept_atoms != space->kept_atoms || !reader.reduced_atoms.empty()) return false;
      if (found.spaces.depends[reader.root] != found.spaces.depends[space->root]) return false;
    }
  }
  return true;
}

int step_of_kernel(const StitchPlan& plan, NodeId store) {
  for (size_t s = 0; s < plan.steps.size(); ++s) {
    if (plan.steps[s].kind != PlanStep::Kind::kKernel) continue;
    const std::vector<NodeId>& stores = plan.kernels[plan.steps[s].kernel].stores;
    if (std::count(stores.begin(), stores.end(), store)) return static_cast<int>(s);
  }
  return -1;
}

// Is memory of `base` read by this step, itself or through an alias?
bool reads_memory(const Graph& graph, const StitchPlan& plan, const PlanStep& step, NodeId base) {
  auto is_base = [&](NodeId value) {
    if (value == base) return true;
    return std::any_of(plan.aliases.begin(), plan.aliases.end(), [&](const PlannedAlias& alias) {
      return alias.node == value && alias.base == base;
    });
  };
  const std::vector<NodeId>& reads = step.kind == PlanStep::Kind::kKernel
                                         ? plan.kernels[step.kernel].loads
                                         : graph[step.call].inputs;
  return std::any_of(reads.begin(), reads.end(), is_base);
}

bool can_store_in_place(const Graph& graph, const StitchPlan& plan, const Mutation& mutation) {
  const TensorType &value = graph[mutation.value].type, &input = graph[mutation.input].type;
  if (value.dtype != input.dtype || value.shape != input.shape) return false;
  for (int d = 0; d < value.rank(); ++d) {
    if (!value.shape[d].is(1) && value.strides[d] != input.strides[d]) return false;
  }
  for (const GraphOutput& output : graph.outputs) {
    if (output.kind != GraphOutput::Kind::kTensor) continue;
    if (output.node == mutation.value || output.node == mutation.input) return false;
  }
  const bool repeated =
      std::count_if(graph.mutations.begin(), graph.mutations.end(), [&](const Mutation& other) {
        return other.value == mutation.value || other.input == mutation.input;
      }) > 1;
  if (repeated) return false;
  const int at = step_of_kernel(plan, mutation.value);
  if (at < 0) return false;
  for (size_t s = at + 1; s < plan.steps.size(); ++s) {
    if (reads_memory(graph, plan, plan.steps[s], mutation.input)) return false;
  }
  return reads_only_stored_element(graph, plan.kernels[plan.steps[at].kernel], mutation);
}

}  // namespace

std::vector<bool> find_in_place(const Graph& graph, const StitchPlan& plan) {
  std::vector<bool> in_place;
  for (const Mutation& mutation : graph.mutations) {
    in_place.push_back(can_store_in_place(graph, plan, mutation));
  }
  return in_place;
}

}  // namespace stitch
