#include "plan/explore_patterns.h"

#include <algorithm>
#include <iterator>
#include <ranges>
#include <span>
#include <tuple>
#include <utility>

#include "base/map_to_vector.h"
#include "plan/pattern_pool.h"

namespace stitch {
namespace {

std::vector<int> unite(const std::vector<int>& a, const std::vector<int>& b) {
  std::vector<int> both;
  both.reserve(a.size() + b.size());
  std::ranges::set_union(a, b, std::back_inserter(both));
  return both;
}

using Consumers = std::span<const int>;

// PatternReduction (20.15, 20.16), of units and of their virtual producer (20.18).
struct Reducer {
  const Topology& topology;
  PatternPool& pool;
  // By unit, ids, best first: patterns that it is the producer of (20.15), not the unit alone; what
  // its producers are offered; patterns that hold it, of any producer.
  std::vector<std::vector<int>> candidates{topology.order.size()}, offers = candidates;
  std::vector<std::vector<int>> patterns_with = candidates;
  std::vector<int> remote = {};

  void list_candidates() {
    for (int unit : topology.order | std::views::reverse)
      if (!topology.is_fixed[unit]) list_candidates_of(unit);
  }

  // Patterns of the virtual vertex that produces all units (20.18).  Its own list would be kTop
  // for the whole graph, but what it joins is small and many, so that the lists of all groups of
  // its consumers count.  A group has something in common: a consumer, or class and rank.
  std::vector<int> list_remote() {
    join_meeting();
    std::vector<Member> units;
    for (int unit : topology.order)
      if (!topology.is_fixed[unit]) units.push_back({rank(unit), unit, {pool.intern({unit})}});
    std::ranges::sort(units, {}, [](const Member& m) { return std::pair(m.rank, m.unit); });
    // Alone first: where all have one consumer, packings with it would hide those without.
    join_alike(units, [](const Member& m) { return m.rank; });
    for (Member& member : units) member.patterns = offers[member.unit];
    join_alike(units, [](const Member& m) { return std::get<0>(m.rank); });
    return std::move(remote);
  }

  using Rank = std::tuple<int, int, int>;  // class, layer, depth
  struct Member {
    Rank rank;
    int unit;
    std::vector<int> patterns;
  };

  // Units that can be packed stand side by side: those that nothing runs before (casts of weights),
  // those that nothing waits for (optimiser updates), wherever they are; else those equally deep.
  Rank rank(int unit) const {
    const int packing_class = topology.packing_class[unit];
    if (topology.depth[unit] == 0) return {packing_class, 0, 0};
    if (topology.height[unit] == 0) return {packing_class, 1, 0};
    return {packing_class, 2, topology.depth[unit]};
  }

  void list_candidates_of(int unit) {
    std::vector<int> consumers = topology.consumers[unit];
    std::erase_if(consumers, [&](int consumer) { return topology.is_fixed[consumer]; });
    pool.assume_all_fit();
    candidates[unit] = pool.keep_best_closed(reduce(unit, consumers));
    if (!pool.settle()) candidates[unit] = pool.keep_best_closed(reduce(unit, consumers));
    offers[unit] = offer(unit, candidates[unit]);
  }

  // Sets that are open, for want of units of another group, stay until the groups are united.
  std::vector<int> reduce(int head, Consumers consumers) {
    if (consumers.size() <= kGroup) return combine(head, consumers);
    const size_t half = (consumers.size() + 1) / 2;
    const std::vector<int> left = pool.keep_best(reduce(head, consumers.first(half)));
    const std::vector<int> right = pool.keep_best(reduce(head, consumers.subspan(half)));
    std::vector<int> found = left;
    found.insert(found.end(), right.begin(), right.end());
    for (int a : left)
      for (int b : right) add(unite(pool.units(a), pool.units(b)), found);
    return found;
  }

  std::vector<int> combine(int head, Consumers consumers) {
    const auto units_of = [&](int id) { return pool.units(id); };
    const auto patterns = map_to_vector(
        consumers, [&](int consumer) { return map_to_vector(offers[consumer], units_of); });
    std::vector<int> found;
    for (std::vector<int>& units : list_combinations(head, patterns)) add(std::move(units), found);
    return found;
  }

  void add(std::vector<int> units, std::vector<int>& found) {
    const int id = pool.intern(std::move(units));
    if (id != kNoPattern) found.push_back(id);
  }

