// StitchPlan -> StitchPlan with chains (PlannedBlocks of several stages): AStitch's finalisation
// (A.11, 3.4), once every stage has its mapping.
//
// Two kinds are tried in each kernel of a GPU, and tried again of what comes out:
//  * blocks and the blocks of an earlier phase that alone make what they read: a block barrier
//    instead of the grid's, for all their stages; or instead of a launch, where the policy has no
//    barriers of the grid (FusionStitching 2020, 20.5);
//  * a stage that stores a value permuted is cut in two at the permutation, so that each half walks
//    the elements in an order that is contiguous in memory.
// They become a chain where the blocks of all have the same ranges (stage/block_ranges.h) and the
// model predicts less time.  What only later stages of the chain read lives in shared memory; where
// that does not fit, the largest value passes through global memory instead, one at a time (A.13).
#pragma once

#include "plan/stitch_plan.h"

namespace stitch {

StitchPlan chain_stages(const Graph& graph, StitchPlan plan, const Target& target);

}  // namespace stitch
