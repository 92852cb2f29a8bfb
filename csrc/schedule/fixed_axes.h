// Reads of a value at fixed indices of an axis: the halves of a rotated row, one of a few channels.
//
// A value made at index (p, i) and read at (1, i) is the same array on chip at another position, if
// one thread holds the axis p: the mapping is asked for that, the placement checks it.
#pragma once

#include <optional>
#include <set>

#include "schedule/stage_schedule.h"

namespace stitch {

using FixedAxes = std::map<int, int64_t>;  // axis -> the index it is read at

// The axes that run in `made` and stand still in `read`, all else being the same: none where both
// are equal, nothing where `read` is no such index.  `vars` names the variables of both.
std::optional<FixedAxes> find_fixed_axes(const StageSchedule& schedule, const IndexVars& vars,
                                         const Index& made, const Index& read);
// Short axes that one thread should hold: of states made one from another, or a reduction evaluates
// a value along them that a root which waits for it reads at fixed indices.
std::set<int> find_piece_axes(const Graph& graph, const StageSchedule& schedule);

}  // namespace stitch
