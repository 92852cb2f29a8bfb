#include "plan/kernels/chain_stages.h"

#include "plan/find_roots.h"
#include "plan/kernels/schedule_kernel.h"

namespace stitch {
namespace {

// Of a kernel in which chains are looked for: each pair costs several schedules of all stages.
constexpr size_t kMostStages = 8;

void put_after(std::vector<int>& phase, int first, int then) {
  phase.insert(std::ranges::find(phase, first) + 1, then);
}

struct Chainer {
  const Graph& graph;
  StitchPlan& plan;
  Target target;
  Demands demands = find_demands(graph);
  std::vector<int> readers = std::vector<int>(graph.size(), 0);  // stages that load it, by node
  std::vector<int> readers_outside = {};                         // of the kernel

  // What a kernel would be, and its own stages, by which it names them.
  struct Candidate {
    PlannedKernel kernel;
    Stages stages;
    double us = 0;
  };

  std::optional<double> predict_us(const Candidate& at) const {
    const KernelStages gathered = gather_stages(at.kernel, at.stages);
    KernelScheduler scheduler{graph, gathered.stages, target};
    const Schedules schedules = scheduler.schedule(gathered);
    if (schedules.empty()) return std::nullopt;
    return estimate_kernel_us(graph, at.stages, at.kernel, list_pointers(schedules), target,
                              &measure_traffic);
  }

  // Stages of no chain whose accesses are all offsets of indices, into memory that nothing else
  // shows.
  bool can_be_chained(const Candidate& at, int number) const {
    if (at.kernel.chain_of(number)) return false;
    const Stage& stage = at.stages[number];
    const bool is_plain = std::ranges::none_of(stage.nodes, [&](NodeId node) {
      return family(graph[node]) == Family::kWriter || combines_segments(info(graph[node]));
    });
    bool is_apart = std::ranges::all_of(
        stage.stores, [&](NodeId store) { return stored_part(graph, store) == store; });
    for (size_t m = 0; m < plan.in_place.size(); ++m)
      if (plan.in_place[m] && contains(stage.stores, graph.mutations[m].value)) is_apart = false;
    return is_plain && is_apart;
  }

  // What `first` hands to `then` and nothing else reads.
  NodeList find_private(const Stages& stages, int first, int then) const {
    NodeList values;
    for (NodeId store : stages[first].stores) {
      const auto loads = [&](const Stage& stage) { return contains(stage.loads, store); };
      if (loads(stages[then]) && std::ranges::count_if(stages, loads) == 1 &&
          !demands.is_demanded[store.index()] && readers_outside[store.index()] == 0)
        values.push_back(store);
    }
    return values;
  }

  // Where it takes less time than the best so far, and than `tried.us`.  The largest values leave
  // shared memory until the rest fits.
  void offer(Candidate tried, int first, int then, Candidate& best) const {
    NodeList in_shared = find_private(tried.stages, first, then);
    std::ranges::stable_sort(in_shared, {}, [&](NodeId id) { return hint_bytes(graph, id); });
    tried.kernel.chains.push_back({first, then, std::move(in_shared)});
    NodeList& shared = tried.kernel.chains.back().in_shared;
    std::optional<double> us = predict_us(tried);
    for (; !us && !shared.empty(); us = predict_us(tried)) shared.pop_back();
    if (!us || *us >= std::min(tried.us, best.us)) return;
    tried.us = *us;
    best = std::move(tried);
  }

  // The stage of an earlier phase that alone makes what a stage reads of its kernel; -1: none.
  int find_maker(const Candidate& at, size_t phase, int stage) const {
    std::vector<int> makers;
    for (int other : at.kernel.phases | std::views::take(phase) | std::views::join) {
      const auto is_read = [&](NodeId store) { return contains(at.stages[stage].loads, store); };
      if (std::ranges::any_of(at.stages[other].stores, is_read)) makers.push_back(other);
    }
    return makers.size() == 1 ? makers.front() : -1;
  }

  void pass_block_barrier(const Candidate& now, Candidate& best) const {
    for (size_t p = 1; p < now.kernel.phases.size(); ++p) {
      for (int then : now.kernel.phases[p]) {
        const int first = find_maker(now, p, then);
        if (first < 0 || !can_be_chained(now, first) || !can_be_chained(now, then)) continue;
        Candidate placed = now;
        placed.kernel.finish = -1;
        std::erase(placed.kernel.phases[p], then);
        for (std::vector<int>& phase : placed.kernel.phases)
          if (std::ranges::count(phase, first)) put_after(phase, first, then);
        std::erase_if(placed.kernel.phases, [](const auto& phase) { return phase.empty(); });
        offer(placed, first, then, best);
        cut_permuted(join(now.stages, first, then), placed, first, then, best);
      }
    }
  }

  // Both stages as one, in which the second loads nothing of the first.
  Stage join(const Stages& stages, int first, int then) const {
    const Stage &a = stages[first], &b = stages[then];
    const NodeList handed = find_private(stages, first, then);
    auto is_load = [&](NodeId node) {
      return contains(a.loads, node) || (contains(b.loads, node) && !contains(a.stores, node));
    };
    auto is_stored = [&](NodeId node) {
      return contains(b.stores, node) || (contains(a.stores, node) && !contains(handed, node));
    };
    const NodeList roots = unite(a.roots, b.roots);
    Cone cone;
    for (NodeId root : roots) cone = unite_cones(cone, find_cone(graph, root, is_load), roots);
    return make_stage(graph, roots, std::move(cone), is_stored);
  }

