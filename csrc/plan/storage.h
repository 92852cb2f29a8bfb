// Where values live: which views are mere aliases of a base, and which values need memory.
#pragma once

#include "plan/stitch_plan.h"

namespace stitch {

// The base of which `node` is a view without moving elements, if it is one; the base is not such a
// view itself, but may be a view that moves elements.
std::optional<PlannedAlias> find_alias(const Graph& graph, NodeId node);

// What the evaluation of some values takes, ascending.
struct Cone {
  NodeList nodes;  // evaluated, themselves included
  NodeList loads;  // stored values that it stops at
};
Cone find_cone(const Graph& graph, NodeId start, const std::function<bool(NodeId)>& is_stored);
// Of both, whose own `roots`, ascending, are not loaded but evaluated.
inline Cone unite_cones(const Cone& a, const Cone& b, const NodeList& roots) {
  Cone both{unite(a.nodes, b.nodes), {}};
  std::ranges::set_difference(unite(a.loads, b.loads), roots, std::back_inserter(both.loads));
  return both;
}

// The stage of `roots`, ascending, of which those that `is_stored` names are stored.  A pointwise
// root that is not is evaluated where it is needed, and is none of the stage's.
PlannedStage make_stage(const Graph& graph, const NodeList& roots, Cone cone,
                        const std::function<bool(NodeId)>& is_stored);

// Values that must be in memory: outputs, mutation values, operands of library calls.  Aliases are
// resolved to their bases; `aliases` lists the views themselves.
struct Demands {
  std::vector<bool> is_demanded;
  std::vector<PlannedAlias> aliases;
};
Demands find_demands(const Graph& graph);

}  // namespace stitch
