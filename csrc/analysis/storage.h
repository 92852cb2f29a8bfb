// Where values live: which views are mere aliases of a base, and which values need memory.
#pragma once

#include "ir/graph.h"

namespace stitch {

// A view whose elements are not moved: `node` is `base` with other sizes, strides and offset.
struct Alias {
  NodeId node, base;
  Dim offset;  // elements
};
// The base of which `node` is a view without moving elements, if it is one; the base is not such a
// view itself, but may be a view that moves elements.
std::optional<Alias> find_alias(const Graph& graph, NodeId node);

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

// The value whose elements are written where `id` is stored.
inline NodeId stored_part(const Graph& graph, NodeId id) {
  const bool is_part =
      family(graph[id]) == Family::kWriter && !combines_at_indices(info(graph[id]));
  return is_part ? graph[id].inputs[1] : id;
}
// The value whose elements a root goes over.
inline NodeId iterated_value(const Graph& graph, NodeId id) {
  if (family(graph[id]) == Family::kReduce) return graph[id].inputs[0];
  return family(graph[id]) == Family::kWriter ? graph[id].inputs[1] : id;
}

// Values that must be in memory: outputs, mutation values, operands of library calls.  Aliases are
// resolved to their bases; `aliases` lists the views themselves.
struct Demands {
  std::vector<bool> is_demanded;
  std::vector<Alias> aliases;
};
Demands find_demands(const Graph& graph);

}  // namespace stitch
