#include "stage/stage.h"

namespace stitch {

Stage make_stage(const Graph& graph, const NodeList& roots, Cone cone,
                 const std::function<bool(NodeId)>& is_stored) {
  Stage stage;
  for (NodeId root : roots) {
    const bool stored = is_stored(root);
    if (stored) stage.stores.push_back(root);
    if (stored || family(graph[root]) == Family::kReduce) stage.roots.push_back(root);
  }
  stage.loads = std::move(cone.loads);
  stage.nodes = std::move(cone.nodes);
  return stage;
}

}  // namespace stitch
