// Hazards of storing a mutation straight into its input: every read of the old value must come
// before the store.
#include "plan/store_in_place.h"

#include "plan/plan_graph.h"

namespace stitch {
namespace {

class InPlace : public testing::TestWithParam<const char*> {
 protected:
  bool is_in_place(const std::string& lines) const {
    const Planned planned =
        plan_graph("%x = input : f32[64,64]\n%g = input : f32[64,64]\n" + lines + "\n", GetParam());
    EXPECT_EQ(planned.plan.in_place.size(), planned.graph.mutations.size());
    return planned.plan.in_place.at(0);
  }

  // Everything is one stage.
  bool is_replaced(const std::string& lines) const {
    const Planned planned = schedule_together(
        "%x = input : f32[64,64]\n%g = input : f32[64,64]\n" + lines + "\n", GetParam());
    const Graph& graph = planned.graph;
    return !find_replaced(graph, find_replaceable(graph), planned.plan.stages.at(0)).empty();
  }
};

TEST_P(InPlace, AnElementReadWhereItIsStored) {
  EXPECT_TRUE(is_in_place("%y = sub(%x, mul(%g, 0.5))\nmutate %x <- %y\noutputs (none)"));
}

TEST_P(InPlace, AValueThatDoesNotReadItsInput) {
  EXPECT_TRUE(is_in_place("%y = exp(%g)\nmutate %x <- %y\noutputs (none)"));
}

TEST_P(InPlace, NotWhereAnotherIndexIsRead) {
  EXPECT_FALSE(is_in_place("%y = add(%x, flip(%x){axes=[0]})\nmutate %x <- %y\noutputs (none)"));
  EXPECT_FALSE(
      is_in_place("%y = add(%x, permute(%x){order=[1,0]})\nmutate %x <- %y\noutputs (none)"));
  EXPECT_FALSE(
      is_in_place("%i = input : i64[64]\n%y = index(%x, %i){axes=[0]}\n"
                  "mutate %x <- %y\noutputs (none)"));
}

TEST_P(InPlace, NotWhereAReductionReadsMoreThanTheElement) {
  EXPECT_FALSE(
      is_replaced("%y = sub(%x, sum(%x){axes=[1], keepdim})\nmutate %x <- %y\n"
                  "outputs (none)"));
}

// A stage of its own, after all others have read the old value, costs less than a copy.
TEST_P(InPlace, ACounterThatOthersRead) {
  const char* text =
      "%n = input : f32[]\n%m = add(%n, 1)\n%y = sub(%x, mul(%g, %m))\nmutate %n <- %m\n"
      "mutate %x <- %y\noutputs (none)";
  EXPECT_TRUE(is_in_place(text));
  for (const char* policy : {"search", "astitch"}) {
    const Planned planned = plan_graph(
        "%x = input : f32[64,64]\n%g = input : f32[64,64]\n" + std::string(text), "h200", policy);
    ASSERT_EQ(planned.plan.kernels.size(), 1u) << to_string(planned.plan, planned.graph);
    EXPECT_EQ(planned.plan.kernels[0].phases.size(), 2u) << policy;
    EXPECT_EQ(planned.plan.in_place, (std::vector<bool>{true, true})) << policy;
  }
}

// The reduction's result is for all threads, the element for one.
TEST_P(InPlace, NotWhereAReductionOverOneElementReadsIt) {
  EXPECT_FALSE(
      is_replaced("%c = input : f32[64,1]\n%s = sum(%c){axes=[1]}\n"
                  "%z = mul(%g, reshape(%s){shape=[64,1]})\n%y = add(%c, 1)\n"
                  "mutate %c <- %y\noutputs (%z)"));
}

TEST_P(InPlace, NotWhereALaterStepReadsTheOldValue) {
  EXPECT_FALSE(
      is_in_place("%y = add(%g, 1)\n"
                  "%m = library(%y, %x){name=\"aten.mm.default\"} : f32[64,64]\n"
                  "mutate %x <- %y\noutputs (%m)"));
  EXPECT_FALSE(
      is_in_place("%y = add(%g, 1)\n"
                  "%m = library(%y){name=\"aten.mm.default\"} : f32[64,64]\n"
                  "%z = add(%m, %x)\nmutate %x <- %y\noutputs (%z)"));
}

TEST_P(InPlace, NotWhereALaterStepReadsThroughAView) {
  EXPECT_FALSE(
      is_in_place("%y = add(%g, 1)\n%t = permute(%x){order=[1,0]}\n"
                  "%m = library(%y, %t){name=\"aten.mm.default\"} : f32[64,64]\n"
                  "mutate %x <- %y\noutputs (%m)"));
}

TEST_P(InPlace, AfterAnEarlierStepThatReadTheOldValue) {
  EXPECT_TRUE(
      is_in_place("%m = library(%x){name=\"aten.mm.default\"} : f32[64,64]\n"
                  "%y = sub(%x, %m)\nmutate %x <- %y\noutputs (none)"));
}

TEST_P(InPlace, NotWhereTheValueOrTheInputIsAlsoReturned) {
  EXPECT_FALSE(is_in_place("%y = add(%x, 1)\nmutate %x <- %y\noutputs (%y)"));
  EXPECT_FALSE(is_in_place("%y = add(%x, 1)\nmutate %x <- %y\noutputs (%x)"));
}

TEST_P(InPlace, NotWhereOneValueIsStoredTwice) {
  EXPECT_FALSE(is_in_place("%y = add(%x, 1)\nmutate %x <- %y\nmutate %g <- %y\noutputs (none)"));
}

TEST_P(InPlace, NotWhereTheStridesDiffer) {
  EXPECT_FALSE(
      is_in_place("%y = layout(add(%x, 1)){strides=[1,64]}\nmutate %x <- %y\n"
                  "outputs (none)"));
}

TEST_P(InPlace, NotWhereTheValueIsItselfAnInput) {
  EXPECT_FALSE(is_in_place("mutate %x <- %g\noutputs (none)"));
}

// Of %x, an argument, and %m, a product; all of them have 32,768 elements or more.
std::map<NodeId, NodeId> stored_over(const std::string& lines) {
  const Planned planned = plan_graph(
      "%x = input : f32[512,64]\n%m = library(%x){name=\"aten.mm.default\"} : f32[512,64]\n" +
          lines + "\n",
      "cpu");
  return find_stored_over(planned.graph, planned.plan);
}

TEST(StoredOver, AValueOfOtherSizesOverTheProductItIsComputedFrom) {
  EXPECT_EQ(stored_over("%y = exp(reshape(%m){shape=[8,64,64]})\noutputs (%y)").size(), 1u);
  EXPECT_EQ(stored_over("%y = mul(%m, exp(%x))\noutputs (%y)").size(), 1u);
}

TEST(StoredOver, NotWhatIsReadLaterOrShownAfterwards) {
  EXPECT_TRUE(stored_over("%y = exp(%m)\noutputs (%y, %m)").empty());
  EXPECT_TRUE(stored_over("%y = exp(%m)\n%v = reshape(%m){shape=[64,512]}\n"
                          "outputs (%y, %v)")
                  .empty());
  EXPECT_TRUE(stored_over("%y = exp(%m)\n"
                          "%z = library(%m, %y){name=\"aten.mm.default\"} : f32[512,512]\n"
                          "outputs (%z)")
                  .empty());
  EXPECT_TRUE(stored_over("%y = exp(%x)\nmutate %x <- %m\noutputs (%y)").empty());
}

TEST(StoredOver, NotWhereAnotherElementIsRead) {
  EXPECT_TRUE(stored_over("%y = add(%m, flip(%m){axes=[0]})\noutputs (%y)").empty());
  EXPECT_TRUE(stored_over("%y = exp(permute(%m){order=[1,0]})\noutputs (%y)").empty());
}

// A block of a host is one thread, which has read the row before it stores what waits for its sum;
// what waits for no sum is read by the loops that store.
TEST(StoredOver, WhatIsReducedWhereTheStoreWaitsForItOrRunsBeside) {
  const auto in_one_stage = [](const std::string& lines) {
    Planned planned = schedule_together(
        "%x = input : f32[512,64]\n%w = input : f32[4,512,1]\n%s = sum(%x){axes=[1], keepdim}\n" +
            lines + "\n",
        "cpu");
    planned.plan.steps = {PlanStep{0}};
    return find_stored_over(planned.graph, planned.plan);
  };
  EXPECT_EQ(in_one_stage("%y = sub(%x, %s)\noutputs (%y)").size(), 1u);
  EXPECT_EQ(in_one_stage("%y = exp(%x)\noutputs (%y, %s)").size(), 1u);
  EXPECT_TRUE(
      in_one_stage("%t = sum(exp(%x)){axes=[1]}\n%y = sub(%x, %s)\noutputs (%y, %t)").empty());
  // Each block of the grid's other axis sums the row for itself.
  EXPECT_TRUE(in_one_stage("%y = exp(%x)\n%z = mul(%w, %s)\noutputs (%y, %z)").empty());
  EXPECT_TRUE(in_one_stage("%y = sub(%x, %s)\n%z = mul(%w, %s)\noutputs (%y, %z)").empty());
}

TEST(StoredOver, NotOtherTypesOrSizes) {
  EXPECT_TRUE(stored_over("%y = cast(%m) : i32\noutputs (%y)").empty());
  EXPECT_TRUE(stored_over("%y = slice(%m){dim=0, start=0, count=256}\n"
                          "%z = exp(%y)\noutputs (%z)")
                  .empty());
}

TEST(StoredOver, OneValueOverEach) {
  EXPECT_EQ(stored_over("%y = exp(%m)\n%z = sin(%m)\noutputs (%y, %z)").size(), 1u);
}

INSTANTIATE_TEST_SUITE_P(Targets, InPlace, testing::Values("cpu", "h200"),
                         [](const auto& instance) { return std::string(instance.param); });

}  // namespace
}  // namespace stitch
