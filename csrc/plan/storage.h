// Where values live: which views are mere aliases of a base, and which values need memory.
#pragma once

#include <functional>
#include <optional>
#include <set>
#include <vector>

#include "plan/stitch_plan.h"

namespace stitch {

// Graph inputs and library results are memory to begin with.
bool is_materialised(const Node& node);

// The base of which `node` is a view without moving elements, if it is one; the base is not such a
// view itself, but may be a view that moves elements.
std::optional<PlannedAlias> find_alias(const Graph& graph, NodeId node);

// The stored values that evaluating `starts`, themselves not counted, stops at.
std::set<NodeId> find_reads(const Graph& graph, const std::vector<NodeId>& starts,
                            const std::function<bool(NodeId)>& is_stored);

// The stage of `roots`, ascending: evaluating them stops at the values that `is_loaded` names, and
// those that `is_stored` names are stored.  A pointwise root that is not is evaluated where it is
// needed, and is none of the stage's.
PlannedStage describe_stage(const Graph& graph, const std::vector<NodeId>& roots,
                            const std::function<bool(NodeId)>& is_loaded,
                            const std::function<bool(NodeId)>& is_stored);

// Values that must be in memory: outputs, mutation values, operands of library calls.  Aliases are
// resolved to their bases; `aliases` lists the views themselves.
struct Demands {
  std::vector<bool> is_demanded;
  std::vector<PlannedAlias> aliases;
};
Demands find_demands(const Graph& graph);

}  // namespace stitch
