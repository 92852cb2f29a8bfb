// Reductions that need no loop: over extents of 1, and of constants.
#pragma once

#include "ir/graph.h"

namespace stitch {

Graph simplify_algebra(const Graph& graph);

}  // namespace stitch
