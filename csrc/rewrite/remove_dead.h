// Drops nodes that nothing outside can see: no output, mutation or call with effects reads them.
// Inputs stay: they are the signature.  Unused `aten` calls go unless ops/library_effects.h keeps
// them.
#pragma once

#include "ir/graph.h"

namespace stitch {

Graph remove_dead(const Graph& graph);

}  // namespace stitch
