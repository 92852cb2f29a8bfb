// Chooses the level of every axis: grid, loops, threads, vector lanes (DESIGN.md 3, AStitch A.9).
#pragma once

#include "schedule/kernel_schedule.h"

namespace stitch {

enum class Role { kAbsent, kKept, kReduced };
Role role_of(const RootSpace& space, const Axis& axis);

// What both targets' mappings are chosen from: one entry per axis, sizes at the symbols' hints.
struct AxisFacts {
  int64_t extent = 1;
  bool is_eligible = true;    // no root reduces it: blocks may divide it
  double unit_stride_bytes = 0;  // bytes accessed contiguously along it
  double stride = 0;          // of the heaviest access, in elements: orders the loops
  bool is_summed = false;     // some root sums over it
};
std::vector<AxisFacts> find_axis_facts(const Graph& graph, const KernelSchedule& schedule);

// Bytes of the distinct elements an access touches, at the symbols' hints.
double accessed_bytes(const Graph& graph, const KernelSchedule& schedule, const Access& access);

// Fill axes[*], loops (global order) and threads.
void map_axes_host(const Graph& graph, KernelSchedule& schedule, int worker_threads);
void map_axes_cuda(const Graph& graph, KernelSchedule& schedule);
// Block counts of the grid's axes; a ragged symbolic extent needs a derived symbol.
void count_blocks(KernelSchedule& schedule, SymbolTable& symbols);

}  // namespace stitch
