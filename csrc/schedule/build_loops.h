// Builds the loop tree of a kernel: roots share loops as deep as their dependences allow.
#pragma once

#include "schedule/kernel_schedule.h"

namespace stitch {

// Fills schedule.blocks from schedule.loops and the roots' dependences.
void build_loops(const Graph& graph, KernelSchedule& schedule);

// Does the root iterate over (or reduce along) the loop's axis?
bool needs_loop(const KernelSchedule& schedule, const RootSpace& space, int loop);
bool reduces_loop(const KernelSchedule& schedule, const RootSpace& space, int loop);
// Is this block's loop the innermost one that is not written out?
bool is_innermost(const KernelSchedule& schedule, int block);
const RootSpace& space_of(const KernelSchedule& schedule, NodeId root);
// Blocks from the kernel's body to the one whose items hold the root.
std::vector<int> path_to(const KernelSchedule& schedule, NodeId root);

}  // namespace stitch
