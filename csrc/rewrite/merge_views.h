// Composes views of views and drops views that change nothing.  A permutation that only moves
// extents of 1, or an expand that only adds them, becomes a reshape, so that more of them meet.
// Views of a constant are the constant, expanded.
#pragma once

#include "ir/graph.h"

namespace stitch {

Graph merge_views(const Graph& graph);

}  // namespace stitch
