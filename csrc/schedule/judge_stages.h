// What the planner asks of a candidate: the checks of its schedule, and that schedule's time.
#pragma once

#include "base/verdict.h"
#include "plan/plan_stitches.h"
#include "schedule/stage_schedule.h"

namespace stitch {

int count_statements(const StageSchedule& schedule);
Verdict check_statements(const StageSchedule& schedule);

// `graph` and `device` outlive it.
StageJudge judge_stages(const Graph& graph, const DeviceSpec& device, int worker_threads);

}  // namespace stitch
