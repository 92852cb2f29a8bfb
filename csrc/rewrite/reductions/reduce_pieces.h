// A reduction as one over pieces of its operand and one over the pieces' results, both of ordinary
// nodes, so that what needs a first result to take a second look (deviations from a mean,
// exponentials of what lies below a maximum) looks at one piece again, not at all of memory.
#pragma once

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

// A sum of f * exp(x - r) or f * exp(x - r) * (x - s), where f, r and s are the same for all of its
// terms: what softmax makes, and its entropy.
struct Exponentials {
  struct Scale {
    OpKind op;     // mul or div by the value, neg
    NodeId value;  // invalid for neg
  };
  NodeId x;
  NodeList exponent;               // r, subtracted one after the other
  std::optional<NodeList> factor;  // s, of a factor x - s
  std::vector<Scale> scales;       // f
};
// `rounded`: where 16 bits must be rounded on the way.
std::optional<Exponentials> find_exponentials(const Graph& graph, const Node& sum,
                                              const std::set<NodeId>& rounded);
// Whether something that is the same for all terms of one sum is marked.
bool waits_for(const Exponentials& terms, const std::vector<bool>& marked);

// `terms`: of a sum that takes its pieces' exponentials from their own maxima,
//   sum(exp(x - r)) = sum over pieces of exp(m - r) * sum(exp(x - m)),   m = max(x) of the piece
// (Milakov and Gimelshein 2018).  Of exp(x - r) * (x - s) a piece's share is
//   exp(m - r) * (sum(exp(x - m) * (x - m)) + (m - s) * sum(exp(x - m))):
// of n terms those that weigh lie within log(n) of the maximum, so that the two cancel no more.
// sum_sq_dev takes deviations from its pieces' own means (Chan, Golub and LeVeque 1979); padded
// pieces count what they hold.
NodeId reduce_pieces(Builder& b, const RewriteSite& site, const Pieces& pieces,
                     const std::optional<Exponentials>& terms);

}  // namespace stitch
