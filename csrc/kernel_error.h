// KernelError: a fault inside single kernels, with the ops that they hold.
//
// The caller may import these ops as library calls and compile again: the rest stays stitched.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "codegen/kernel_source.h"
#include "plan/stitch_plan.h"

namespace stitch {

struct KernelError : InternalError {
  KernelError(const Error& cause, std::vector<int> positions)
      : InternalError(cause), ops(std::move(positions)) {}
  std::vector<int> ops;  // Origin::position of each, ascending
};

// Where the ops of these kernels stand in the imported graph.
std::vector<int> find_ops(const Graph& graph, const StitchPlan& plan,
                          const std::vector<KernelSource>& sources,
                          const std::vector<std::string>& names);

// Calls work(k) for each planned kernel; what it throws becomes a KernelError.
void for_each_kernel(const Graph& graph, const StitchPlan& plan,
                     const std::function<void(size_t)>& work);

}  // namespace stitch
