#include "analysis/index_walk.h"

#include "analysis/storage.h"

namespace stitch {
namespace {

// A segment whose positions are walked.
struct OpenSegment {
  NodeId sorting_index;
  IndexExpr place, row;  // of the position that is taken, and the segment's own
  Dim rows;
};

// dims = {start, step}, as iota and slices have them.
IndexExpr step_to(const Node& node, const IndexExpr& index) {
  return IndexExpr{node.dims[0], {}} + index * node.dims[1];
}

// The row of a segment that is walked, where that is what the index `source` holds at `place`.
const IndexExpr* find_row(const std::vector<OpenSegment>& open, NodeId source, const Index& place,
                          const Dim& extent) {
  for (const OpenSegment& segment : open) {
    const bool is_row = source == segment.sorting_index && extent == segment.rows &&
                        place.size() == 1 && place[0] == segment.place;
    if (is_row) return &segment.row;
  }
  return nullptr;
}

struct Walker {
  const Graph& graph;
  WalkSink& sink;
  std::vector<OpenSegment> open = {};

  Handle value(NodeId id, const Index& index, int guard) {
    if (auto known = sink.find(id, index, guard)) return *known;
    const Handle handle =
        sink.is_load(id)
            ? sink.load(id, sink.vars.join_digits(element_offset(graph[id].type, index)), guard)
            : compute(id, index, guard);
    sink.remember(id, index, guard, handle);
    return handle;
  }

  Handle compute(NodeId id, const Index& index, int guard) {
    const Node& node = graph[id];
    const Family kind = family(node);
    if (node.op == OpKind::k_full) return sink.constant(node);
    if (kind == Family::kSource) return sink.from_index(node.type.dtype, step_to(node, index[0]));
    if (kind == Family::kReduce) return sink.reduced(id, index);
    if (kind == Family::kView) return value(node.inputs[0], view_index(node, index), guard);
    if (kind == Family::kReader) return read(id, index, guard);
    STITCH_CHECK(kind == Family::kPointwise,
                 "a kernel evaluates " << info(node).name << ", which must be materialised");
    const auto operands = map_to_vector(node.inputs, [&](NodeId input) {
      return value(input, broadcast(graph[input].type, index), guard);
    });
    return sink.pointwise(id, operands, guard);
  }

  Index view_index(const Node& node, const Index& index) {
    const TensorType& type = graph[node.inputs[0]].type;
    if (node.op == OpKind::k_expand) return broadcast(type, index);
    if (node.op == OpKind::k_reshape)
      return unflatten(sink.vars.join_digits(flatten(index, node.type.shape)), type.shape);
    Index out = index;  // of a layout as it is
    if (node.op == OpKind::k_slice) out[node.ints[0]] = step_to(node, index[node.ints[0]]);
    if (node.op == OpKind::k_permute)
      for (size_t d = 0; d < index.size(); ++d) out[node.ints[d]] = index[d];
    if (node.op == OpKind::k_flip)
      for (int64_t d : node.ints) out[d] = IndexExpr{type.shape[d] - Dim(1), {}} - index[d];
    return out;
  }

  Index unflatten(IndexExpr flat, const DimList& shape) {
    Index out(shape.size());
    for (size_t d = shape.size(); d-- > 0;) {
      if (shape[d].is(1)) continue;
      const bool outermost =
          std::all_of(shape.begin(), shape.begin() + d, [](const Dim& e) { return e.is(1); });
      out[d] = outermost ? flat : sink.vars.remainder(flat, shape[d]);
      if (outermost) break;
      flat = sink.vars.divide(flat, shape[d]);
    }
    return out;
  }

  Handle read(NodeId id, const Index& index, int guard) {
    const Node& node = graph[id];
    if (combines_segments(info(node))) return read_segment(id, index, guard);
    if (node.op == OpKind::k_cat) return read_cat(node, index, guard);
    if (node.op == OpKind::k_pad) return read_pad(node, index, guard);
    if (node.op == OpKind::k_slice_scatter) return read_slice_scatter(id, index, guard);
    if (node.op != OpKind::k_gather) return read_index(id, index, guard);
    Index out = index;
    const int64_t dim = node.ints[0];
    out[dim] = read_place(id, node.inputs[1], index, graph[node.inputs[0]].type.shape[dim], guard);
    return value(node.inputs[0], out, guard);
  }

