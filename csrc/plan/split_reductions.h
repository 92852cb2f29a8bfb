// Reductions too large for one block are cut at their partials: a reduction over an axis becomes
// one over its pieces and one over the pieces' results, both ordinary nodes (DESIGN.md 3).
#pragma once

#include "cost/device_spec.h"
#include "ir/graph.h"

namespace stitch {

// Reductions of one tensor whose axes together leave too few blocks are split along the same axis,
// so that the partial results of all come from one pass.  sum_sq_dev splits into deviations from
// each piece's own mean (Chan, Golub and LeVeque 1979), which needs no second pass over memory.
Graph split_reductions(const Graph& graph, const DeviceSpec& device, int worker_threads);

}  // namespace stitch
