#include "stage/place_values.h"

#include "stage/build_loops.h"
#include "stage/persistent_values.h"

namespace stitch {
namespace {

// Arrays of the host live on the worker's stack and should stay in its L2 cache.
constexpr int64_t kHostTotalBytes = 512 << 10;

std::vector<LeafUse> list_leaves(const StageSchedule& schedule) {
  std::vector<LeafUse> leaves;
  auto visit = [&](auto& self, int block) -> void {
    for (const LoopBlock::Item& item : schedule.blocks[block].items) {
      if (item.block >= 0) self(self, item.block);
      if (!item.roots.empty()) leaves.push_back({.block = block, .roots = item.roots});
    }
  };
  visit(visit, 0);
  return leaves;
}

// What no vector loads: it lies at quotients and remainders of the lanes' index.
std::set<NodeId> find_loaded_apart(const Accesses& accesses) {
  std::set<NodeId> found;
  for (const Access& access : accesses.list) {
    const bool is_apart = std::ranges::any_of(access.offset.terms, [&](const auto& term) {
      const IndexVar::Kind kind = accesses.vars[term.first].kind;
      return kind == IndexVar::Kind::kQuotient || kind == IndexVar::Kind::kRemainder;
    });
    if (is_apart && !access.is_store) found.insert(access.value);
  }
  return found;
}

// The axes that a value depends on.
std::set<int> find_value_axes(const StageSchedule& schedule, NodeId value) {
  std::set<int> atoms, axes;
  for (const RootSpace& space : schedule.spaces.roots)
    for (const Evaluation& evaluation : evaluations_of(schedule.accesses, space.root, value))
      for (VarId var : schedule.accesses.leaves[evaluation.index])
        atoms.insert(schedule.accesses.vars[var].payload);
  for (int a = 0; a < std::ssize(schedule.axes); ++a)
    if (std::ranges::any_of(schedule.axes[a].axis.atoms,
                            [&](AtomId atom) { return atoms.contains(atom.index()); }))
      axes.insert(a);
  return axes;
}

struct Placer {
  const Graph& graph;
  StageSchedule& schedule;
  const std::vector<LeafUse> leaves = list_leaves(schedule);
  const std::set<NodeId> loaded_apart = find_loaded_apart(schedule.accesses);
  std::vector<std::pair<NodeId, int>> places = {};    // values and leaves that evaluate them
  std::vector<std::pair<NodeId, NodeId>> users = {};  // values and what is evaluated of them
  std::map<NodeId, bool> persistent_alone = {};

  void find_places() {
    for (int leaf = 0; leaf < std::ssize(leaves); ++leaf) {
      for (NodeId root : leaves[leaf].roots) {
        places.push_back({root, leaf});
        for (const Evaluation& evaluation : schedule.accesses.evaluated.at(root))
          places.push_back({evaluation.value, leaf});
      }
    }
    std::ranges::sort(places);
    places.erase(std::unique(places.begin(), places.end()), places.end());
    for (const auto& [value, leaf] : places)
      if (!schedule.is_load[value.index()])
        for (NodeId input : graph[value].inputs) users.push_back({input, value});
    std::ranges::sort(users);
  }

  bool is_evaluated_in(int leaf, NodeId value) const {
    return contains(places, std::pair(value, leaf));
  }

  std::vector<Evaluation> evaluations_in(const LeafUse& leaf, NodeId value) const {
    std::vector<Evaluation> found;
    for (NodeId root : leaf.roots)
      for (const Evaluation& evaluation : evaluations_of(schedule.accesses, root, value))
        add_once(found, evaluation);
    return found;
  }

  // Does an array that `made` fills at index `at` hold what `leaf` reads at index `read`?
  bool holds(const LeafUse& made, const Index& at, const LeafUse& leaf, const Index& read) const {
    auto fixed = find_fixed_axes(schedule, schedule.accesses.vars, at, read);
    if (!fixed || fixed->empty()) return fixed.has_value();
    // The array spans the loops inside the block both leaves share.
    const std::vector<int> shared =
        loops_around(schedule, common_block(schedule, {made.block, leaf.block}));
    return std::ranges::all_of(*fixed, [&](const auto& entry) {
      const MappedAxis& axis = schedule.axes[entry.first];
      return axis.threads() == 1 && !axis.in_grid() && std::ranges::none_of(shared, [&](int loop) {
               return schedule.loops[loop].axis == entry.first;
             });
    });
  }

  // Does a leaf, -1: any of them, read the value for something that `first` does not evaluate?
  bool reads_further(int leaf, int first, NodeId value) const {
    const auto used = std::ranges::equal_range(users, value, {}, &std::pair<NodeId, NodeId>::first);
    return std::ranges::any_of(std::views::values(used), [&](NodeId user) {
      return (leaf < 0 || is_evaluated_in(leaf, user)) && !is_evaluated_in(first, user);
    });
  }