  Handle read_segment(NodeId id, const Index& index, int guard) {
    if (auto known = sink.find(id, index, guard)) return *known;  // a root has not been looked for
    const Node& node = graph[id];
    const NodeId order = node.inputs[2], offsets = node.inputs[3];
    const int64_t dim = node.ints[0];
    const IndexExpr next = index[dim] + IndexExpr{1, {}};
    const Handle initial = value(node.inputs[0], index, guard);
    const Handle first = value(offsets, {index[dim]}, guard);
    const Segment segment{id, index, initial, first, value(offsets, {next}, guard), guard};
    const Dim& count = graph[order].type.shape[0];
    const IndexExpr position = sink.as_index(sink.begin_segment(segment), count);
    const Handle place = value(order, {position}, guard);
    Index taken = index;
    taken[dim] = sink.as_index(sink.known_index(place), count);
    open.push_back({find_sorting_index(graph, node), taken[dim], index[dim], node.type.shape[dim]});
    const Handle element = value(node.inputs[1], taken, guard);
    open.pop_back();
    return sink.end_segment(segment, element);
  }

  // Every index of the output is an index of every part, so all are read and one is chosen.
  std::optional<Handle> read_equal_parts(const Node& node, const Index& index, int guard) {
    const int64_t dim = node.ints[0];
    const Dim extent = equal_part(graph, node);
    if (extent.is(0)) return std::nullopt;
    const IndexExpr piece = sink.vars.divide(index[dim], extent);
    if (!walks_atoms_alone(sink.vars, piece)) return std::nullopt;
    Index inside = index;
    inside[dim] = sink.vars.remainder(index[dim], extent);
    std::optional<Handle> result;
    for (size_t i = node.inputs.size(); i-- > 0;) {
      const Handle part = value(node.inputs[i], inside, guard);
      const int64_t at = static_cast<int64_t>(i);
      result =
          result ? sink.choose(begin_guard({piece, at, at + 1}, 0), part, *result, node.type.dtype)
                 : part;
    }
    return result;
  }

  // Bounds of whole units ask for the units: nothing of it changes from lane to lane.
  int begin_guard(const Condition& condition, int outer) {
    const auto& [index, low, high] = condition;
    const auto [unit, count, rest] = sink.vars.find_units(index, {low, high});
    return sink.begin_guard({count, *divide_exact(low, unit), *divide_exact(high, unit)}, outer);
  }

  // At an index that lies within the operand along `dim`, where the guard holds.
  Handle part(NodeId id, const Index& index, int64_t dim, int guard) {
    sink.vars.assume(index[dim], graph[id].type.shape[dim]);
    const Handle result = value(id, index, guard);
    sink.vars.forget();
    return result;
  }

  // Parts are tried last to first, so that part i is chosen where index < end of part i.
  Handle read_cat(const Node& node, const Index& index, int guard) {
    if (auto chosen = read_equal_parts(node, index, guard)) return *chosen;
    const int64_t dim = node.ints[0];
    DimList begin{0};
    for (NodeId part : node.inputs) begin.push_back(begin.back() + graph[part].type.shape[dim]);
    std::optional<Handle> result;
    for (size_t i = node.inputs.size(); i-- > 0;) {
      if (graph[node.inputs[i]].type.shape[dim].is(0)) continue;
      const int inside = begin_guard({index[dim], begin[i], begin[i + 1]}, guard);
      // Where the cat itself is excluded any part does.
      if (sink.excludes(inside) && (i > 0 || result)) continue;
      Index part_index = index;
      part_index[dim] = index[dim] - IndexExpr{begin[i], {}};
      const Handle own = part(node.inputs[i], part_index, dim, inside);
      result = result ? sink.choose(inside, own, *result, node.type.dtype) : own;
    }
    STITCH_CHECK(result.has_value(), "cat of nothing but empty tensors is evaluated");
    return *result;
  }

