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

ScheduleOrNot try_schedule(const Graph& graph, const PlannedStage& stage, const DeviceSpec& device,
                           int worker_threads, SymbolTable& symbols, const BlockBounds& bounds) {
  ScheduleOrNot result;
  StageSchedule& schedule = result.schedule;
  schedule.device = &device;
  schedule.bounds = bounds;
  const std::vector<bool> is_load = find_loads(graph, stage);
  SpacesOrNot found = find_spaces(graph, stage.roots, is_load);
  result.verdict = found.verdict;
  if (!result.verdict) return result;
  schedule.spaces = std::move(found.spaces);
  schedule.accesses =
      find_accesses(graph, schedule.spaces, is_load, {stage.stores.begin(), stage.stores.end()});
  for (const Axis& axis : find_axes(schedule.spaces, schedule.accesses)) {
    schedule.axes.push_back({.axis = axis, .tile = axis.extent});
  }
  if (device.is_cuda) {
    map_axes_cuda(graph, schedule);
  } else {
    map_axes_host(graph, schedule, worker_threads);
  }
  count_blocks(schedule, symbols);
  build_loops(graph, schedule);
  place_values(graph, is_load, schedule);
  name_schemes(graph, stage, schedule);
  return result;
}

StageSchedule schedule_stage(const Graph& graph, const PlannedStage& stage,
                             const DeviceSpec& device, int worker_threads, SymbolTable& symbols,
                             const BlockBounds& bounds) {
  ScheduleOrNot found = try_schedule(graph, stage, device, worker_threads, symbols, bounds);
  STITCH_CHECK(found.verdict.ok, "a planned stage cannot be scheduled: " << found.verdict.why);
  return std::move(found.schedule);
}

std::vector<StageSchedule> schedule_kernel(const Graph& graph,
                                           const std::vector<const PlannedStage*>& stages,
                                           const DeviceSpec& device, int worker_threads,
                                           SymbolTable& symbols, int most_threads) {
  BlockBounds bounds{1, most_threads};
  std::vector<StageSchedule> schedules;
  for (const PlannedStage* stage : stages) {
    schedules.push_back(schedule_stage(graph, *stage, device, worker_threads, symbols, bounds));
  }
  for (const StageSchedule& own : schedules) bounds.least = std::max(bounds.least, own.threads);
  for (size_t s = 0; s < stages.size(); ++s) {
    if (schedules[s].threads == bounds.least) continue;
    schedules[s] = schedule_stage(graph, *stages[s], device, worker_threads, symbols, bounds);
  }
  return schedules;
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
