#include "plan/kernels/chain_stages.h"

#include "plan/find_roots.h"
#include "plan/kernels/choose_template.h"

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

template <class Number>
void renumber(PlannedKernel& kernel, const Number& number) {
  for (PlannedPhase& phase : kernel.phases)
    for (PlannedBlocks& blocks : phase.blocks)
      for (int& s : blocks.stages) s = static_cast<int>(number(s));
}

struct Chainer {
  const Graph& graph;
  StitchPlan& plan;
  Target target;
  TemplateMemo& memo;
  Demands demands = find_demands(graph);
  std::vector<int> readers = std::vector<int>(graph.size(), 0);  // stages that load it, by node
  std::vector<int> readers_outside = {};                         // of the kernel

  // What a kernel would be, and its own stages, by which it names them.
  struct Candidate {
    PlannedKernel kernel;
    Stages stages = {};
    double us = 0;
  };

  std::optional<double> predict_us(const Candidate& at) const {
    return KernelChooser{graph, at.stages, at.kernel, target, memo}.predict_us({});
  }

  // Are all accesses offsets of indices, into memory that nothing else shows?
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
    return std::ranges::all_of(blocks.stages, can);
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

  // The blocks of an earlier phase that alone make what these read of their kernel; the stages that
  // make it.  None where several do.
  std::pair<const PlannedBlocks*, std::vector<int>> find_makers(
      const Candidate& at, size_t phase, const PlannedBlocks& reading) const {
    std::pair<const PlannedBlocks*, std::vector<int>> found;
    const auto is_read = [&](NodeId store) {
      return std::ranges::any_of(reading.stages,
                                 [&](int s) { return contains(at.stages[s].loads, store); });
    };
    for (size_t p = 0; p < phase; ++p)
      for (const PlannedBlocks& blocks : at.kernel.phases[p].blocks)
        for (int s : blocks.stages) {
          if (std::ranges::none_of(at.stages[s].stores, is_read)) continue;
          if (found.first && found.first != &blocks) return {};
          found.first = &blocks;
          found.second.push_back(s);
        }
    return found;
  }

  void pass_block_barrier(const Candidate& now, Candidate& best) const {
    for (size_t p = 1; p < now.kernel.phases.size(); ++p) {
      for (const PlannedBlocks& then : now.kernel.phases[p].blocks) {
        const auto [first, makers] = find_makers(now, p, then);
        if (!first || !can_be_chained(now.stages, *first) || !can_be_chained(now.stages, then))
          continue;
        Candidate placed = now;
        std::vector<PlannedPhase>& phases = placed.kernel.phases;
        std::vector<int>& chain = blocks_of(placed.kernel, makers[0]).stages;
        chain.insert(chain.end(), then.stages.begin(), then.stages.end());
        phases[p].blocks.erase(phases[p].blocks.begin() +
                               (&then - now.kernel.phases[p].blocks.data()));
        if (phases[p].blocks.empty()) phases.erase(phases.begin() + static_cast<int>(p));
        offer(placed, makers[0], best);
        if (makers.size() == 1 && !then.is_chain())
          cut_permuted(join(now.stages, makers[0], then.stages[0]), placed, makers[0],
                       then.stages[0], best);
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
      if (!can_be_chained(now.stages, blocks)) continue;
      for (int s : blocks.stages) {
        Candidate placed = now;
        const int then = static_cast<int>(placed.stages.size());
        placed.stages.emplace_back();
        std::vector<int>& chain = blocks_of(placed.kernel, s).stages;
        chain.insert(std::ranges::find(chain, s) + 1, then);
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
        offer(std::move(tried), first, best);
      }
    }
  }

  // False where no chains gain, or a launch stays between two phases.
  bool run(PlannedKernel& kernel) {
    std::vector<int> numbers = kernel.stages();  // by the candidates' own
    if (numbers.size() > kMostStages || !kernel.kept.empty()) return false;
    Candidate now{kernel, {}, kernel.us};
    renumber(now.kernel, [&](int s) { return std::ranges::find(numbers, s) - numbers.begin(); });
    now.kernel.templates = {};  // they may become stages of other chains
    readers_outside = readers;
    for (int s : numbers) {
      now.stages.push_back(plan.stages[s]);
      for (NodeId load : plan.stages[s].loads) --readers_outside[load.index()];
    }
    now = improve(std::move(now));
    const auto launches = std::ranges::count(now.kernel.phases, Join::kLaunch, &PlannedPhase::join);
    if (!now.kernel.has_chains() || launches > 1) return false;
    for (size_t s = 0; s < now.stages.size(); ++s) {
      if (s == numbers.size()) {
        numbers.push_back(static_cast<int>(plan.stages.size()));
        plan.stages.emplace_back();
      }
      plan.stages[numbers[s]] = std::move(now.stages[s]);
    }
    renumber(now.kernel, [&](int s) { return numbers[s]; });
    kernel = std::move(now.kernel);
    kernel.us = now.us;
    return true;
  }

  // Chain by chain, each time the one that gains most.
  Candidate improve(Candidate now) const {
    while (now.stages.size() <= kMostStages) {
      Candidate best = now;
      pass_block_barrier(now, best);
      cut_stages(now, best);
      if (best.us == now.us) break;
      now = std::move(best);
    }
    return now;
  }
};

}  // namespace

StitchPlan chain_stages(const Graph& graph, StitchPlan plan, const Target& target) {
  // Blocks of the host are run by one thread, whose cache holds what they make.
  if (!target.device.is_cuda || !plan.rule.packs) return plan;
  TemplateMemo memo;
  Chainer chainer{graph, plan, target, memo};
  for (const Stage& stage : plan.stages)
    for (NodeId load : stage.loads) ++chainer.readers[load.index()];
  // Kernels that follow each other and have no barriers are one where chains leave no launch.
  std::vector<PlannedKernel> kernels;
  std::vector<PlanStep> steps;
  for (const PlanStep& step : plan.steps) {
    const bool follows = !steps.empty() && steps.back().kernel >= 0 && step.kernel >= 0;
    if (follows && !plan.rule.barriers) {
      PlannedKernel both = kernels.back();
      const PlannedKernel& next = plan.kernels[step.kernel];
      std::ranges::copy(next.phases, std::back_inserter(both.phases));
      both.us += next.us;
      if (chainer.run(both)) {
        kernels.back() = std::move(both);
        continue;
      }
    }
    steps.push_back(step);
    if (step.kernel < 0) continue;
    steps.back().kernel = static_cast<int>(kernels.size());
    kernels.push_back(plan.kernels[step.kernel]);
    chainer.run(kernels.back());
  }
  plan.kernels = std::move(kernels);
  plan.steps = std::move(steps);
  return plan;
}

}  // namespace stitch
