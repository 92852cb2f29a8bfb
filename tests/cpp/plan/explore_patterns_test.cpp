#include "plan/patterns/explore_patterns.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>

#include "base/error.h"

namespace stitch {
namespace {

using Units = std::vector<int>;
using Edges = std::vector<std::pair<int, int>>;

UnitGraph make_graph(int units, const Edges& edges, const Units& fixed = {}) {
  UnitGraph graph;
  graph.consumers.resize(units);
  graph.is_fixed.assign(units, false);
  graph.packing_class.assign(units, 0);
  for (const auto& [producer, consumer] : edges) graph.consumers[producer].push_back(consumer);
  for (int unit : fixed) graph.is_fixed[unit] = true;
  return graph;
}

// Only the listed patterns can be kernels.
PatternGain gain_of(std::map<Units, double> gains) {
  return [gains = std::move(gains)](const Units& units) -> std::optional<double> {
    const auto found = gains.find(units);
    if (found == gains.end()) return std::nullopt;
    return found->second;
  };
}

double count_inner_edges(const UnitGraph& graph, const Units& units) {
  double edges = 0;
  for (int unit : units) {
    for (int consumer : graph.consumers[unit]) {
      edges += std::binary_search(units.begin(), units.end(), consumer);
    }
  }
  return edges;
}

// One launch less for each unit but one, and more for what need not go through memory.
double count_launches_and_edges(const UnitGraph& graph, const Units& units) {
  return static_cast<double>(units.size()) - 1 + 3 * count_inner_edges(graph, units);
}

// The figure's graph.  What holds 0 cannot be generated; any other pattern gains its inner edges.
class Fig4 : public testing::Test {
 protected:
  const UnitGraph graph = make_graph(
      10, {{8, 5}, {8, 6}, {8, 7}, {9, 7}, {5, 2}, {6, 3}, {7, 4}, {2, 1}, {3, 1}, {4, 1}, {1, 0}});
  std::set<Units> asked;
  const PatternGain gain = [this](const Units& units) -> std::optional<double> {
    asked.insert(units);
    if (units[0] == 0) return std::nullopt;
    return count_inner_edges(graph, units);
  };
  const std::vector<FusionPlan> plans = explore_patterns(graph, gain);
};

TEST_F(Fig4, ConsumersHaveTheirChainsAsCandidates) {
  for (const Units& chain : {Units{1, 2}, Units{2, 5}, Units{1, 2, 5}, Units{3, 6}, Units{1, 3, 6},
                             Units{4, 7}, Units{1, 4, 7}}) {
    EXPECT_TRUE(asked.count(chain)) << testing::PrintToString(chain);
  }
}

TEST_F(Fig4, TheFirstGroupHas15Combinations) {
  const std::vector<Units> combinations =
      list_combinations(8, {{{1, 2, 5}, {2, 5}, {5}}, {{1, 3, 6}, {3, 6}, {6}}});
  EXPECT_EQ(combinations.size(), 15u);
  std::set<Units> of_first_group;
  for (const Units& units : asked) {
    auto has = [&](int unit) { return std::binary_search(units.begin(), units.end(), unit); };
    if (has(8) && !has(7) && !has(0)) of_first_group.insert(units);
  }
  for (const Units& units : combinations) {
    EXPECT_TRUE(of_first_group.count(units)) << testing::PrintToString(units);
  }
}

TEST_F(Fig4, ThePatternsOfBothGroupsAreUnited) {
  const Units first = {1, 2, 3, 5, 6, 8}, second = {1, 4, 7, 8}, both = {1, 2, 3, 4, 5, 6, 7, 8};
  EXPECT_TRUE(asked.count(first));
  EXPECT_TRUE(asked.count(second));
  EXPECT_TRUE(asked.count(both));
  EXPECT_EQ(gain(both), 9);
  // 8 -> 7 -> 4 -> 1 leaves the first group's pattern and comes back.
  for (const FusionPlan& plan : plans) {
    for (const Units& pattern : plan.patterns) EXPECT_NE(pattern, first);
  }
}

TEST_F(Fig4, ThePlanHoldsTheUnionAndItsOtherProducer) {
  const std::vector<FusionPlan> plans = explore_patterns(graph, gain);
  ASSERT_FALSE(plans.empty());
  EXPECT_EQ(plans[0].patterns, (std::vector<Units>{{1, 2, 3, 4, 5, 6, 7, 8, 9}}));
  EXPECT_EQ(plans[0].gain_us, 10);
}

TEST(ExplorePatterns, NothingIsFusedAroundALibraryCall) {
  const UnitGraph graph = make_graph(4, {{0, 1}, {1, 2}, {0, 2}, {2, 3}}, {1});
  const std::vector<FusionPlan> plans = explore_patterns(graph, [&](const Units& units) {
    EXPECT_NE(units, (Units{0, 2})) << "asked about a pattern that no order of kernels allows";
    return std::optional<double>(units.size());
  });
  EXPECT_EQ(plans[0].patterns, (std::vector<Units>{{2, 3}}));
}

TEST(ExplorePatterns, NothingIsFusedAroundAUnitThatStaysOutside) {
  const UnitGraph graph = make_graph(3, {{0, 1}, {1, 2}, {0, 2}});
  const std::vector<FusionPlan> plans =
      explore_patterns(graph, gain_of({{{0, 2}, 9}, {{1, 2}, 1}}));
  EXPECT_EQ(plans[0].patterns, (std::vector<Units>{{1, 2}}));
}

TEST(ExplorePatterns, ALibraryCallIsSeenAmongManyProducers) {
  Edges edges = {{0, 20}, {0, 21}, {20, 21}};
  for (int i = 1; i < 20; ++i) edges.push_back({i, 21});
  const std::vector<FusionPlan> plans =
      explore_patterns(make_graph(22, edges, {20}), [](const Units& units) {
        EXPECT_FALSE(units.front() == 0 && units.back() == 21) << "asked about a cycle";
        return std::optional<double>(units.size());
      });
  EXPECT_GT(plans[0].gain_us, 0);
}

// 0 -> 3 -> 4: whatever holds 4 is open without 3, which no kernel can hold.
TEST(ExplorePatterns, AClosedPatternStaysAmongOpenOnesThatGainMore) {
  const UnitGraph graph =
      make_graph(7, {{0, 1}, {0, 2}, {0, 3}, {1, 4}, {2, 4}, {3, 4}, {4, 5}, {5, 6}});
  const auto plans = explore_patterns(graph, [](const Units& units) -> std::optional<double> {
    if (std::binary_search(units.begin(), units.end(), 3)) return std::nullopt;
    return units.size();
  });
  EXPECT_EQ(plans[0].patterns, (std::vector<Units>{{0, 1, 2}, {4, 5, 6}}));
}

// Either is a kernel, but 0 -> 3 and 2 -> 1 make each wait for the other.
TEST(ExplorePatterns, PatternsThatWaitForEachOtherAreNotInOnePlan) {
  const UnitGraph graph = make_graph(4, {{0, 3}, {2, 1}});
  for (const FusionPlan& plan : explore_patterns(graph, gain_of({{{0, 1}, 5}, {{2, 3}, 4}}))) {
    EXPECT_LE(plan.patterns.size(), 1u);
  }
  EXPECT_EQ(explore_patterns(graph, gain_of({{{0, 1}, 5}, {{2, 3}, 4}}))[0].gain_us, 5);
}

TEST(ExplorePatterns, IndependentUnitsArePackedUpToTheBound) {
  const UnitGraph graph = make_graph(40, {});
  auto launches = [](const Units& units) { return std::optional<double>(units.size() - 1); };
  EXPECT_EQ(explore_patterns(graph, launches)[0].gain_us, 39);
  ExploreOptions options;
  options.max_units = 10;
  const FusionPlan plan = explore_patterns(graph, launches, options)[0];
  EXPECT_EQ(plan.patterns.size(), 4u);
  EXPECT_EQ(plan.gain_us, 36);
}

TEST(ExplorePatterns, OnlyUnitsOfOneClassArePacked) {
  UnitGraph graph = make_graph(6, {});
  graph.packing_class = {0, 1, 0, 1, 0, 1};
  const FusionPlan plan = explore_patterns(
      graph, [](const Units& units) { return std::optional<double>(units.size() - 1); })[0];
  EXPECT_EQ(std::set<Units>(plan.patterns.begin(), plan.patterns.end()),
            (std::set<Units>{{0, 2, 4}, {1, 3, 5}}));
}

// Each call of a string is followed by an update and by a pair that gains more than a packing of
// updates, so that no list of neighbours has room for two updates.
TEST(ExplorePatterns, UnitsThatNothingWaitsForArePackedWhereverTheyAre) {
  Edges edges;
  Units calls, updates;
  for (int call = 0; call < 200; call += 4) {
    const int update = call + 1, first = call + 2, second = call + 3;
    for (int next : {update, first}) edges.push_back({call, next});
    edges.push_back({first, second});
    if (second + 1 < 200) edges.push_back({second, second + 1});
    calls.push_back(call);
    updates.push_back(update);
  }
  auto is_update = [](int unit) { return unit % 4 == 1; };
  const PatternGain gain = [&](const Units& units) -> std::optional<double> {
    if (std::all_of(units.begin(), units.end(), is_update)) return units.size() - 1;
    if (std::any_of(units.begin(), units.end(), is_update)) return std::nullopt;
    return 10;
  };
  const FusionPlan plan = explore_patterns(make_graph(200, edges, calls), gain)[0];
  EXPECT_EQ(plan.gain_us, 49 + 50 * 10);
  EXPECT_EQ(std::count(plan.patterns.begin(), plan.patterns.end(), updates), 1);
}

TEST(ExplorePatterns, SourcesOfOneConsumerArePackedWithoutItToo) {
  Edges edges;
  for (int i = 0; i < 30; ++i) edges.push_back({i, 30});
  const UnitGraph graph = make_graph(31, edges);
  ExploreOptions options;
  options.max_units = 10;
  const FusionPlan plan = explore_patterns(
      graph,
      [&](const Units& units) { return std::optional(count_launches_and_edges(graph, units)); },
      options)[0];
  size_t packed = 0;
  for (const Units& pattern : plan.patterns) packed += pattern.size();
  EXPECT_EQ(packed, 31u);
  EXPECT_LE(plan.patterns.size(), 5u);
}

TEST(ExplorePatterns, ProducersThatMeetInAConsumerAreOnePattern) {
  UnitGraph graph = make_graph(5, {{0, 1}, {1, 4}, {2, 3}, {3, 4}});
  graph.packing_class = {0, 1, 2, 3, 4};
  const FusionPlan plan = explore_patterns(
      graph, [&](const Units& units) { return std::optional(count_inner_edges(graph, units)); })[0];
  EXPECT_EQ(plan.patterns, (std::vector<Units>{{0, 1, 2, 3, 4}}));
}

TEST(ExplorePatterns, ABeamFindsWhatAGreedyWalkMisses) {
  const UnitGraph graph = make_graph(4, {{0, 1}, {1, 2}, {2, 3}});
  const PatternGain gain = gain_of({{{0, 1}, 5}, {{1, 2, 3}, 8}, {{2, 3}, 1}, {{1, 2}, 1}});
  ExploreOptions greedy;
  greedy.beam = 1;
  EXPECT_EQ(explore_patterns(graph, gain, greedy)[0].gain_us, 6);
  const std::vector<FusionPlan> plans = explore_patterns(graph, gain);
  EXPECT_EQ(plans.size(), 3u);
  EXPECT_EQ(plans[0].gain_us, 8);
}

// At the first source the packings of many sources gain more than its pair does.
TEST(ExplorePatterns, APackingDoesNotTakeUnitsFromPatternsThatGainMore) {
  Edges edges;
  for (int i = 0; i < 16; ++i) edges.push_back({i, 16 + i});
  const PatternGain gain = [](const Units& units) -> std::optional<double> {
    if (units.back() < 16) return 1.2 * units.size();
    if (units.size() == 2 && units[1] == units[0] + 16) return 3;
    return std::nullopt;
  };
  EXPECT_EQ(explore_patterns(make_graph(32, edges), gain)[0].gain_us, 48);
}

TEST(ExplorePatterns, APatternThatLosesIsInNoPlan) {
  const UnitGraph graph = make_graph(2, {{0, 1}});
  EXPECT_TRUE(explore_patterns(graph, gain_of({{{0, 1}, -1}}))[0].patterns.empty());
  EXPECT_EQ(explore_patterns(UnitGraph{}, gain_of({})).size(), 1u);
}

TEST(ExplorePatterns, UnitsThatWaitForThemselvesAreAnError) {
  EXPECT_THROW(explore_patterns(make_graph(3, {{0, 1}, {1, 0}, {1, 2}}), gain_of({})),
               InternalError);
  EXPECT_THROW(explore_patterns(make_graph(2, {{0, 1}, {1, 0}}), gain_of({})), InternalError);
  EXPECT_THROW(explore_patterns(make_graph(1, {{0, 1}}), gain_of({})), InternalError);
}

UnitGraph make_random_graph(int units, int reach, unsigned seed) {
  std::mt19937 random(seed);
  Edges edges;
  Units fixed;
  for (int unit = 0; unit < units; ++unit) {
    for (int i = 0; i < 2; ++i) {
      const int consumer = unit + 1 + static_cast<int>(random() % reach);
      if (consumer < units) edges.push_back({unit, consumer});
    }
    if (random() % 8 == 0) fixed.push_back(unit);
  }
  return make_graph(units, edges, fixed);
}

// Refuses a third of all patterns, by their ids.
std::optional<double> random_gain(const UnitGraph& graph, const Units& units) {
  unsigned hash = 1;
  for (int unit : units) hash = hash * 31 + static_cast<unsigned>(unit);
  if (hash % 3 == 0) return std::nullopt;
  return count_inner_edges(graph, units) + hash % 7 * 0.25;
}

// Kernels and library calls by the pattern or the unit, and whether one waits for another.
std::vector<std::vector<bool>> find_waits(const UnitGraph& graph, const Units& kernel_of,
                                          int kernels) {
  std::vector<std::vector<bool>> waits(kernels, std::vector<bool>(kernels, false));
  for (size_t unit = 0; unit < kernel_of.size(); ++unit) {
    for (int consumer : graph.consumers[unit]) {
      if (kernel_of[unit] != kernel_of[consumer])
        waits[kernel_of[consumer]][kernel_of[unit]] = true;
    }
  }
  for (int via = 0; via < kernels; ++via) {
    for (int a = 0; a < kernels; ++a) {
      for (int b = 0; b < kernels && waits[a][via]; ++b) {
        if (waits[via][b]) waits[a][b] = true;
      }
    }
  }
  return waits;
}

void expect_valid(const UnitGraph& graph, const FusionPlan& plan, const ExploreOptions& options) {
  const int units = static_cast<int>(graph.consumers.size());
  Units kernel_of(units, -1);
  double gain_us = 0;
  int kernels = 0;
  for (const Units& pattern : plan.patterns) {
    ASSERT_GE(pattern.size(), 2u);
    ASSERT_LE(pattern.size(), static_cast<size_t>(options.max_units));
    for (int unit : pattern) {
      EXPECT_FALSE(graph.is_fixed[unit]);
      ASSERT_EQ(kernel_of[unit], -1) << "unit " << unit << " is in two patterns";
      kernel_of[unit] = kernels;
    }
    const std::optional<double> gain = random_gain(graph, pattern);
    ASSERT_TRUE(gain) << "a refused pattern is in the plan";
    gain_us += *gain;
    ++kernels;
  }
  EXPECT_NEAR(plan.gain_us, gain_us, 1e-9);
  const int patterns = kernels;
  for (int& kernel : kernel_of) kernel = kernel < 0 ? kernels++ : kernel;
  const std::vector<std::vector<bool>> waits = find_waits(graph, kernel_of, kernels);
  for (int kernel = 0; kernel < kernels; ++kernel) EXPECT_FALSE(waits[kernel][kernel]);
  for (int late = 0; late < patterns; ++late) {
    for (int early = 0; early < late; ++early) EXPECT_FALSE(waits[early][late]);
  }
}

TEST(ExplorePatterns, EveryPlanOfRandomGraphsCanRun) {
  ExploreOptions options;
  options.max_units = 9;
  int patterns = 0;
  for (unsigned seed = 0; seed < 60; ++seed) {
    const UnitGraph graph = make_random_graph(50, seed % 2 ? 6 : 40, seed);
    const std::vector<FusionPlan> plans = explore_patterns(
        graph, [&](const Units& units) { return random_gain(graph, units); }, options);
    ASSERT_LE(plans.size(), 3u);
    for (size_t i = 0; i < plans.size(); ++i) {
      expect_valid(graph, plans[i], options);
      EXPECT_LE(plans[i].gain_us, plans[0].gain_us);
      patterns += static_cast<int>(plans[i].patterns.size());
    }
  }
  EXPECT_GT(patterns, 1000);
}

TEST(ExplorePatterns, TheOrderOfEdgesDoesNotMatterAndNothingIsAskedTwice) {
  const UnitGraph graph = make_random_graph(200, 30, 1);
  UnitGraph reversed = graph;
  for (Units& consumers : reversed.consumers) std::reverse(consumers.begin(), consumers.end());
  std::multiset<Units> asked;
  auto gain = [&](const Units& units) {
    asked.insert(units);
    return random_gain(graph, units);
  };
  const std::vector<FusionPlan> plans = explore_patterns(graph, gain);
  for (const Units& units : asked) ASSERT_EQ(asked.count(units), 1u);
  for (const UnitGraph* again : {&graph, static_cast<const UnitGraph*>(&reversed)}) {
    const std::vector<FusionPlan> others = explore_patterns(*again, gain);
    ASSERT_EQ(others.size(), plans.size());
    for (size_t i = 0; i < plans.size(); ++i) EXPECT_EQ(others[i].patterns, plans[i].patterns);
  }
}

struct Effort {
  long asked = 0, units = 0;  // patterns, and the units in them
};

Effort measure(const UnitGraph& graph) {
  Effort effort;
  explore_patterns(graph, [&](const Units& units) {
    ++effort.asked;
    effort.units += static_cast<long>(units.size());
    return std::optional(count_launches_and_edges(graph, units));
  });
  return effort;
}

TEST(ExplorePatterns, EffortGrowsWithTheNumberOfUnits) {
  auto strings = [](int units) {
    Edges edges;
    for (int i = 0; i + 1 < units; ++i) edges.push_back({i, i + 1});
    return make_graph(units, edges);
  };
  auto hubs = [](int units) {
    Edges edges;
    for (int i = 1; i < units; ++i) edges.push_back({0, i});
    return make_graph(units, edges);
  };
  auto tangles = [](int units) { return make_random_graph(units, 40, 7); };
  auto loose = [](int units) { return make_graph(units, {}); };
  for (const auto& make : {+strings, +hubs, +tangles, +loose}) {
    const Effort small = measure(make(2000)), large = measure(make(8000));
    EXPECT_LT(small.asked, 20 * 2000);
    EXPECT_LT(large.asked, 5 * small.asked);
    EXPECT_LT(large.units, 5 * small.units);
  }
}

// What cannot be generated is any set with two units of one of these pairs.
struct RandomCase {
  UnitGraph graph;
  std::vector<std::vector<double>> gains_us;  // of two units
  Edges refused;