  // Producers of one unit.  Patterns of 20.15 have one producer: two that meet in a consumer are
  // never in one of these without a producer of both.
  void join_meeting() {
    for (int id : candidates | std::views::join) add_to_units(id);
    for (int unit : topology.order) {
      std::vector<Member> members;
      for (int producer : topology.producers[unit])
        if (!topology.is_fixed[producer]) members.push_back({{}, producer, best_with(producer)});
      if (members.size() < 2 || topology.is_fixed[unit]) continue;
      const size_t known = remote.size();
      join(members);
      for (size_t i = known; i < remote.size(); ++i) add_to_units(remote[i]);
    }
  }

  void add_to_units(int id) {
    for (int unit : pool.units(id)) patterns_with[unit].push_back(id);
  }

  std::vector<int> best_with(int unit) {
    std::vector<int>& patterns = patterns_with[unit];
    patterns = pool.keep_best(std::move(patterns));
    return offer(unit, patterns);
  }

  // The unit alone is offered in place of the last: otherwise one that fuses with the unit, but
  // with nothing beyond it, would have no pattern at all.
  std::vector<int> offer(int unit, std::vector<int> patterns) {
    if (patterns.size() == kTop) patterns.pop_back();
    patterns.push_back(pool.intern({unit}));
    return patterns;
  }

  // Those of one key.
  template <typename Key>
  void join_alike(std::span<const Member> members, Key key) {
    for (size_t begin = 0, end = 0; begin < members.size(); begin = end) {
      while (end < members.size() && key(members[begin]) == key(members[end])) ++end;
      join(members.subspan(begin, end - begin));
    }
  }

  std::vector<int> join(std::span<const Member> members) {
    if (members.size() == 1) return members[0].patterns;
    const size_t half = find_split(members);
    const std::vector<int> left = join(members.first(half)), right = join(members.subspan(half));
    std::vector<int> found = left, joined;
    found.insert(found.end(), right.begin(), right.end());
    for (int a : left) {
      for (int b : right) {
        const int id = pool.intern(unite(pool.units(a), pool.units(b)));
        if (id == kNoPattern || !pool[id].is_closed || !is_worth_joining(id, a, b)) continue;
        joined.push_back(id);
      }
    }
    found.insert(found.end(), joined.begin(), joined.end());
    found = pool.keep_best(std::move(found));
    for (int id : found)
      if (std::ranges::count(joined, id)) remote.push_back(id);
    return found;
  }

  bool is_worth_joining(int both, int a, int b) const {
    const double a_us = pool[a].gain_us, b_us = pool[b].gain_us;
    const bool can_be_apart =
        pool.units(both).size() == pool.units(a).size() + pool.units(b).size();
    return pool[both].gain_us > (can_be_apart ? a_us + b_us : std::max(a_us, b_us));
  }

  // Where the rank changes, as near to the middle as may be.
  static size_t find_split(std::span<const Member> members) {
    const size_t middle = members.size() / 2;
    auto changes = [&](size_t at) { return members[at - 1].rank != members[at].rank; };
    for (size_t away = 0; away < middle; ++away) {
      if (changes(middle - away)) return middle - away;
      if (changes(middle + away)) return middle + away;
    }
    return middle;
  }
};

}  // namespace

std::vector<FusionPlan> explore_patterns(const UnitGraph& graph, const PatternGain& gain,
                                         const ExploreOptions& options, const PatternCheck& fits) {
  const Topology topology = find_topology(graph);
  PatternPool pool(topology, gain, fits, options);
  Reducer reducer{topology, pool};
  reducer.list_candidates();
  std::vector<int> patterns = reducer.list_remote();
  for (int unit : topology.order)
    std::ranges::copy(reducer.candidates[unit], std::back_inserter(patterns));
  return search_plans(topology, pool, patterns, options.beam);
}

std::vector<std::vector<int>> list_combinations(
    int head, const std::vector<std::vector<std::vector<int>>>& patterns_of_consumers) {
  std::vector<std::vector<int>> combinations = {{head}};
  for (const std::vector<std::vector<int>>& patterns : patterns_of_consumers) {
    const size_t without = combinations.size();
    for (size_t c = 0; c < without; ++c)
      for (const std::vector<int>& pattern : patterns)
        combinations.push_back(unite(combinations[c], pattern));
  }
  combinations.erase(combinations.begin());
  return combinations;
}

}  // namespace stitch
