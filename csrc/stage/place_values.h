// Decides which values stay on chip between the loop nests of a kernel (AStitch A.12: computed
// once, kept in a register array) and which are read or recomputed again.
#pragma once

#include "stage/schedule.h"

namespace stitch {

// Fills schedule.kept_on_chip.
void place_values(const Graph& graph, StageSchedule& schedule);

// Under the schedule's placement; once that is final, StageSchedule::leaves.
std::vector<LeafUse> find_leaf_uses(const Graph& graph, const StageSchedule& schedule);

// Trips of a loop per thread; nothing when only known at run time.
std::optional<int64_t> trip_count(const StageSchedule& schedule, int loop);
// May one of the loops, but those of `axes`, have no trips?  What walks no other is read in loops
// of the same trips.
bool may_be_skipped(const Graph& graph, const StageSchedule& schedule,
                    const std::vector<int>& loops, const std::set<int>& axes);
// Elements of an array over loops; nothing when only known at run time.
std::optional<int64_t> array_length(const StageSchedule& schedule, const std::vector<int>& loops);
// What indexes arrays over the loop: one of those that an axis of strips has, whichever runs.
int array_loop(const StageSchedule& schedule, int loop);
// What indexes arrays over the loops of these blocks.
inline std::vector<int> array_loops(const StageSchedule& schedule, const std::vector<int>& blocks) {
  std::vector<int> loops;
  for (int block : blocks) add_once(loops, array_loop(schedule, schedule.blocks[block].loop));
  return loops;
}
// The loops a value's array is indexed by: those between the block where it is declared and the
// block where it is made, on axes it depends on.
std::vector<int> array_loops(const StageSchedule& schedule, NodeId value, int declared_in,
                             int made_in);
// The innermost block that holds all of `blocks`.
int common_block(const StageSchedule& schedule, const std::vector<int>& blocks);

}  // namespace stitch
