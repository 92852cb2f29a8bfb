// StageSchedule -> StageWork: the numbers its predicted time follows from.
#pragma once

#include "plan/plan_stitches.h"
#include "schedule/stage_schedule.h"

namespace stitch {

StageWork measure_work(const Graph& graph, const PlannedStage& stage,
                       const StageSchedule& schedule);

// With what sectors of 32 bytes move beside the bytes that a warp asks for, on a GPU, through the
// L2 cache: for choices between mappings of the same values.
StageWork measure_traffic(const Graph& graph, const PlannedStage& stage,
                          const StageSchedule& schedule);

// Predicted time of a kernel from those of its stages, in the order of kernel.stages(); `threads`:
// of a block, where its last block ends it alone.
double estimate_kernel_us(const PlannedKernel& kernel, const std::vector<StageEstimate>& estimates,
                          const DeviceSpec& device, int threads);
std::vector<const StageSchedule*> list_pointers(const std::vector<StageSchedule>& schedules);
// Predicted time of a kernel; schedules in the order of kernel.stages().  By measure_work, or
// measure_traffic.
double estimate_kernel_us(const Graph& graph, const std::vector<PlannedStage>& stages,
                          const PlannedKernel& kernel,
                          const std::vector<const StageSchedule*>& schedules, int worker_threads,
                          decltype(&measure_work) measure = &measure_work);

}  // namespace stitch
