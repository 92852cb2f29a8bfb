// StitchPlan -> KernelSchedule, once per kernel.
#pragma once

#include "schedule/kernel_schedule.h"

namespace stitch {

// Blocks have at most `most_threads` threads (a power of two): fewer leave more registers to each.
// `symbols` is the graph's table; block counts of ragged symbolic extents are added to it.
KernelSchedule schedule_kernel(const Graph& graph, const PlannedKernel& kernel,
                               const DeviceSpec& device, int worker_threads, SymbolTable& symbols,
                               int most_threads = kMostThreads);
// is_load[n]: n is read from memory when this kernel needs it.
std::vector<bool> find_loads(const Graph& graph, const PlannedKernel& kernel);

// Distinct elements of a load that the kernel touches, at the symbols' hints.
int64_t accessed_elements(const Graph& graph, const KernelSchedule& schedule, NodeId value);
// Bytes of elements accessed, once per buffer and pass (DESIGN.md 4.6, `bytes_planned`).
int64_t planned_bytes(const Graph& graph, const PlannedKernel& kernel,
                      const KernelSchedule& schedule);

}  // namespace stitch
