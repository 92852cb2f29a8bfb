#include "analysis/storage.h"

#include <unordered_set>

namespace stitch {

std::optional<Alias> find_alias(const Graph& graph, NodeId node) {
  Alias alias{node, storage_base(graph, node), 0};
  if (alias.base == node) return std::nullopt;
  // Each view's own type carries the strides it has as a view of its operand.
  for (NodeId view = node; view != alias.base; view = graph[view].inputs[0])
    alias.offset = alias.offset + *view_offset(graph, view);
  return alias;
}

Cone find_cone(const Graph& graph, NodeId start, const std::function<bool(NodeId)>& is_stored) {
  std::unordered_set<NodeId> visited = {start};
  Cone cone{{start}, {}};
  for (size_t i = 0; i < cone.nodes.size(); ++i)
    for (NodeId input : read_operands(graph[cone.nodes[i]]))
      if (visited.insert(input).second)
        (is_stored(input) ? cone.loads : cone.nodes).push_back(input);
  std::ranges::sort(cone.nodes);
  std::ranges::sort(cone.loads);
  return cone;
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
  for (int n = 0; n < graph.size(); ++n) {
    const Node& node = graph.nodes[n];
    // The result of an assertion, a byte that nobody reads, makes a kernel evaluate it; what is
    // combined at indices is in memory while it is.
    if (is_assertion(info(node)) || combines_at_indices(info(node))) demand(NodeId(n));
    if (node.op != OpKind::k_library) continue;
    for (NodeId input : node.inputs) demand(input);
  }
  for (NodeId id : find_kept(graph)) demand(id);
  return demands;
}

}  // namespace stitch
