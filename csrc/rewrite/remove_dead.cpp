#include "rewrite/rewrite_graph.h"

#include <set>

#include "ops/late_symbols.h"
#include "ops/op_rules.h"
#include "rewrite/rebuild_graph.h"

namespace stitch {
namespace {

bool must_stay(const Node& node, const std::set<int64_t>& rows) {
  return node.op == OpKind::k_input || is_assertion(info(node)) || has_effects(node) ||
         (node.op == OpKind::k_library && rows.count(node.integer));
}

}  // namespace

Graph remove_dead(const Graph& graph) {
  std::vector<bool> live(graph.nodes.size());
  for (NodeId id : find_kept(graph)) live[id.index()] = true;
  std::set<int64_t> rows;  // of calls that define sizes
  for (const Symbol& symbol : graph.symbols.symbols)
    if (is_late(symbol)) rows.insert(row_of(symbol));
  for (int i = graph.size(); i-- > 0;) {
    live[i] = live[i] || must_stay(graph.nodes[i], rows);
    if (!live[i]) continue;
    for (NodeId input : graph.nodes[i].inputs) live[input.index()] = true;
  }
  return rebuild_graph(graph, {}, live);
}

}  // namespace stitch
