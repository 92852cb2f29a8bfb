// Stage: what one mapping serves.
//
// A *root* is a value that a stage computes at every one of its indices: a value it stores, or a
// reduction that it consumes on chip.  Everything else between roots is evaluated where it is read.
// A *materialised* value lives in memory: graph inputs, kernel stores and the operands and results
// of library calls.  Softmax of [64, 4096]: roots amax, sum and the quotient, which is the store.
#pragma once

#include "analysis/storage.h"

namespace stitch {

struct Stage {
  NodeList roots;   // topological order; every store is a root
  NodeList stores;  // roots that are written to memory
  NodeList loads;   // materialised values that are read
  NodeList nodes;   // all that is evaluated inside, roots included, topological order
};
using Stages = std::vector<Stage>;

// The stage of `roots`, ascending, of which those that `is_stored` names are stored.  A pointwise
// root that is not is evaluated where it is needed, and is none of the stage's.
Stage make_stage(const Graph& graph, const NodeList& roots, Cone cone,
                 const std::function<bool(NodeId)>& is_stored);

}  // namespace stitch
