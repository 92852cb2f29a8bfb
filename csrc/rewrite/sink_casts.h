// Moves widening casts past views and readers, towards their consumers: view(cast(x)) becomes
// cast(view(x)).  What is read, gathered or materialised is then the narrow value.  Casts that may
// round are never moved.
#pragma once

#include "ir/graph.h"

namespace stitch {

Graph sink_casts(const Graph& graph);

}  // namespace stitch
