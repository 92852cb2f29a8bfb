#include "ir/graph.h"

#include <algorithm>
#include <map>

#include "base/error.h"
#include "ops/library_calls.h"

namespace stitch {

bool has_effects(const Node& node) {
  return node.op == OpKind::k_library && (node.ints.size() == 1 || has_effects(node.name));
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

std::vector<std::vector<NodeId>> find_definers(const Graph& graph) {
  std::vector<std::vector<NodeId>> definers(graph.nodes.size());
  const std::vector<Symbol>& symbols = graph.symbols.symbols;
  if (std::ranges::none_of(symbols, is_late)) return definers;
  std::map<int64_t, NodeId> call_of;  // by row
  for (int i = 0; i < graph.size(); ++i) {
    const Node& node = graph.nodes[i];
    if (node.op == OpKind::k_library) call_of[node.integer] = NodeId(i);
    std::set<int> rows;
    for (const std::vector<Dim>* dims : {&node.dims, &node.type.shape, &node.type.strides})
      for (const Dim& dim : *dims) rows.merge(rows_of(graph.symbols, dim));
    for (const int row : rows) {
      const auto call = call_of.find(row);
      STITCH_CHECK(call != call_of.end(), "%" << i << " has a size that no call above it defines");
      if (call->second.value() != i) definers[i].push_back(call->second);
    }
  }
  return definers;
}

int64_t hint_elements(const Graph& graph, NodeId id) {
  return std::max<int64_t>(0, graph.symbols.hint(element_count(graph[id].type.shape)));
}

int64_t hint_bytes(const Graph& graph, NodeId id) {
  return hint_elements(graph, id) * element_bytes(graph, id);
}

}  // namespace stitch
