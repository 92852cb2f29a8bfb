// Loads of a loop's next trip, before the barriers of this one: memory works while threads combine.
//
// for (i0 < 16) { s_5 = load(p0 + i0 * 4096); s_7 = all_reduce(...); ... } becomes
// s_9 = load(p0); for (i0 < 16) { s_5 = s_9; if (i0 + 1 < 16) s_9 = load(p0 + (i0 + 1) * 4096);
// s_7 = all_reduce(...); ... }: [4096, 4096] f32, variances of rows and sums of columns, 22.3 us
// to 20.7 (H200, by the clock).
#pragma once

#include "codegen/scopes.h"

namespace stitch {

inline constexpr int kAheadBytes = 16;  // of a vector that may go ahead

// The loop, with what goes before it.  Vectors that are loaded before a trip's first reduction and
// need nothing that the trip computes, in registers that a thread has left.
std::vector<Statement> load_ahead(Statement loop, int registers, Scopes& scopes);

}  // namespace stitch
