// What is kept of a compiled graph, so that nobody plans it twice.
//
// The kernel cache holds program, kernel texts and report under the text of the imported graph, the
// target, the settings that plans depend on, the threads that work is cut for and the sources that
// this library is built from: what another build keeps is not found, nor what is kept of a graph
// that differs in the hint of one size.  Kernels have entries of their own, and are compiled again
// where those are gone.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "compile.h"
#include "jit/compiler.h"

namespace stitch {

struct CompiledPlan {
  Program program;  // its kernels still to be loaded
  std::vector<KernelSource> sources;
  Report report;  // without what the compiler said and how long stages took
  std::vector<Binary> binaries;
};

// What `plan` makes of the request, or once made; nothing is looked up or kept of what is only
// shown.  `arch` is the device's; whatever `plan` throws reaches the caller and is not kept.
CompiledPlan find_plan(const CompileRequest& request, const std::string& arch,
                       const std::function<CompiledPlan()>& plan);

}  // namespace stitch