  // The index a value is made at, if it is one of the last that two nests have in common, what
  // follows being needed by the later one alone, and if it is made there whatever the sizes are.
  std::optional<Index> frontier_index(NodeId value) const {
    int first = -1;
    const Index* made = nullptr;
    bool is_last = false;
    std::vector<int> blocks;
    const auto own = std::ranges::equal_range(places, value, {}, &std::pair<NodeId, int>::first);
    for (int leaf : std::views::values(own)) {
      const std::vector<Evaluation> evaluations = evaluations_in(leaves[leaf], value);
      if (evaluations.empty()) continue;
      blocks.push_back(leaves[leaf].block);
      if (first < 0) {
        if (evaluations.size() > 1 || evaluations.front().is_guarded) return std::nullopt;
        first = leaf;
        if (!reads_further(-1, first, value)) return std::nullopt;
        made = &schedule.accesses.indices[evaluations.front().index];
        continue;
      }
      for (const Evaluation& evaluation : evaluations)
        if (!holds(leaves[first], *made, leaves[leaf], schedule.accesses.indices[evaluation.index]))
          return std::nullopt;
      is_last = is_last || reads_further(leaf, first, value);
    }
    if (!is_last) return std::nullopt;
    const std::vector<int> loops =
        loops_around(schedule, blocks.front(), common_block(schedule, blocks));
    const std::set<int> axes = find_value_axes(schedule, value);
    if (may_be_skipped(graph, schedule, loops, axes)) return std::nullopt;
    return *made;
  }

  bool is_costly(NodeId value, int depth = 0) const {
    if (depth > 64) return false;
    if (schedule.is_load[value.index()]) return depth > 0 && loaded_apart.count(value) > 0;
    const Node& node = graph[value];
    if (family(node) == Family::kReduce) return false;
    if (info(node).cost >= CostClass::kSpecial) return true;
    return std::ranges::any_of(node.inputs,
                               [&](NodeId input) { return is_costly(input, depth + 1); });
  }

  // Made of values that are in registers anyway: made again, it needs none of its own.
  bool needs_persistent_alone(NodeId value) {
    if (schedule.persistent.empty()) return false;
    if (schedule.is_load[value.index()]) return find_persistent(schedule, value) != nullptr;
    const Node& node = graph[value];
    if (family(node) == Family::kReduce) return true;
    const auto [known, is_new] = persistent_alone.try_emplace(value);
    if (is_new)
      known->second = std::ranges::all_of(
          node.inputs, [&](NodeId input) { return needs_persistent_alone(input); });
    return known->second;
  }

  // Bytes of arrays alive after each leaf; -1 when one has no bound.
  int64_t peak_bytes(const std::vector<LeafUse>& uses, NodeId& largest) const {
    std::vector<int64_t> alive(uses.size(), 0);
    int64_t worst_size = 0;
    for (const auto& [value, index] : schedule.kept_on_chip) {
      int first = -1, last = -1;
      std::vector<int> blocks;
      for (int i = 0; i < std::ssize(uses); ++i) {
        if (contains(uses[i].made, value)) first = i;
        if (contains(uses[i].reused, value)) last = i;
        if (first == i || last == i) blocks.push_back(uses[i].block);
      }
      if (first < 0 || last < 0) continue;
      const std::vector<int> loops =
          array_loops(schedule, value, common_block(schedule, blocks), uses[first].block);
      const int64_t elements = array_length(schedule, loops).value_or(-1);
      const int64_t bytes = elements * std::max(4, element_bytes(graph, value));
      if (elements < 0 || bytes > worst_size) largest = value;
      if (elements < 0) return -1;
      worst_size = std::max(worst_size, bytes);
      for (int i = first; i < last; ++i) alive[i] += bytes;
    }
    return alive.empty() ? 0 : *std::ranges::max_element(alive);
  }

