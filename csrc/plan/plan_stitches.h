// Graph -> StitchPlan: which values share a kernel (AStitch A.2-A.8: stitch what may be stitched,
// cut where a check refuses, and where the cost model says that joining loses), and how each runs.
#pragma once

#include "plan/stitch_plan.h"

namespace stitch {

// UserError for a policy that there is none of; KernelError for a fault inside single kernels.
StitchPlan plan_stitches(const Graph& graph, const Target& target,
                         const std::string& policy = "auto");

// Schedules the kernel's stages as its groups, chains and templates say; its time and its reason.
void schedule_kernel(const Graph& graph, const Target& target, const BlockBounds& bounds, size_t k,
                     StitchPlan& plan);

// Block counts of all schedules, once they stay; they may need symbols.
void name_blocks(SymbolTable& symbols, StitchPlan& plan);

// Of the edges between stages only those between kernels are cuts: the others pass a barrier.
void keep_kernel_cuts(const Graph& graph, StitchPlan& plan);

}  // namespace stitch
