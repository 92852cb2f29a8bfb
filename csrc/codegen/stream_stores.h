// Stores that go past the caches of a host, a row at a time.
//
// A store to a line that no cache holds reads the line first, and takes another one's place.  A
// launch that moves more than the last cache holds does both in vain: at best the end of what it
// has stored is there for the next one.  Whole lines that are streamed move two thirds of a copy's
// bytes: of 64 MB in 0.65 of the time, of 16 in 0.8 to 1.1, of 8 in 1.2 to 1.5 [M, 2026-11].
// Compilers do not stream what they vectorise.  So a loop stores into a row on its stack, and a
// function of the device headers streams the row.
#pragma once

#include <set>

#include "codegen/scopes.h"

namespace stitch {

// What kernels store and no launch after them would find in a cache.  Not small results beside
// large ones, nor what is stored over an argument, whose lines are in the caches since it was read.
std::set<NodeId> find_streamed(const Graph& graph, const StitchPlan& plan,
                               const DeviceSpec& device);

// The loop of a block, its stores along the axis that it walks (Statement::streams_along) taken by
// rows.  [8192, 2048] of f32 over the inner axis: a loop over 256 elements, whose row is streamed,
// in a loop over the 8 rows of 1 KB.
std::vector<Statement> stream_stores(const StageSchedule& schedule, int block, Statement loop,
                                     Scopes& scopes);

}  // namespace stitch
