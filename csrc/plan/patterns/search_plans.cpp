#include "plan/patterns/explore_patterns.h"

#include <span>

#include "base/error.h"
#include "base/lists.h"
#include "base/marks.h"

namespace stitch {
namespace {

// Depth first through producers, from one sink after the other.
void find_order(Topology& topology) {
  const size_t units = topology.consumers.size();
  std::vector<size_t> next_producer(units, 0);
  std::vector<bool> is_begun(units, false);
  topology.position.assign(units, -1);
  std::vector<int> stack;
  auto begin = [&](int unit) {
    STITCH_CHECK(!is_begun[unit], "unit " << unit << " waits for itself");
    is_begun[unit] = true;
    stack.push_back(unit);
  };
  for (size_t sink = 0; sink < units; ++sink) {
    if (topology.consumers[sink].empty()) begin(static_cast<int>(sink));
    while (!stack.empty()) {
      const int unit = stack.back();
      if (next_producer[unit] < topology.producers[unit].size()) {
        const int producer = topology.producers[unit][next_producer[unit]++];
        if (topology.position[producer] < 0) begin(producer);
        continue;
      }
      topology.position[unit] = static_cast<int>(topology.order.size());
      topology.order.push_back(unit);
      stack.pop_back();
    }
  }
  STITCH_CHECK(topology.order.size() == units, units - topology.order.size()
                                                   << " units wait for each other");
}

void find_depths(Topology& topology) {
  topology.depth = topology.height = std::vector<int>(topology.order.size(), 0);
  for (int unit : topology.order)
    for (int producer : topology.producers[unit])
      topology.depth[unit] = std::max(topology.depth[unit], topology.depth[producer] + 1);
  for (auto unit = topology.order.rbegin(); unit != topology.order.rend(); ++unit)
    for (int consumer : topology.consumers[*unit])
      topology.height[*unit] = std::max(topology.height[*unit], topology.height[consumer] + 1);
}

// Patterns chosen so far, with a topological order of all units in which those of a pattern stand
// together.  Patterns without detours of their own may wait for each other: then there is none.
struct PartialPlan {
  const Topology* topology;
  const std::vector<ScoredPattern>* patterns;
  double gain_us = 0;
  double worth_us = 0;  // gain less the prices of the units that were given for it or passed by
  std::vector<int> order = topology->order, places = topology->position;     // of all units
  std::vector<int> pattern_of = std::vector<int>(order.size(), kNoPattern);  // by unit

  bool covers(int unit) const { return pattern_of[unit] != kNoPattern; }

  const std::vector<int>& units_of(int pattern) const { return (*patterns)[pattern].units; }

  bool overlaps(int pattern) const {
    return std::ranges::any_of(units_of(pattern), [&](int unit) { return covers(unit); });
  }

  // The units that wait for the pattern, of those between its first and its last, as they are
  // ordered; nothing where the pattern waits for one of them too.
  std::optional<std::vector<int>> find_followers(int pattern, Marks& seen) const {
    const std::vector<int>& units = units_of(pattern);
    const int last = find_ends(units).second;
    std::vector<int> followers;
    seen.assign(units);
    for (int unit : units) follow(unit, last, seen, followers);
    for (size_t next = 0; next < followers.size(); ++next) {
      for (int consumer : topology->consumers[followers[next]])
        if (contains(units, consumer)) return std::nullopt;
      follow(followers[next], last, seen, followers);
    }
    std::ranges::sort(followers, {}, [&](int unit) { return places[unit]; });
    return followers;
  }

  // Followers go behind the pattern, what else stands in between goes before it.
  void append(int pattern, const std::vector<int>& followers) {
    const std::vector<int>& units = units_of(pattern);
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
    gain_us += (*patterns)[pattern].gain_us;
  }

