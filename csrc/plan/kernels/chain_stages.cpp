#include "plan/kernels/chain_stages.h"

#include "plan/find_roots.h"
#include "plan/kernels/schedule_kernel.h"

namespace stitch {
namespace {

// Of a kernel in which chains are looked for: each pair costs several schedules of all stages.
constexpr size_t kMostStages = 8;

PlannedBlocks& blocks_of(PlannedKernel& kernel, int stage) {
  for (PlannedPhase& phase : kernel.phases)
    for (PlannedBlocks& blocks : phase.blocks)
      if (std::ranges::count(blocks.stages, stage)) return blocks;
  throw InternalError("a stage of a kernel that has no such stage");
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
    return estimate_kernel_us(graph, at.stages, at.kernel, list_pointers(schedules), target);
  }

  // Stages of no chain whose accesses are all offsets of indices, into memory that nothing else
  // shows.
  bool can_be_chained(const Stages& stages, const PlannedBlocks& blocks) const {
    const auto is_plain = [&](NodeId node) {
      return family(graph[node]) != Family::kWriter && !combines_segments(info(graph[node]));
    };
    const auto is_apart = [&](NodeId store) { return stored_part(graph, store) == store; };
    const auto can = [&](int s) {
      for (size_t m = 0; m < plan.in_place.size(); ++m)
        if (plan.in_place[m] && contains(stages[s].stores, graph.mutations[m].value)) return false;
      return std::ranges::all_of(stages[s].nodes, is_plain) &&
             std::ranges::all_of(stages[s].stores, is_apart);
    };
    return !blocks.is_chain() && std::ranges::all_of(blocks.stages, can);
  }

  // What some of these stages hand to others of them and nothing else reads.
  NodeList find_private(const Stages& stages, const std::vector<int>& chain) const {
    NodeList values;
    const auto is_private = [&](NodeId store) {
      const auto loads = [&](const Stage& stage) { return contains(stage.loads, store); };
      const auto count = std::ranges::count_if(stages, loads);
      const auto own = std::ranges::count_if(chain, [&](int s) { return loads(stages[s]); });
      return own > 0 && own == count && !demands.is_demanded[store.index()] &&
             readers_outside[store.index()] == 0;
    };
    for (int s : chain)
      std::ranges::copy_if(stages[s].stores, std::back_inserter(values), is_private);
    return values;
  }

  // Where it takes less time than the best so far, and than `tried.us`: what changed is the chain
  // of this stage.  The largest values leave shared memory until the rest fits.
  void offer(Candidate tried, int stage, Candidate& best) const {
    PlannedBlocks& chain = blocks_of(tried.kernel, stage);
    NodeList& shared = chain.in_shared = find_private(tried.stages, chain.stages);
    std::ranges::stable_sort(shared, {}, [&](NodeId id) { return hint_bytes(graph, id); });
    std::optional<double> us = predict_us(tried);
    for (; !us && !shared.empty(); us = predict_us(tried)) shared.pop_back();
    if (!us || *us >= std::min(tried.us, best.us)) return;
    tried.us = *us;
    best = std::move(tried);
  }

  // The stage of an earlier phase that alone makes what a stage reads of its kernel; -1: none.
  int find_maker(const Candidate& at, size_t phase, int stage) const {
    std::vector<int> makers;
    for (size_t p = 0; p < phase; ++p)
      for (int other : at.kernel.phases[p].stages()) {
        const auto is_read = [&](NodeId store) { return contains(at.stages[stage].loads, store); };
        if (std::ranges::any_of(at.stages[other].stores, is_read)) makers.push_back(other);
      }
    return makers.size() == 1 ? makers.front() : -1;
  }

  void pass_block_barrier(const Candidate& now, Candidate& best) const {
    for (size_t p = 1; p < now.kernel.phases.size(); ++p) {
      for (const PlannedBlocks& blocks : now.kernel.phases[p].blocks) {
        const int then = blocks.stages[0], first = find_maker(now, p, then);
        if (first < 0 || !can_be_chained(now.stages, blocks)) continue;
        Candidate placed = now;
        PlannedBlocks& chain = blocks_of(placed.kernel, first);
        if (!can_be_chained(now.stages, chain)) continue;
        chain.stages.push_back(then);
        std::erase_if(placed.kernel.phases[p].blocks,
                      [&](const PlannedBlocks& own) { return own.stages == blocks.stages; });
        for (PlannedPhase& phase : placed.kernel.phases)
          if (phase.join == Join::kLastBlock) phase.join = Join::kGrid;
        std::erase_if(placed.kernel.phases,
                      [](const PlannedPhase& phase) { return phase.blocks.empty(); });
        offer(placed, first, best);
        cut_permuted(join(now.stages, first, then), placed, first, then, best);
      }
    }
  }

  // Both stages as one, in which the second loads nothing of the first.
  Stage join(const Stages& stages, int first, int then) const {
    const Stage &a = stages[first], &b = stages[then];
    const NodeList handed = find_private(stages, {first, then});
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
    for (const PlannedBlocks& blocks : now.kernel.blocks()) {
      const int s = blocks.stages[0];
      if (!can_be_chained(now.stages, blocks)) continue;
      Candidate placed = now;
      const int then = static_cast<int>(placed.stages.size());
      placed.stages.emplace_back();
      blocks_of(placed.kernel, s).stages.push_back(then);
      cut_permuted(now.stages[s], placed, s, then, best);
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
        offer(std::move(tried), first, best);
      }
    }
  }

  void run(PlannedKernel& kernel) {
    std::vector<int> numbers = kernel.stages();  // by the candidates' own
    if (numbers.size() > kMostStages || !kernel.kept.empty()) return;
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
    if (!now.kernel.has_chains()) return;
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
      if (best.us == now.us) break;
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
