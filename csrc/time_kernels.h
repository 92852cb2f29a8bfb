// How long our kernels take on a GPU that is not here, by the clock (docs/clock.md).
//
// A kernel is launched as runtime/executor.cpp does it: where its blocks wait for each other,
// cooperatively if all are resident, else once for each phase.  Sizes that only a call knows are
// their hints.  Example: softmax of f32[4096, 4096] on an H200 is one launch of 4,096 blocks.
#pragma once

#include <vector>

#include "codegen/kernel_source.h"
#include "cost/device_spec.h"
#include "jit/compiler.h"
#include "report.h"

namespace stitch {

// UserError where the device is no GPU; what the clock cannot read is its error.
ReportedTime time_kernel(const Graph& graph, const KernelSource& source, const Binary& binary,
                         const DeviceSpec& device);

// The same of each; equal kernels with equal launches are timed once.
void time_kernels(Report& report, const Graph& graph, const std::vector<KernelSource>& sources,
                  const std::vector<Binary>& binaries, const DeviceSpec& device);

}  // namespace stitch
