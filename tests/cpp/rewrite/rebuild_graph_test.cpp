#include "rewrite/rebuild_graph.h"

#include "rewrite/expect_rewrite.h"

namespace stitch {
namespace {

// What every pass does, whatever its rule.
Graph rebuild(const Graph& graph) { return rebuild_graph(graph, {}); }

TEST(RebuildGraph, EqualValuesAreComputedOnce) {
  expect_rewrite(rebuild, R"(
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

TEST(RebuildGraph, NodesThatStayAreShared) {
  const Graph before = read_graph(R"(
    %x = input : f32[4,8]
    %y = sum(exp(%x)){axes=[1]}
    outputs (%y)
  )");
  const Graph after = rebuild(before);
  ASSERT_EQ(after.size(), before.size());
  for (int n = 0; n < before.size(); ++n) EXPECT_EQ(after.nodes[n].get(), before.nodes[n].get());
}

TEST(RebuildGraph, TwoOutputsNeverBecomeOneTensor) {
  expect_rewrite(rebuild, R"(
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

TEST(RebuildGraph, OneTensorReturnedTwiceStaysOneTensor) {
  expect_unchanged(rebuild, R"(
    %x = input : f32[4]
    %a = neg(%x)
    outputs (%a, %a, %x)
  )");
}

TEST(RebuildGraph, RandomCallsStayApart) {
  expect_unchanged(rebuild, R"(
    %x = input : f32[4]
    %a = library(%x){name="aten.bernoulli.default", integer=0} : f32[4]
    %b = library(%x){name="aten.bernoulli.default", integer=0} : f32[4]
    %c = add(%a, %b)
    outputs (%c)
  )");
}

TEST(RebuildGraph, ReadsAroundAWriteStayApart) {
  expect_unchanged(rebuild, R"(
    %x = input : f32[4]
    %a = neg(%x)
    %w = library(%x){name="aten.zero_.default", ints=[2], integer=0} : f32[4]
    %b = neg(%x)
    %c = add(%a, %b)
    outputs (%c)
  )");
}

TEST(RebuildGraph, OriginsStay) {
  const Graph graph = rebuild(read_graph(R"(
    %x = input : f32[4]
    %y = neg(%x)  # aten.neg.default model.py:3
    outputs (%y)
  )"));
  EXPECT_EQ(graph[graph.outputs[0].node].origin.op, "aten.neg.default");
  EXPECT_EQ(graph[graph.outputs[0].node].origin.location, "model.py:3");
}

}  // namespace
}  // namespace stitch
