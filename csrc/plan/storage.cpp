#include "plan/storage.h"

#include "ir/view_strides.h"

namespace stitch {

bool is_materialised(const Node& node) {
  return family(node) == Family::kInput || family(node) == Family::kLibrary;
}

namespace {

// One step from a view to what it views: the offset in elements, or nothing where elements move.
std::optional<Dim> view_offset(const Graph& graph, const Node& node,
                               const std::vector<Dim>& strides) {
  const TensorType& from = graph[node.inputs[0]].type;
  switch (node.op) {
    case OpKind::k_permute:
    case OpKind::k_expand:
      return Dim(0);
    case OpKind::k_slice:
      return node.dims[0] * strides[node.ints[0]];
    case OpKind::k_reshape:
      if (view_strides(from.shape, strides, node.type.shape)) return Dim(0);
      return std::nullopt;
    case OpKind::k_layout: {
      for (int d = 0; d < from.rank(); ++d) {
        if (!from.shape[d].is(1) && strides[d] != node.type.strides[d]) return std::nullopt;
      }
      return Dim(0);
    }
    default:
      return std::nullopt;  // flip
  }
}

}  // namespace

std::optional<PlannedAlias> find_alias(const Graph& graph, NodeId node) {
  NodeId base = node;
  Dim offset = 0;
  // Each view's own type carries the strides it has as a view of its operand.
  while (family(graph[base]) == Family::kView) {
    const NodeId operand = graph[base].inputs[0];
    auto step = view_offset(graph, graph[base], graph[operand].type.strides);
    if (!step) break;  // elements move here: this view is a value of its own
    offset = offset + *step;
    base = operand;
  }
  if (base == node) return std::nullopt;
  return PlannedAlias{node, base, offset};
}

Demands find_demands(const Graph& graph) {
  Demands demands;
  demands.is_demanded.assign(graph.size(), false);
  std::vector<bool> seen(graph.size(), false);
  auto demand = [&](NodeId node) {
    if (seen[node.index()]) return;
    seen[node.index()] = true;
    if (auto alias = find_alias(graph, node)) {
      demands.aliases.push_back(*alias);
      node = alias->base;
    }
    demands.is_demanded[node.index()] = true;
  };
  for (const Node& node : graph.nodes) {
    if (node.op != OpKind::k_library) continue;
    for (NodeId input : node.inputs) demand(input);
  }
  for (const GraphOutput& output : graph.outputs) {
    if (output.kind == GraphOutput::Kind::kTensor) demand(output.node);
  }
  for (const Mutation& mutation : graph.mutations) demand(mutation.value);
  return demands;
}

}  // namespace stitch
