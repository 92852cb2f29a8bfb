#include "plan/storage.h"

#include "analysis/view_alias.h"
#include "ops/op_rules.h"

namespace stitch {

bool is_materialised(const Node& node) {
  return family(node) == Family::kInput || family(node) == Family::kLibrary;
}

std::optional<PlannedAlias> find_alias(const Graph& graph, NodeId node) {
  NodeId base = node;
  Dim offset = 0;
  // Each view's own type carries the strides it has as a view of its operand.
  while (family(graph[base]) == Family::kView) {
    const NodeId operand = graph[base].inputs[0];
    auto step = view_offset(graph, base);
    if (!step) break;  // elements move here: this view is a value of its own
    offset = offset + *step;
    base = operand;
  }
  if (base == node) return std::nullopt;
  return PlannedAlias{node, base, offset};
}

std::set<NodeId> find_reads(const Graph& graph, const std::vector<NodeId>& starts,
                            const std::function<bool(NodeId)>& is_stored) {
  std::set<NodeId> reads, visited;
  std::vector<NodeId> stack;
  for (NodeId start : starts) {
    stack.insert(stack.end(), graph[start].inputs.begin(), graph[start].inputs.end());
  }
  while (!stack.empty()) {
    const NodeId id = stack.back();
    stack.pop_back();
    if (!visited.insert(id).second) continue;
    if (is_stored(id)) {
      reads.insert(id);
    } else {
      stack.insert(stack.end(), graph[id].inputs.begin(), graph[id].inputs.end());
    }
  }
  return reads;
}

PlannedStage describe_stage(const Graph& graph, const std::vector<NodeId>& roots,
                            const std::function<bool(NodeId)>& is_loaded,
                            const std::function<bool(NodeId)>& is_stored) {
  PlannedStage stage;
  std::set<NodeId> nodes, loads;
  std::vector<NodeId> stack = roots;
  while (!stack.empty()) {
    const NodeId id = stack.back();
    stack.pop_back();
    if (!nodes.insert(id).second) continue;
    for (NodeId input : graph[id].inputs) {
      if (is_loaded(input)) {
        loads.insert(input);
      } else {
        stack.push_back(input);
      }
    }
  }
  for (NodeId root : roots) {
    const bool stored = is_stored(root);
    if (stored) stage.stores.push_back(root);
    if (stored || family(graph[root]) == Family::kReduce) stage.roots.push_back(root);
  }
  stage.loads.assign(loads.begin(), loads.end());
  stage.nodes.assign(nodes.begin(), nodes.end());
  return stage;
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
    // Its result, a byte that nobody reads, makes a kernel evaluate it.
    if (is_assertion(info(node))) demand(NodeId(n));
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