  void run() {
    if (leaves.size() < 2) return;
    find_places();
    const bool on_host = !schedule.device->is_cuda;
    for (auto first = places.begin(), end = first; first != places.end(); first = end) {
      const NodeId value = first->first;
      end = std::find_if(first, places.end(), [&](const auto& at) { return at.first != value; });
      if (end - first < 2) continue;
      if (family(graph[value]) == Family::kSource || family(graph[value]) == Family::kReduce)
        continue;
      if (on_host && !is_costly(value)) continue;  // the cache serves the second read
      if (needs_persistent_alone(value)) continue;
      if (auto index = frontier_index(value)) schedule.kept_on_chip.emplace(value, *index);
    }
    const int64_t budget = on_host ? kHostTotalBytes : 4 * count_free_registers(schedule);
    while (!schedule.kept_on_chip.empty()) {
      const std::vector<LeafUse> uses = find_leaf_uses(graph, schedule);
      NodeId largest = schedule.kept_on_chip.rbegin()->first;
      const int64_t bytes = peak_bytes(uses, largest);
      if (bytes < 0 || bytes > budget) {
        schedule.kept_on_chip.erase(largest);
        continue;
      }
      schedule.kept_registers = static_cast<int>(bytes / 4);
      std::erase_if(schedule.kept_on_chip, [&](const auto& kept) {
        const auto reuses = [&](const LeafUse& leaf) { return contains(leaf.reused, kept.first); };
        return std::ranges::none_of(uses, reuses);
      });
      return;
    }
  }
};

}  // namespace

std::optional<int64_t> trip_count(const StageSchedule& schedule, int loop) {
  const LoopSpec& spec = schedule.loops[loop];
  const MappedAxis& axis = schedule.axes[spec.axis];
  if (spec.level == Level::kVector) return axis.vector();
  const std::optional<int64_t> trips = axis.static_trips();
  if (!trips) return std::nullopt;
  // An array over parts of an axis spans all of them; the loop over them then counts once.
  const bool walks_elements = spec.level == Level::kSerial || spec.level == Level::kAlong;
  return walks_elements ? *trips : 1;
}

bool may_be_skipped(const Graph& graph, const StageSchedule& schedule,
                    const std::vector<int>& loops, const std::set<int>& axes) {
  return std::ranges::any_of(loops, [&](int loop) {
    const int axis = schedule.loops[loop].axis;
    return !axes.contains(axis) && may_be_empty(schedule.axes[axis].axis.extent, graph.symbols);
  });
}

std::optional<int64_t> array_length(const StageSchedule& schedule, const std::vector<int>& loops) {
  int64_t length = 1;
  for (int loop : loops) {
    const std::optional<int64_t> trips = trip_count(schedule, loop);
    if (!trips) return std::nullopt;
    length *= *trips;
  }
  return length;
}

int array_loop(const StageSchedule& schedule, int loop) {
  const int axis = schedule.loops[loop].axis;
  while (schedule.axes[axis].has(Level::kStrip) && schedule.loops[loop].level != Level::kSerial)
    ++loop;  // the last of the axis
  return loop;
}

int common_block(const StageSchedule& schedule, const std::vector<int>& blocks) {
  std::vector<int> common = block_path(schedule, blocks.front());
  for (int block : blocks) {
    const std::vector<int> path = block_path(schedule, block);
    common.erase(std::ranges::mismatch(common, path).in1, common.end());
  }
  return common.back();
}

std::vector<int> array_loops(const StageSchedule& schedule, NodeId value, int declared_in,
                             int made_in) {
  const std::set<int> axes = find_value_axes(schedule, value);
  std::vector<int> blocks = blocks_below(block_path(schedule, made_in), declared_in);
  std::erase_if(blocks, [&](int block) {
    return !axes.contains(schedule.loops[schedule.blocks[block].loop].axis);
  });
  return array_loops(schedule, blocks);
}

std::vector<LeafUse> find_leaf_uses(const Graph& graph, const StageSchedule& schedule) {
  std::vector<LeafUse> leaves = list_leaves(schedule);
  std::set<NodeId> made, filled;
  std::vector<const LeafUse*> visited_by(graph.nodes.size());  // the last
  for (LeafUse& leaf : leaves) {
    auto visit = [&](auto& self, NodeId value) -> void {
      if (std::exchange(visited_by[value.index()], &leaf) == &leaf) return;
      if (made.contains(value)) return leaf.reused.push_back(value);
      if (schedule.kept_on_chip.contains(value)) leaf.made.push_back(value);
      const bool is_load = schedule.is_load[value.index()];
      const PersistentValue* persistent = is_load ? find_persistent(schedule, value) : nullptr;
      if (persistent && (persistent->is_filled || !filled.insert(value).second)) {
        if (persistent->home.in_memory == 0) return;
        leaf.parts.push_back(value);
      }
      const bool is_tiled = std::ranges::count(schedule.tiles, value, &TiledLoad::value) > 0;
      if (is_tiled && !filled.insert(value).second) return;
      if (!is_load && family(graph[value]) == Family::kReduce) return;  // one of this kernel's
      leaf.evaluated.push_back(value);
      if (is_load) return leaf.loads.push_back(value);
      for (NodeId input : graph[value].inputs) self(self, input);
    };
    for (NodeId root : leaf.roots)
      for (NodeId input : graph[root].inputs) visit(visit, input);
    made.insert(leaf.made.begin(), leaf.made.end());
    for (NodeList* list : {&leaf.loads, &leaf.parts, &leaf.evaluated, &leaf.reused, &leaf.made})
      std::ranges::sort(*list);
  }
  return leaves;
}

void place_values(const Graph& graph, StageSchedule& schedule) { Placer{graph, schedule}.run(); }

}  // namespace stitch
