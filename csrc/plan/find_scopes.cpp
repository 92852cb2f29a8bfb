#include "plan/find_scopes.h"

#include <algorithm>
#include <limits>
#include <map>

#include "plan/find_roots.h"

namespace stitch {
namespace {

constexpr int kNever = std::numeric_limits<int>::max();
using LevelMap = std::map<int, std::vector<NodeId>>;

// The level of every live value that a kernel makes, at most that of its readers; kNever elsewhere.
std::vector<int> place_values(const Graph& graph, const Demands& demands,
                              const std::vector<int>& earliest) {
  const std::vector<bool> is_constant = find_constants(graph);
  std::vector<int> level(graph.size(), kNever);
  for (int n = graph.size(); n-- > 0;) {
    const Node& node = graph.nodes[n];
    const bool is_demanded = demands.is_demanded[n];
    const bool is_live = is_demanded || level[n] != kNever;
    int wanted = level[n];
    if (is_materialised(node) || !is_live || (is_constant[n] && !is_demanded)) {
      level[n] = kNever;
      if (node.op != OpKind::k_library) continue;
      wanted = earliest[n];
    } else {
      const bool waits = wanted != kNever && family(node) != Family::kReduce;
      if (!waits) wanted = earliest[n];
      level[n] = wanted;
    }
    for (NodeId input : node.inputs) level[input.index()] = std::min(level[input.index()], wanted);
  }
  return level;
}

LevelMap group_by_level(const std::vector<int>& level) {
  LevelMap at_level;
  for (size_t n = 0; n < level.size(); ++n)
    if (level[n] != kNever) at_level[level[n]].push_back(NodeId(static_cast<int64_t>(n)));
  return at_level;
}

// Joins each level into the next where nothing in between waits for it.
void join_levels(const Graph& graph, const std::vector<int>& call_level, std::vector<int>& level) {
  const std::vector<std::vector<NodeId>> users = find_users(graph);
  const LevelMap at_level = group_by_level(level);
  const int levels = at_level.empty() ? 0 : at_level.rbegin()->first + 1;
  std::vector<int> joined(levels, kNever);  // by level
  int next = kNever;                        // the scope after this level
  for (auto entry = at_level.rbegin(); entry != at_level.rend(); ++entry) {
    const int own = entry->first;
    int first_wait = kNever;
    for (NodeId id : entry->second) {
      for (NodeId user : users[id.index()]) {
        const bool is_call = family(graph[user]) == Family::kLibrary;
        const int at = is_call ? call_level[user.index()] : level[user.index()];
        if (at == kNever || (!is_call && at == own)) continue;
        first_wait = std::min(first_wait, is_call ? at : joined[at]);
      }
    }
    if (next == kNever || first_wait < next) next = own;
    joined[own] = next;
  }
  for (int& l : level)
    if (l != kNever) l = joined[l];
}

}  // namespace

std::vector<bool> find_constants(const Graph& graph) {
  std::vector<bool> is_constant(graph.size(), false);
  for (int n = 0; n < graph.size(); ++n) {
    const Node& node = graph.nodes[n];
    is_constant[n] = family(node) == Family::kSource ||
                     (family(node) == Family::kView && is_constant[node.inputs[0].index()]);
  }
  return is_constant;
}

std::vector<std::vector<NodeId>> find_scopes(const Graph& graph, const Demands& demands) {
  const std::vector<int> earliest = find_levels(graph);
  std::vector<int> level = place_values(graph, demands, earliest);
  join_levels(graph, earliest, level);
  std::vector<std::vector<NodeId>> scopes;
  for (auto& [number, nodes] : group_by_level(level)) scopes.push_back(std::move(nodes));
  return scopes;
}

std::vector<bool> find_scope_outputs(const Graph& graph, const Demands& demands,
                                     const std::vector<std::vector<NodeId>>& scopes) {
  std::vector<int> scope_of(graph.size(), -1);
  for (size_t s = 0; s < scopes.size(); ++s)
    for (NodeId id : scopes[s]) scope_of[id.index()] = static_cast<int>(s);
  std::vector<bool> is_output(graph.size(), false);
  for (int n = 0; n < graph.size(); ++n) {
    if (scope_of[n] < 0) continue;
    is_output[n] = is_output[n] || demands.is_demanded[n];
    for (NodeId input : graph.nodes[n].inputs) {
      const int maker = scope_of[input.index()];
      if (maker < 0 || maker == scope_of[n]) continue;
      const std::optional<PlannedAlias> alias = find_alias(graph, input);
      const NodeId stored = alias ? alias->base : input;
      if (scope_of[stored.index()] >= 0) is_output[stored.index()] = true;
    }
  }
  return is_output;
}

}  // namespace stitch
