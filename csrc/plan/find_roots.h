// The values every kernel is built around, before kernels are joined.
#pragma once

#include <vector>

#include "plan/storage.h"

namespace stitch {

// Number of library calls on the longest path into each node: work of different levels never shares
// a kernel without waiting for a call.  Calls that read only inputs and each other do not count:
// they run before every kernel.  Calls with effects keep their order, so none has a lower level
// than one before it.  What waits for no call is of its first user's level, but for reductions: a
// backward pass makes again what it needs of a layer when it comes there, not of all to begin with.
std::vector<int> find_levels(const Graph& graph);

// Roots in topological order: demanded values, reductions, pointwise values that users on both
// sides of a library call would otherwise recompute from more bytes than they have, and what
// segments would gather or, on the host, they and scatters compute element by element.
// With `every_op` each op is a root of its own (policy "none").
std::vector<NodeId> find_roots(const Graph& graph, const Demands& demands, bool every_op,
                               bool on_gpu = true);

// These and all expensive element-wise values that they evaluate: each is computed once then, where
// readers would compute it for themselves (FusionStitching 2020, 20.8).
std::vector<NodeId> add_expensive(const Graph& graph, const std::vector<NodeId>& roots);

// Whether one of the roots is a reduction.
bool reduces(const Graph& graph, const std::vector<NodeId>& roots);

}  // namespace stitch
