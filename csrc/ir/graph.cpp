#include "ir/graph.h"

namespace stitch {

NodeList find_kept(const Graph& graph) {
  NodeList kept;
  for (const GraphOutput& output : graph.outputs)
    if (output.kind == GraphOutput::Kind::kTensor) kept.push_back(output.node);
  for (const Mutation& mutation : graph.mutations) kept.push_back(mutation.value);
  return kept;
}

std::vector<NodeList> find_users(const Graph& graph) {
  std::vector<NodeList> users(graph.nodes.size());
  for (int i = 0; i < graph.size(); ++i)
    for (NodeId input : graph.nodes[i]->inputs) users[input.index()].push_back(NodeId(i));
  return users;
}

std::vector<NodeList> find_definers(const Graph& graph) {
  std::vector<NodeList> definers(graph.nodes.size());
  const std::vector<Symbol>& symbols = graph.symbols.symbols;
  if (std::ranges::none_of(symbols, is_late)) return definers;
  std::map<int64_t, NodeId> call_of;  // by row
  for (int i = 0; i < graph.size(); ++i) {
    const Node& node = graph.nodes[i];
    if (node.op == OpKind::k_library) call_of[node.integer] = NodeId(i);
    std::set<int> rows;
    for (const DimList* dims : {&node.dims, &node.type.shape, &node.type.strides})
      for (const Dim& dim : *dims) rows.merge(rows_of(graph.symbols, dim));
    for (const int row : rows) {
      const auto call = call_of.find(row);
      STITCH_CHECK(call != call_of.end(), "%" << i << " has a size that no call above it defines");
      if (call->second.value() != i) definers[i].push_back(call->second);
    }
  }
  return definers;
}

// Walks both shapes from the right.  A chunk is a run of old dimensions that lie contiguously on
// each other; new dimensions must fill every chunk exactly.
std::optional<DimList> view_strides(const DimList& shape, const DimList& strides,
                                    const DimList& new_shape) {
  if (element_count(shape).is(0))
    return shape == new_shape ? strides : contiguous_strides(new_shape);
  DimList result(new_shape.size());
  size_t next = new_shape.size();  // dimensions [next, end) of the new shape have their stride
  Dim chunk_stride = 1, chunk_count = 1, new_count = 1;
  if (!shape.empty()) chunk_stride = strides.back();
  for (size_t d = shape.size(); d-- > 0;) {
    chunk_count = chunk_count * shape[d];
    const bool chunk_goes_on =
        d > 0 && (shape[d - 1].is(1) || strides[d - 1] == chunk_count * chunk_stride);
    if (chunk_goes_on) continue;
    while (next > 0 && (new_count != chunk_count || new_shape[next - 1].is(1))) {
      --next;
      result[next] = new_count * chunk_stride;
      new_count = new_count * new_shape[next];
    }
    if (new_count != chunk_count) return std::nullopt;
    if (d > 0) chunk_stride = strides[d - 1];
    chunk_count = new_count = 1;
  }
  for (; next > 0; --next) {  // a 0-d tensor has no chunk: only dimensions of extent 1 are left
    if (!new_shape[next - 1].is(1)) return std::nullopt;
    result[next - 1] = 1;
  }
  return result;
}

DimList expand_strides(const DimList& shape, const DimList& strides, const DimList& new_shape) {
  DimList result(new_shape.size());
  const size_t lead = new_shape.size() - shape.size();
  for (size_t i = new_shape.size(); i-- > 0;)
    if (i >= lead) {
      result[i] = shape[i - lead] == new_shape[i] ? strides[i - lead] : Dim(0);
    } else if (new_shape[i].is(1)) {
      result[i] = i + 1 < new_shape.size() ? new_shape[i + 1] * result[i + 1] : Dim(1);
    }  // else a new dimension: stride 0
  return result;
}

std::optional<Dim> view_offset(const Graph& graph, NodeId view) {
  const Node& node = graph[view];
  const TensorType& from = graph[node.inputs[0]].type;
  const DimList& strides = from.strides;
  if (node.op == OpKind::k_permute || node.op == OpKind::k_expand) return Dim(0);
  if (node.op == OpKind::k_slice) return node.dims[0] * strides[node.ints[0]];
  if (node.op != OpKind::k_reshape) return std::nullopt;  // flip moves elements, a layout is a copy
  if (!view_strides(from.shape, strides, node.type.shape)) return std::nullopt;
  return Dim(0);
}

}  // namespace stitch
