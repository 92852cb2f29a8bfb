// Builds the loop tree of a kernel: roots share loops as deep as their dependences allow.
#pragma once

#include "stage/map_axes.h"

namespace stitch {

// Fills schedule.blocks from schedule.loops and the roots' dependences.
void build_loops(const Graph& graph, StageSchedule& schedule);

// Does the root reduce along the loop's axis?
inline bool reduces_loop(const StageSchedule& schedule, const RootSpace& space, int loop) {
  return role_of(space, schedule.axes[schedule.loops[loop].axis].axis) == Role::kReduced;
}
// On the host: is the loop one inside the vectorised loop?
inline bool is_written_out(const StageSchedule& schedule, int loop) {
  const LoopSpec& spec = schedule.loops[loop];
  return spec.level == Level::kStrip || schedule.axes[spec.axis].is_unrolled;
}
// Is this block's loop the innermost one that is not written out?
bool is_innermost(const StageSchedule& schedule, int block);
// Elements from lane to lane of a host's vectorised loop up to which vectors load them.
inline constexpr int64_t kMostBetweenLanes = 8;
inline const RootSpace& space_of(const StageSchedule& schedule, NodeId root) {
  return space_of(schedule.spaces, root);
}
// Blocks from the kernel's body to this one, or to the one whose items hold the root.
std::vector<int> block_path(const StageSchedule& schedule, int block);
std::vector<int> path_to(const StageSchedule& schedule, NodeId root);
// Of the block and those inside it, in order.
NodeList roots_below(const StageSchedule& schedule, int block);
// Of a path, those inside of `block`; none where it is not on the path.
inline std::vector<int> blocks_below(std::vector<int> path, int block) {
  const auto at = std::ranges::find(path, block);
  path.erase(path.begin(), at == path.end() ? at : at + 1);
  return path;
}
// The loops around what the block holds, outermost first: all, or those inside of `outer`.
inline std::vector<int> loops_around(const StageSchedule& schedule, int block, int outer = 0) {
  return map_to_vector(blocks_below(block_path(schedule, block), outer),
                       [&](int at) { return schedule.blocks[at].loop; });
}

}  // namespace stitch
