// The beam search of fusion exploration (FusionStitching 2020, 20.19): plans of disjoint patterns,
// no two of which wait for each other.  Inside of explore_patterns.h.
//
// A pattern's whole gain counts at its first unit, so that by accumulated gain alone a packing of
// many units beats the better patterns that each of them is still to begin, and nothing else is
// left in the beam.  A second search therefore subtracts what the units could have gained
// elsewhere; the best plans of both are kept.
#pragma once

#include <vector>

#include "plan/explore_patterns.h"
#include "plan/pattern_pool.h"

namespace stitch {

// `patterns`: ids in the pool, in any order.  Up to `beam` plans, the best first.
std::vector<FusionPlan> search_plans(const Topology& topology, const PatternPool& pool,
                                     std::vector<int> patterns, int beam);

}  // namespace stitch
