// FusionStitching 2020's exploration over the roots of a graph: its units, its delta evaluator.
#pragma once

#include <vector>

#include "plan/join_stages.h"

namespace stitch {

// Up to three plans, the best first: sets of roots to share a kernel, each ascending.  Patterns are
// scored without a schedule, by the bytes and launches that they save (20.20-20.23), and refused
// where one mapping cannot serve them (20.17).
std::vector<std::vector<std::vector<NodeId>>> plan_patterns(const PlanRequest& in,
                                                            const std::vector<NodeId>& roots);

}  // namespace stitch
