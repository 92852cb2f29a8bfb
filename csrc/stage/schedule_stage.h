// Stage -> StageSchedule: a pure function of the graph, the stage, the target and what is asked of
// its blocks.
#pragma once

#include "cost/estimate_kernel.h"
#include "stage/schedule.h"

namespace stitch {

// Compile time grows faster than text (NVRTC 13: 1,000 statements take 0.6 s, 4,000 take 3.6 s).
inline constexpr int kMostStageStatements = 600;
Verdict too_long(int statements, int most);
int count_statements(const StageSchedule& schedule);

// Tensors of one launch: 8 bytes each of the 32,764 that parameters may have since CUDA 12.1, less
// sizes and flags.
inline constexpr size_t kMostPointers = 3500;
Verdict check_pointers(size_t pointers);

// What a candidate's schedule is like.
struct StageScore {
  Verdict verdict;  // can it be scheduled at all?
  double us = 0;    // as a kernel of its own
  StageEstimate estimate = {};
  int statements = 0;          // of its text
  int threads = 0;             // of a block
  bool reduces_again = false;  // several blocks make the same result of a reduction
  double copy_us = 0;  // of `us` and of the estimate: copies of its stores, which planners add
};
StageScore score_stage(const Graph& graph, const Stage& stage, const Target& target);

struct ScheduleOrNot {
  StageSchedule schedule;
  Verdict verdict;
};
// The steps of a schedule.  What stages of one mapping have under any bounds: spaces, accesses and
// axes; refused where their spaces do not go together.
ScheduleOrNot describe_stages(const Graph& graph, const std::vector<const Stage*>& stages,
                              const DeviceSpec& device);
// Maps the axes of what describe_stages made.
void map_stages(const Graph& graph, int workers, const BlockBounds& bounds,
                StageSchedule& schedule);
// What one stage has of a mapping that it shares with others: its own roots.
StageSchedule take_stage(const Stage& stage, const StageSchedule& shared);
// Loops and homes, for what `persistent` and `bounds` say.
void finish_stage(const Graph& graph, const Stage& stage, StageSchedule& schedule);

// Of a block's shared memory, that its warps exchange results of a reduction through.
int exchanged_bytes(const Graph& graph, const StageSchedule& schedule, const RootSpace& space);

// Block counts, once the schedule stays: those of ragged symbolic extents become symbols.
void name_blocks(SymbolTable& symbols, StageSchedule& schedule);

// Distinct elements at an offset, at the symbols' hints; nothing where data decide which.
std::optional<double> count_elements(const Graph& graph, const IndexVars& vars,
                                     const IndexExpr& offset);
// Distinct elements of a load that the kernel, or these roots alone, touch, at the symbols' hints.
int64_t accessed_elements(const Graph& graph, const StageSchedule& schedule, NodeId value,
                          const NodeList* roots = nullptr);
// Bytes of elements accessed, once per buffer and pass (DESIGN.md 4.6, `bytes_planned`).
int64_t planned_bytes(const Graph& graph, const Stage& stage, const StageSchedule& schedule);

// Bytes of the last-level cache that a stage can count on: a core's share, 0.6 of a GPU's L2 [A].
double last_cache_bytes(const DeviceSpec& device);

// What a stage loads from the second cache: find_held_values of plan/kernels/schedule_kernel.h.
using HeldValues = std::set<NodeId>;

StageWork measure_work(const Graph& graph, const Stage& stage, const StageSchedule& schedule,
                       const HeldValues& held = {});

}  // namespace stitch
