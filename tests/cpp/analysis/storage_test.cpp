#include "analysis/storage.h"

#include "stage/stage.h"

#include <gtest/gtest.h>

#include "support/read_graph.h"

namespace stitch {
namespace {

// "%1 + 12" for what the output of the graph is an alias of, "own memory" for none.
std::string alias_of_output(const std::string& text) {
  const Graph graph = read_graph(text + "\noutputs (%y)\n");
  const auto alias = find_alias(graph, graph.outputs[0].node);
  if (!alias) return "own memory";
  return "%" + std::to_string(alias->base.value()) + " + " + to_string(alias->offset);
}

std::string alias_of_view(const std::string& view) {
  return alias_of_output("%x = input : f32[8,6]\n%y = " + view);
}

TEST(Storage, ViewsThatKeepElementsInPlaceAreAliases) {
  EXPECT_EQ(alias_of_view("permute(%x){order=[1,0]}"), "%0 + 0");
  EXPECT_EQ(alias_of_view("reshape(%x){shape=[4,12]}"), "%0 + 0");
  EXPECT_EQ(alias_of_view("expand(reshape(%x){shape=[8,1,6]}){shape=[8,5,6]}"), "%0 + 0");
  EXPECT_EQ(alias_of_view("slice(%x){dim=0, start=2, count=3}"), "%0 + 12");
  EXPECT_EQ(alias_of_view("slice(slice(%x){dim=0, start=2, count=3}){dim=1, start=1, count=2}"),
            "%0 + 13");
  EXPECT_EQ(alias_of_view("slice(permute(%x){order=[1,0]}){dim=0, start=3, count=2}"), "%0 + 3");
}

TEST(Storage, ViewsThatMoveElementsAreNot) {
  EXPECT_EQ(alias_of_view("neg(%x)"), "own memory");
  EXPECT_EQ(alias_of_view("flip(%x){axes=[0]}"), "own memory");
  EXPECT_EQ(alias_of_view("reshape(permute(%x){order=[1,0]}){shape=[48]}"), "own memory");
  EXPECT_EQ(alias_of_view("layout(%x){strides=[1,8]}"), "own memory");
}

TEST(Storage, ALayoutIsACopyOfItsOwnWhateverItsStrides) {
  EXPECT_EQ(alias_of_view("layout(%x){strides=[6,1]}"), "own memory");
  EXPECT_EQ(alias_of_view("layout(permute(%x){order=[1,0]}){strides=[1,6]}"), "own memory");
}

TEST(Storage, AChainOfViewsEndsWhereElementsMove) {
  EXPECT_EQ(alias_of_view("slice(flip(%x){axes=[0]}){dim=1, start=1, count=2}"), "%1 + 1");
  EXPECT_EQ(alias_of_view("slice(layout(%x){strides=[1,8]}){dim=1, start=1, count=2}"), "%1 + 8");
}

TEST(Storage, TheBaseMayBeComputedHere) {
  EXPECT_EQ(alias_of_view("slice(neg(%x)){dim=0, start=1, count=2}"), "%1 + 6");
}

TEST(Storage, SymbolicOffsetsAreExact) {
  EXPECT_EQ(alias_of_output("%x = input : f32[s0,s1]\n%y = slice(%x){dim=0, start=1, count=2}"),
            "%0 + s1");
}

TEST(Storage, ConesOfJoinedRootsAreWhatBothTogetherEvaluate) {
  const Graph graph = read_graph(R"(
    %x = input : f32[8,6]
    %w = input : f32[8,6]
    %e = exp(%x)
    %s = sum(%e){axes=[1], keepdim}
    %y = div(%e, %s)
    %z = tanh(mul(%y, %w))
    outputs (%z)
  )");
  std::vector<NodeId> sum, div, last;
  for (int n = 0; n < graph.size(); ++n) {
    if (graph.nodes[n]->op == OpKind::k_sum) sum = {NodeId(n)};
    if (graph.nodes[n]->op == OpKind::k_div) div = {NodeId(n)};
    if (graph.nodes[n]->op == OpKind::k_tanh) last = {NodeId(n)};
  }
  auto is_stored = [&](NodeId id) {
    return is_materialised(graph[id]) || id == sum[0] || id == div[0] || id == last[0];
  };
  const NodeId x = graph.inputs[0], w = graph.inputs[1];
  const Cone upper = find_cone(graph, sum[0], is_stored);
  EXPECT_EQ(upper.loads, std::vector<NodeId>{x});
  const Cone lower = find_cone(graph, div[0], is_stored);
  EXPECT_EQ(lower.loads, (std::vector<NodeId>{x, sum[0]}));
  const Cone both = unite_cones(upper, lower, {sum[0], div[0]});
  EXPECT_EQ(both.loads, std::vector<NodeId>{x});
  const Cone all =
      unite_cones(both, find_cone(graph, last[0], is_stored), {sum[0], div[0], last[0]});
  EXPECT_EQ(all.loads, (std::vector<NodeId>{x, w}));
  EXPECT_EQ(all.nodes.size() + graph.inputs.size(), static_cast<size_t>(graph.size()));
  const Stage stage = make_stage(graph, {sum[0], div[0], last[0]}, all,
                                 [&](NodeId root) { return root == last[0]; });
  EXPECT_EQ(stage.roots, (std::vector<NodeId>{sum[0], last[0]})) << "div is evaluated where read";
  EXPECT_EQ(stage.stores, last);
}

TEST(Storage, ViewsDemandTheirBase) {
  const Graph graph = read_graph(R"(
    %x = input : f32[8,6]
    %a = exp(%x)
    %v = permute(%a){order=[1,0]}
    %b = neg(%x)
    %m = library(%b){name="aten.mm.default"} : f32[8,8]
    %unused = sin(%x)
    outputs (%v, %m)
  )");
  const Demands demands = find_demands(graph);
  EXPECT_EQ(demands.is_demanded, (std::vector<bool>{false, true, false, true, true, false}));
  ASSERT_EQ(demands.aliases.size(), 1u);
  EXPECT_EQ(demands.aliases[0].node, NodeId(2));
  EXPECT_EQ(demands.aliases[0].base, NodeId(1));
}

TEST(Storage, AMutationDemandsItsValue) {
  const Graph graph = read_graph(R"(
    %x = input : f32[8]
    %y = add(%x, 1)
    mutate %x <- %y
    outputs (none)
  )");
  const Demands demands = find_demands(graph);
  EXPECT_TRUE(demands.is_demanded[graph.mutations[0].value.index()]);
  EXPECT_FALSE(demands.is_demanded[0]);
}

}  // namespace
}  // namespace stitch