  // A stage in two: what `root` reads through a permutation of `value`, and the rest.
  std::optional<std::pair<Stage, Stage>> cut(const Stage& stage, NodeId root, NodeId value) const {
    auto is_load = [&](NodeId node) { return contains(stage.loads, node); };
    Cone read = find_cone(graph, root, [&](NodeId node) { return node == value || is_load(node); });
    // What a kernel keeps in 32 bits is rounded where it is stored, and not twice.
    const bool rounds = element_bytes(graph, value) < 4;
    const bool is_moved = std::ranges::all_of(
        read.nodes, [&](NodeId node) { return family(graph[node]) == Family::kView; });
    if (reduces(graph, read.nodes) || !contains(read.loads, value) || (rounds && !is_moved))
      return std::nullopt;
    NodeList roots = stage.roots, stores = stage.stores;
    for (NodeList* list : {&roots, &stores}) {
      std::erase(*list, root);
      list->push_back(value);
      std::ranges::sort(*list);
    }
    Cone made = find_cone(graph, value, is_load);
    for (NodeId other : roots) made = unite_cones(made, find_cone(graph, other, is_load), roots);
    return std::pair(
        make_stage(graph, roots, std::move(made),
                   [&](NodeId node) { return contains(stores, node); }),
        make_stage(graph, {root}, std::move(read), [&](NodeId node) { return node == root; }));
  }

  void cut_stages(const Candidate& now, Candidate& best) const {
    for (size_t p = 0; p < now.kernel.phases.size(); ++p) {
      for (int s : now.kernel.phases[p]) {
        if (!can_be_chained(now, s)) continue;
        Candidate placed = now;
        const int then = static_cast<int>(placed.stages.size());
        placed.stages.emplace_back();
        put_after(placed.kernel.phases[p], s, then);
        cut_permuted(now.stages[s], placed, s, then, best);
      }
    }
  }

  // Offers each cut of a stage, its halves in the places of `first` and `then`.
  void cut_permuted(const Stage& stage, const Candidate& placed, int first, int then,
                    Candidate& best) const {
    // What is element-wise throughout has tiles (stage/tiles.h).
    if (!reduces(graph, stage.roots)) return;
    for (NodeId node : stage.nodes) {
      if (graph[node].op != OpKind::k_permute) continue;
      const NodeId value = graph[node].inputs[0];
      const bool is_made = contains(stage.nodes, value) && !contains(stage.roots, value) &&
                           family(graph[value]) == Family::kPointwise;
      for (NodeId root : stage.stores) {
        if (!is_made || family(graph[root]) == Family::kReduce || root < value) continue;
        auto halves = cut(stage, root, value);
        if (!halves) continue;
        Candidate tried = placed;
        tried.stages[first] = std::move(halves->first);
        tried.stages[then] = std::move(halves->second);
        offer(std::move(tried), first, then, best);
      }
    }
  }

  void run(PlannedKernel& kernel) {
    std::vector<int> numbers = kernel.stages();  // by the candidates' own
    if (numbers.size() > kMostStages || !kernel.persistent_groups.empty()) return;
    Candidate now{kernel, {}};
    now.kernel.templates = {};  // they may become stages of other chains
    readers_outside = readers;
    for (int s : numbers) {
      now.stages.push_back(plan.stages[s]);
      for (NodeId load : plan.stages[s].loads) --readers_outside[load.index()];
    }
    renumber(now.kernel, [&](int s) {
      return static_cast<int>(std::ranges::find(numbers, s) - numbers.begin());
    });
    if (!may_gain(now)) return;
    now = improve(std::move(now));
    if (now.kernel.chains.empty()) return;
    for (size_t s = 0; s < now.stages.size(); ++s) {
      if (s == numbers.size()) {
        numbers.push_back(static_cast<int>(plan.stages.size()));
        plan.stages.emplace_back();
      }
      plan.stages[numbers[s]] = std::move(now.stages[s]);
    }
    renumber(now.kernel, [&](int s) { return numbers[s]; });
    kernel = std::move(now.kernel);
  }

  // Chain by chain, each time the one that gains most.
  Candidate improve(Candidate now) const {
    now.us = predict_us(now).value();
    while (now.stages.size() <= kMostStages) {
      Candidate best = now;
      pass_block_barrier(now, best);
      cut_stages(now, best);
      if (best.kernel.chains.size() == now.kernel.chains.size()) break;
      now = std::move(best);
    }
    return now;
  }

  bool may_gain(const Candidate& now) const {
    if (now.kernel.phases.size() > 1) return true;
    return std::ranges::any_of(now.stages, [&](const Stage& stage) {
      return reduces(graph, stage.roots) && std::ranges::any_of(stage.nodes, [&](NodeId node) {
               return graph[node].op == OpKind::k_permute;
             });
    });
  }
};

}  // namespace

StitchPlan chain_stages(const Graph& graph, StitchPlan plan, const Target& target) {
  // Blocks of the host are run by one thread, whose cache holds what they make.
  if (!target.device.is_cuda || plan.policy == "none") return plan;
  Chainer chainer{graph, plan, target};
  for (const Stage& stage : plan.stages)
    for (NodeId load : stage.loads) ++chainer.readers[load.index()];
  for (PlannedKernel& kernel : plan.kernels) chainer.run(kernel);
  return plan;
}

}  // namespace stitch
