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

// The one offset at which a stage accesses a value; nothing where there are several, or where it
// depends on data or on a condition.
std::optional<IndexExpr> find_only_offset(const StageSchedule& schedule, NodeId value) {
  std::optional<IndexExpr> only;
  for (const Access& access : schedule.accesses.list) {
    if (access.value != value) continue;
    if (access.is_guarded || (only && *only != access.offset)) return std::nullopt;
    only = access.offset;
  }
  if (!only) return only;
  for (const auto& [var, coefficient] : only->terms) {
    if (schedule.accesses.vars[var].kind != IndexVar::Kind::kAtom) return std::nullopt;
  }
  return only;
}

struct Candidate {
  PersistentValue persistent;
  std::vector<size_t> stages;
  int64_t bytes = 0;  // of one pass

  int64_t saved_bytes() const { return bytes * static_cast<int64_t>(stages.size() - 1); }
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
                                       const std::vector<const PlannedStage*>& stages,
                                       const std::vector<StageSchedule>& schedules) {
  std::vector<Candidate> candidates;
  std::set<NodeId> loads;
  for (const PlannedStage* stage : stages) loads.insert(stage->loads.begin(), stage->loads.end());
  int64_t largest_bytes = 0;
  for (NodeId value : loads) {
    const TensorType& type = graph[value].type;
    const int64_t all_bytes =
        graph.symbols.hint(element_count(type.shape)) * info(type.dtype).bytes;
    largest_bytes = std::max(largest_bytes, all_bytes);
    Candidate candidate;
    candidate.persistent.value = value;
    for (size_t s = 0; s < stages.size(); ++s) {
      const std::optional<IndexExpr> offset = find_only_offset(schedules[s], value);
      if (!offset) continue;
      if (candidate.stages.empty()) candidate.persistent.offset = *offset;
      if (*offset == candidate.persistent.offset) candidate.stages.push_back(s);
    }
    if (candidate.stages.size() < 2) continue;
    if (!count_accesses(graph, schedules[candidate.stages[0]], candidate.persistent)) continue;
    candidate.bytes = accessed_elements(graph, schedules[candidate.stages[1]], value) *
                      info(graph[value].type.dtype).bytes;
    candidates.push_back(std::move(candidate));
  }
  std::erase_if(candidates, [&](const Candidate& candidate) {
    return candidate.saved_bytes() * kWorthwhileShare < largest_bytes;
  });
  std::stable_sort(
      candidates.begin(), candidates.end(),
      [](const Candidate& a, const Candidate& b) { return a.saved_bytes() > b.saved_bytes(); });
  return candidates;
}

}  // namespace

int count_registers(const DeviceSpec& device, const BlockBounds& bounds, int threads) {
  const int share = device.registers_per_multiprocessor / (threads * bounds.per_multiprocessor);
  return std::min(kMostRegisters, share / kRegisterUnit * kRegisterUnit);
}

PersistenceCost find_persistent_values(const Graph& graph,
                                       const std::vector<const PlannedStage*>& stages,
                                       int registers, std::vector<StageSchedule>& schedules) {
  PersistenceCost cost;
  for (const Candidate& candidate : find_candidates(graph, stages, schedules)) {
    if (cost.registers + candidate.persistent.registers > registers) {
      cost.is_complete = false;
      continue;
    }
    cost.registers += candidate.persistent.registers;
    cost.saved_bytes += candidate.saved_bytes();
    for (size_t s : candidate.stages) {
      schedules[s].persistent.push_back(candidate.persistent);
      schedules[s].persistent.back().is_filled = s != candidate.stages[0];
    }
  }
  return cost;
}

const PersistentValue* find_persistent(const StageSchedule& schedule, NodeId value) {
  for (const PersistentValue& persistent : schedule.persistent) {
    if (persistent.value == value) return &persistent;
  }
  return nullptr;
}

}  // namespace stitch
