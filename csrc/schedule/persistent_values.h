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

struct PersistenceCost {
  int registers = 0;
  int64_t saved_bytes = 0;  // loads that do not happen
  bool is_complete = true;  // every candidate fits
};
// Fills `persistent` of stages of one mapping (map_stages), in the order of their phases, within
// `registers` of each thread, the largest savings first.
PersistenceCost find_persistent_values(const Graph& graph,
                                       const std::vector<const PlannedStage*>& stages,
                                       int registers, std::vector<StageSchedule>& schedules);

// The value of this stage's `persistent`, if it is one; nullptr otherwise.
const PersistentValue* find_persistent(const StageSchedule& schedule, NodeId value);

}  // namespace stitch
