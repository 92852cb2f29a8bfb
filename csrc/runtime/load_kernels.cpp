#include "runtime/load_kernels.h"

#include "jit/host_library.h"
#include "runtime/driver.h"

namespace stitch {

std::vector<LoadedKernel> load_kernels(const std::vector<KernelSource>& sources,
                                       const std::vector<Binary>& binaries, bool on_cuda) {
  std::vector<LoadedKernel> kernels;
  if (sources.empty()) return kernels;
  for (size_t i = 0; i < sources.size(); ++i) {
    const KernelSource& source = sources[i];
    LoadedKernel kernel{source.name, nullptr, source.threads, source.shared_bytes, source.may_fail};
    kernel.entry = on_cuda ? load_function(binaries[i].bytes, source.name, source.shared_bytes)
                           : load_host_library(binaries[0].bytes).symbol(source.name);
    if (source.phases.size() > 1) {
      kernel.resident_blocks =
          count_resident_blocks(kernel.entry, source.name, source.threads, source.shared_bytes);
    }
    kernels.push_back(std::move(kernel));
  }
  return kernels;
}

}  // namespace stitch
