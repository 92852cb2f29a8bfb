#include "plan/group_dominants.h"

#include <tuple>

#include "plan/find_levels.h"
#include "plan/find_roots.h"

namespace stitch {
namespace {

enum class Read { kOneToOne, kBroadcast, kElsewhere };

Read classify_read(const Graph& graph, NodeId value, NodeId reader) {
  const Node& node = graph[reader];
  const Family kind = family(node);
  if (kind == Family::kReduce || kind == Family::kWriter) return Read::kOneToOne;
  if (kind == Family::kReader || node.op == OpKind::k_flip) return Read::kElsewhere;
  if (element_count(graph[value].type.shape) == element_count(node.type.shape))
    return Read::kOneToOne;
  const bool is_slice = kind == Family::kView && node.op != OpKind::k_expand;
  return is_slice ? Read::kElsewhere : Read::kBroadcast;
}

struct Grouper {
  const Graph& graph;
  // By node.
  std::vector<bool> is_candidate;
  const std::vector<bool> none = std::vector<bool>(graph.size(), false);
  std::vector<bool> is_constant = find_constants(graph);
  std::vector<bool> is_spread = none;  // broadcast, or what is made of it, up to a candidate
  std::vector<bool> is_held = none;    // a view that only renames the indices of a candidate
  std::vector<int> scope_of = std::vector<int>(graph.size(), -1);
  int current = -1;  // scope
  // Of the scope that a value was last seen in; operands of the scope are joined like its values.
  std::vector<int> seen_in = scope_of;
  std::vector<int> parent = scope_of;  // union-find over nodes
  // The reader whose broadcast or slice a value is part of.
  NodeList home = NodeList(graph.size());
  std::map<std::pair<NodeId, DimList>, NodeId> first_to_shape = {};
  std::vector<DominantGroup> groups = {};

  std::vector<DominantGroup> run(const std::vector<NodeList>& scopes) {
    for (const NodeList& scope : scopes) {
      ++current;
      for (NodeId id : scope) scope_of[id.index()] = current;
      find_candidates(scope);
      for (NodeId id : scope)
        for (NodeId input : graph[id].inputs)
          if (!is_constant[input.index()]) add_read(input, id);
      collect(scope);
      first_to_shape.clear();
    }
    return std::move(groups);
  }

  bool is_inside(NodeId id) const { return scope_of[id.index()] == current; }

  // Readers before what they read: is a value broadcast before the next candidate is made of it?
  void find_candidates(const NodeList& scope) {
    for (size_t i = scope.size(); i-- > 0;) {
      const NodeId id = scope[i];
      const Node& node = graph[id];
      if (family(node) == Family::kReduce || (is_expensive(node) && is_spread[id.index()]))
        is_candidate[id.index()] = true;
      const bool passes_on = is_spread[id.index()] && !is_candidate[id.index()];
      for (NodeId input : node.inputs) {
        const bool spreads = passes_on || classify_read(graph, input, id) == Read::kBroadcast;
        if (is_inside(input) && spreads) is_spread[input.index()] = true;
      }
    }
  }

  void add_read(NodeId value, NodeId reader) {
    const Read kind = classify_read(graph, value, reader);
    const bool renames = kind == Read::kOneToOne && family(graph[reader]) == Family::kView;
    const bool holds = is_inside(value) && (is_candidate[value.index()] || is_held[value.index()]);
    if (holds && renames) is_held[reader.index()] = true;
    if (kind == Read::kOneToOne) {
      const bool leads_to_broadcast = is_spread[reader.index()] && !is_candidate[reader.index()];
      if (!holds || renames || !leads_to_broadcast) unite(value, reader);
      return;
    }
    NodeId first = reader;  // of those that read the same elements
    const TensorType& type = graph[value].type;
    if (kind == Read::kBroadcast && !element_count(type.shape).is(1)) {
      first = first_to_shape.try_emplace({value, graph[reader].type.shape}, reader).first->second;
      unite(first, reader);
    }
    if (holds) return;
    find(value);
    NodeId& own = home[value.index()];
    if (!own.valid()) own = first;
    if (own == first) unite(value, reader);
  }

  // A value that several scopes read starts afresh in each.
  int find(NodeId id) {
    int at = id.index();
    if (seen_in[at] != current) {
      seen_in[at] = current;
      home[at] = NodeId();
      return parent[at] = at;
    }
    while (parent[at] != at) at = parent[at] = parent[parent[at]];
    return at;
  }

  // Paths are halved in every search, which bounds them by a logarithm.
  void unite(NodeId a, NodeId b) { parent[find(a)] = find(b); }

  // Reductions before others, then those of more elements, then the first.
  bool leads(NodeId a, NodeId b) const {
    const auto rank = [&](NodeId id) {
      const bool reduces = family(graph[id]) == Family::kReduce;
      return std::tuple(reduces, hint_elements(graph, iterated_value(graph, id)), -id.value());
    };
    return rank(a) > rank(b);
  }

  void collect(const NodeList& scope) {
    std::map<int, DominantGroup> found;  // by root
    for (NodeId id : scope) {
      if (!is_candidate[id.index()]) continue;
      NodeId& dominant = found[find(id)].dominant;
      if (!dominant.valid() || leads(id, dominant)) dominant = id;
    }
    for (NodeId id : scope) {
      const auto at = found.find(find(id));
      if (at == found.end()) continue;
      DominantGroup& group = at->second;
      group.members.push_back(id);
      if (is_candidate[id.index()] && id != group.dominant) group.sub_dominants.push_back(id);
    }
    const auto first = std::ssize(groups);
    for (auto& [root, group] : found) groups.push_back(std::move(group));
    std::ranges::sort(groups.begin() + first, groups.end(), {}, &DominantGroup::dominant);
  }
};

}  // namespace

std::vector<DominantGroup> group_dominants(const Graph& graph, const std::vector<NodeList>& scopes,
                                           const std::vector<bool>& is_output) {
  return Grouper{graph, is_output}.run(scopes);
}

}  // namespace stitch
