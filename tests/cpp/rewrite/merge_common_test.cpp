#include "rewrite/merge_common.h"

#include "rewrite/expect_rewrite.h"

namespace stitch {
namespace {

TEST(MergeCommon, EqualValuesAreComputedOnce) {
  expect_rewrite(merge_common, R"(
    %x = input : f32[4]
    %y = add(exp(neg(%x)), exp(neg(%x)))
    outputs (%y)
  )",
                 R"(
    %x = input : f32[4]
    %e = exp(neg(%x))
    %y = add(%e, %e)
    outputs (%y)
  )");
}

TEST(MergeCommon, TwoOutputsNeverBecomeOneTensor) {
  expect_rewrite(merge_common, R"(
    %x = input : f32[4]
    %a = neg(%x)
    %b = neg(%x)
    outputs (%a, %b)
  )",
                 R"(
    %x = input : f32[4]
    %a = neg(%x)
    %b = layout(%a)
    outputs (%a, %b)
  )");
}

TEST(MergeCommon, OneTensorReturnedTwiceStaysOneTensor) {
  expect_unchanged(merge_common, R"(
    %x = input : f32[4]
    %a = neg(%x)
    outputs (%a, %a, %x)
  )");
}

TEST(MergeCommon, RandomCallsStayApart) {
  expect_unchanged(merge_common, R"(
    %x = input : f32[4]
    %a = library(%x){name="aten.bernoulli.default", integer=0} : f32[4]
    %b = library(%x){name="aten.bernoulli.default", integer=0} : f32[4]
    %c = add(%a, %b)
    outputs (%c)
  )");
}

TEST(MergeCommon, ReadsAroundAWriteStayApart) {
  expect_unchanged(merge_common, R"(
    %x = input : f32[4]
    %a = neg(%x)
    %w = library(%x){name="aten.zero_.default", integer=0} : f32[4]
    %b = neg(%x)
    %c = add(%a, %b)
    outputs (%c)
  )");
}

TEST(MergeCommon, OriginsStay) {
  const Graph graph = merge_common(read_graph(R"(
    %x = input : f32[4]
    %y = neg(%x)  # aten.neg.default model.py:3
    outputs (%y)
  )"));
  EXPECT_EQ(graph[graph.outputs[0].node].origin.op, "aten.neg.default");
  EXPECT_EQ(graph[graph.outputs[0].node].origin.location, "model.py:3");
}

}  // namespace
}  // namespace stitch
