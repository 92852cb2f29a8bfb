// KernelError: a fault inside single kernels, with the ops that they hold.
//
// The caller may import these ops as library calls and compile again: the rest stays stitched.
#pragma once

#include <set>
#include <vector>

#include "plan/stitch_plan.h"

namespace stitch {

struct KernelError : InternalError {
  KernelError(const Error& cause, const Graph& graph, const StitchPlan& plan,
              const std::vector<size_t>& kernels)
      : InternalError(cause) {
    std::set<int> positions;
    for (size_t k : kernels)
      for (const NodeId node : nodes_of(plan, static_cast<int>(k)))
        if (graph[node].origin.position >= 0) positions.insert(graph[node].origin.position);
    ops.assign(positions.begin(), positions.end());
  }
  std::vector<int> ops;  // of these kernels: Origin::position of each, ascending
};

// Calls work(k) for each planned kernel; what it throws becomes a KernelError.
template <class Work>
void for_each_kernel(const Graph& graph, const StitchPlan& plan, const Work& work) {
  for (size_t k = 0; k < plan.kernels.size(); ++k) {
    try {
      work(k);
    } catch (const Error& error) {
      throw KernelError(error, graph, plan, {k});
    }
  }
}

}  // namespace stitch
