// How long our kernels take on a GPU that is not here, by the clock (docs/clock.md).
//
// A kernel is launched as runtime/executor.cpp does it: where its blocks wait for each other,
// cooperatively if all are resident, else once for each phase.  Sizes that only a call knows are
// their hints.  Example: softmax of f32[4096, 4096] on an H200 is one launch of 4,096 blocks.
#pragma once

#include <vector>

#include "compilation.h"
#include "jit/compiler.h"

namespace stitch {

// Answers are kept beside binaries (jit/kernel_cache.h).  What the clock cannot read is its error.
ReportedTime time_kernel(const Compilation& c, const KernelSource& source, const Binary& binary);

// Of each of c.sources.  UserError where the device is no GPU.
void time_kernels(Report& report, const Compilation& c, const std::vector<Binary>& binaries);

}  // namespace stitch
