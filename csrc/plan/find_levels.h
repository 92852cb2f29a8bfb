// Where stitching may reach: sets of memory-intensive values between levels of library calls.
//
// AStitch A.2 collects the maximal sets that library calls bound, A.3 joins those that do not
// depend on each other.  Both follow from one number per value, the count of calls that it waits
// for: it never falls along an edge and grows over every call, so values of equal count can share
// a kernel and no cycle can come of it.
#pragma once

#include "analysis/storage.h"

namespace stitch {

// Number of library calls on the longest path into each node: work of different levels never shares
// a kernel without waiting for a call.  Calls that read only inputs and each other do not count:
// they run before every kernel.  Calls with effects keep their order: their levels never fall.
//
// What need not run yet has the last level at which its readers find it, where less memory is held
// so: a checkpointed layer is made again when the backward pass comes there.  Two layers of 6 calls
// to make again and 12 back: the first starts at level 12, with the second's gradient, not at 0.
std::vector<int> find_levels(const Graph& graph);

// Sources and views of them, by node: they are made wherever they are read, at no cost.
std::vector<bool> find_constants(const Graph& graph);

// Live values other than inputs, library results and constants that nobody demands, each in one
// scope, ascending; scopes in an order in which they can run.  A value that may wait does so where
// its first reader is; reductions, which make few bytes of many, do not.
std::vector<NodeList> find_scopes(const Graph& graph, const Demands& demands);

// By node: demanded, or read by another scope than its own (of a view that moves nothing its base).
std::vector<bool> find_scope_outputs(const Graph& graph, const Demands& demands,
                                     const std::vector<NodeList>& scopes);

}  // namespace stitch
