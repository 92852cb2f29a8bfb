// Checks every invariant of a Graph: operands before users, ranks, axes, dtypes and strides as the
// rules give them, outputs and mutations that exist.
#pragma once

#include "ir/graph.h"

namespace stitch {

// InternalError naming the node and the user's op.
void verify_graph(const Graph& graph);

}  // namespace stitch
