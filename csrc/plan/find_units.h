// The graph of units: what plans are made of, and what waits for what.
//
// Joining, patterns and kernels start from it.  A unit is a root with all that it evaluates, or a
// library call; it waits for what makes the values and the sizes that it reads, and a call with
// effects for the one before it.  y = softmax(x) @ w: amax, sum and the quotient are units 0 to 2,
// the product is unit 3, which reads 2.
#pragma once

#include "analysis/storage.h"

namespace stitch {

struct Unit {
  NodeId node;  // the root, or the call
  bool is_call = false;
  int level = 0;             // plan/find_levels.h
  Cone cone = {};            // what it evaluates, and what it loads
  std::set<int> reads = {};  // the units that it waits for
};

struct PlanUnits {
  std::vector<Unit> list;  // ascending by node, so that each can run after those before it
  std::vector<int> of;     // by node; -1: neither a root nor a call
};

// `roots`: ascending.
PlanUnits find_units(const Graph& graph, const NodeList& roots);

}  // namespace stitch
