// What the second cache holds between the phases of a kernel.
#include <gtest/gtest.h>

#include <algorithm>

#include "plan/plan_graph.h"
#include "stage/schedule_stage.h"

namespace stitch {
namespace {

// Rows are reduced, then their results, then every element is divided.
std::vector<HeldValues> held_of(const std::string& type, const std::string& device) {
  const Planned planned = plan_graph("%x = input : " + type + R"(
    %rows = amax(%x){axes=[1]}
    %y = div(%x, amax(%rows))
    outputs (%y)
  )",
                                     device);
  const PlannedKernel& kernel = planned.plan.kernels.at(0);
  EXPECT_GT(kernel.phases.size(), 1u);
  return find_held_values(planned.graph, planned.plan.stages, kernel, device_spec(device));
}

TEST(HeldValues, WhatAnEarlierPhaseTouchedIsHeldWhereAllFits) {
  const std::vector<HeldValues> held = held_of("f32[1024,2048]", "h200");  // 8 MB, and 8 stored
  EXPECT_TRUE(held.front().empty()) << "nothing is before the first phase";
  EXPECT_TRUE(held.back().contains(NodeId(0)));
}

TEST(HeldValues, OfMoreThanTheSecondCacheNothingIs) {
  const std::vector<HeldValues> held = held_of("f32[8192,4096]", "h200");  // 134 MB
  EXPECT_FALSE(held.back().contains(NodeId(0)));
}

TEST(HeldValues, AnotherGpuHoldsItsOwn) {
  EXPECT_TRUE(held_of("f32[1024,2560]", "h200").back().contains(NodeId(0)));
  EXPECT_FALSE(held_of("f32[1024,2560]", "a100").back().contains(NodeId(0))) << "31 MB of 25";
}

}  // namespace
}  // namespace stitch