  Handle read_pad(const Node& node, const Index& index, int guard) {
    const TensorType& type = graph[node.inputs[0]].type;
    Index inner = index;
    int inside = guard, assumed = 0;
    for (int d = 0; d < type.rank(); ++d) {
      inner[d] = index[d] - IndexExpr{node.dims[d], {}};
      if (node.dims[d].is(0) && type.shape[d] == node.type.shape[d]) continue;
      inside = begin_guard({index[d], node.dims[d], node.dims[d] + type.shape[d]}, inside);
      sink.vars.assume(inner[d], type.shape[d]);
      ++assumed;
    }
    // `number` and `integer` mean what they do for `full`.
    const Handle outside = sink.constant(node);
    const Handle own = sink.excludes(inside) ? outside : value(node.inputs[0], inner, inside);
    while (assumed-- > 0) sink.vars.forget();
    return inside == guard ? own : sink.choose(inside, own, outside, node.type.dtype);
  }

  // An integer that is counted, not read: of arange, and what is made of it by views and sums.
  std::optional<IndexExpr> count(NodeId id, const Index& index) {
    const Node& node = graph[id];
    const auto operand = [&](int i) {
      const NodeId input = node.inputs[i];
      return count(input, broadcast(graph[input].type, index));
    };
    // What wraps in 32 bits is the same again once it lies within an extent.
    const DTypeInfo& type = info(node.type.dtype);
    if (!type.is_integer || type.bytes < 4) return std::nullopt;
    if (node.op == OpKind::k_full) return IndexExpr{node.integer, {}};
    if (node.op == OpKind::k_iota) return step_to(node, index[0]);
    if (node.op == OpKind::k_cast) return operand(0);
    if (family(node) == Family::kView) return count(node.inputs[0], view_index(node, index));
    if (node.op != OpKind::k_add && node.op != OpKind::k_sub) return std::nullopt;
    const std::optional<IndexExpr> a = operand(0), b = a ? operand(1) : std::nullopt;
    if (!b) return std::nullopt;
    return node.op == OpKind::k_add ? *a + *b : *a - *b;
  }

  // The index that `operand` holds at `place`, of `extent` that `reader` may read.  One that is
  // counted within it needs no check, and lanes read by it as by a view: x[arange(n)[:, None], i]
  // walks rows.
  IndexExpr read_place(NodeId reader, NodeId operand, const Index& place, const Dim& extent,
                       int guard) {
    const std::optional<IndexExpr> counted = count(operand, place);
    if (counted && sink.vars.is_below(*counted, extent)) return *counted;
    const Handle read = value(operand, place, guard);
    return sink.as_index(sink.checked_index(reader, read, extent, guard), extent);
  }

  // The start along the dimension in `ints` that the last operand holds.
  IndexExpr read_start(NodeId id, const Index& index, int guard) {
    const Node& node = graph[id];
    const NodeId operand = node.inputs[2];
    return read_place(id, operand, broadcast(graph[operand].type, index),
                      node.type.shape[node.ints[0]], guard);
  }

  Handle read_slice_scatter(NodeId id, const Index& index, int guard) {
    const Node& node = graph[id];
    const int64_t dim = node.ints[0];
    Index inner = index;
    if (node.inputs.size() == 3) {  // of extent 1 where a start that is read from memory says
      const int inside = begin_guard({index[dim] - read_start(id, index, guard), 0, 1}, guard);
      inner[dim] = {};
      const Handle base = value(node.inputs[0], index, guard);
      // One element for all along `dim`: it may be read wherever x may.
      return sink.choose(inside, value(node.inputs[1], inner, guard), base, node.type.dtype);
    }
    const Dim start = node.dims[0], step = node.dims[1];
    const Dim end = start + graph[node.inputs[1]].type.shape[dim] * step;
    int inside = begin_guard({index[dim], start, end}, guard);
    const IndexExpr moved = index[dim] - IndexExpr{start, {}};
    inner[dim] = sink.vars.divide(moved, step);
    if (!step.is(1)) inside = begin_guard({sink.vars.remainder(moved, step), 0, 1}, inside);
    if (inside == guard) return part(node.inputs[1], inner, dim, inside);
    const Handle base = value(node.inputs[0], index, guard);
    if (sink.excludes(inside)) return base;
    return sink.choose(inside, part(node.inputs[1], inner, dim, inside), base, node.type.dtype);
  }

