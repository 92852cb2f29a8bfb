#include "schedule/schedule_stage.h"

#include <algorithm>

#include "schedule/build_loops.h"
#include "schedule/map_axes.h"
#include "schedule/place_values.h"

namespace stitch {
namespace {

constexpr int kLaneBits = 5;

// Thread-index bits a root is reduced over.
int reduced_thread_bits(const StageSchedule& schedule, const RootSpace& space) {
  int bits = 0;
  for (const MappedAxis& mapped : schedule.axes) {
    if (role_of(space, mapped.axis) == Role::kReduced) {
      bits |= (mapped.threads - 1) << mapped.thread_shift;
    }
  }
  return bits;
}

void name_schemes(const Graph& graph, const PlannedStage& stage, StageSchedule& schedule) {
  for (const RootSpace& space : schedule.spaces.roots) {
    Scheme scheme = Scheme::kStore;
    if (family(graph[space.root]) == Family::kReduce) {
      const int bits = reduced_thread_bits(schedule, space);
      scheme = bits >> kLaneBits ? Scheme::kRegional : bits ? Scheme::kWarp : Scheme::kLocal;
      const bool is_arg = info(graph[space.root]).type_rule == TypeRule::kInteger;
      const int partial_bytes = is_arg ? 16 : std::max(4, info(graph[space.root].type.dtype).bytes);
      if (scheme == Scheme::kRegional) {
        schedule.shared_bytes = std::max(schedule.shared_bytes, schedule.threads * partial_bytes);
      }
      const bool consumed =
          std::any_of(schedule.spaces.depends.begin(), schedule.spaces.depends.end(),
                      [&](const auto& reader) { return reader.second.count(space.root) > 0; });
      const bool stored = std::count(stage.stores.begin(), stage.stores.end(), space.root) > 0;
      if (!consumed && stored && scheme == Scheme::kLocal) scheme = Scheme::kStore;
    }
    schedule.schemes[space.root] = scheme;
  }
  for (const auto& [value, index] : schedule.kept_on_chip) schedule.schemes[value] = Scheme::kLocal;
}

}  // namespace

std::vector<bool> find_loads(const Graph& graph, const PlannedStage& stage) {
  std::vector<bool> is_load(graph.size(), false);
  for (NodeId load : stage.loads) is_load[load.index()] = true;
  return is_load;
}

namespace {

// What a stage has of the spaces and accesses that it shares with others.
void keep_own_roots(const PlannedStage& stage, StageSchedule& schedule) {
  const std::set<NodeId> own(stage.roots.begin(), stage.roots.end());
  auto is_other = [&](NodeId root) { return own.count(root) == 0; };
  std::erase_if(schedule.spaces.roots, [&](const auto& space) { return is_other(space.root); });
  std::erase_if(schedule.spaces.depends, [&](const auto& entry) { return is_other(entry.first); });
  std::erase_if(schedule.accesses.list, [&](const auto& access) { return is_other(access.root); });
  std::erase_if(schedule.accesses.evaluated,
                [&](const auto& entry) { return is_other(entry.first); });
}

}  // namespace

MappedStages map_stages(const Graph& graph, const std::vector<const PlannedStage*>& stages,
                        const DeviceSpec& device, int worker_threads, SymbolTable& symbols,
                        const BlockBounds& bounds) {
  std::vector<std::vector<bool>> loads_of_stages;
  for (const PlannedStage* stage : stages) loads_of_stages.push_back(find_loads(graph, *stage));
  std::vector<NodeId> roots;
  LoadsOfRoots loads;
  std::set<NodeId> stores;
  for (size_t s = 0; s < stages.size(); ++s) {
    roots.insert(roots.end(), stages[s]->roots.begin(), stages[s]->roots.end());
    loads.resize(roots.size(), &loads_of_stages[s]);
    stores.insert(stages[s]->stores.begin(), stages[s]->stores.end());
  }
  StageSchedule shared;
  shared.device = &device;
  shared.bounds = bounds;
  SpacesOrNot found = find_spaces(graph, roots, loads);
  if (!found.verdict) return {{}, found.verdict};
  shared.spaces = std::move(found.spaces);
  shared.accesses = find_accesses(graph, shared.spaces, loads, stores);
  for (const Axis& axis : find_axes(shared.spaces, shared.accesses)) {
    shared.axes.push_back({.axis = axis, .tile = axis.extent});
  }
  if (device.is_cuda) {
    map_axes_cuda(graph, shared);
  } else {
    map_axes_host(graph, shared, worker_threads);
  }
  count_blocks(shared, symbols);
  MappedStages mapped{{}, found.verdict};
  if (stages.size() == 1) {
    mapped.schedules.push_back(std::move(shared));
    return mapped;
  }
  mapped.schedules.assign(stages.size(), shared);
  for (size_t s = 0; s < stages.size(); ++s) keep_own_roots(*stages[s], mapped.schedules[s]);
  return mapped;
}

void finish_stage(const Graph& graph, const PlannedStage& stage, StageSchedule& schedule) {
  build_loops(graph, schedule);
  place_values(graph, find_loads(graph, stage), schedule);
  name_schemes(graph, stage, schedule);
}

ScheduleOrNot try_schedule(const Graph& graph, const PlannedStage& stage, const DeviceSpec& device,
                           int worker_threads, SymbolTable& symbols, const BlockBounds& bounds) {
  MappedStages mapped = map_stages(graph, {&stage}, device, worker_threads, symbols, bounds);
  ScheduleOrNot result{{}, mapped.verdict};
  if (!result.verdict) return result;
  result.schedule = std::move(mapped.schedules.front());
  finish_stage(graph, stage, result.schedule);
  return result;
}

StageSchedule schedule_stage(const Graph& graph, const PlannedStage& stage,
                             const DeviceSpec& device, int worker_threads, SymbolTable& symbols,
                             const BlockBounds& bounds) {
  ScheduleOrNot found = try_schedule(graph, stage, device, worker_threads, symbols, bounds);
  STITCH_CHECK(found.verdict.ok, "a planned stage cannot be scheduled: " << found.verdict.why);
  return std::move(found.schedule);
}

int64_t accessed_elements(const Graph& graph, const StageSchedule& schedule, NodeId value) {
  double most = 0;
  const TensorType& type = graph[value].type;
  for (const Access& access : schedule.accesses.list) {
    if (access.value != value) continue;
    std::set<int> atoms;
    double elements = 1;
    bool by_data = false, by_order = false;
    std::vector<VarId> leaves;
    schedule.accesses.vars.collect(access.offset, leaves);
    for (VarId var : leaves) {
      const IndexVar& leaf = schedule.accesses.vars[var];
      by_data |= leaf.kind == IndexVar::Kind::kValue;
      by_order |= by_data && access.in_segment;
      if (leaf.kind == IndexVar::Kind::kAtom && atoms.insert(leaf.payload).second) {
        elements *= static_cast<double>(graph.symbols.hint(leaf.extent));
      }
    }
    if (by_order) {  // each position of the segments, once
      elements = static_cast<double>(graph.symbols.hint(element_count(type.shape)));
    } else if (by_data) {  // one row per index read: the iterations of the root that reads
      elements = 1;
      for (const AtomList& dim : space_of(schedule, access.root).dims) {
        elements *= static_cast<double>(graph.symbols.hint(schedule.spaces.atoms.product(dim)));
      }
    }
    most = std::max(most, elements);
  }
  const double all = static_cast<double>(graph.symbols.hint(element_count(type.shape)));
  return static_cast<int64_t>(std::min(most, all));
}

int64_t planned_bytes(const Graph& graph, const PlannedStage& stage,
                      const StageSchedule& schedule) {
  const std::vector<bool> is_load = find_loads(graph, stage);
  int64_t bytes = 0;
  for (const LeafUse& leaf : find_leaf_uses(graph, is_load, schedule)) {
    for (NodeId load : leaf.loads) {
      bytes += accessed_elements(graph, schedule, load) * info(graph[load].type.dtype).bytes;
    }
  }
  for (NodeId store : stage.stores) {
    const TensorType& type = graph[stored_part(graph, store)].type;
    bytes += graph.symbols.hint(element_count(type.shape)) * info(type.dtype).bytes;
  }
  return bytes;
}

}  // namespace stitch
