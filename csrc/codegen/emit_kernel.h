// KernelBody -> KernelSource: the frame around the statements, and the kernel's name.
#pragma once

#include "codegen/kernel_source.h"
#include "codegen/lower_kernel.h"

namespace stitch {

KernelSource emit_kernel(const Graph& graph, const PlannedKernel& kernel,
                         const KernelSchedule& schedule, const LoweredKernel& lowered,
                         const LoweringOptions& options);

}  // namespace stitch
