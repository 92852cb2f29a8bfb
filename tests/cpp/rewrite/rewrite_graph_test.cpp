#include "rewrite/rewrite_graph.h"

#include "base/error.h"
#include "rewrite/expect_rewrite.h"

namespace stitch {
namespace {

Graph rewrite_all(const Graph& graph) { return rewrite_graph(graph); }

const std::string kNorm = R"(
    symbols s0 = input(0) hint 8
    arguments 3 tensors [0,2] integers [1]
    %x = input : bf16[s0,768]
    %w = input : bf16[768]
    %f = cast(%x) : f32
    %k = cast(cast(%f) : bf16) : f32
    %v = sum_sq_dev(%f){axes=[1], keepdim}  # aten.native_layer_norm.default model.py:5
    %s = rsqrt(add(div(%v, 768), 1e-5))
    %y = cast(mul(mul(%f, %s), cast(expand(%w){shape=[s0,768]}) : f32)) : bf16
    outputs (%y, int s0, none)
)";

TEST(RewriteGraph, KeepsTheSignature) {
  const Graph before = read_graph(kNorm), after = rewrite_graph(before);
  EXPECT_EQ(after.argument_count, 3);
  EXPECT_EQ(after.input_positions, before.input_positions);
  EXPECT_EQ(after.integer_positions, before.integer_positions);
  EXPECT_EQ(after.symbols.symbols.size(), 1u);
  ASSERT_EQ(after.outputs.size(), 3u);
  EXPECT_EQ(to_string(after[after.outputs[0].node].type), "bf16[s0,768]");
  EXPECT_EQ(after.outputs[1].integer, Dim::symbol(0));
}

TEST(RewriteGraph, NewNodesKnowTheOpTheyComeFrom) {
  const Graph graph = rewrite_graph(read_graph(kNorm));
  int named = 0;
  for (const Node& node : graph.nodes) named += node.origin.location == "model.py:5";
  EXPECT_GE(named, 5);
}

TEST(RewriteGraph, ASecondRunChangesNothing) {
  const Graph once = rewrite_graph(read_graph(kNorm));
  EXPECT_EQ(canonical_text(rewrite_graph(once)), canonical_text(once));
}

TEST(RewriteGraph, PassesMeet) {
  expect_rewrite(rewrite_all, R"(
    %x = input : bf16[4,8]
    %a = reshape(cast(reshape(%x){shape=[32]}) : f32){shape=[8,4]}
    %b = cast(mul(%a, 1)) : bf16
    %c = layout(%b)
    %y = add(%c, reshape(%x){shape=[8,4]})
    outputs (%y)
  )",
                 R"(
    %x = input : bf16[4,8]
    %v = reshape(%x){shape=[8,4]}
    %y = add(%v, %v)
    outputs (%y)
  )");
}

TEST(RewriteGraph, DeviationsCanBeKept) {
  const Graph kept = rewrite_graph(read_graph(kNorm), true);
  int deviations = 0;
  for (const Node& node : kept.nodes) deviations += node.op == OpKind::k_sum_sq_dev;
  EXPECT_EQ(deviations, 1);
}

TEST(RewriteGraph, MutationsStoreTheRewrittenValue) {
  expect_rewrite(rewrite_all, R"(
    %x = input : f32[4]
    %y = mul(neg(%x), 1)
    mutate %x <- %y
    outputs ()
  )",
                 R"(
    %x = input : f32[4]
    %y = neg(%x)
    mutate %x <- %y
    outputs ()
  )");
}

}  // namespace
}  // namespace stitch
