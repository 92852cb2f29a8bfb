// build_program: plan and kernels in, the Program that runs them out.
//
// Homes of materialised values: graph inputs stay where the caller put them; what the graph returns
// or is large is a tensor of its own (kFresh), every other store of a kernel lives in the slab; a
// value that only replaces a graph input is stored straight into it where the plan allows.  What is
// returned or copied at the end of the call must be an input's contents from before its mutations.
#pragma once

#include <vector>

#include "codegen/kernel_source.h"
#include "ir/graph.h"
#include "jit/compiler.h"
#include "plan/stitch_plan.h"
#include "runtime/program.h"

namespace stitch {

// Binaries -> entry points on the device the program will run on.
std::vector<LoadedKernel> load_kernels(const std::vector<KernelSource>& sources,
                                       const std::vector<Binary>& binaries, bool on_cuda);

// `sources` are parallel to plan.kernels; the program's kernels are still to be loaded.
Program build_program(const Graph& graph, const StitchPlan& plan,
                      const std::vector<KernelSource>& sources, bool on_cuda);

}  // namespace stitch
