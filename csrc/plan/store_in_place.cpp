#include "plan/store_in_place.h"

#include "analysis/accesses.h"

namespace stitch {
namespace {

// Of what one memory holds: the value read, the value stored over it, and all that is.
struct Overwriting {
  NodeId load, store;
  NodeList parts;
};

std::set<AtomId> walked_atoms(const RootSpace& space) {
  std::set<AtomId> atoms(space.kept_atoms.begin(), space.kept_atoms.end());
  atoms.insert(space.reduced_atoms.begin(), space.reduced_atoms.end());
  return atoms;
}

// No block walks the same elements of the store as another.
bool walks_all(const Spaces& spaces, const RootSpace& store) {
  const std::set<AtomId> all = walked_atoms(store);
  return std::ranges::all_of(spaces.roots, [&](const RootSpace& root) {
    return std::ranges::includes(all, walked_atoms(root));
  });
}

// What a reduction reads is for all threads of a block to know.  A block that is one thread has
// read all of it before it stores what depends on the reduction, or reads it where it stores:
//   y = g * h;  s = sum(y){axes=[0]}   over g[512, 256] that nobody else reads: y is stored there.
bool reads_only_stored_element(const Graph& graph, const Spaces& spaces, const Accesses& accesses,
                               const Overwriting& pair, bool by_one_thread) {
  const NodeId store = pair.store;
  const Access* stored = find_access(accesses, store, true);
  const RootSpace& space = space_of(spaces, store);
  if (!stored || !space.reduced_atoms.empty()) return false;
  for (const Access& access : accesses.list) {
    if (access.is_store || access.value != pair.load) continue;
    if (access.root != store && std::ranges::count(pair.parts, access.root))
      continue;  // of a part of its own
    if (access.offset != stored->offset || access.is_guarded) return false;
    const RootSpace& reader = space_of(spaces, access.root);
    // Roots of the same loops and waits read all before any is stored (stage/build_loops.h).
    const bool runs_beside = spaces.depends.at(reader.root) == spaces.depends.at(store);
    if (family(graph[access.root]) != Family::kReduce) {
      if (reader.kept_atoms != space.kept_atoms || !reader.reduced_atoms.empty()) return false;
      if (!runs_beside) return false;
      continue;
    }
    const bool is_awaited = by_one_thread && spaces.depends.at(store).contains(access.root);
    if (!runs_beside && !is_awaited) return false;
    // The thread that stores this element reads it, before any store, and no other thread does.
    if (walked_atoms(reader) != walked_atoms(space) || !walks_all(spaces, space)) return false;
  }
  return true;
}

// Those that the stage may store over what it reads, as far as it alone is concerned.
std::vector<Overwriting> keep_possible(const Graph& graph, const Stage& stage,
                                       std::vector<Overwriting> pairs, bool by_one_thread) {
  if (pairs.empty()) return {};
  const std::vector<bool> is_load = mark_nodes(graph, stage.loads);
  const LoadsOfRoots loads(stage.roots.size(), &is_load);
  const SpacesOrNot found = find_spaces(graph, stage.roots, loads);
  if (!found.verdict) return {};
  const Accesses accesses =
      find_accesses(graph, found.spaces, loads, {stage.stores.begin(), stage.stores.end()});
  std::erase_if(pairs, [&](const Overwriting& pair) {
    return !reads_only_stored_element(graph, found.spaces, accesses, pair, by_one_thread);
  });
  return pairs;
}

// Everything that reads memory, in order.
struct Reader {
  std::pair<size_t, size_t> when;  // step and phase: those of one phase run at once, a call's is 0
  int stage = -1;                  // -1: a library call
  const NodeList* values;
};

std::vector<Reader> list_readers(const Graph& graph, const StitchPlan& plan) {
  std::vector<Reader> readers;
  for (size_t s = 0; s < plan.steps.size(); ++s) {
    const PlanStep& step = plan.steps[s];
    if (step.call.valid()) {
      readers.push_back({{s, 0}, -1, &graph[step.call].inputs});
      continue;
    }
    const PlannedKernel& kernel = plan.kernels[step.kernel];
    for (size_t p = 0; p < kernel.phases.size(); ++p)
      for (int stage : kernel.phases[p].stages())
        readers.push_back({{s, p}, stage, &plan.stages[stage].loads});
  }
  return readers;
}

// Parts read nothing of one another (rewrite/rewrite_graph.h).
bool is_read_later(const Graph& graph, const StitchPlan& plan, const std::vector<Reader>& readers,
                   NodeId memory, const NodeList& stores) {
  const auto is_storing = [&](const Reader& reader) {
    return reader.stage >= 0 && std::ranges::any_of(stores, [&](NodeId store) {
             return std::ranges::count(plan.stages[reader.stage].stores, store) > 0;
           });
  };
  const auto first = std::ranges::find_if(readers, is_storing);
  if (first == readers.end()) return true;
  return std::ranges::any_of(readers, [&](const Reader& reader) {
    if (reader.when < first->when || is_storing(reader)) return false;
    return std::ranges::any_of(*reader.values,
                               [&](NodeId value) { return storage_base(graph, value) == memory; });
  });
}

}  // namespace

std::map<NodeId, int> find_replaceable(const Graph& graph) {
  std::map<NodeId, int> uses, replaceable;
  for (const GraphOutput& output : graph.outputs)
    if (output.is_old()) ++uses[output.node];
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

NodeList find_replaced(const Graph& graph, const std::map<NodeId, int>& replaceable,
                       const Stage& stage) {
  std::vector<Overwriting> pairs;
  for (NodeId store : stage.stores) {
    if (!replaceable.contains(store)) continue;
    const Mutation& mutation = graph.mutations[replaceable.at(store)];
    pairs.push_back({mutation.input, store, find_stores(graph, mutation.value)});
  }
  return map_to_vector(keep_possible(graph, stage, std::move(pairs), false), &Overwriting::store);
}

std::vector<bool> find_in_place(const Graph& graph, const StitchPlan& plan) {
  std::vector<bool> in_place(graph.mutations.size(), false);
  const std::map<NodeId, int> replaceable = find_replaceable(graph);
  const std::vector<Reader> readers = list_readers(graph, plan);
  std::set<NodeId> replaced;
  for (const Stage& stage : plan.stages)
    for (NodeId store : find_replaced(graph, replaceable, stage)) replaced.insert(store);
  for (size_t m = 0; m < in_place.size(); ++m) {
    const auto is_replaced = [&](NodeId store) { return replaced.contains(store); };
    const NodeList stores = find_stores(graph, graph.mutations[m].value);
    in_place[m] = std::ranges::all_of(stores, is_replaced) &&
                  !is_read_later(graph, plan, readers, graph.mutations[m].input, stores);
  }
  return in_place;
}

std::map<NodeId, NodeId> find_stored_over(const Graph& graph, const StitchPlan& plan) {
  // Memory that is looked at after the call, and what has a place already.
  std::set<NodeId> shown, placed;
  for (NodeId id : find_kept(graph)) shown.insert(storage_base(graph, id));
  for (const Mutation& mutation : graph.mutations) {
    shown.insert(mutation.input);
    placed.insert(mutation.value);
  }
  const auto fits = [&](NodeId load, NodeId store) {
    const TensorType &from = graph[load].type, &to = graph[store].type;
    return from.dtype == to.dtype && element_count(from.shape) == element_count(to.shape) &&
           hint_bytes(graph, store) > kMostInSlab;
  };
  const std::vector<Reader> readers = list_readers(graph, plan);
  std::map<NodeId, NodeId> stored_over;
  for (const Stage& stage : plan.stages) {
    std::vector<Overwriting> pairs;
    NodeList loads = stage.loads;  // others than the call may hold an argument
    std::ranges::stable_partition(loads, [&](NodeId n) { return graph[n].op != OpKind::k_input; });
    for (NodeId store : stage.stores) {
      if (placed.contains(store) || stored_part(graph, store) != store) continue;
      for (NodeId load : loads)
        if (!shown.contains(load) && fits(load, store)) pairs.push_back({load, store, {store}});
    }
    for (const Overwriting& pair : keep_possible(graph, stage, std::move(pairs), true)) {
      if (stored_over.contains(pair.store) || shown.contains(pair.load)) continue;
      if (is_read_later(graph, plan, readers, pair.load, pair.parts)) continue;
      stored_over.emplace(pair.store, pair.load);
      shown.insert(pair.load);  // holds what is read from now on
    }
  }
  return stored_over;
}

}  // namespace stitch
