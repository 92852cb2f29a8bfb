// NVRTC, found and loaded at run time: CUDA C++ in, cubin or PTX out.  Needs no driver and no GPU.
//
// The library comes from the first of the given directories (the nvidia-cuda-nvrtc wheel, torch's
// own) or of the system's that holds it, by absolute path: none that is planted on a search path.
#pragma once

#include <string_view>
#include <vector>

#include "base/error.h"
#include "jit/binary.h"

namespace stitch {

// Where to look before the system's directories.  No effect once the library is loaded.
void set_nvrtc_directories(std::vector<std::string> directories);

// Loads the library if need be; says what is missing and what to install.
Verdict nvrtc_available();
// "13.0"; UnsupportedError without the library.
std::string nvrtc_version();
std::vector<std::string> nvrtc_options(const std::string& arch, CudaOutput output);
// UnsupportedError without the library, or if it does not know the architecture.
Binary run_nvrtc(const std::string& name, std::string_view source, const std::string& arch,
                 CudaOutput output = CudaOutput::kCubin);

// Registers, spills, stack and static shared memory from what ptxas -v prints.
void read_ptxas_log(std::string_view log, Binary& binary);

}  // namespace stitch
