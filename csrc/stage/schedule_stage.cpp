#include "stage/schedule_stage.h"

#include "base/words.h"
#include "stage/build_loops.h"
#include "stage/persistent_values.h"
#include "stage/place_values.h"
#include "stage/reduction_arrays.h"
#include "stage/tiles.h"

namespace stitch {

static Verdict check_empty_axes(const Graph& graph, const StageSchedule& schedule,
                                const std::set<NodeId>& stores) {
  for (const MappedAxis& mapped : schedule.axes) {
    if (!may_be_empty(mapped.axis.extent, graph.symbols)) continue;
    bool is_kept = false, is_lacked = false;
    for (const RootSpace& space : schedule.spaces.roots) {
      const Role role = role_of(space, mapped.axis);
      is_kept |= role == Role::kKept;
      is_lacked |= role == Role::kAbsent && stores.count(space.root) > 0;
    }
    if (is_kept && is_lacked) return Verdict::no(kRuleEmptyAxis);
  }
  return Verdict::yes();
}

static bool reduces_again(const StageSchedule& schedule) {
  return std::ranges::any_of(schedule.spaces.roots, [&](const RootSpace& space) {
    return !space.reduced_atoms.empty() &&
           std::ranges::any_of(schedule.axes, [&](const MappedAxis& mapped) {
             return static_blocks(mapped) != 1 && role_of(space, mapped.axis) == Role::kAbsent;
           });
  });
}

int exchanged_bytes(const Graph& graph, const StageSchedule& schedule, const RootSpace& space) {
  if (thread_bits(schedule, space, Role::kReduced) >> kLaneBits == 0) return 0;
  const bool is_arg = info(graph[space.root]).type_rule == TypeRule::kInteger;
  const int bytes = is_arg ? 16 : std::max(4, element_bytes(graph, space.root));
  return schedule.threads * bytes * exchange_slots(schedule, space);
}

static void name_schemes(const Graph& graph, const Stage& stage, StageSchedule& schedule) {
  const int before = schedule.bounds.persistent_shared_bytes;
  schedule.shared_bytes = before;
  for (const RootSpace& space : schedule.spaces.roots) {
    Scheme& scheme = schedule.schemes[space.root] = Scheme::kStore;
    if (family(graph[space.root]) != Family::kReduce) continue;
    const unsigned bits = thread_bits(schedule, space, Role::kReduced);
    scheme = bits >> kLaneBits ? Scheme::kRegional : bits ? Scheme::kWarp : Scheme::kLocal;
    schedule.shared_bytes =
        std::max(schedule.shared_bytes, before + exchanged_bytes(graph, schedule, space));
    const bool consumed = std::ranges::any_of(schedule.spaces.depends, [&](const auto& reader) {
      return reader.second.count(space.root) > 0;
    });
    const bool stored = std::ranges::count(stage.stores, space.root) > 0;
    if (!consumed && stored && scheme == Scheme::kLocal) scheme = Scheme::kStore;
  }
  for (const auto& [value, index] : schedule.kept_on_chip) schedule.schemes[value] = Scheme::kLocal;
}

ScheduleOrNot describe_stages(const Graph& graph, const std::vector<const Stage*>& stages,
                              const DeviceSpec& device) {
  const auto loads_of_stages =
      map_to_vector(stages, [&](const Stage* stage) { return mark_nodes(graph, stage->loads); });
  NodeList roots;
  LoadsOfRoots loads;
  std::set<NodeId> stores;
  for (size_t s = 0; s < stages.size(); ++s) {
    roots.insert(roots.end(), stages[s]->roots.begin(), stages[s]->roots.end());
    loads.resize(roots.size(), &loads_of_stages[s]);
    stores.insert(stages[s]->stores.begin(), stages[s]->stores.end());
  }
  ScheduleOrNot described;
  StageSchedule& schedule = described.schedule;
  schedule.device = &device;
  SpacesOrNot found = find_spaces(graph, roots, loads);
  described.verdict = found.verdict;
  if (!found.verdict) return described;
  schedule.spaces = std::move(found.spaces);
  schedule.accesses = find_accesses(graph, schedule.spaces, loads, stores);
  for (const Axis& axis : find_axes(schedule.spaces, schedule.accesses))
    schedule.axes.push_back({.axis = axis});
  described.verdict = check_empty_axes(graph, schedule, stores);
  return described;
}

void map_stages(const Graph& graph, int workers, const BlockBounds& bounds,
                StageSchedule& schedule) {
  schedule.bounds = bounds;
  if (schedule.device->is_cuda)
    map_axes_cuda(graph, schedule);
  else
    map_axes_host(graph, schedule, workers);
}

StageSchedule take_stage(const Stage& stage, const StageSchedule& shared) {
  const std::set<NodeId> roots(stage.roots.begin(), stage.roots.end());
  StageSchedule own = shared;
  const auto is_of_other = [&](const auto& entry) { return !roots.contains(entry.root); };
  const auto is_by_other = [&](const auto& entry) { return !roots.contains(entry.first); };
  std::erase_if(own.spaces.roots, is_of_other);
  std::erase_if(own.spaces.depends, is_by_other);
  std::erase_if(own.accesses.list, is_of_other);
  std::erase_if(own.accesses.evaluated, is_by_other);
  std::erase_if(own.tiles, [&](const TiledLoad& tile) {
    return std::ranges::none_of(own.accesses.list, [&](const Access& access) {
      return access.value == tile.value && access.offset == tile.offset;
    });
  });
  return own;
}

void finish_stage(const Graph& graph, const Stage& stage, StageSchedule& schedule) {
  build_loops(graph, schedule);
  schedule.is_load = mark_nodes(graph, stage.loads);
  place_values(graph, schedule);
  name_schemes(graph, stage, schedule);
  reserve_tiles(graph, schedule);
  keep_loads(graph, schedule);
}

int count_statements(const StageSchedule& schedule) {
  size_t statements = schedule.accesses.evaluated.size();
  for (const auto& [root, own] : schedule.accesses.evaluated) statements += own.size();
  return static_cast<int>(statements);
}

Verdict too_long(int statements, int most) {
  return Verdict::no(kRuleLongKernel,
                     concat("the kernel would have ", statements, " statements, more than ", most,
                            " that compile in reasonable time"));
}

Verdict check_pointers(size_t pointers) {
  if (pointers <= kMostPointers) return Verdict::yes();
  return Verdict::no(kRuleManyArguments, concat("the kernel would have ", pointers,
                                                " tensors; a launch takes ", kMostPointers));
}

StageScore score_stage(const Graph& graph, const Stage& stage, const Target& target) {
  StageScore score;
  const bool is_joined = stage.roots.size() > 1;
  if (is_joined) score.verdict = check_pointers(stage.loads.size() + stage.stores.size());
  if (!score.verdict) return score;
  auto [schedule, verdict] = describe_stages(graph, {&stage}, target.device);
  score.verdict = verdict;
  if (!score.verdict) return score;
  map_stages(graph, target.workers, {}, schedule);
  finish_stage(graph, stage, schedule);
  score.verdict = check_arrays(graph, schedule);
  score.statements = count_statements(schedule);
  if (score.verdict && is_joined && score.statements > kMostStageStatements)
    score.verdict = too_long(score.statements, kMostStageStatements);
  if (!score.verdict) return score;
  score.estimate =
      estimate_stage(measure_work(graph, stage, schedule), target.device, target.workers);
  score.us = target.device.launch_us + score.estimate.us;
  score.threads = schedule.threads;
  score.reduces_again = reduces_again(schedule);
  return score;
}

void name_blocks(SymbolTable& symbols, StageSchedule& schedule) {
  schedule.grid = 1;
  for (MappedAxis& mapped : schedule.axes) {
    if (!mapped.in_grid()) continue;
    mapped.set(Level::kGrid,
               symbols.divide_up(mapped.axis.extent, mapped.extent_below(Level::kGrid)));
    schedule.grid = schedule.grid * mapped.count(Level::kGrid);
  }
}

std::optional<double> count_elements(const Graph& graph, const IndexVars& vars,
                                     const IndexExpr& offset) {
  double elements = 1;
  for (VarId var : vars.leaves_of({&offset, 1})) {
    if (vars[var].is_value()) return std::nullopt;
    elements *= static_cast<double>(graph.symbols.hint(vars[var].extent));
  }
  return elements;
}

int64_t accessed_elements(const Graph& graph, const StageSchedule& schedule, NodeId value,
                          const NodeList* roots) {
  double most = 0;
  for (const Access& access : schedule.accesses.list) {
    if (access.value != value || (roots && !std::ranges::count(*roots, access.root))) continue;
    auto elements = count_elements(graph, schedule.accesses.vars, access.offset);
    if (!elements && access.in_segment) {  // each position of the segments, once
      elements = static_cast<double>(hint_elements(graph, value));
    } else if (!elements) {  // one row per index read: the iterations of the root that reads
      elements = 1;
      for (const AtomList& dim : space_of(schedule, access.root).dims)
        *elements *= static_cast<double>(graph.symbols.hint(schedule.spaces.atoms.product(dim)));
    }
    most = std::max(most, *elements);
  }
  return std::min(static_cast<int64_t>(most), hint_elements(graph, value));
}

int64_t planned_bytes(const Graph& graph, const Stage& stage, const StageSchedule& schedule) {
  int64_t bytes = 0;
  for (const LeafUse& leaf : schedule.leaves) {
    for (NodeId load : leaf.loads) {
      if (find_buffer(schedule, load)) continue;
      const auto elements =
          static_cast<double>(accessed_elements(graph, schedule, load, &leaf.roots));
      bytes += static_cast<int64_t>(elements * share_loaded(schedule, leaf, load)) *
               element_bytes(graph, load);
    }
  }
  for (NodeId store : stage.stores)
    if (!find_buffer(schedule, store)) bytes += hint_bytes(graph, stored_part(graph, store));
  return bytes;
}

}  // namespace stitch
