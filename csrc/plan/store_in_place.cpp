#include "plan/store_in_place.h"

#include <algorithm>
#include <compare>
#include <iterator>
#include <set>

#include "analysis/accesses.h"

namespace stitch {
namespace {

std::set<NodeId> reductions_of(const Spaces& spaces, NodeId root) {
  const auto at = spaces.depends.find(root);
  return at == spaces.depends.end() ? std::set<NodeId>() : at->second;
}

bool reads_only_stored_element(const Graph& graph, const Spaces& spaces, const Accesses& accesses,
                               const Mutation& mutation, NodeId store) {
  const IndexExpr* stored = nullptr;
  const RootSpace* space = nullptr;
  for (const Access& access : accesses.list)
    if (access.is_store && access.value == store) stored = &access.offset;
  for (const RootSpace& candidate : spaces.roots)
    if (candidate.root == store) space = &candidate;
  const std::vector<NodeId> stores = find_stores(graph, mutation.value);
  if (!stored || !space || !space->reduced_atoms.empty()) return false;
  for (const Access& access : accesses.list) {
    if (access.is_store || access.value != mutation.input) continue;
    if (access.root != store && std::ranges::count(stores, access.root))
      continue;  // of a part of its own
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
    for (size_t p = 0; p < kernel.phases.size(); ++p)
      for (int stage : kernel.phases[p])
        readers.push_back({{s, p}, stage, &plan.stages[stage].loads});
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

// Parts read nothing of one another (rewrite/rewrite_graph.h).
bool is_read_later(const Graph& graph, const StitchPlan& plan, const std::vector<Reader>& readers,
                   const Mutation& mutation) {
  const std::vector<NodeId> stores = find_stores(graph, mutation.value);
  const auto is_storing = [&](const Reader& reader) {
    return reader.stage >= 0 && std::ranges::any_of(stores, [&](NodeId store) {
             return std::ranges::count(plan.stages[reader.stage].stores, store) > 0;
           });
  };
  const auto first = std::ranges::find_if(readers, is_storing);
  if (first == readers.end()) return true;
  return std::ranges::any_of(readers, [&](const Reader& reader) {
    if (reader.when < first->when || is_storing(reader)) return false;
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
    if (!fits) continue;
    for (const NodeId store : find_stores(graph, mutation.value))
      replaceable.emplace(store, static_cast<int>(m));
  }
  return replaceable;
}

std::vector<NodeId> find_replaced(const Graph& graph, const std::map<NodeId, int>& replaceable,
                                  const PlannedStage& stage) {
  std::vector<NodeId> replaced;
  const auto is_candidate = [&](NodeId store) { return replaceable.contains(store); };
  if (std::ranges::none_of(stage.stores, is_candidate)) return {};
  const std::vector<bool> is_load = find_loads(graph, stage);
  const LoadsOfRoots loads(stage.roots.size(), &is_load);
  const SpacesOrNot found = find_spaces(graph, stage.roots, loads);
  if (!found.verdict) return {};
  const Accesses accesses =
      find_accesses(graph, found.spaces, loads, {stage.stores.begin(), stage.stores.end()});
  for (NodeId store : stage.stores) {
    if (!is_candidate(store)) continue;
    const Mutation& mutation = graph.mutations[replaceable.at(store)];
    if (reads_only_stored_element(graph, found.spaces, accesses, mutation, store))
      replaced.push_back(store);
  }
  return replaced;
}

std::vector<bool> find_in_place(const Graph& graph, const StitchPlan& plan) {
  std::vector<bool> in_place(graph.mutations.size(), false);
  const std::map<NodeId, int> replaceable = find_replaceable(graph);
  const std::vector<Reader> readers = list_readers(graph, plan);
  std::set<NodeId> replaced;
  for (const PlannedStage& stage : plan.stages)
    std::ranges::copy(find_replaced(graph, replaceable, stage),
                      std::inserter(replaced, replaced.end()));
  for (size_t m = 0; m < in_place.size(); ++m) {
    const auto is_replaced = [&](NodeId store) { return replaced.contains(store); };
    in_place[m] = std::ranges::all_of(find_stores(graph, graph.mutations[m].value), is_replaced) &&
                  !is_read_later(graph, plan, readers, graph.mutations[m]);
  }
  return in_place;
}

}  // namespace stitch
