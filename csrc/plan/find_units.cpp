#include "plan/find_units.h"

#include "plan/find_levels.h"

namespace stitch {

PlanUnits find_units(const Graph& graph, const NodeList& roots) {
  const std::vector<int> levels = find_levels(graph);
  const std::vector<NodeList> definers = find_definers(graph);
  PlanUnits units{{}, std::vector<int>(graph.size(), -1)};
  for (int n = 0; n < graph.size(); ++n) {
    const NodeId id(n);
    const bool is_root = contains(roots, id);
    if (!is_root && graph[id].op != OpKind::k_library) continue;
    units.of[n] = static_cast<int>(units.list.size());
    units.list.push_back({id, !is_root, levels[n]});
  }
  int last_effect = -1;
  for (int u = 0; u < std::ssize(units.list); ++u) {
    Unit& unit = units.list[u];
    unit.cone = find_cone(graph, unit.node, [&](NodeId id) {
      return is_materialised(graph[id]) || units.of[id.index()] >= 0;
    });
    for (NodeId load : unit.cone.loads) unit.reads.insert(units.of[maker_of(graph, load).index()]);
    for (NodeId id : unit.cone.nodes)
      for (NodeId call : definers[id.index()]) unit.reads.insert(units.of[call.index()]);
    if (unit.is_call && has_effects(graph[unit.node]))
      unit.reads.insert(std::exchange(last_effect, u));
    unit.reads.erase(-1);  // of inputs
  }
  return units;
}

}  // namespace stitch
