#include "plan/store_in_place.h"

#include <algorithm>
#include <compare>
#include <set>

#include "analysis/accesses.h"

namespace stitch {
namespace {

std::set<NodeId> reductions_of(const Spaces& spaces, NodeId root) {
  const auto at = spaces.depends.find(root);
  return at == spaces.depends.end() ? std::set<NodeId>() : at->second;
}

bool reads_only_stored_element(const Graph& graph, const Spaces& spaces, const Accesses& accesses,
                               const Mutation& mutation) {
  const IndexExpr* stored = nullptr;
  const RootSpace* space = nullptr;
  for (const Access& access : accesses.list) {
    if (access.is_store && access.value == mutation.value) stored = &access.offset;
  }
  for (const RootSpace& candidate : spaces.roots) {
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
    for (const RootSpace& reader : spaces.roots) {
      if (reader.root != access.root) continue;
      if (reader.kept_atoms != space->kept_atoms || !reader.reduced_atoms.empty()) return false;
      if (reductions_of(spaces, reader.root) != reductions_of(spaces, space->root)) return false;
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
    return std::ranges::any_of(plan.aliases, [&](const PlannedAlias& alias) {
      return alias.node == value && alias.base == base;
    });
  };
  return std::ranges::any_of(values, is_base);
}

bool is_read_later(const StitchPlan& plan, const std::vector<Reader>& readers,
                   const Mutation& mutation) {
  const auto storing = std::ranges::find_if(readers, [&](const Reader& reader) {
    if (reader.stage < 0) return false;
    const std::vector<NodeId>& stores = plan.stages[reader.stage].stores;
    return std::ranges::count(stores, mutation.value) > 0;
  });
  if (storing == readers.end()) return true;
  return std::ranges::any_of(readers, [&](const Reader& reader) {
    if (reader.when < storing->when || reader.stage == storing->stage) return false;
    return reads_memory(plan, *reader.values, mutation.input);
  });
}

}  // namespace

std::map<NodeId, int> find_replaceable(const Graph& graph) {
  std::map<NodeId, int> uses, replaceable;
  for (const GraphOutput& output : graph.outputs) {
    const bool is_old = output.kind == GraphOutput::Kind::kTensor && !output.is_final;
    if (is_old) ++uses[output.node];
  }
  for (const Mutation& mutation : graph.mutations) {
    ++uses[mutation.value];
    ++uses[mutation.input];
  }
  for (size_t m = 0; m < graph.mutations.size(); ++m) {
    const Mutation& mutation = graph.mutations[m];
    const TensorType &value = graph[mutation.value].type, &input = graph[mutation.input].type;
    bool fits = value.dtype == input.dtype && value.shape == input.shape &&
                uses[mutation.value] == 1 && uses[mutation.input] == 1;
    for (int d = 0; fits && d < value.rank(); ++d)
      fits = value.shape[d].is(1) || value.strides[d] == input.strides[d];
    if (fits) replaceable.emplace(mutation.value, static_cast<int>(m));
  }
  return replaceable;
}

std::vector<int> find_replaced(const Graph& graph, const std::map<NodeId, int>& replaceable,
                               const PlannedStage& stage) {
  std::vector<int> candidates, replaced;
  for (NodeId store : stage.stores) {
    if (const auto at = replaceable.find(store); at != replaceable.end())
      candidates.push_back(at->second);
  }
  if (candidates.empty()) return {};
  std::vector<bool> is_load(graph.size(), false);
  for (NodeId load : stage.loads) is_load[load.index()] = true;
  const SpacesOrNot found = find_spaces(graph, stage.roots, is_load);
  if (!found.verdict) return {};
  const Accesses accesses =
      find_accesses(graph, found.spaces, is_load, {stage.stores.begin(), stage.stores.end()});
  for (int m : candidates) {
    if (reads_only_stored_element(graph, found.spaces, accesses, graph.mutations[m]))
      replaced.push_back(m);
  }
  return replaced;
}

std::vector<bool> find_in_place(const Graph& graph, const StitchPlan& plan) {
  std::vector<bool> in_place(graph.mutations.size(), false);
  const std::map<NodeId, int> replaceable = find_replaceable(graph);
  const std::vector<Reader> readers = list_readers(graph, plan);
  for (const PlannedStage& stage : plan.stages) {
    for (int m : find_replaced(graph, replaceable, stage))
      in_place[m] = !is_read_later(plan, readers, graph.mutations[m]);
  }
  return in_place;
}

}  // namespace stitch
