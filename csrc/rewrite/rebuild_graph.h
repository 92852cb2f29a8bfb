// The frame of every pass: walks a graph, asks a rule for each node, builds the result, in which
// equal nodes are one (ir/builder.h).
//
// What a caller can see never changes, whatever a rule answers: inputs, symbols, mutations and
// outputs stay, outputs keep dtype, shape and strides and alias what they aliased; operands of
// library calls keep their strides, except that BLAS calls take any strides they can express.
#pragma once

#include "ir/builder.h"

namespace stitch {

struct RewriteSite {
  const Node& node;        // in the old graph
  NodeId id;               // of the node there
  const NodeList& inputs;  // its operands in the new graph
  const NodeList& made;    // by old node: the new one, of those before
  // Somebody outside sees the strides: the value reaches, through views, an output or a library
  // call.  A rule's answer with other strides is then dropped.
  bool strides_matter;
};

// The new node that stands for the old one, of equal dtype and shape; an invalid id: a copy of it.
using RewriteRule = std::function<NodeId(Builder& builder, const RewriteSite& site)>;

// `live`: the nodes that are built, which have every operand of one among them; empty: all.
Graph rebuild_graph(const Graph& graph, const RewriteRule& rule,
                    const std::vector<bool>& live = {});

inline DimList pick(const DimList& dims, const std::vector<int64_t>& positions) {
  return map_to_vector(positions, [&](int64_t d) { return dims[d]; });
}
inline DimList without_ones(DimList shape) {
  std::erase_if(shape, [](const Dim& extent) { return extent.is(1); });
  return shape;
}
// Any view but `layout`, which is a copy.  Where its elements are moved, it is one too.
inline bool is_plain_view(const Node& node) {
  return family(node) == Family::kView && node.op != OpKind::k_layout;
}
// Of the passes, rebuild_graph asks none for what one may write, and calls must not pass it.
inline bool writes_operands(const Node& node) {
  return node.op == OpKind::k_library && may_write_operands(node);
}
// The bases of outputs and of what inputs become, by node.
inline std::vector<bool> find_demanded(const Graph& graph) {
  const auto base_of = [&](NodeId id) { return storage_base(graph, id); };
  return mark_nodes(graph, map_to_vector(find_kept(graph), base_of));
}

// Indices of one dimension: start, start + step, .., `count` of them; steps are positive.
struct Strip {
  Dim start, step, count;
  friend bool operator==(const Strip&, const Strip&) = default;
};
// Whether one is known to end before the other begins.
bool are_apart(const Strip& a, const Strip& b);

}  // namespace stitch
