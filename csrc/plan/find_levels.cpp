#include "plan/find_levels.h"

#include <limits>

namespace stitch {
namespace {

constexpr int kNever = std::numeric_limits<int>::max();

struct LevelFinder {
  const Graph& graph;
  // By node: what it waits for, its operands and the calls that define its sizes; what waits for
  // it; whether it can run before every kernel, or is made where it is read; its level.
  std::vector<NodeList> awaited = find_definers(graph);
  std::vector<NodeList> waiting = std::vector<NodeList>(graph.size());
  std::vector<bool> is_first = std::vector<bool>(graph.size(), false);
  std::vector<bool> is_constant = find_constants(graph);
  std::vector<int> level = std::vector<int>(graph.size(), 0);

  bool is_call(NodeId id) const { return family(graph[id]) == Family::kLibrary; }

  // Levels between a value and those that wait for it.
  int delay(NodeId id) const {
    const bool runs = graph[id].op == OpKind::k_library && !is_join(graph[id]);
    return runs && !is_first[id.index()] ? 1 : 0;
  }

  void find_earliest() {
    int last_effect = 0;
    for (int n = 0; n < graph.size(); ++n) {
      const Node& node = graph.nodes[n];
      awaited[n].insert(awaited[n].end(), node.inputs.begin(), node.inputs.end());
      is_first[n] = is_materialised(node) || storage_base(graph, NodeId(n)) != NodeId(n);
      for (NodeId input : awaited[n]) {
        waiting[input.index()].push_back(NodeId(n));
        level[n] = std::max(level[n], level[input.index()] + delay(input));
        if (!is_first[input.index()]) is_first[n] = false;
      }
      if (has_effects(node)) last_effect = level[n] = std::max(level[n], last_effect);
      if (level[n] > 0) is_first[n] = false;
    }
  }

  // The last level of each node that waits for nothing but others such and what is there from the
  // start; the first of all others.
  std::vector<int> find_latest() const {
    std::vector<int> latest(graph.size(), kNever);
    for (int n = 0; n < graph.size(); ++n)
      if (waiting[n].empty() || is_first[n] || is_constant[n]) latest[n] = level[n];
    const auto is_there = [&](NodeId id) {
      const int n = id.index();
      return is_first[n] || latest[n] > level[n] || (level[n] == 0 && !is_call(id));
    };
    for (bool changes = true; changes;) {
      changes = false;
      int next_effect = kNever;
      for (int n = graph.size(); n-- > 0;) {
        int& last = latest[n];
        for (NodeId user : waiting[n])
          last = std::min(last, latest[user.index()] - delay(NodeId(n)));
        if (has_effects(graph.nodes[n])) last = next_effect = std::min(last, next_effect);
      }
      for (int n = 0; n < graph.size(); ++n) {
        if (latest[n] == level[n] || std::ranges::all_of(awaited[n], is_there)) continue;
        latest[n] = level[n];
        changes = true;
      }
    }
    return latest;
  }

  // Nodes that may run later, those that hang together by one of them; -1 for all others.
  std::vector<int> find_groups(const std::vector<int>& latest) const {
    std::vector<int> group(graph.size(), -1);
    const auto find = [&](int n) {
      while (group[n] != n) n = group[n] = group[group[n]];
      return n;
    };
    for (int n = 0; n < graph.size(); ++n) {
      if (latest[n] == level[n]) continue;
      group[n] = n;
      for (NodeId input : awaited[n])
        if (group[input.index()] >= 0) group[find(input.index())] = find(n);
    }
    for (int n = 0; n < graph.size(); ++n)
      if (group[n] >= 0) group[n] = find(n);
    return group;
  }

  // Whether kernels inside the group and others read the value at one level: one kernel might.
  bool is_shared(NodeId id, const std::vector<int>& group, int own) const {
    std::set<int> inside, outside;
    for (NodeId user : waiting[id.index()])
      if (!is_call(user))
        (group[user.index()] == own ? inside : outside).insert(level[user.index()]);
    return std::ranges::any_of(inside, [&](int at) { return outside.count(at) > 0; });
  }

  // Levels for which the value is held where nodes run at these.
  int held_levels(int n, const std::vector<int>& at) const {
    int last = at[n];
    for (NodeId user : waiting[n]) last = std::max(last, at[user.index()]);
    return last - at[n];
  }

