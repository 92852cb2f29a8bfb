// Which values may be stored over what is read of others: mutations into their inputs, and what has
// memory of its own over what nobody reads any more.
#pragma once

#include "plan/stitch_plan.h"

namespace stitch {

// Mutations whose new value has the input's layout, where neither is wanted beside the other: by
// what is stored of the new value (find_stores).
std::map<NodeId, int> find_replaceable(const Graph& graph);

// Of those what the stage stores and may store straight into their inputs, as far as it alone is
// concerned: it reads no element of the old value but the one that it stores, before that.
NodeList find_replaced(const Graph& graph, const std::map<NodeId, int>& replaceable,
                       const Stage& stage);

// One answer per mutation of the graph.  Yes only if every read of the old value comes before the
// store: in an earlier step, or in the same kernel at the very element that is stored.
std::vector<bool> find_in_place(const Graph& graph, const StitchPlan& plan);

// store -> a load of its stage with as many elements of the same type, each read before its place
// is stored and never again.  Whether somebody else holds that memory is known when the call runs:
// [8, 64, 64] scaled is stored over the product [512, 64], but not over an argument that is kept.
std::map<NodeId, NodeId> find_stored_over(const Graph& graph, const StitchPlan& plan);

}  // namespace stitch
