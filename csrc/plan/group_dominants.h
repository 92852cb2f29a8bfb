// Which values of a scope decide how its threads are laid out, and which follow them.  Near-linear.
//
// AStitch A.6: candidates are reductions, expensive pointwise values that are broadcast, and
// outputs.  A.7, A.8: candidates joined by local reads only are one group, led by its dominant,
// whose mapping A.10 carries to all members; values that cross between groups are buffered (A.11).
//
// A read is one-to-one (pointwise of the same shape, a reduction's operand, a view that only
// renames indices), a broadcast, or elsewhere (slice, flip, gather, cat, ...).  It joins its reader
//  * to a candidate or a renaming view of one: if one-to-one, unless the reader is no candidate and
//    what is made of it is broadcast: that dependence is one-to-many whatever lies between;
//  * to any other value, the scope's operands included (in Fig 7 Pr.2 joins A.1 and D.1): if
//    one-to-one, or a broadcast to the first shape that it is broadcast to.
// Readers that broadcast one value to one shape are joined in any case: they share the broadcast.
// Constants join nothing, and a single element no two broadcasts: no index runs through it.
#pragma once

#include "ir/graph.h"

namespace stitch {

struct DominantGroup {
  NodeId dominant;         // the reduction of most elements, else the largest value
  NodeList sub_dominants;  // the other candidates, ascending
  NodeList members;        // values of the scope, dominants included, ascending
};

// Groups by scope and dominant.  They read each other's dominants, sub-dominants and renaming views
// of them, and evaluate other values again that are read elsewhere, or broadcast to a second shape.
// Two groups may read from each other: values have an order, groups need not.
//
// `scopes`: disjoint, each ascending; `is_output`: by node, what others read (plan/find_levels.h).
// Indices are not compared: whether a mapping fits all members is for find_spaces to say.
std::vector<DominantGroup> group_dominants(const Graph& graph, const std::vector<NodeList>& scopes,
                                           const std::vector<bool>& is_output);

}  // namespace stitch
