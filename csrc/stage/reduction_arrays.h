// Arrays that reductions need per thread: accumulators over kept loops inside reduced ones, and
// homes of results that outlive the loops they are made in (DESIGN.md 3, honesty rules 3 and 6).
#pragma once

#include "stage/schedule.h"

namespace stitch {

// Blocks below `block` on the way to the root whose loops the root keeps, outermost first.
std::vector<int> kept_blocks_below(const StageSchedule& schedule, NodeId root, int block);
// The outermost block whose loop the root reduces; -1 where it has none.
int find_reduced_block(const StageSchedule& schedule, NodeId root);
// The innermost block that sees both the root's last combination and every reader; -1 when nobody
// reads on chip.
int home_block(const StageSchedule& schedule, NodeId root);

// On the host a sum of f32 adds a few terms in f32 (MappedAxis: strips, chunk) and what they come
// to in f64, which is what eager's CPU kernels carry statistics in.  Three roundings keep an
// element that one large term dominates within R10; after 32 terms in f32 it was off by 3.8 unit
// roundoffs, after 8 by 2.8.  f64 alone costs 1.2 to 1.9 times the time of f32 (measured, 2026-11).
// Results of 16 bits need no more than f32.  Nothing is wider than f64: its sums also add a few
// terms first, then, where f64 is loaded for them, keep beside the sum what additions round off.
// Plain sums of 5,000 large integers were off by 5 (rows) to 30 times (columns) as much as eager's,
// which cascade; of 24, by less than twice as much.  Columns take as long as before, rows up to 1.3
// times, in a cache.
inline constexpr int kFewTerms = 4, kFewWideTerms = 24;
bool is_cascaded(const Graph& graph, const StageSchedule& schedule, const RootSpace& space);
// Along rows each lane of a vector has a sum of its own, of up to so many elements of a byte.
inline constexpr int kVectorBytes = 64;
// What walks strips of its innermost axis: such sums, and scatters.  Where an index is sorted, each
// position of a scatter would wait for the one before it, which adds to the same element.
inline bool takes_strips(const Graph& graph, const StageSchedule& schedule,
                         const RootSpace& space) {
  return combines_at_indices(info(graph[space.root])) || is_cascaded(graph, schedule, space);
}

// On a GPU a thread that walks more terms of such a sum than kMostTerms has two accumulators: the
// terms of so many trips of this loop go to the first, a power of two near the square root that
// makes both walk equally many, and what they come to goes over to the second.  0: one accumulator.
// After 101 equal terms and one large, in one, the sum was off by 30 unit roundoffs.
inline constexpr int64_t kMostTerms = 32;
int find_carry(const Graph& graph, const StageSchedule& schedule, NodeId root, int block);

// Results of a thread that whole warps share out, one each, through so many slots of shared memory
// for each thread (stitch/block.cuh); 1: they exchange one after the other.
int exchange_slots(const StageSchedule& schedule, const RootSpace& space);

// Every array has a size known at compile time and fits where it must live.
Verdict check_arrays(const Graph& graph, const StageSchedule& schedule);

}  // namespace stitch
