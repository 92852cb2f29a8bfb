// The beam search of fusion exploration (FusionStitching 2020, 20.19).
#include <algorithm>
#include <functional>
#include <optional>
#include <span>
#include <utility>

#include "base/map_to_vector.h"
#include "plan/pattern_pool.h"

namespace stitch {
namespace {

// Patterns chosen so far, with a topological order of all units in which those of a pattern stand
// together.  Patterns without detours of their own may wait for each other: then there is none.
struct PartialPlan {
  const Topology* topology;
  const PatternPool* pool;
  double gain_us = 0;
  double worth_us = 0;  // gain less the prices of the units that were given for it or passed by
  std::vector<int> order = topology->order, places = topology->position;     // of all units
  std::vector<int> pattern_of = std::vector<int>(order.size(), kNoPattern);  // by unit

  bool covers(int unit) const { return pattern_of[unit] != kNoPattern; }

  bool overlaps(int pattern) const {
    const std::vector<int>& units = pool->units(pattern);
    return std::ranges::any_of(units, [&](int unit) { return covers(unit); });
  }

  // The units that wait for the pattern, of those between its first and its last, as they are
  // ordered; nothing where the pattern waits for one of them too.
  std::optional<std::vector<int>> find_followers(int pattern, Marks& seen) const {
    const std::vector<int>& units = pool->units(pattern);
    const int last = find_ends(units).second;
    std::vector<int> followers;
    seen.assign(units);
    for (int unit : units) follow(unit, last, seen, followers);
    for (size_t next = 0; next < followers.size(); ++next) {
      for (int consumer : topology->consumers[followers[next]])
        if (std::ranges::binary_search(units, consumer)) return std::nullopt;
      follow(followers[next], last, seen, followers);
    }
    std::ranges::sort(followers, {}, [&](int unit) { return places[unit]; });
    return followers;
  }

  // Followers go behind the pattern, what else stands in between goes before it.
  void append(int pattern, const std::vector<int>& followers) {
    const std::vector<int>& units = pool->units(pattern);
    const auto [first, last] = find_ends(units);
    for (int unit : units) pattern_of[unit] = pattern;
    const auto position = [&](int unit) { return places[unit]; };
    const auto is_own = [&](int unit) { return pattern_of[unit] == pattern; };
    const auto is_before = [&](int unit) {
      return !is_own(unit) && !std::ranges::binary_search(followers, position(unit), {}, position);
    };
    const auto range = std::span(order).subspan(first, last - first + 1);
    std::ranges::stable_partition(std::ranges::stable_partition(range, is_before), is_own);
    for (int at = first; at <= last; ++at) places[order[at]] = at;
    gain_us += (*pool)[pattern].gain_us;
  }

  FusionPlan finish() const {
    FusionPlan plan{{}, gain_us};
    int previous = kNoPattern;
    for (int unit : order) {
      const int pattern = pattern_of[unit];
      if (pattern != kNoPattern && pattern != previous)
        plan.patterns.push_back(pool->units(pattern));
      previous = pattern;
    }
    return plan;
  }

  std::pair<int, int> find_ends(const std::vector<int>& units) const {
    const auto position = [&](int unit) { return places[unit]; };
    const auto [first, last] = std::ranges::minmax(units, {}, position);
    return {position(first), position(last)};
  }

  void follow(int unit, int last, Marks& seen, std::vector<int>& followers) const {
    auto add = [&](int follower) {
      seen.insert(follower);
      followers.push_back(follower);
    };
    for (int consumer : topology->consumers[unit]) {
      if (places[consumer] > last || seen.has(consumer)) continue;
      const int pattern = pattern_of[consumer];
      if (pattern == kNoPattern)
        add(consumer);
      else
        for (int member : pool->units(pattern)) add(member);
    }
  }
};

// A partial plan as it is, or with one pattern more.
struct Extension {
  size_t plan;
  int pattern;  // kNoPattern: as it is
  double worth_us;
  std::vector<int> followers = {};
};

struct BeamSearch {
  const Topology& topology;
  const PatternPool& pool;
  const std::vector<double>& prices_us;
  const size_t beam;
  Marks seen = Marks(topology.order.size());

