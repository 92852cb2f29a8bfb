// KernelError: a fault inside single kernels, with the ops that they hold.
//
// The caller may import these ops as library calls and compile again: the rest stays stitched.
#pragma once

#include <functional>
#include <vector>

#include "plan/stitch_plan.h"

namespace stitch {

struct KernelError : InternalError {
  KernelError(const Error& cause, const Graph& graph, const StitchPlan& plan,
              const std::vector<size_t>& kernels);
  std::vector<int> ops;  // of these kernels: Origin::position of each, ascending
};

// Calls work(k) for each planned kernel; what it throws becomes a KernelError.
void for_each_kernel(const Graph& graph, const StitchPlan& plan,
                     const std::function<void(size_t)>& work);

}  // namespace stitch