  double gain(const Units& units) const {
    double gain_us = 0;
    for (int a : units) {
      for (int b : units) gain_us += a < b ? gains_us[a][b] : 0;
    }
    return gain_us;
  }
  bool fits(const Units& units) const {
    auto has = [&](int unit) { return std::binary_search(units.begin(), units.end(), unit); };
    return std::none_of(refused.begin(), refused.end(),
                        [&](const auto& pair) { return has(pair.first) && has(pair.second); });
  }
};

RandomCase make_random(unsigned seed, int pairs) {
  std::mt19937 random(seed);
  const int units = 24;
  Edges edges;
  for (int unit = 1; unit < units; ++unit) {
    for (int edge = 0; edge < 2; ++edge) edges.push_back({static_cast<int>(random() % unit), unit});
  }
  RandomCase made{make_graph(units, edges), {}, {}};
  made.gains_us.assign(units, std::vector<double>(units));
  for (auto& row : made.gains_us) {
    for (double& gain_us : row) gain_us = static_cast<double>(random() % 1000) - 200;
  }
  for (int pair = 0; pair < pairs; ++pair) {
    const int a = static_cast<int>(random() % (units - 1));
    made.refused.push_back({a, a + 1 + static_cast<int>(random() % (units - 1 - a))});
  }
  return made;
}

TEST(ExplorePatterns, CheckingLateFindsWhatCheckingAllFinds) {
  for (unsigned seed = 0; seed < 60; ++seed) {
    const RandomCase random = make_random(seed, static_cast<int>(seed % 12));
    int all = 0, late = 0;
    const std::vector<FusionPlan> expected =
        explore_patterns(random.graph, [&](const Units& units) -> std::optional<double> {
          ++all;
          if (!random.fits(units)) return std::nullopt;
          return random.gain(units);
        });
    std::set<Units> asked;
    const std::vector<FusionPlan> found = explore_patterns(
        random.graph, [&](const Units& units) { return std::optional(random.gain(units)); }, {},
        [&](const Units& units) {
          EXPECT_TRUE(asked.insert(units).second) << "asked twice";
          ++late;
          return random.fits(units);
        });
    ASSERT_EQ(found.size(), expected.size()) << "seed " << seed;
    for (size_t plan = 0; plan < found.size(); ++plan) {
      EXPECT_EQ(found[plan].patterns, expected[plan].patterns) << "seed " << seed;
      EXPECT_EQ(found[plan].gain_us, expected[plan].gain_us) << "seed " << seed;
    }
    EXPECT_LT(late, all / 2) << "seed " << seed;
  }
}

}  // namespace
}  // namespace stitch
