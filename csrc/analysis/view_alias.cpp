#include "analysis/view_alias.h"

#include "ir/view_strides.h"

namespace stitch {

std::optional<Dim> view_offset(const Graph& graph, NodeId view) {
  const Node& node = graph[view];
  const TensorType& from = graph[node.inputs[0]].type;
  const std::vector<Dim>& strides = from.strides;
  switch (node.op) {
    case OpKind::k_permute:
    case OpKind::k_expand:
      return Dim(0);
    case OpKind::k_slice:
      return node.dims[0] * strides[node.ints[0]];
    case OpKind::k_reshape:
      if (view_strides(from.shape, strides, node.type.shape)) return Dim(0);
      return std::nullopt;
    default:
      return std::nullopt;  // flip moves elements, each layout is a copy of its own
  }
}

NodeId storage_base(const Graph& graph, NodeId id) {
  while (family(graph[id]) == Family::kView && view_offset(graph, id)) id = graph[id].inputs[0];
  return id;
}

}  // namespace stitch
