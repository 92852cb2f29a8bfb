#include "rewrite/remove_dead.h"

#include "ops/library_effects.h"
#include "ops/op_rules.h"
#include "rewrite/rebuild_graph.h"

namespace stitch {
namespace {

bool must_stay(const Node& node) {
  return node.op == OpKind::k_input || is_assertion(info(node)) ||
         (node.op == OpKind::k_library && has_effects(node.name));
}

}  // namespace

Graph remove_dead(const Graph& graph) {
  std::vector<bool> live(graph.nodes.size());
  for (const GraphOutput& output : graph.outputs)
    if (output.kind == GraphOutput::Kind::kTensor) live[output.node.index()] = true;
  for (const Mutation& mutation : graph.mutations) live[mutation.value.index()] = true;
  for (int i = graph.size(); i-- > 0;) {
    live[i] = live[i] || must_stay(graph.nodes[i]);
    if (!live[i]) continue;
    for (NodeId input : graph.nodes[i].inputs) live[input.index()] = true;
  }
  return rebuild_live(graph, live);
}

}  // namespace stitch
