// KernelSources -> Binaries: equal texts once, in parallel.
#pragma once

#include <string>
#include <vector>

#include "codegen/kernel_source.h"
#include "jit/compiler.h"

namespace stitch {

// CUDA: one for each source.  `arch` empty: the host, one shared object for the graph; it is only
// made when it will be loaded.  Without `load` a missing NVRTC leaves none: a plan can be shown
// without it.  NotCompiledError names every kernel that its compiler refuses.
std::vector<Binary> compile_kernels(const std::vector<KernelSource>& sources,
                                    const std::string& arch, const Settings& settings, bool load);

// The same for a GPU, but what does not compile, or takes too long, has no bytes.
std::vector<Binary> try_kernels(const std::vector<KernelSource>& sources, const std::string& arch,
                                const Settings& settings);

}  // namespace stitch
