#include "kernel_error.h"

#include <algorithm>
#include <set>

namespace stitch {
namespace {

void add_ops(const Graph& graph, const StitchPlan& plan, size_t kernel, std::set<int>& positions) {
  for (const NodeId node : nodes_of(plan, static_cast<int>(kernel)))
    if (graph[node].origin.position >= 0) positions.insert(graph[node].origin.position);
}

}  // namespace

std::vector<int> find_ops(const Graph& graph, const StitchPlan& plan,
                          const std::vector<KernelSource>& sources,
                          const std::vector<std::string>& names) {
  std::set<int> positions;
  for (size_t k = 0; k < sources.size(); ++k)
    if (std::ranges::count(names, sources[k].name) > 0) add_ops(graph, plan, k, positions);
  return {positions.begin(), positions.end()};
}

void for_each_kernel(const Graph& graph, const StitchPlan& plan,
                     const std::function<void(size_t)>& work) {
  for (size_t k = 0; k < plan.kernels.size(); ++k) {
    try {
      work(k);
    } catch (const Error& error) {
      std::set<int> positions;
      add_ops(graph, plan, k, positions);
      throw KernelError(error, {positions.begin(), positions.end()});
    }
  }
}

}  // namespace stitch
