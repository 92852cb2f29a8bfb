// Everything a compilation made -> Report.
#pragma once

#include "base/stage.h"
#include "codegen/kernel_source.h"
#include "jit/compiler.h"
#include "report.h"
#include "schedule/stage_schedule.h"

namespace stitch {

struct ReportInputs {
  const Graph& graph;
  const StitchPlan& plan;
  const std::vector<StageSchedule>& schedules;
  const std::vector<KernelSource>& sources;
  const std::vector<Binary>& binaries;  // may be empty: planned, not compiled
  const std::vector<StageTime>& times;
  const DeviceSpec& device;
  int worker_threads;
};

Report make_report(const ReportInputs& inputs);

}  // namespace stitch
