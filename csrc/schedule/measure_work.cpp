#include "schedule/measure_work.h"

#include <algorithm>
#include <cmath>

#include "schedule/map_axes.h"
#include "schedule/schedule_kernel.h"

namespace stitch {
namespace {

double hint(const Graph& graph, const Dim& dim) {
  return static_cast<double>(std::max<int64_t>(0, graph.symbols.hint(dim)));
}

double blocks_along(const Graph& graph, const MappedAxis& mapped) {
  if (!mapped.in_grid) return 1;
  const double tile = std::max(1.0, hint(graph, mapped.tile));
  return std::max(1.0, std::ceil(hint(graph, mapped.axis.extent) / tile));
}

}  // namespace

KernelWork measure_work(const Graph& graph, const PlannedKernel& kernel,
                        const KernelSchedule& schedule) {
  KernelWork work;
  work.threads = schedule.threads;
  work.dram_bytes = static_cast<double>(planned_bytes(graph, kernel, schedule));
  for (const MappedAxis& mapped : schedule.axes) work.blocks *= blocks_along(graph, mapped);
  for (const RootSpace& space : schedule.spaces.roots) {
    // A root that lacks an axis of the grid or of the threads is computed once per block or thread.
    double iterations = 1, copies = 1;
    for (const MappedAxis& mapped : schedule.axes) {
      if (role_of(space, mapped.axis) == Role::kAbsent) {
        copies *= blocks_along(graph, mapped) * mapped.threads;
      } else {
        iterations *= hint(graph, mapped.axis.extent);
      }
    }
    int loads = 0;
    for (const auto& [node, index] : schedule.accesses.evaluated.at(space.root)) {
      const CostClass cost = info(graph[node]).cost;
      const double weight = cost == CostClass::kFree ? 0 : cost == CostClass::kHeavy ? 8 : 1;
      loads += std::count(kernel.loads.begin(), kernel.loads.end(), node) > 0;
      (cost >= CostClass::kSpecial ? work.specials : work.operations) += iterations * copies * weight;
    }
    work.operations += iterations * copies;
    if (copies > 1) work.cache_bytes += iterations * (copies - 1) * 4 * std::max(1, loads);
  }
  return work;
}

Verdict check_statements(const KernelSchedule& schedule) {
  constexpr int64_t kMostStatements = 600;
  int64_t statements = 0;
  for (const auto& [root, values] : schedule.accesses.evaluated) {
    statements += static_cast<int64_t>(values.size()) + 1;
  }
  if (schedule.spaces.roots.size() < 2 || statements <= kMostStatements) return Verdict::yes();
  return Verdict::no(kRuleLongKernel,
                     "the kernel would have " + std::to_string(statements) + " statements, more than " +
                         std::to_string(kMostStatements) + " that compile in reasonable time");
}

}  // namespace stitch
