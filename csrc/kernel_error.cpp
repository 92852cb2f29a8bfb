#include "kernel_error.h"

#include <set>

namespace stitch {

KernelError::KernelError(const Error& cause, const Graph& graph, const StitchPlan& plan,
                         const std::vector<size_t>& kernels)
    : InternalError(cause) {
  std::set<int> positions;
  for (size_t k : kernels)
    for (const NodeId node : nodes_of(plan, static_cast<int>(k)))
      if (graph[node].origin.position >= 0) positions.insert(graph[node].origin.position);
  ops.assign(positions.begin(), positions.end());
}

void for_each_kernel(const Graph& graph, const StitchPlan& plan,
                     const std::function<void(size_t)>& work) {
  for (size_t k = 0; k < plan.kernels.size(); ++k) {
    try {
      work(k);
    } catch (const Error& error) {
      throw KernelError(error, graph, plan, {k});
    }
  }
}

}  // namespace stitch
