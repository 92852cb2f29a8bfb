// Binaries -> entry points on the device the program will run on.
#pragma once

#include <vector>

#include "codegen/kernel_source.h"
#include "jit/compiler.h"
#include "runtime/program.h"

namespace stitch {

std::vector<LoadedKernel> load_kernels(const std::vector<KernelSource>& sources,
                                       const std::vector<Binary>& binaries, bool on_cuda);

}  // namespace stitch
