// KernelSources -> Binaries: equal texts once, in parallel.
#pragma once

#include <string>
#include <vector>

#include "codegen/kernel_source.h"
#include "jit/compiler.h"

namespace stitch {

struct CompiledKernels {
  std::vector<Binary> binaries;  // CUDA: parallel to the sources; host: one for all
};

// NotCompiledError names every kernel that its compiler refuses.  `arch` empty: the host, one
// shared object for the graph; it is only made when it will be loaded. Without `load` a missing
// NVRTC leaves the binaries empty: a plan can be shown without it.
CompiledKernels compile_kernels(const std::vector<KernelSource>& sources, const std::string& arch,
                                const Settings& settings, bool load);

// The same for a GPU, but what does not compile, or takes too long, has no bytes.
std::vector<Binary> try_kernels(const std::vector<KernelSource>& sources, const std::string& arch,
                                const Settings& settings);

}  // namespace stitch
