// Compilation: everything between the imported graph and kernel text, as the spine fills it in.
#pragma once

#include <vector>

#include "codegen/emit_kernel.h"
#include "compile.h"

namespace stitch {

struct Compilation {
  const CompileRequest& request;
  const DeviceSpec& device = device_spec(request.target);
  int workers = request.worker_threads;
  Graph graph = {};
  StitchPlan plan = {};
  std::vector<StageSchedule> schedules = {};
  LoweringOptions options = {};
  std::vector<KernelSource> sources = {};
  StageLog log = {};
};

// The text of planned kernel `k` as it is scheduled now.
inline KernelSource emit(const Compilation& c, size_t k) {
  return emit_kernel(
      c.graph, lower_kernel(c.graph, c.plan, c.plan.kernels[k], c.schedules, c.options), c.options);
}

}  // namespace stitch
