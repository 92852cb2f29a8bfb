// Finds the values of a kernel that stay in registers while its grid meets at a barrier: whole
// tensors that are reduced and then used again (AStitch A.12; grid-persistent buffers).
//
// A thread holds the same elements in every stage, because the stages have one mapping, one block
// runs one block's work, and all blocks are resident.  Where a launch has fewer blocks, or runs
// one phase alone, a stage reads the values again: the text asks at run time.
#pragma once

#include <optional>

#include "schedule/stage_schedule.h"

namespace stitch {

// Registers that addresses, accumulators and temporaries need beside arrays (probe: 40 values at
// 1024 threads compile to 62 registers without spills, NVRTC 13).
inline constexpr int kWorkingRegisters = 24;
// What a thread may have, all blocks of BlockBounds resident.
int count_registers(const DeviceSpec& device, const BlockBounds& bounds, int threads);

// A value that several of the stages access at one offset each, the same.
struct SharedAccess {
  NodeId value;
  IndexExpr offset;
  std::vector<size_t> stages;  // positions, ascending
  int64_t bytes = 0;           // of one pass

  int64_t saved_bytes() const { return bytes * static_cast<int64_t>(stages.size() - 1); }
};
// Of stages that share `schedule` (describe_stages), under any mapping; those worth registers.
std::vector<SharedAccess> find_shared_accesses(const Graph& graph,
                                               const std::vector<const PlannedStage*>& stages,
                                               const StageSchedule& schedule);

struct Persistence {
  std::vector<std::vector<PersistentValue>> values;  // by stage
  int registers = 0;
  int64_t saved_bytes = 0;  // loads that do not happen
  bool is_complete = true;  // every candidate fits
};
// What stages that share a mapping keep within `registers` of each thread, the largest savings
// first; `accesses` are theirs, the stages in the order of their phases.
Persistence find_persistent_values(const Graph& graph, const std::vector<SharedAccess>& accesses,
                                   size_t stages, int registers, const StageSchedule& schedule);

// The value of this stage's `persistent`, if it is one; nullptr otherwise.
const PersistentValue* find_persistent(const StageSchedule& schedule, NodeId value);

}  // namespace stitch
