// Evaluates a value at an index by walking back through the graph: the one place that knows which
// elements an op reads.  Views and readers become index arithmetic; loads, arithmetic and
// reductions are reported to a sink.  Analysis collects accesses with it, codegen emits text.
#pragma once

#include "analysis/index_expr.h"
#include "ir/graph.h"

namespace stitch {

using Handle = int;  // what a sink calls a scalar
using Index = std::vector<IndexExpr>;

// low <= index < high, under an outer condition; `guard` handles are made by the sink, 0 = always.
struct Condition {
  IndexExpr index;
  Dim low, high;
};

// One row of a node that combines segments: positions [first, last), 0 where the guard fails.
struct Segment {
  NodeId node;
  const Index& index;
  Handle initial, first, last;
  int guard;
};

class WalkSink {
 public:
  virtual ~WalkSink() = default;
  // A value already known at this index (memoised or kept on chip), or nothing.
  virtual std::optional<Handle> find(NodeId value, const Index& index, int guard) = 0;
  virtual void remember(NodeId value, const Index& index, int guard, Handle handle) = 0;

  virtual bool is_load(NodeId value) = 0;
  virtual Handle load(NodeId value, const IndexExpr& offset, int guard) = 0;
  virtual Handle reduced(NodeId reduction, const Index& index) = 0;
  virtual Handle constant(const Node& node) = 0;
  virtual Handle from_index(DType dtype, const IndexExpr& index) = 0;
  virtual Handle pointwise(NodeId node, const std::vector<Handle>& operands, int guard) = 0;
  // Bounds-checks an index that was read from memory for `node`, by its counts_from_end.
  virtual Handle checked_index(NodeId node, Handle value, const Dim& extent, int guard) = 0;
  // An index that needs no check.
  virtual Handle known_index(Handle value) = 0;
  virtual int begin_guard(const Condition& condition, int outer) = 0;
  // The guard holds nowhere: what it guards need not be evaluated.
  virtual bool excludes(int) { return false; }
  virtual Handle choose(int guard, Handle inside, Handle outside, DType dtype) = 0;
  // Between the two, values are evaluated once for each position of the segment: the answer.
  virtual Handle begin_segment(const Segment& segment) = 0;
  virtual Handle end_segment(const Segment& segment, Handle element) = 0;

  IndexExpr as_index(Handle value, const Dim& extent) {
    return index_of(vars.value(value, extent));
  }

  IndexVars vars;
};

// Of what each dimension of a value has, what those of an operand that broadcasts to it have, `one`
// where the extent is 1: mostly the value's own, else in `out`.
template <class Item>
const std::vector<Item>& broadcast(const TensorType& operand, const std::vector<Item>& items,
                                   std::vector<Item>&& out = {}, const Item& one = {}) {
  const auto is_one = [](const Dim& extent) { return extent.is(1); };
  if (operand.rank() == std::ssize(items) && std::ranges::none_of(operand.shape, is_one))
    return items;
  out.assign(operand.rank(), one);
  const int shift = static_cast<int>(items.size()) - operand.rank();
  for (int d = 0; d < operand.rank(); ++d)
    if (!operand.shape[d].is(1)) out[d] = items[d + shift];
  return out;
}

// Extent of the parts of a cat along its dimension when they are few and equal, else 0:
// such a cat refines into atoms [parts, part] and needs no masked reads (DESIGN.md 3, rule 5).
Dim equal_part(const Graph& graph, const Node& cat);
// Are a cat's parts of extent 1, few, and each an operand of the next, as sums of more and more
// terms are?  What evaluates the last has then evaluated all.
constexpr int64_t kMostStates = 16;  // loops of more trips stay loops (STITCH_UNROLL)
bool holds_states(const Graph& graph, const Node& cat);

// The index that a segment's rows were sorted by, where the graph shows it: at each position of a
// segment it holds the segment's row.  Behind reshapes; an invalid id where it is not known.
NodeId find_sorting_index(const Graph& graph, const Node& segment);
inline NodeId skip_reshapes(const Graph& graph, NodeId id) {
  while (graph[id].op == OpKind::k_reshape) id = graph[id].inputs[0];
  return id;
}

Handle walk(const Graph& graph, WalkSink& sink, NodeId value, const Index& index, int guard = 0);
// What a reduction or a writer takes in, or a root's own expression, with no `find` for the root.
Handle walk_root(const Graph& graph, WalkSink& sink, NodeId root, const Index& index);
// Where a root stores what it makes at `index`, in elements.
IndexExpr stored_offset(const Graph& graph, WalkSink& sink, NodeId root, const Index& index);
// Address of an element of a materialised value, in elements.
IndexExpr element_offset(const TensorType& type, const Index& index);

}  // namespace stitch
