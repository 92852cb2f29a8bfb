// What a plan and its kernels are -> Report.
#pragma once

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
  const DeviceSpec& device;
  int worker_threads;
};

Report make_report(const ReportInputs& inputs);

// What the compiler said of a GPU's kernels; there may be none: planned, not compiled.
void add_binaries(Report& report, const std::vector<Binary>& binaries);

}  // namespace stitch
