// PlannedStage -> StageSchedule, and the numbers that its predicted time follows from.
#pragma once

#include "plan/plan_stitches.h"
#include "schedule/stage_schedule.h"

namespace stitch {

// Verdict rule of this file: what keeps no elements has no blocks, also for what lacks its axis.
inline constexpr int kRuleEmptyAxis = 29;

struct ScheduleOrNot {
  StageSchedule schedule;
  Verdict verdict;
};

// What the planner asks of a candidate: the checks of its schedule, and that schedule's time.
// `graph` and `device` outlive it.
StageJudge judge_stages(const Graph& graph, const DeviceSpec& device, int worker_threads);
int count_statements(const StageSchedule& schedule);

// The steps of a schedule.  What stages of one mapping have under any bounds: spaces, accesses and
// axes; refused where their spaces do not go together.
ScheduleOrNot describe_stages(const Graph& graph, const std::vector<const PlannedStage*>& stages,
                              const DeviceSpec& device);
// Maps the axes of what describe_stages made.  `symbols` is the graph's table; block counts of
// ragged symbolic extents are added to it.
void map_stages(const Graph& graph, int worker_threads, SymbolTable& symbols,
                const BlockBounds& bounds, StageSchedule& schedule);
// What one stage has of a mapping that it shares with others: its own roots.
StageSchedule take_stage(const PlannedStage& stage, const StageSchedule& shared);
// Loops and homes, for what `persistent` and `bounds` say.
void finish_stage(const Graph& graph, const PlannedStage& stage, StageSchedule& schedule);

// Distinct elements at an offset, at the symbols' hints; nothing where data decide which.
std::optional<double> count_elements(const Graph& graph, const IndexVars& vars,
                                     const IndexExpr& offset);
// Distinct elements of a load that the kernel, or these roots alone, touch, at the symbols' hints.
int64_t accessed_elements(const Graph& graph, const StageSchedule& schedule, NodeId value,
                          const NodeList* roots = nullptr);
// Bytes of elements accessed, once per buffer and pass (DESIGN.md 4.6, `bytes_planned`).
int64_t planned_bytes(const Graph& graph, const PlannedStage& stage, const StageSchedule& schedule);

// Bytes of the last-level cache that a stage can count on: a core's share, 0.6 of a GPU's L2 [A].
double last_cache_bytes(const DeviceSpec& device);
// What a stage loads from the second cache: an earlier phase of its kernel has touched it, and all
// that passes from there to the end of its own fits.  By stage, in the order of kernel.stages().
using HeldValues = std::set<NodeId>;
std::vector<HeldValues> find_held_values(const Graph& graph, const PlannedStages& stages,
                                         const PlannedKernel& kernel, const DeviceSpec& device);

StageWork measure_work(const Graph& graph, const PlannedStage& stage, const StageSchedule& schedule,
                       const HeldValues& held = {});

// With what sectors of 32 bytes move beside the bytes that a warp asks for, on a GPU, through the
// L2 cache: for choices between mappings of the same values.
StageWork measure_traffic(const Graph& graph, const PlannedStage& stage,
                          const StageSchedule& schedule, const HeldValues& held = {});

// Predicted time of a kernel from those of its stages, in the order of kernel.stages().
double estimate_kernel_us(const PlannedKernel& kernel, const std::vector<StageEstimate>& estimates,
                          const DeviceSpec& device);
std::vector<const StageSchedule*> list_pointers(const Schedules& schedules);
// Predicted time of a kernel; schedules in the order of kernel.stages().  By measure_work, or
// measure_traffic.
double estimate_kernel_us(const Graph& graph, const PlannedStages& stages,
                          const PlannedKernel& kernel,
                          const std::vector<const StageSchedule*>& schedules, int worker_threads,
                          decltype(&measure_work) measure = &measure_work);

}  // namespace stitch
