// The values every kernel is built around, before kernels are joined.
#pragma once

#include "analysis/storage.h"
#include "cost/device_spec.h"

namespace stitch {

// Roots in topological order: demanded values, reductions, pointwise values that users on both
// sides of a library call would otherwise recompute from more bytes than they have, and what
// segments would gather or, on the host, they and scatters compute element by element; on a GPU
// costly values that all threads would compute alike, where that takes longer than a barrier.
// With `every_op` each op is a root of its own (policy "none").
NodeList find_roots(const Graph& graph, const Demands& demands, bool every_op,
                    const DeviceSpec& device);

// AStitch A.1; divisions and square roots count as light: they cost less than a barrier.
inline bool is_expensive(const Node& node) {
  return family(node) == Family::kPointwise && info(node).cost >= CostClass::kSpecial;
}
// These and all expensive element-wise values that they evaluate: each is computed once then, where
// readers would compute it for themselves (FusionStitching 2020, 20.8).
NodeList add_expensive(const Graph& graph, const NodeList& roots);
// These and what a sum of everything chooses from larger values, a loss for each row: the kernel
// that reads the rows can make it, and one block need not gather all of them.
NodeList add_gathered(const Graph& graph, const NodeList& roots);

// These, ascending, but for cheap element-wise values that are made of hardly more bytes than they
// have (an eighth [A]: a row beside a matrix): who would load one makes it of what it is made of.
NodeList drop_cheap(const Graph& graph, const Demands& demands, NodeList roots);

// Whether one of the roots is a reduction.
bool reduces(const Graph& graph, const NodeList& roots);

}  // namespace stitch
