#include "ir/find_definers.h"

#include <algorithm>
#include <map>

#include "base/error.h"
#include "ops/late_symbols.h"

namespace stitch {

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

}  // namespace stitch
