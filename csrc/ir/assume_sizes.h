// What plans take sizes known at run time for: those that the graph was traced with, or near them.
//
// x [s0, s1] with hints [5120, 2000]: s1 is a multiple of 8, so that vectors of 16 bytes fit
// (s1 = 8 * s2); rows have at most 2048 elements, so that a thread's loop over its part of a row is
// written out and its loads are kept; offsets are below 2^31, so that addresses are worked out in
// 32 bits.  A call whose sizes break any of it runs another program (bindings/compiled_graph.h).
#pragma once

#include "ir/graph.h"

namespace stitch {

// With the contiguous extents of large values, where the hints are multiples of 8, as 8 times a
// symbol, and the reduced ones as 8 or 16 times one, or where 65,536 elements or more are reduced
// as up to an eighth of them times one; the graph as it is unless nearness is kClass.
Graph assume_units(const Graph& graph);

// That threads which advance `step` elements a trip cover an extent in few trips, nearly as few as
// the hint's: 3000 by 512 are at most 3072.  Nothing where they are more than `most_trips`, or not
// to be assumed.
std::optional<Assumption> assume_few_trips(const SymbolTable& symbols, const Dim& extent,
                                           int64_t step, int64_t most_trips);

// That a sum of positive terms stays below 2^31; nothing where the hints' does not.
std::optional<Assumption> assume_small(const SymbolTable& symbols, const Dim& largest);

// The table with the sizes of a call as its hints.
SymbolTable with_hints(SymbolTable symbols, const std::vector<int64_t>& integers);

}  // namespace stitch
