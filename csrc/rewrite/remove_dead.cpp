#include "rewrite/rewrite_graph.h"

#include "rewrite/rebuild_graph.h"

namespace stitch {

Graph remove_dead(const Graph& graph) {
  std::vector<bool> live = mark_nodes(graph, find_kept(graph));
  std::set<int64_t> rows;  // of calls that define sizes
  for (const Symbol& symbol : graph.symbols.symbols)
    if (is_late(symbol)) rows.insert(row_of(symbol));
  for (int i = graph.size(); i-- > 0;) {
    const Node& node = graph.nodes[i];
    live[i] = live[i] || node.op == OpKind::k_input || is_assertion(info(node)) ||
              has_effects(node) || (node.op == OpKind::k_library && rows.count(node.integer));
    if (!live[i]) continue;
    for (NodeId input : node.inputs) live[input.index()] = true;
  }
  return rebuild_graph(graph, {}, live);
}

}  // namespace stitch
