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
      : graph_(graph), is_candidate_(is_output) {}

  std::vector<DominantGroup> run(const std::vector<std::vector<NodeId>>& scopes) {
    for (const std::vector<NodeId>& scope : scopes) {
      ++current_;
      for (NodeId id : scope) scope_of_[id.index()] = current_;
      find_candidates(scope);
      for (NodeId id : scope) {
        for (NodeId input : graph_[id].inputs)
          if (!is_constant_[input.index()]) add_read(input, id);
      }
      collect(scope);
      first_to_shape_.clear();
    }
    return std::move(groups_);
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
    if (home == first) unite(value, reader);
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
    std::map<int, DominantGroup> groups;  // by root
    for (NodeId id : scope) {
      if (!is_candidate_[id.index()]) continue;
      NodeId& dominant = groups[find(id)].dominant;
      if (!dominant.valid() || leads(id, dominant)) dominant = id;
    }
    for (NodeId id : scope) {
      const auto found = groups.find(find(id));
      if (found == groups.end()) continue;
      DominantGroup& group = found->second;
      group.members.push_back(id);
      if (is_candidate_[id.index()] && id != group.dominant) group.sub_dominants.push_back(id);
    }
    const auto first = static_cast<std::ptrdiff_t>(groups_.size());
    for (auto& [root, group] : groups) groups_.push_back(std::move(group));
    std::ranges::sort(groups_.begin() + first, groups_.end(), {}, &DominantGroup::dominant);
  }

  const Graph& graph_;
  // By node.
  const std::vector<bool> none_ = std::vector<bool>(graph_.size(), false);
  std::vector<bool> is_constant_ = find_constants(graph_);
  std::vector<bool> is_candidate_;
  std::vector<bool> is_spread_ = none_;  // broadcast, or what is made of it, up to a candidate
  std::vector<bool> is_held_ = none_;    // a view that only renames the indices of a candidate
  std::vector<int> scope_of_ = std::vector<int>(graph_.size(), -1);
  int current_ = -1;  // scope
  // Of the scope that a value was last seen in; operands of the scope are joined like its values.
  std::vector<int> seen_in_ = scope_of_;
  std::vector<int> parent_ = scope_of_;  // union-find over nodes
  // The reader whose broadcast or slice a value is part of.
  std::vector<NodeId> home_ = std::vector<NodeId>(graph_.size());
  std::map<std::pair<NodeId, std::vector<Dim>>, NodeId> first_to_shape_;
  std::vector<DominantGroup> groups_;
};

}  // namespace

std::vector<DominantGroup> group_dominants(const Graph& graph,
                                           const std::vector<std::vector<NodeId>>& scopes,
                                           const std::vector<bool>& is_output) {
  return Grouper(graph, is_output).run(scopes);
}

}  // namespace stitch
