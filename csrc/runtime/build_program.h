// build_program: plan and kernels in, the Program that runs them out.
//
// Homes of materialised values: graph inputs stay where the caller put them; what the graph returns
// or is large is a tensor of its own (kFresh), every other store of a kernel lives in the slab; a
// value that only replaces a graph input is stored straight into it where the plan allows.  What is
// returned or copied at the end of the call must be an input's contents from before its mutations.
#pragma once

#include <vector>

#include "jit/compiler.h"
#include "plan/stitch_plan.h"
#include "runtime/program.h"

namespace stitch {

// Binaries -> entry points on the device the program will run on.
void load_kernels(Program& program, const std::vector<Binary>& binaries);

// `sources` are parallel to plan.kernels; the program's kernels are still to be loaded.
Program build_program(const Graph& graph, const StitchPlan& plan,
                      const std::vector<KernelSource>& sources, bool on_cuda);

// Its last two passes, by the lifetimes of buffers, which are read off the steps.  An alias lives
// in its base: a use of one is a use of the other.

// Positions in Program::steps of the first and last use; what is returned lives past the last step.
struct Lifetime {
  int first = -1, last = -1;  // -1: never used
};
std::vector<Lifetime> find_lifetimes(const Program& program);

// Gives each kSlab buffer a slot, such that lifetimes within one slot never overlap; slots are
// chosen by the sizes of the example inputs.
void assign_slots(Program& program);
// Puts a ReleaseStep behind the last use of each tensor that the program does not return, and lets
// calls store over what they are the last to use (CallStep::stores_over, which says who could).
void insert_releases(Program& program);

}  // namespace stitch
