// What reads a tensor after parts of it were replaced reads the parts, or what stands beside them:
//   slice(slice_scatter(x, src, [0, 2)), [0, 2))             becomes   src
//   slice(slice_scatter(x, src, [0, 2)), [4, 6))             becomes   slice(x, [4, 6))
//   slice_scatter(slice_scatter(x, a, [0, 2)), b, [0, 2))    becomes   slice_scatter(x, b, [0, 2))
// and what goes into a view without its dimensions of extent 1, and back, is put where it belongs
// (x[0, 1:3] = src, which torch writes as a slice_scatter of a selected row):
//   reshape(slice_scatter(reshape(y), src))                  becomes   slice_scatter(y,
//   reshape(src))
// Reads of what an input becomes, or of a result, stay: they are in memory.
#pragma once

#include "ir/graph.h"

namespace stitch {

Graph read_past_writes(const Graph& graph);

// Indices of one dimension: start, start + step, .., `count` of them; steps are positive.
struct Strip {
  Dim start, step, count;
  friend bool operator==(const Strip&, const Strip&) = default;
};
// Whether one is known to end before the other begins.
bool are_apart(const Strip& a, const Strip& b);

}  // namespace stitch
