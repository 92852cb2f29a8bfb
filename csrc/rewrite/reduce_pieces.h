// A reduction as one over pieces of its operand and one over the pieces' results, both of ordinary
// nodes, so that what needs a first result to take a second look (deviations from a mean,
// exponentials of what lies below a maximum) looks at one piece again, not at all of memory.
#pragma once

#include <optional>

#include "rewrite/rebuild_graph.h"

namespace stitch {

// How a dimension is cut.  One of count and length is 0: it follows from the extent.
//
// A block's piece is what one block reads: {dim 1, count 4} of [64, 131072] is [64, 4, 32768],
// reduced over 2, then [64, 4] over 1.  A thread's piece is what one thread holds: {dim 1, length
// 4, lanes 128, vector 4} of [4096, 49152] is [4096, 24, 4, 128, 4], reduced over 2 and 4, then
// [4096, 24, 128] over 1 and 2.
struct Pieces {
  int64_t dim = -1;
  int64_t joined = 0;  // reduced dimensions right before `dim` that are cut with it, as one
  int64_t count = 0, length = 0;
  int64_t lanes = 1, vector = 1;  // adjacent threads have adjacent vectors

  int64_t elements() const { return length * lanes * vector; }  // where the length is given
};

// A sum of exp(x - reference), where the reference is the same for all that one sum is over.
struct Exponentials {
  NodeId x, reference;
};
std::optional<Exponentials> find_exponentials(const Graph& graph, const Node& sum);

// `terms`: of a sum that takes its pieces' exponentials from their own maxima,
//   sum(exp(x - r)) = sum over pieces of exp(m - r) * sum(exp(x - m)),   m = max(x) of the piece
// (Milakov and Gimelshein 2018).  sum_sq_dev takes deviations from its pieces' own means (Chan,
// Golub and LeVeque 1979); padded pieces count what they hold.
NodeId reduce_pieces(Builder& b, const RewriteSite& site, const Pieces& pieces,
                     const std::optional<Exponentials>& terms);

}  // namespace stitch