  // `starting_at`: patterns by their first unit.
  std::vector<FusionPlan> run(const std::vector<std::vector<int>>& starting_at) {
    std::vector<PartialPlan> plans = {PartialPlan{&topology, &pool}};
    for (int unit : topology.order) {
      const std::vector<Extension> kept = choose(plans, unit, starting_at[unit]);
      if (starting_at[unit].empty())
        for (const Extension& extension : kept) plans[extension.plan].worth_us = extension.worth_us;
      else
        plans = extend(plans, kept);
    }
    return map_to_vector(plans, &PartialPlan::finish);
  }

  std::vector<Extension> choose(const std::vector<PartialPlan>& plans, int unit,
                                const std::vector<int>& patterns) {
    std::vector<Extension> possible, kept;
    for (size_t p = 0; p < plans.size(); ++p) {
      const double passed_us = plans[p].covers(unit) ? 0 : prices_us[unit];
      possible.push_back({p, kNoPattern, plans[p].worth_us - passed_us});
      for (int pattern : patterns)
        if (!plans[p].overlaps(pattern))
          possible.push_back({p, pattern, plans[p].worth_us + worth_us(pattern)});
    }
    std::ranges::stable_sort(possible, std::greater(), &Extension::worth_us);
    for (Extension& extension : possible) {
      if (kept.size() == beam) break;
      if (extension.pattern != kNoPattern) {
        auto followers = plans[extension.plan].find_followers(extension.pattern, seen);
        if (!followers) continue;
        extension.followers = std::move(*followers);
      }
      kept.push_back(std::move(extension));
    }
    return kept;
  }

  double worth_us(int pattern) const {
    double worth_us = pool[pattern].gain_us;
    for (int unit : pool.units(pattern)) worth_us -= prices_us[unit];
    return worth_us;
  }

  static std::vector<PartialPlan> extend(const std::vector<PartialPlan>& plans,
                                         const std::vector<Extension>& kept) {
    std::vector<PartialPlan> extended;
    for (const Extension& extension : kept) {
      extended.push_back(plans[extension.plan]);
      extended.back().worth_us = extension.worth_us;
      if (extension.pattern != kNoPattern)
        extended.back().append(extension.pattern, extension.followers);
    }
    return extended;
  }
};

// Patterns by their first unit.
std::vector<std::vector<int>> sort_by_start(const Topology& topology, const PatternPool& pool,
                                            const std::vector<int>& patterns) {
  std::vector<std::vector<int>> starting_at(topology.order.size());
  for (int pattern : patterns) {
    const std::vector<int>& units = pool.units(pattern);
    const int first =
        std::ranges::min(units, {}, [&](int unit) { return topology.position[unit]; });
    starting_at[first].push_back(pattern);
  }
  return starting_at;
}

// What a unit could gain at best: its share of the best pattern that holds it.
std::vector<double> find_prices(const Topology& topology, const PatternPool& pool,
                                const std::vector<int>& patterns) {
  std::vector<double> prices_us(topology.order.size(), 0);
  for (int pattern : patterns) {
    const std::vector<int>& units = pool.units(pattern);
    const double share_us = pool[pattern].gain_us / static_cast<double>(units.size());
    for (int unit : units) prices_us[unit] = std::max(prices_us[unit], share_us);
  }
  return prices_us;
}

}  // namespace

std::vector<FusionPlan> search_plans(const Topology& topology, const PatternPool& pool,
                                     std::vector<int> patterns, int beam) {
  std::erase_if(patterns, [&](int pattern) { return pool[pattern].gain_us <= 0; });
  std::ranges::sort(patterns);
  patterns.erase(std::unique(patterns.begin(), patterns.end()), patterns.end());
  const std::vector<std::vector<int>> starting_at = sort_by_start(topology, pool, patterns);
  const std::vector<double> free_us(topology.order.size(), 0);
  const std::vector<double> prices_us = find_prices(topology, pool, patterns);
  const auto most = static_cast<size_t>(beam);
  std::vector<FusionPlan> plans = BeamSearch{topology, pool, free_us, most}.run(starting_at);
  for (FusionPlan& plan : BeamSearch{topology, pool, prices_us, most}.run(starting_at)) {
    const bool is_known = std::ranges::count(plans, plan.patterns, &FusionPlan::patterns) > 0;
    if (!is_known) plans.push_back(std::move(plan));
  }
  std::ranges::stable_sort(plans, std::greater(), &FusionPlan::gain_us);
  if (plans.size() > most) plans.resize(most);
  return plans;
}

}  // namespace stitch