  Handle read_index(NodeId id, const Index& index, int guard) {
    const Node& node = graph[id];
    const TensorType& type = graph[node.inputs[0]].type;
    int rank = 0;  // of the indices, broadcast together
    for (size_t i = 1; i < node.inputs.size(); ++i)
      rank = std::max(rank, graph[node.inputs[i]].type.rank());
    const bool adjacent = node.ints.back() - node.ints.front() == std::ssize(node.ints) - 1;
    const int64_t first = adjacent ? node.ints.front() : 0;
    Index shared(index.begin() + first, index.begin() + first + rank);
    Index out(type.rank());
    for (int d = 0, from = 0; d < type.rank(); ++d) {
      auto indexed = std::ranges::find(node.ints, d);
      if (indexed == node.ints.end()) {
        if (from == first) from += rank;
        out[d] = index[from++];
        continue;
      }
      NodeId operand = node.inputs[1 + (indexed - node.ints.begin())];
      const Index place = broadcast(graph[operand].type, shared);
      const IndexExpr* row = find_row(open, skip_reshapes(graph, operand), place, type.shape[d]);
      out[d] = row ? *row : read_place(id, operand, place, type.shape[d], guard);
    }
    return value(node.inputs[0], out, guard);
  }
};

}  // namespace

NodeId find_sorting_index(const Graph& graph, const Node& segment) {
  const Node& order = graph[segment.inputs[2]];
  if (order.op != OpKind::k_get) return {};
  const Node& call = graph[order.inputs[0]];
  const bool sorts = call.name == kSegmentsCall;
  return sorts ? skip_reshapes(graph, call.inputs[order.ints[0] / 2]) : NodeId();
}

bool holds_states(const Graph& graph, const Node& cat) {
  if (cat.op != OpKind::k_cat || std::ssize(cat.inputs) > kMostStates) return false;
  for (size_t i = 0; i < cat.inputs.size(); ++i) {
    const Node& state = graph[cat.inputs[i]];
    const bool follows = i == 0 || std::ranges::count(state.inputs, cat.inputs[i - 1]) > 0;
    if (!follows || !state.type.shape[cat.ints[0]].is(1)) return false;
  }
  return true;
}

Dim equal_part(const Graph& graph, const Node& cat) {
  constexpr size_t kMostParts = 4;  // all are evaluated
  const int64_t dim = cat.ints[0];
  const Dim& extent = graph[cat.inputs[0]].type.shape[dim];
  const bool are_few = cat.inputs.size() <= kMostParts || holds_states(graph, cat);
  if (!are_few || may_be_empty(extent, graph.symbols)) return 0;
  const bool equal = std::ranges::all_of(
      cat.inputs, [&](NodeId part) { return graph[part].type.shape[dim] == extent; });
  return equal ? extent : 0;
}

IndexExpr element_offset(const TensorType& type, const Index& index) {
  IndexExpr offset;
  for (int d = 0; d < type.rank(); ++d)
    if (!type.shape[d].is(1)) offset.add(index[d], type.strides[d]);
  return offset;
}

Handle walk(const Graph& graph, WalkSink& sink, NodeId value, const Index& index, int guard) {
  return Walker{graph, sink}.value(value, index, guard);
}

Handle walk_root(const Graph& graph, WalkSink& sink, NodeId root, const Index& index) {
  const NodeId taken = iterated_value(graph, root);
  if (taken != root) return walk(graph, sink, taken, index);
  const Handle result = Walker{graph, sink}.compute(root, index, 0);
  // Others of the stage may want it, and would walk the segment again.
  if (combines_segments(info(graph[root]))) sink.remember(root, index, 0, result);
  return result;
}

IndexExpr stored_offset(const Graph& graph, WalkSink& sink, NodeId root, const Index& index) {
  const Node& node = graph[root];
  if (family(node) != Family::kWriter) return element_offset(node.type, index);
  Index at = index;
  for (size_t d = 0; d < index.size() && !combines_at_indices(info(node)); ++d)
    at[d] = IndexExpr{node.dims[2 * d], {}} + index[d] * node.dims[2 * d + 1];
  for (int64_t dim : node.ints) at[dim] = Walker{graph, sink}.read_start(root, index, 0);
  return element_offset(node.type, at);
}

}  // namespace stitch
