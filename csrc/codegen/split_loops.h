// Where loops of host kernels are cut: at the borders of parts, and behind whole vectors.
#pragma once

#include <vector>

#include "codegen/kernel_body.h"
#include "schedule/stage_schedule.h"

namespace stitch {

// Indices [low, high) of an axis.
struct AxisRange {
  int axis = -1;
  int64_t low = 0, high = 0;
};

// Ranges that a block's loop is cut into, in order, so that each lies within one part of every cat,
// pad and scattered slice that is evaluated along the loop's axis alone: an index then chooses
// nothing, and no part but one is looked at.  Empty where the loop stays whole: on a GPU, where it
// is cut otherwise already or sums, where extents are symbolic, and where there would be more than
// `most`: each is a loop of its own in the kernel's text.
constexpr int kMostRanges = 256;
std::vector<AxisRange> find_ranges(const Graph& graph, const StageSchedule& schedule, int block,
                                   int most = kMostRanges);

// Within a range of its axis, is `low <= index < high`?  Unknown where it is so for some.
enum class Holds { kAlways, kNever, kUnknown };
Holds holds_in(const std::vector<AxisRange>& ranges, const StageSchedule& schedule,
               const IndexVars& vars, const Condition& condition);

// A loop of constant bounds as loops whose trips are whole vectors of 16, 8 and 4 lanes, and the
// rest: compilers run what remains of an `omp simd` loop one element at a time, each of which takes
// as long as two vectors do.
std::vector<Statement> split_vectors(Statement loop);

}  // namespace stitch
