// StageSchedule -> StageWork: the numbers its predicted time follows from.
#pragma once

#include "base/verdict.h"
#include "plan/plan_stitches.h"
#include "schedule/stage_schedule.h"

namespace stitch {

StageWork measure_work(const Graph& graph, const PlannedStage& stage,
                       const StageSchedule& schedule);

int count_statements(const StageSchedule& schedule);
Verdict check_statements(const StageSchedule& schedule);

Verdict check_arguments(const PlannedStage& stage);

// What the planner asks of a candidate: its checks, and the time of the schedule it would get.
StageScore score_stage(const Graph& graph, const PlannedStage& stage, const DeviceSpec& device,
                       int worker_threads);

}  // namespace stitch
