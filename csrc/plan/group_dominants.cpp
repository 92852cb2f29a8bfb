#include "plan/group_dominants.h"

#include <algorithm>
#include <map>
#include <utility>

#include "plan/find_scopes.h"

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

// A.1; divisions and square roots count as light: recomputing one costs less than a barrier.
bool is_expensive(const Node& node) {
  const OpInfo& op = info(node);
  return op.family == Family::kPointwise &&
         (op.cost == CostClass::kSpecial || op.cost == CostClass::kHeavy);
}

class Grouper {
 public:
  Grouper(const Graph& graph, const std::vector<bool>& is_output)
      : graph_(graph),
        is_constant_(find_constants(graph)),
        is_candidate_(is_output),
        is_spread_(graph.size(), false),
        is_held_(graph.size(), false),
        scope_of_(graph.size(), -1),
        seen_in_(graph.size(), -1),
        parent_(graph.size()),
        home_(graph.size()) {
    out_.group_of.assign(graph.size(), -1);
  }

  DominantGroups run(const std::vector<std::vector<NodeId>>& scopes) {
    for (const std::vector<NodeId>& scope : scopes) {
      ++current_;
      for (NodeId id : scope) scope_of_[id.index()] = current_;
      find_candidates(scope);
      for (NodeId id : scope) {
        for (NodeId input : graph_[id].inputs) {
          if (!is_constant_[input.index()]) add_read(input, id);
        }
      }
      collect(scope);
      first_to_shape_.clear();
      repeats_.clear();
    }
    sort_once(out_.repeated);
    return std::move(out_);
  }

 private:
  bool is_inside(NodeId id) const { return scope_of_[id.index()] == current_; }

  // Readers before what they read: is a value broadcast before the next candidate is made of it?
  void find_candidates(const std::vector<NodeId>& scope) {
    for (size_t i = scope.size(); i-- > 0;) {
      const NodeId id = scope[i];
      const Node& node = graph_[id];
      if (family(node) == Family::kReduce || (is_expensive(node) && is_spread_[id.index()]))
        is_candidate_[id.index()] = true;
      const bool passes_on = is_spread_[id.index()] && !is_candidate_[id.index()];
      for (NodeId input : node.inputs) {
        const bool is_spread = passes_on || classify_read(graph_, input, id) == Read::kBroadcast;
        if (is_inside(input) && is_spread) is_spread_[input.index()] = true;
      }
    }
  }

  void add_read(NodeId value, NodeId reader) {
    const Read kind = classify_read(graph_, value, reader);
    const bool renames = kind == Read::kOneToOne && family(graph_[reader]) == Family::kView;
    const bool is_held =
        is_inside(value) && (is_candidate_[value.index()] || is_held_[value.index()]);
    if (is_held && renames) is_held_[reader.index()] = true;
    if (kind == Read::kOneToOne) {
      const bool leads_to_broadcast = is_spread_[reader.index()] && !is_candidate_[reader.index()];
      if (!is_held || renames || !leads_to_broadcast) unite(value, reader);
      return;
    }
    NodeId first = reader;  // of those that read the same elements
    const TensorType& type = graph_[value].type;
    if (kind == Read::kBroadcast && !element_count(type.shape).is(1)) {
      first = first_to_shape_.try_emplace({value, graph_[reader].type.shape}, reader).first->second;
      unite(first, reader);
    }
    if (is_held) return;
    find(value);
    NodeId& home = home_[value.index()];
    if (!home.valid()) home = first;
    if (home == first) {
      unite(value, reader);
    } else if (is_inside(value)) {
      repeats_.push_back({value, reader});
    }
  }

  // A value that several scopes read starts afresh in each.
  int find(NodeId id) {
    int at = id.index();
    if (seen_in_[at] != current_) {
      seen_in_[at] = current_;
      home_[at] = NodeId();
      return parent_[at] = at;
    }
    while (parent_[at] != at) at = parent_[at] = parent_[parent_[at]];
    return at;
  }

  // Paths are halved in every search, which bounds them by a logarithm.
  void unite(NodeId a, NodeId b) { parent_[find(a)] = find(b); }

  // Reductions before others, then those of more elements, then the first.
  bool leads(NodeId a, NodeId b) const {
    auto rank = [&](NodeId id) {
      const bool reduces = family(graph_[id]) == Family::kReduce;
      return std::make_pair(reduces, hint_elements(graph_, iterated_value(graph_, id)));
    };
    const auto left = rank(a), right = rank(b);
    return left != right ? left > right : a < b;
  }

  void collect(const std::vector<NodeId>& scope) {
    std::map<int, NodeId> dominant_of;  // by root
    for (NodeId id : scope) {
      if (!is_candidate_[id.index()]) continue;
      NodeId& dominant = dominant_of.try_emplace(find(id), id).first->second;
      if (leads(id, dominant)) dominant = id;
    }
    std::map<NodeId, int> roots;  // by dominant: the order of groups
    for (const auto& [root, dominant] : dominant_of) roots[dominant] = root;
    std::map<int, int> group_at;  // by root
    for (const auto& [dominant, root] : roots) {
      group_at[root] = static_cast<int>(out_.groups.size());
      out_.groups.emplace_back().dominant = dominant;
      out_.groups.back().scope = current_;
    }
    for (NodeId id : scope) {
      const auto found = group_at.find(find(id));
      if (found == group_at.end()) continue;
      out_.group_of[id.index()] = found->second;
      add_member(out_.groups[found->second], id);
    }
    for (const auto& [root, g] : group_at) sort_once(out_.groups[g].operands);
    for (const auto& [value, reader] : repeats_) {
      const bool is_apart = out_.group_of[value.index()] != out_.group_of[reader.index()];
      if (is_apart) out_.repeated.push_back(value);
    }
  }

  void add_member(DominantGroup& group, NodeId id) const {
    group.members.push_back(id);
    group.has_reduction |= family(graph_[id]) == Family::kReduce;
    if (is_candidate_[id.index()] && id != group.dominant) group.sub_dominants.push_back(id);
    for (NodeId input : read_operands(graph_[id])) {
      if (!is_inside(input) && !is_constant_[input.index()]) group.operands.push_back(input);
    }
  }

  static void sort_once(std::vector<NodeId>& ids) {
    std::ranges::sort(ids);
    ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  }

  const Graph& graph_;
  std::vector<bool> is_constant_;
  std::vector<bool> is_candidate_;
  std::vector<bool> is_spread_;  // broadcast, itself or what is made of it, up to a candidate
  std::vector<bool> is_held_;    // a view that only renames the indices of a candidate
  std::vector<int> scope_of_;
  int current_ = -1;  // scope
  // Of the scope that a value was last seen in; operands of the scope are joined like its values.
  std::vector<int> seen_in_;
  std::vector<int> parent_;   // union-find over nodes
  std::vector<NodeId> home_;  // the reader whose broadcast or slice a value is part of
  std::map<std::pair<NodeId, std::vector<Dim>>, NodeId> first_to_shape_;
  std::vector<std::pair<NodeId, NodeId>> repeats_;  // value, reader
  DominantGroups out_;
};

}  // namespace

DominantGroups group_dominants(const Graph& graph, const std::vector<std::vector<NodeId>>& scopes,
                               const std::vector<bool>& is_output) {
  return Grouper(graph, is_output).run(scopes);
}

}  // namespace stitch
