#include "schedule/persistent_values.h"

#include <algorithm>

#include "schedule/map_axes.h"
#include "schedule/place_values.h"
#include "schedule/schedule_stage.h"

namespace stitch {
namespace {

constexpr int kMostRegisters = 255, kRegisterUnit = 8;  // of a thread; what they come in
// What saves less than this part of the largest value is not worth its registers.
constexpr int64_t kWorthwhileShare = 16;

int64_t bytes_of(const Graph& graph, NodeId value) {
  const TensorType& type = graph[value].type;
  return graph.symbols.hint(element_count(type.shape)) * info(type.dtype).bytes;
}

struct Candidate {
  PersistentValue persistent;
  const SharedAccess* access = nullptr;
};

// Fills loops, accesses and registers; false where a thread's share is only known at run time.
bool count_accesses(const Graph& graph, const StageSchedule& schedule, PersistentValue& out) {
  const IndexVars& vars = schedule.accesses.vars;
  out.vector_axis = find_vector_axis(schedule, vars, out.offset);
  for (int l = 0; l < static_cast<int>(schedule.loops.size()); ++l) {
    const LoopSpec& loop = schedule.loops[l];
    if (axis_coefficient(schedule, vars, out.offset, loop.axis).is(0)) continue;
    if (loop.level == LoopSpec::Level::kVector && loop.axis == out.vector_axis) continue;
    const std::optional<int64_t> trips = trip_count(schedule, l);
    if (!trips || out.accesses * *trips > kMostRegisters) return false;
    out.accesses *= *trips;
    out.loops.push_back(l);
  }
  const int lanes = out.vector_axis < 0 ? 1 : schedule.axes[out.vector_axis].vector;
  const int words = (info(graph[out.value].type.dtype).bytes * lanes + 3) / 4;
  out.registers = words * static_cast<int>(out.accesses);
  return true;
}

std::vector<Candidate> find_candidates(const Graph& graph,
                                       const std::vector<SharedAccess>& accesses,
                                       const StageSchedule& schedule) {
  std::vector<Candidate> candidates;
  for (const SharedAccess& access : accesses) {
    Candidate candidate;
    candidate.persistent.value = access.value;
    candidate.persistent.offset = access.offset;
    candidate.access = &access;
    if (count_accesses(graph, schedule, candidate.persistent))
      candidates.push_back(std::move(candidate));
  }
  std::stable_sort(candidates.begin(), candidates.end(),
                   [](const Candidate& a, const Candidate& b) {
                     return a.access->saved_bytes() > b.access->saved_bytes();
                   });
  return candidates;
}

}  // namespace

int count_registers(const DeviceSpec& device, const BlockBounds& bounds, int threads) {
  const int share = device.registers_per_multiprocessor / (threads * bounds.per_multiprocessor);
  return std::min(kMostRegisters, share / kRegisterUnit * kRegisterUnit);
}

std::vector<SharedAccess> find_shared_accesses(const Graph& graph,
                                               const std::vector<const PlannedStage*>& stages,
                                               const StageSchedule& schedule) {
  std::map<NodeId, size_t> stage_of;  // by root
  std::set<NodeId> loads;
  for (size_t s = 0; s < stages.size(); ++s) {
    for (NodeId root : stages[s]->roots) stage_of[root] = s;
    loads.insert(stages[s]->loads.begin(), stages[s]->loads.end());
  }
  // The only offset of each stage; none where there are several, or where it depends on data or on
  // a condition.
  std::map<NodeId, std::map<size_t, const IndexExpr*>> offsets;
  for (const Access& access : schedule.accesses.list) {
    if (!loads.count(access.value)) continue;
    const auto [entry, is_first] =
        offsets[access.value].try_emplace(stage_of.at(access.root), &access.offset);
    const bool differs = !is_first && entry->second && *entry->second != access.offset;
    if (differs || access.is_guarded || !walks_atoms_alone(schedule.accesses.vars, access.offset))
      entry->second = nullptr;
  }
  int64_t largest_bytes = 0;
  for (NodeId value : loads) largest_bytes = std::max(largest_bytes, bytes_of(graph, value));
  std::vector<SharedAccess> shared;
  for (const auto& [value, by_stage] : offsets) {
    SharedAccess access{value, {}, {}};
    for (const auto& [s, offset] : by_stage) {
      if (!offset) continue;
      if (access.stages.empty()) access.offset = *offset;
      if (*offset == access.offset) access.stages.push_back(s);
    }
    if (access.stages.size() < 2) continue;
    const double elements = count_elements(graph, schedule.accesses.vars, access.offset);
    access.bytes = std::min(static_cast<int64_t>(elements) * info(graph[value].type.dtype).bytes,
                            bytes_of(graph, value));
    if (access.saved_bytes() * kWorthwhileShare >= largest_bytes)
      shared.push_back(std::move(access));
  }
  return shared;
}

Persistence find_persistent_values(const Graph& graph, const std::vector<SharedAccess>& accesses,
                                   size_t stages, int registers, const StageSchedule& schedule) {
  Persistence kept;
  kept.values.resize(stages);
  for (const Candidate& candidate : find_candidates(graph, accesses, schedule)) {
    if (kept.registers + candidate.persistent.registers > registers) {
      kept.is_complete = false;
      continue;
    }
    kept.registers += candidate.persistent.registers;
    kept.saved_bytes += candidate.access->saved_bytes();
    for (size_t s : candidate.access->stages) {
      kept.values[s].push_back(candidate.persistent);
      kept.values[s].back().is_filled = s != candidate.access->stages[0];
    }
  }
  return kept;
}

const PersistentValue* find_persistent(const StageSchedule& schedule, NodeId value) {
  for (const PersistentValue& persistent : schedule.persistent) {
    if (persistent.value == value) return &persistent;
  }
  return nullptr;
}

}  // namespace stitch
