// Inside of explore_patterns.h: how units hang together, and plans that are made of their patterns.
#pragma once

#include <vector>

#include "plan/explore_patterns.h"

namespace stitch {

// Consumers are sorted here, as producers are: nothing depends on the order that edges came in.
struct Topology : UnitGraph {
  std::vector<std::vector<int>> producers = {};
  // Producers before consumers, each as close to its first reader as may be: the units of a pattern
  // then stand close together, and what is searched between them is little.
  std::vector<int> order = {}, position = {};
  std::vector<int> depth = {}, height = {};  // edges of the longest way from a source, to a sink
};

// InternalError for a cycle or lists that do not fit each other.
Topology find_topology(const UnitGraph& graph);

// A set of units that may be a kernel, sorted, and what it saves as one.
struct ScoredPattern {
  std::vector<int> units;
  double gain_us = 0;
};

// The beam search (20.19): up to `beam` plans of disjoint patterns, no two of which wait for each
// other, the best first.
//
// A pattern's whole gain counts at its first unit, so that by accumulated gain alone a packing of
// many units beats the better patterns that each of them is still to begin, and nothing else is
// left in the beam.  A second search therefore subtracts what the units could have gained
// elsewhere; the best plans of both are kept.
std::vector<FusionPlan> search_plans(const Topology& topology,
                                     const std::vector<ScoredPattern>& patterns, int beam);

}  // namespace stitch
