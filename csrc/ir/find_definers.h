// Which library calls a node waits for without reading their results: those that define its sizes.
#pragma once

#include <vector>

#include "ir/graph.h"

namespace stitch {

// By node; of a library call its `dims` count too, the sizes among its arguments.  InternalError
// where a size is used that no call above defines.
std::vector<std::vector<NodeId>> find_definers(const Graph& graph);

}  // namespace stitch
