// Which mutations may be stored straight into their input.
#pragma once

#include <vector>

#include "plan/stitch_plan.h"

namespace stitch {

// One answer per mutation of the graph.  Yes only if every read of the old value comes before the
// store: in an earlier step, or in the same kernel at the very element that is stored.
std::vector<bool> find_in_place(const Graph& graph, const StitchPlan& plan);

}  // namespace stitch
