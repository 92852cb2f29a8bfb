// Makes equal nodes one node: rebuilding through the Builder does it, so this is a rebuild with no
// rule of its own.
#pragma once

#include "ir/graph.h"

namespace stitch {

Graph merge_common(const Graph& graph);

}  // namespace stitch
