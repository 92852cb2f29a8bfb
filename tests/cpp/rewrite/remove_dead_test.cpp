#include "rewrite/rewrite_graph.h"

#include "rewrite/expect_rewrite.h"

namespace stitch {
namespace {

int count(const Graph& graph, OpKind op) {
  int found = 0;
  for (const Node& node : graph.nodes) found += node.op == op;
  return found;
}

TEST(RemoveDead, DropsWhatNoOutputReads) {
  const Graph graph = remove_dead(read_graph(R"(
    %x = input : f32[4]
    %y = neg(%x)
    %unused = exp(sin(%y))
    outputs (%y)
  )"));
  EXPECT_EQ(graph.size(), 2);
}

TEST(RemoveDead, InputsStayAndKeepTheirOrder) {
  const Graph graph = remove_dead(read_graph(R"(
    symbols s0 = input(0) hint 8
    arguments 4 tensors [0,3] integers [1]
    %x = input : f32[4]
    %y = input : f32[s0]
    outputs (int s0, none)
  )"));
  ASSERT_EQ(graph.inputs.size(), 2u);
  EXPECT_EQ(graph[graph.inputs[1]].name, "y");
  EXPECT_EQ(graph.input_positions, (std::vector<int>{0, 3}));
  EXPECT_EQ(graph.integer_positions, (std::vector<int>{1}));
  EXPECT_EQ(graph.argument_count, 4);
  EXPECT_EQ(graph.outputs.size(), 2u);
}

TEST(RemoveDead, AssertionsAreLive) {
  const Graph graph = remove_dead(read_graph(R"(
    %x = input : bool[]
    %y = assert_true(%x){name="it is so"}
    outputs (none)
  )"));
  EXPECT_EQ(count(graph, OpKind::k_assert_true), 1);
}

TEST(RemoveDead, ValuesOfMutationsAreLive) {
  const Graph graph = remove_dead(read_graph(R"(
    %x = input : f32[4]
    %y = neg(%x)
    mutate %x <- %y
    outputs ()
  )"));
  EXPECT_EQ(count(graph, OpKind::k_neg), 1);
  EXPECT_EQ(graph.mutations.size(), 1u);
}

TEST(RemoveDead, UnusedCallsGoUnlessTheyHaveEffects) {
  const Graph graph = remove_dead(read_graph(R"(
    %x = input : f32[4,4]
    %a = library(%x, %x){name="aten.mm.default", integer=0} : f32[4,4]
    %b = library(%x){name="aten.bernoulli.p", ints=[1], integer=1} : f32[4,4]
    %c = library(%x){name="mylib.log_it.default", ints=[1], integer=2} : f32[4,4]
    %d = library(neg(%x)){name="aten.zero_.default", ints=[2], integer=3} : f32[4,4]
    outputs (%x)
  )"));
  EXPECT_EQ(count(graph, OpKind::k_library), 3);
  EXPECT_EQ(count(graph, OpKind::k_neg), 1);
}

}  // namespace
}  // namespace stitch
