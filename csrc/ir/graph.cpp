#include "ir/graph.h"

#include <algorithm>

#include "ops/library_effects.h"
#include "ops/made_calls.h"

namespace stitch {

bool has_effects(const Node& node) {
  return node.op == OpKind::k_library && (!node.ints.empty() || has_effects(node.name));
}

bool is_join(const Node& node) { return node.op == OpKind::k_library && node.name == kJoin; }

std::vector<NodeId> find_stores(const Graph& graph, NodeId id) {
  return is_join(graph[id]) ? graph[id].inputs : std::vector<NodeId>{id};
}

std::vector<NodeId> find_kept(const Graph& graph) {
  std::vector<NodeId> kept;
  for (const GraphOutput& output : graph.outputs)
    if (output.kind == GraphOutput::Kind::kTensor) kept.push_back(output.node);
  for (const Mutation& mutation : graph.mutations) kept.push_back(mutation.value);
  return kept;
}

std::vector<std::vector<NodeId>> find_users(const Graph& graph) {
  std::vector<std::vector<NodeId>> users(graph.nodes.size());
  for (int i = 0; i < graph.size(); ++i)
    for (NodeId input : graph.nodes[i].inputs) users[input.index()].push_back(NodeId(i));
  return users;
}

int64_t hint_elements(const Graph& graph, NodeId id) {
  return std::max<int64_t>(0, graph.symbols.hint(element_count(graph[id].type.shape)));
}

int64_t hint_bytes(const Graph& graph, NodeId id) {
  return hint_elements(graph, id) * info(graph[id].type.dtype).bytes;
}

}  // namespace stitch