  // Groups run later where memory is held for less long in all, and where the bytes that wait for
  // other readers are more than those that are read once more.
  void postpone_groups() {
    std::vector<int> later = find_latest();
    const std::vector<int> group = find_groups(later);
    std::map<int, int64_t> saved, waits;  // bytes times levels, bytes
    for (int n = 0; n < graph.size(); ++n) {
      const NodeId id(n);
      if (is_constant[n]) continue;
      std::set<int> groups = {group[n]};
      for (NodeId user : waiting[n]) groups.insert(group[user.index()]);
      const int64_t bytes = hint_bytes(graph, id);
      if (group[n] >= 0 && groups.size() > 1) waits[group[n]] += bytes;
      for (int own : groups) {
        if (own < 0) continue;
        if (!is_first[n]) saved[own] += bytes * (held_levels(n, level) - held_levels(n, later));
        if (group[n] < 0 && is_shared(id, group, own)) waits[own] -= bytes;
      }
    }
    for (int n = 0; n < graph.size(); ++n)
      if (saved[group[n]] <= 0 || waits[group[n]] <= 0) later[n] = level[n];
    int next_effect = kNever;
    for (int n = graph.size(); n-- > 0;) {
      if (!has_effects(graph.nodes[n])) continue;
      if (later[n] > next_effect) return;  // would come after it: all stay where they are
      next_effect = later[n];
    }
    level = std::move(later);
  }

  // What waits for no call and reduces nothing is of its first user's level.
  void postpone_values() {
    for (int n = graph.size(); n-- > 0;) {
      const bool may_wait = level[n] == 0 && !is_first[n] && !is_call(NodeId(n)) &&
                            family(graph.nodes[n]) != Family::kReduce && !waiting[n].empty();
      const auto level_of = [&](NodeId user) { return level[user.index()]; };
      if (may_wait) level[n] = level_of(*std::ranges::min_element(waiting[n], {}, level_of));
    }
  }
};

using LevelMap = std::map<int, NodeList>;

// The level of every live value that a kernel makes, at most that of its readers; kNever elsewhere.
std::vector<int> place_values(const Graph& graph, const Demands& demands,
                              const std::vector<int>& earliest) {
  const std::vector<bool> is_constant = find_constants(graph);
  std::vector<int> level(graph.size(), kNever);
  for (int n = graph.size(); n-- > 0;) {
    const Node& node = graph.nodes[n];
    const bool is_read = level[n] != kNever && !is_constant[n];
    const bool is_made = !is_materialised(node) && (demands.is_demanded[n] || is_read);
    int wanted = level[n];
    if (!is_made || wanted == kNever || family(node) == Family::kReduce) wanted = earliest[n];
    level[n] = is_made ? wanted : kNever;
    if (!is_made && node.op != OpKind::k_library) continue;
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
  const std::vector<NodeList> users = find_users(graph);
  const LevelMap at_level = group_by_level(level);
  std::map<int, int> joined;  // by level
  int next = kNever;          // the scope after this level
  for (auto entry = at_level.rbegin(); entry != at_level.rend(); ++entry) {
    const int own = entry->first;
    int first_wait = kNever;
    for (NodeId id : entry->second) {
      for (NodeId user : users[id.index()]) {
        const bool is_call = family(graph[user]) == Family::kLibrary;
        const int at = is_call ? call_level[user.index()] : level[user.index()];
        if (at == kNever || (!is_call && at == own)) continue;
        first_wait = std::min(first_wait, is_call ? at : joined.at(at));
      }
    }
    if (next == kNever || first_wait < next) next = own;
    joined[own] = next;
  }
  for (int& l : level)
    if (l != kNever) l = joined[l];
}

}  // namespace

std::vector<int> find_levels(const Graph& graph) {
  LevelFinder finder{graph};
  finder.find_earliest();
  finder.postpone_groups();
  finder.postpone_values();
  return std::move(finder.level);
}

std::vector<bool> find_constants(const Graph& graph) {
  std::vector<bool> is_constant(graph.size(), false);
  for (int n = 0; n < graph.size(); ++n) {
    const Node& node = graph.nodes[n];
    is_constant[n] = family(node) == Family::kSource ||
                     (family(node) == Family::kView && is_constant[node.inputs[0].index()]);
  }
  return is_constant;
}

std::vector<NodeList> find_scopes(const Graph& graph, const Demands& demands) {
  const std::vector<int> earliest = find_levels(graph);
  std::vector<int> level = place_values(graph, demands, earliest);
  join_levels(graph, earliest, level);
  return map_to_vector(group_by_level(level), &LevelMap::value_type::second);
}

std::vector<bool> find_scope_outputs(const Graph& graph, const Demands& demands,
                                     const std::vector<NodeList>& scopes) {
  std::vector<int> scope_of(graph.size(), -1);
  for (size_t s = 0; s < scopes.size(); ++s)
    for (NodeId id : scopes[s]) scope_of[id.index()] = static_cast<int>(s);
  std::vector<bool> is_output(graph.size(), false);
  for (int n = 0; n < graph.size(); ++n) {
    if (scope_of[n] < 0) continue;
    is_output[n] = is_output[n] || demands.is_demanded[n];
    for (NodeId input : graph.nodes[n]->inputs) {
      const int maker = scope_of[input.index()];
      if (maker < 0 || maker == scope_of[n]) continue;
      const NodeId stored = storage_base(graph, input);
      if (scope_of[stored.index()] >= 0) is_output[stored.index()] = true;
    }
  }
  return is_output;
}

}  // namespace stitch