  FusionPlan finish() const {
    FusionPlan plan{{}, gain_us};
    int previous = kNoPattern;
    for (int unit : order) {
      const int pattern = pattern_of[unit];
      if (pattern != kNoPattern && pattern != previous) plan.patterns.push_back(units_of(pattern));
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
    for (const int& consumer : topology->consumers[unit]) {
      if (places[consumer] > last || seen.has(consumer)) continue;
      const std::span<const int> alone(&consumer, 1);
      for (int member : covers(consumer) ? units_of(pattern_of[consumer]) : alone) {
        seen.insert(member);
        followers.push_back(member);
      }
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
  const std::vector<ScoredPattern>& patterns;
  const std::vector<double>& prices_us;
  const size_t beam;
  Marks seen = Marks(topology.order.size());

  // `starting_at`: patterns by their first unit.
  std::vector<FusionPlan> run(const std::vector<std::vector<int>>& starting_at) {
    std::vector<PartialPlan> plans = {PartialPlan{&topology, &patterns}};
    for (int unit : topology.order) {
      const std::vector<Extension> kept = choose(plans, unit, starting_at[unit]);
      if (starting_at[unit].empty()) {
        for (const Extension& extension : kept) plans[extension.plan].worth_us = extension.worth_us;
        continue;
      }
      std::vector<PartialPlan> extended;
      for (const Extension& extension : kept) {
        extended.push_back(plans[extension.plan]);
        extended.back().worth_us = extension.worth_us;
        if (extension.pattern != kNoPattern)
          extended.back().append(extension.pattern, extension.followers);
      }
      plans = std::move(extended);
    }
    return map_to_vector(plans, &PartialPlan::finish);
  }

  std::vector<Extension> choose(const std::vector<PartialPlan>& plans, int unit,
                                const std::vector<int>& starting) {
    std::vector<Extension> possible, kept;
    for (size_t p = 0; p < plans.size(); ++p) {
      const double passed_us = plans[p].covers(unit) ? 0 : prices_us[unit];
      possible.push_back({p, kNoPattern, plans[p].worth_us - passed_us});
      for (int pattern : starting)
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
    double worth_us = patterns[pattern].gain_us;
    for (int unit : patterns[pattern].units) worth_us -= prices_us[unit];
    return worth_us;
  }
};

std::vector<std::vector<int>> sort_by_start(const Topology& topology,
                                            const std::vector<ScoredPattern>& patterns) {
  std::vector<std::vector<int>> starting_at(topology.order.size());
  const auto position = [&](int unit) { return topology.position[unit]; };
  for (size_t p = 0; p < patterns.size(); ++p)
    starting_at[std::ranges::min(patterns[p].units, {}, position)].push_back(static_cast<int>(p));
  return starting_at;
}

// What a unit could gain at best: its share of the best pattern that holds it.
std::vector<double> find_prices(const Topology& topology,
                                const std::vector<ScoredPattern>& patterns) {
  std::vector<double> prices_us(topology.order.size(), 0);
  for (const auto& [units, gain_us] : patterns) {
    const double share_us = gain_us / static_cast<double>(units.size());
    for (int unit : units) prices_us[unit] = std::max(prices_us[unit], share_us);
  }
  return prices_us;
}

}  // namespace

Topology find_topology(const UnitGraph& graph) {
  const size_t units = graph.consumers.size();
  STITCH_CHECK(graph.is_fixed.size() == units, graph.is_fixed.size() << " of " << units);
  STITCH_CHECK(graph.packing_class.size() == units, graph.packing_class.size() << " of " << units);
  Topology topology{graph};
  topology.producers.resize(units);
  for (size_t unit = 0; unit < units; ++unit) {
    std::vector<int>& consumers = topology.consumers[unit];
    std::ranges::sort(consumers);
    consumers.erase(std::unique(consumers.begin(), consumers.end()), consumers.end());
    for (int consumer : consumers) {
      STITCH_CHECK(consumer >= 0 && consumer < static_cast<int>(units), "no unit " << consumer);
      topology.producers[consumer].push_back(static_cast<int>(unit));
    }
  }
  find_order(topology);
  find_depths(topology);
  return topology;
}

std::vector<FusionPlan> search_plans(const Topology& topology,
                                     const std::vector<ScoredPattern>& patterns, int beam) {
  const std::vector<std::vector<int>> starting_at = sort_by_start(topology, patterns);
  const std::vector<double> free_us(topology.order.size(), 0);
  const std::vector<double> prices_us = find_prices(topology, patterns);
  const auto most = static_cast<size_t>(beam);
  std::vector<FusionPlan> plans = BeamSearch{topology, patterns, free_us, most}.run(starting_at);
  for (FusionPlan& plan : BeamSearch{topology, patterns, prices_us, most}.run(starting_at)) {
    const bool is_known = std::ranges::count(plans, plan.patterns, &FusionPlan::patterns) > 0;
    if (!is_known) plans.push_back(std::move(plan));
  }
  std::ranges::stable_sort(plans, std::greater(), &FusionPlan::gain_us);
  if (plans.size() > most) plans.resize(most);
  return plans;
}

}  // namespace stitch
