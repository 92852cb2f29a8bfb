// Which elements of a value a block accesses: AStitch 3.4's block-locality check.
//
// In: a schedule whose axes are mapped.  A block's range is [block * size, (block + 1) * size), the
// block counted as kernels count it: the last axis of the grid fastest.  Every element that a stage
// stores is stored by some block, so a stage whose blocks store inside their ranges alone stores
// each range whole; a stage whose blocks load inside the same ranges finds there all it loads.
#pragma once

#include "stage/schedule.h"

namespace stitch {

// The size of the ranges in which blocks store `value`: elements.  Nothing where they do not.
std::optional<int64_t> find_block_range(const StageSchedule& schedule, NodeId value);

// Whether every access of `value` stays inside its block's range: not where that depends on sizes
// or data that are only known when the kernel runs.
bool stays_in_range(const StageSchedule& schedule, NodeId value, int64_t size);

// Offsets in rows of `length` elements that begin `pitch` elements after each other instead.
// Nothing where some index counts rows and elements of one at once.
std::optional<IndexExpr> pad_rows(const StageSchedule& schedule, const IndexExpr& offset,
                                  int64_t length, int64_t pitch);

}  // namespace stitch
