// Reductions too large for one block are cut at their partials: a reduction over an axis becomes
// one over its pieces and one over the pieces' results, both ordinary nodes (DESIGN.md 3).
#pragma once

#include "cost/device_spec.h"
#include "ir/graph.h"

namespace stitch {

// Reductions of one tensor whose axes together leave too few blocks are split along the same axis,
// so that all partial results come from one pass.  So are those that look again at more than a
// block holds, in pieces of blocks or of threads (rewrite/reductions/reduce_pieces.h).
Graph split_reductions(const Graph& graph, const DeviceSpec& device, int worker_threads,
                       bool emulate_eager_casts = false);

}  // namespace stitch
