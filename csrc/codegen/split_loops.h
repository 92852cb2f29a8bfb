// Where loops of host kernels are cut: at the borders of parts, behind whole vectors, and into rows
// that are stored past the caches, or of what is made for neighbours together.
#pragma once

#include "codegen/scopes.h"
#include "plan/stitch_plan.h"

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

// A store to a line that no cache holds reads the line first, and takes another one's place.  A
// launch that moves more than the last cache holds does both in vain: at best the end of what it
// has stored is there for the next one.  Whole lines that are streamed move two thirds of a copy's
// bytes: of 64 MB in 0.65 of the time, of 16 in 0.8 to 1.1, of 8 in 1.2 to 1.5 [M, 2026-11].
// Compilers do not stream what they vectorise.  So a loop stores into a row on its stack, and a
// function of the device headers streams the row.
//
// What kernels store and no launch after them would find in a cache.  Not small results beside
// large ones, nor what is stored over an argument, whose lines are in the caches since it was read.
std::set<NodeId> find_streamed(const Graph& graph, const StitchPlan& plan,
                               const DeviceSpec& device);

// The loop of a block by rows of the axis that it walks, where something in it is marked so
// (Statement::by_rows_along): stores fill a row that is streamed behind it, and what costs less for
// neighbours together is made as a row before it.  [8192, 2048] of f32 over the inner axis: a loop
// over 256 elements in a loop over the 8 rows of 1 KB.
std::vector<Statement> walk_by_rows(const StageSchedule& schedule, int block, Statement loop,
                                    Scopes& scopes);

}  // namespace stitch
