// How roots become stages and stages kernels: one row per policy.  Each paper's way can run alone,
// so that its claims can be reproduced, compared and regressed (DESIGN.md 4.4).
#pragma once

#include <string>

#include "plan/stitch_stages.h"

namespace stitch {

// The candidate of a policy; "auto" answers with the one predicted to take the least time.
// UserError for an unknown name.
PlanCandidate plan_by_policy(const std::string& policy, const PlanRequest& request);

// FusionStitching 2020's exploration over the roots of a graph: its units, its delta evaluator.
// Up to three plans, the best first: sets of roots to share a kernel, each ascending.  Patterns are
// scored without a schedule, by the bytes and launches that they save (20.20-20.23), and refused
// where one mapping cannot serve them (20.17).
std::vector<std::vector<std::vector<NodeId>>> plan_patterns(const PlanRequest& in,
                                                            const std::vector<NodeId>& roots);

}  // namespace stitch
