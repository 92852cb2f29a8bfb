#include "plan/find_roots.h"

#include <algorithm>
#include <set>

namespace stitch {

std::vector<int> find_levels(const Graph& graph) {
  std::vector<int> level(graph.size(), 0);
  for (int n = 0; n < graph.size(); ++n) {
    for (NodeId input : graph.nodes[n].inputs) {
      const bool waits = graph[input].op == OpKind::k_library;
      level[n] = std::max(level[n], level[input.index()] + (waits ? 1 : 0));
    }
  }
  return level;
}

namespace {

struct RootFinder {
  const Graph& graph;
  const Demands& demands;
  std::vector<std::vector<NodeId>> users = find_users(graph);
  std::vector<int> level = find_levels(graph);
  std::vector<bool> is_live = std::vector<bool>(graph.size(), false);
  std::vector<bool> is_root = std::vector<bool>(graph.size(), false);

  bool is_stitched(NodeId id) const { return !is_materialised(graph[id]); }

  void mark_live() {
    for (int n = graph.size(); n-- > 0;) {
      const NodeId id(n);
      if (demands.is_demanded[n] || graph[id].op == OpKind::k_library) is_live[n] = true;
      if (!is_live[n]) continue;
      for (NodeId input : graph[id].inputs) is_live[input.index()] = true;
    }
  }

  // Distinct levels at which a value is wanted: through chains of stitched users, at their level.
  std::set<int> wanted_levels(NodeId id) const {
    std::set<int> levels;
    if (demands.is_demanded[id.index()]) levels.insert(level[id.index()]);
    for (NodeId user : users[id.index()]) {
      if (is_live[user.index()] && is_stitched(user)) levels.insert(level[user.index()]);
    }
    return levels;
  }

  int64_t bytes(NodeId id) const {
    const TensorType& type = graph[id].type;
    return graph.symbols.hint(element_count(type.shape)) * info(type.dtype).bytes;
  }

  // Bytes that evaluating the value again would read.
  int64_t cone_bytes(NodeId id) const {
    std::set<NodeId> visited;
    int64_t total = 0;
    auto visit = [&](auto& self, NodeId at) -> void {
      if (!visited.insert(at).second) return;
      const bool stored = is_materialised(graph[at]) || (at != id && is_root[at.index()]);
      if (stored) {
        total += bytes(at);
        return;
      }
      for (NodeId input : graph[at].inputs) self(self, input);
    };
    visit(visit, id);
    return total;
  }

  bool is_worth_storing(NodeId id) const {
    const Node& node = graph[id];
    if (family(node) != Family::kPointwise && family(node) != Family::kReader) return false;
    if (wanted_levels(id).size() < 2) return false;
    return cone_bytes(id) > bytes(id);
  }
};

}  // namespace

std::vector<NodeId> find_roots(const Graph& graph, const Demands& demands, bool every_op) {
  RootFinder finder{graph, demands};
  finder.mark_live();
  std::vector<NodeId> roots;
  for (int n = 0; n < graph.size(); ++n) {
    const NodeId id(n);
    const Family kind = family(graph[id]);
    if (!finder.is_live[n] || !finder.is_stitched(id)) continue;
    const bool computes = kind == Family::kPointwise || kind == Family::kReader;
    finder.is_root[n] = demands.is_demanded[n] || kind == Family::kReduce ||
                        (every_op && computes) || finder.is_worth_storing(id);
    if (finder.is_root[n]) roots.push_back(id);
  }
  return roots;
}

}  // namespace stitch
