// A put becomes what the target does fastest:
//  * one row: a slice whose start is read from memory; so is one place for each row across;
//  * segments: each row combines its own part of the source, after one call has sorted the
//    positions by row.  Sums have the order of the source, the last of several writes wins;
//  * chunks, on CPUs, where the rows are few beside the positions: chunks of positions combine into
//    rows of their own, and these in the order of the chunks (privatisation, as for histograms);
//  * the call that eager makes, where that is cheaper.
// The results of none depend on threads.  No put is left in the graph that comes out.
#pragma once

#include "ir/graph.h"

namespace stitch {

Graph lower_scatters(const Graph& graph, bool on_host);

}  // namespace stitch
