// Arrays that reductions need per thread: accumulators over kept loops inside reduced ones, and
// homes of results that outlive the loops they are made in (DESIGN.md 3, honesty rules 3 and 6).
#pragma once

#include "base/verdict.h"
#include "schedule/stage_schedule.h"

namespace stitch {

// Blocks below `block` on the way to the root whose loops the root keeps, outermost first.
std::vector<int> kept_blocks_below(const StageSchedule& schedule, NodeId root, int block);
// The block in which the root's last combination happens: outside its outermost reduced loop.
int finish_block(const StageSchedule& schedule, NodeId root);
// The innermost block that sees both the finish and every reader; -1 when nobody reads on chip.
int home_block(const StageSchedule& schedule, NodeId root);

inline constexpr int kRuleUnboundedArray = 21;
inline constexpr int kRuleLargeArray = 23;

// Every array has a size known at compile time and fits where it must live.
Verdict check_arrays(const Graph& graph, const StageSchedule& schedule);

}  // namespace stitch
