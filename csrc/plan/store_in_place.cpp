#include "plan/store_in_place.h"

#include <algorithm>
#include <compare>

#include "analysis/accesses.h"

namespace stitch {
namespace {

bool reads_only_stored_element(const Graph& graph, const PlannedStage& stage,
                               const Mutation& mutation) {
  std::vector<bool> is_load(graph.size(), false);
  for (NodeId load : stage.loads) is_load[load.index()] = true;
  SpacesOrNot found = find_spaces(graph, stage.roots, is_load);
  if (!found.verdict) return false;
  Accesses accesses =
      find_accesses(graph, found.spaces, is_load, {stage.stores.begin(), stage.stores.end()});
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

// When a stage runs: those of one phase run at once, a call's phase is 0.
struct Moment {
  size_t step = 0, phase = 0;
  friend auto operator<=>(const Moment&, const Moment&) = default;
};

// Everything that reads memory, in order.
struct Reader {
  Moment when;
  int stage = -1;  // -1: a library call
  const std::vector<NodeId>* values;
};

std::vector<Reader> list_readers(const Graph& graph, const StitchPlan& plan) {
  std::vector<Reader> readers;
  for (size_t s = 0; s < plan.steps.size(); ++s) {
    const PlanStep& step = plan.steps[s];
    if (step.kind == PlanStep::Kind::kLibrary) {
      readers.push_back({{s, 0}, -1, &graph[step.call].inputs});
      continue;
    }
    const PlannedKernel& kernel = plan.kernels[step.kernel];
    for (size_t p = 0; p < kernel.phases.size(); ++p) {
      for (int stage : kernel.phases[p])
        readers.push_back({{s, p}, stage, &plan.stages[stage].loads});
    }
  }
  return readers;
}

// Is memory of `base` among the values, itself or through an alias?
bool reads_memory(const StitchPlan& plan, const std::vector<NodeId>& values, NodeId base) {
  auto is_base = [&](NodeId value) {
    if (value == base) return true;
    return std::any_of(plan.aliases.begin(), plan.aliases.end(), [&](const PlannedAlias& alias) {
      return alias.node == value && alias.base == base;
    });
  };
  return std::any_of(values.begin(), values.end(), is_base);
}

bool can_store_in_place(const Graph& graph, const StitchPlan& plan,
                        const std::vector<Reader>& readers, const Mutation& mutation) {
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
  const auto storing = std::find_if(readers.begin(), readers.end(), [&](const Reader& reader) {
    if (reader.stage < 0) return false;
    const std::vector<NodeId>& stores = plan.stages[reader.stage].stores;
    return std::count(stores.begin(), stores.end(), mutation.value) > 0;
  });
  if (storing == readers.end()) return false;
  for (const Reader& reader : readers) {
    if (reader.when < storing->when || reader.stage == storing->stage) continue;
    if (reads_memory(plan, *reader.values, mutation.input)) return false;
  }
  return reads_only_stored_element(graph, plan.stages[storing->stage], mutation);
}

}  // namespace

std::vector<bool> find_in_place(const Graph& graph, const StitchPlan& plan) {
  const std::vector<Reader> readers = list_readers(graph, plan);
  std::vector<bool> in_place;
  for (const Mutation& mutation : graph.mutations) {
    in_place.push_back(can_store_in_place(graph, plan, readers, mutation));
  }
  return in_place;
}

}  // namespace stitch
