#include "analysis/order_steps.h"

#include <gtest/gtest.h>

#include <random>

#include "support/read_graph.h"

namespace stitch {
namespace {

// Inputs that a forward pass saved, one that its caller holds, and what is made of them: values of
// 4 KB but for %wide, of 64 KB.
constexpr const char* kValues = R"(
  %saved = input{name="add_3"} : f32[32,32]
  %held = input{name="primals_1"} : f32[32,32]
  %wide = expand(%held){shape=[16,32,32]}
  %small = exp(%saved)
  %sum = neg(%held)
  outputs (%wide, %sum)
)";
constexpr int kSaved = 0, kHeld = 1, kWide = 2, kSmall = 3, kSum = 4;

std::set<NodeId> values(const std::vector<int>& numbers) {
  std::set<NodeId> set;
  for (int number : numbers) set.insert(NodeId(number));
  return set;
}

TEST(OrderSteps, WhatIsFreedBeforeMuchIsMadeLowersThePeak) {
  const Graph graph = read_graph(R"(
    %saved = input{name="add_3"} : f32[32,32]
    %other = input{name="add_4"} : f32[32,32]
    %made = exp(%other)
    %small = sum(%saved){axes=[0,1]}
    outputs (%made, %small)
  )");
  const std::vector<OpenStep> steps = {{{}, values({1, 2})}, {{}, values({0, 3})}};
  EXPECT_EQ(order_steps(graph, steps), (std::vector<int>{1, 0}));
}

TEST(OrderSteps, WhatTheCallerHoldsIsNotFreed) {
  const Graph graph = read_graph(R"(
    %held = input{name="primals_1"} : f32[32,32]
    %other = input{name="primals_2"} : f32[32,32]
    %made = exp(%other)
    %small = sum(%held){axes=[0,1]}
    outputs (%made, %small)
  )");
  const std::vector<OpenStep> steps = {{{}, values({1, 2})}, {{}, values({0, 3})}};
  EXPECT_EQ(order_steps(graph, steps), (std::vector<int>{0, 1}));
}

TEST(OrderSteps, TheGivenOrderStaysWhereThePeakIsWhatIsReturned) {
  const Graph graph = read_graph(kValues);
  const std::vector<OpenStep> steps = {{{}, values({kHeld, kWide})}, {{}, values({kHeld, kSum})}};
  EXPECT_EQ(order_steps(graph, steps), (std::vector<int>{0, 1}));
}

TEST(OrderSteps, EachComesAfterAllThatItWaitsFor) {
  const Graph graph = read_graph(kValues);
  std::mt19937 random(7);
  for (int trial = 0; trial < 50; ++trial) {
    std::vector<OpenStep> steps(20);
    for (int s = 0; s < 20; ++s) {
      for (int value : {kSaved, kHeld, kWide, kSmall, kSum})
        if (random() % 3 == 0) steps[s].values.insert(NodeId(value));
      for (int before = 0; before < s; ++before)
        if (random() % 6 == 0) steps[s].waits_for.insert(before);
    }
    const std::vector<int> order = order_steps(graph, steps);
    std::set<int> done;
    for (int step : order) {
      for (int before : steps[step].waits_for) EXPECT_TRUE(done.count(before)) << step;
      EXPECT_TRUE(done.insert(step).second) << step;
    }
    EXPECT_EQ(done.size(), steps.size());
  }
}

}  // namespace
}  // namespace stitch
