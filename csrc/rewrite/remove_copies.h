// Drops copies that nobody can tell from their source: layouts whose strides no one outside sees,
// slices of everything, slices put back, cat of one part, a part sliced out of a cat again, pad by
// nothing.  Memory a caller may write is never shared anew (rewrite/rebuild_graph.h).
#pragma once

#include "ir/graph.h"

namespace stitch {

Graph remove_copies(const Graph& graph);

}  // namespace stitch
