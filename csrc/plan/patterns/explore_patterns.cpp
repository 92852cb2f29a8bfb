#include "plan/patterns/explore_patterns.h"

#include <cmath>
#include <map>
#include <ranges>
#include <set>
#include <span>
#include <tuple>

#include "base/error.h"
#include "base/lists.h"
#include "base/marks.h"

namespace stitch {
namespace {

// What lies between two units of a set without being of it (20.17).
enum class Detour { kNone, kUnits, kLibraryCall };

struct DetourSearch {
  const Topology& topology;
  Marks members = Marks(topology.order.size()), seen = members, on_detour = members;

  Detour find(const std::vector<int>& units) {  // two at least
    const auto range_of = [&](const std::vector<int>& numbers) {
      return std::ranges::minmax(units | std::views::transform([&](int u) { return numbers[u]; }));
    };
    const auto [first, last] = range_of(topology.position);
    if (last - first + 1 == std::ssize(units)) return Detour::kNone;
    const int deepest = range_of(topology.depth).max;
    members.assign(units);
    seen.assign(units);
    on_detour.clear();
    std::vector<int> below = units;  // and what waits for them, as far as it may lead back
    for (size_t i = 0; i < below.size(); ++i)
      for (int next : topology.consumers[below[i]])
        if (topology.position[next] < last && topology.depth[next] < deepest && seen.insert(next))
          below.push_back(next);
    // From the end, so that what a unit leads to is known before the unit is looked at.
    const auto beside = std::span(below).subspan(units.size());
    std::ranges::sort(beside, std::greater(), [&](int unit) { return topology.position[unit]; });
    Detour detour = Detour::kNone;
    for (int unit : beside) {
      const auto leads_back = [&](int next) { return members.has(next) || on_detour.has(next); };
      if (std::ranges::none_of(topology.consumers[unit], leads_back)) continue;
      if (topology.is_fixed[unit]) return Detour::kLibraryCall;
      detour = Detour::kUnits;
      on_detour.insert(unit);
    }
    return detour;
  }
};

struct Pattern {
  const std::vector<int>* units;  // sorted; owned by the pool
  double gain_us = 0;
  bool is_closed = true;          // no detour
  std::optional<bool> fits = {};  // nothing: not asked yet
};

constexpr size_t kTop = 3;    // patterns kept for a unit, and for a group of its consumers
constexpr size_t kGroup = 2;  // consumers whose patterns are combined exhaustively

// Every set that was ever considered, with the caller's word on it.
struct PatternPool {
  const Topology& topology;
  const PatternGain& gain;
  const PatternCheck& check;
  const ExploreOptions& options;
  DetourSearch detours{topology};
  std::map<std::vector<int>, int> ids = {};  // by units
  std::vector<Pattern> patterns = {};

  const Pattern& operator[](int id) const { return patterns[id]; }
  const std::vector<int>& units(int id) const { return *patterns[id].units; }

  // The id of a sorted set that is a pattern or may become one, else kNoPattern.  One unit gains 0.
  int intern(std::vector<int> units) {
    if (std::ssize(units) > options.max_units) return kNoPattern;
    const auto [entry, is_unseen] = ids.try_emplace(std::move(units), kNoPattern);
    if (!is_unseen) return entry->second;
    Pattern pattern{&entry->first};
    if (pattern.units->size() > 1) {
      const Detour detour = detours.find(*pattern.units);
      if (detour == Detour::kLibraryCall) return kNoPattern;  // no larger set is free of it either
      const std::optional<double> gain_us = gain(*pattern.units);
      if (!gain_us) return kNoPattern;
      STITCH_CHECK(std::isfinite(*gain_us), "the gain of a pattern is " << *gain_us << " us");
      pattern.gain_us = *gain_us;
      pattern.is_closed = detour == Detour::kNone;
    }
    patterns.push_back(pattern);
    return entry->second = static_cast<int>(patterns.size()) - 1;
  }

  // Of equal gains the smaller pattern: it leaves more to others.
  bool is_better(int a, int b) const {
    const Pattern &x = patterns[a], &y = patterns[b];
    if (x.gain_us != y.gain_us) return x.gain_us > y.gain_us;
    if (x.units->size() != y.units->size()) return x.units->size() < y.units->size();
    return *x.units < *y.units;
  }

  // A part of what one mapping serves is served by it too: what the rest made is read from memory.
  bool fits(int id, const std::vector<int>& fitting) {  // others that do
    Pattern& pattern = patterns[id];
    if (pattern.fits) return *pattern.fits;
    const bool is_part = std::ranges::any_of(
        fitting, [&](int other) { return std::ranges::includes(units(other), *pattern.units); });
    pattern.fits = pattern.units->size() == 1 || is_part || !check || check(*pattern.units);
    return *pattern.fits;
  }

  // The best of these that fit one kernel, kTop at most, best first.  The best closed one has a
  // place in any case: what the others lack may never come.
  std::vector<int> keep_best(std::vector<int> ids) {
    std::ranges::sort(ids, [&](int a, int b) { return is_better(a, b); });
    ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
    std::vector<int> kept;
    bool has_closed = false;
    for (int id : ids) {
      const bool is_closed = patterns[id].is_closed, is_full = kept.size() == kTop;
      if (is_full && has_closed) break;
      if ((is_full && !is_closed) || !fits(id, kept)) continue;
      if (is_full) kept.pop_back();
      kept.push_back(id);
      has_closed |= is_closed;
    }
    return kept;
  }
};

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
    for (int unit : topology.order | std::views::reverse) {
      if (topology.is_fixed[unit]) continue;
      std::vector<int> consumers = topology.consumers[unit];
      std::erase_if(consumers, [&](int consumer) { return topology.is_fixed[consumer]; });
      std::vector<int> found = reduce(unit, consumers);
      std::erase_if(found, [&](int id) { return !pool[id].is_closed; });
      candidates[unit] = pool.keep_best(std::move(found));
      offers[unit] = offer(unit, candidates[unit]);
    }
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

  // Sets that are open, for want of units of another group, stay until the groups are united.
  std::vector<int> reduce(int head, std::span<const int> consumers) {
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

  std::vector<int> combine(int head, std::span<const int> consumers) {
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
  PatternPool pool{topology, gain, fits, options};
  Reducer reducer{topology, pool};
  reducer.list_candidates();
  const std::vector<int> remote = reducer.list_remote();
  std::set<int> found(remote.begin(), remote.end());
  for (int id : reducer.candidates | std::views::join) found.insert(id);
  std::vector<ScoredPattern> patterns;
  for (int id : found)
    if (pool[id].gain_us > 0) patterns.push_back({pool.units(id), pool[id].gain_us});
  return search_plans(topology, patterns, options.beam);
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
