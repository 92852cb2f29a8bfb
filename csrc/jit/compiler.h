// Kernel text in, binary out, through the kernel cache.
//
// KernelText holds one generated kernel without the device prelude; both compilers put
// device_text() in front.  A kernel that does not compile is a NotCompiledError that carries the
// compiler's log and the path where the source was kept.  Any thread may call these; they may run
// for seconds, so callers hold no lock (the interpreter's included).
#pragma once

#include "codegen/kernel_source.h"
#include "config/settings.h"
#include "jit/binary.h"

namespace stitch {

struct NotCompiledError : InternalError {
  NotCompiledError(const std::string& message, std::vector<std::string> names)
      : InternalError(message), kernels(std::move(names)) {}
  std::vector<std::string> kernels;  // the names of those at fault
};

// A cubin for `arch` ("sm_90a"), PTX where settings simulate it.  UnsupportedError without NVRTC.
Binary compile_cuda(const KernelText& kernel, const std::string& arch, const Settings& settings);

// A user's own text, without the device prelude unless it uses STITCH_KERNEL, by the default
// settings.  UserError with the log when it does not compile.
Binary compile_own_text(const KernelText& kernel, const std::string& arch, CudaOutput output);

// One shared object that exports every kernel of a graph.  UnsupportedError without a compiler.
// When it fails, the kernels at fault are found by compiling parts of it.
Binary compile_host(const std::vector<KernelText>& kernels, const Settings& settings);

// All kernels of a graph, equal texts once, in parallel.
// CUDA: one for each source.  `arch` empty: the host, one shared object for the graph; it is only
// made when it will be loaded.  Without `load` a missing NVRTC leaves none: a plan can be shown
// without it.  NotCompiledError names every kernel that its compiler refuses.
std::vector<Binary> compile_kernels(const std::vector<KernelSource>& sources,
                                    const std::string& arch, const Settings& settings, bool load);

// The same for a GPU; where not all are needed, what does not compile or takes long has no bytes.
std::vector<Binary> try_kernels(const std::vector<KernelSource>& sources, const std::string& arch,
                                const Settings& settings, bool needs_all = false);

}  // namespace stitch
