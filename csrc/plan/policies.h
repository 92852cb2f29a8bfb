// How roots become stages and stages kernels: one row per policy.  Each paper's way can run alone,
// so that its claims can be reproduced, compared and regressed (DESIGN.md 4.4).
#pragma once

#include <string>

#include "plan/stitch_stages.h"

namespace stitch {

struct PlanCandidate {
  std::string policy;  // whose it is
  JoinedStages joined;
  StitchedKernels stitched;
};

// The candidate of a policy; "auto" answers with the one predicted to take the least time.
// UserError for an unknown name.
PlanCandidate plan_by_policy(const std::string& policy, const PlanRequest& request);

}  // namespace stitch
