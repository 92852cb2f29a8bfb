#include "ir/graph.h"

#include "ops/made_calls.h"

namespace stitch {

bool is_join(const Node& node) { return node.op == OpKind::k_library && node.name == kJoin; }

std::vector<std::vector<NodeId>> find_users(const Graph& graph) {
  std::vector<std::vector<NodeId>> users(graph.nodes.size());
  for (int i = 0; i < graph.size(); ++i)
    for (NodeId input : graph.nodes[i].inputs) users[input.index()].push_back(NodeId(i));
  return users;
}

}  // namespace stitch
