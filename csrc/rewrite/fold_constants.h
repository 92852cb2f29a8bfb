// Computes what is constant, and drops operations that change no bit: x*1, x-0, neg(neg(x)), casts
// that lose nothing.  Only what eager computes exactly the same, NaN, infinities and signed zeros
// included; x+0 stays because of -0.
#pragma once

#include "ir/graph.h"

namespace stitch {

Graph fold_constants(const Graph& graph);

}  // namespace stitch
