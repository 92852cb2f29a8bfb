// Attention that is written out becomes one library call.
//
// It yields what the two products do, but for scores that are infinite or NaN where a mask hides
// them.  A row that is hidden altogether is NaN, as from a softmax, where the library's call would
// make it 0: marked in the product that reads the result, or else by NaN in the mask.
//
// On a GPU the call names the kernel that torch's selection takes, as tracing does with a call that
// a user wrote: a plan then says what runs.  Where sizes do not show that the kernel takes them,
// and on CPUs, torch selects when it is called.
#pragma once

#include <vector>

#include "rewrite/attention/find_attention.h"

namespace stitch {

// `judged`: of find_attention(graph); the refused ones stay written out.
Graph call_attention(const Graph& graph, const std::vector<Attention>& judged, bool on_gpu);

}  // namespace stitch
