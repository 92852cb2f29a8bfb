#include "rewrite/expect_rewrite.h"
#include "rewrite/rewrite_graph.h"

namespace stitch {
namespace {

Graph add_products(const Graph& graph) {
  return merge_views(remove_dead(add_in_products(graph, false)));
}
Graph add_rounded_products(const Graph& graph) {
  return merge_views(remove_dead(add_in_products(graph, true)));
}

const std::string kFactors = R"(
    %a = input : bf16[8,4]
    %b = input : bf16[4,6]
    %x = input : bf16[8,6]
)";
const std::string kTwoProducts = kFactors + R"(
    %p = library(%a, %b){name="aten.mm.default", integer=0} : bf16[8,6]
    %q = library(%x, %w){name="aten.mm.default", integer=1} : bf16[8,6]
)";

std::string with_weights(const std::string& text) { return "    %w = input : bf16[6,6]\n" + text; }

TEST(AddInProducts, TheSumOfTwoProductsIsOneCall) {
  expect_rewrite(add_products,
                 with_weights(kTwoProducts + "    %s = add(%p, %q)\n    outputs (%s)\n"),
                 with_weights(kFactors + R"(
    %p = library(%a, %b){name="aten.mm.default", integer=0} : bf16[8,6]
    %s = library(%p, %x, %w){name="aten.addmm.default", integer=-1} : bf16[8,6]
    outputs (%s)
  )"));
}

TEST(AddInProducts, ReshapesBetweenProductSumAndReaderAreLookedThrough) {
  expect_rewrite(add_products, with_weights(kTwoProducts + R"(
    %r = add(reshape(%p){shape=[2,4,6]}, reshape(%q){shape=[2,4,6]})
    %o = library(reshape(%r){shape=[8,6]}){name="aten.cumsum.default", integer=2} : bf16[8,6]
    outputs (%o)
  )"),
                 with_weights(kFactors + R"(
    %p = library(%a, %b){name="aten.mm.default", integer=0} : bf16[8,6]
    %s = library(%p, %x, %w){name="aten.addmm.default", integer=-1} : bf16[8,6]
    %o = library(%s){name="aten.cumsum.default", integer=2} : bf16[8,6]
    outputs (%o)
  )"));
}

TEST(AddInProducts, SumsOfSumsAreAChainOfCalls) {
  const std::string batches = R"(
    %a = input : f32[2,8,4]
    %b = input : f32[2,4,6]
    %c = input : f32[2,4,6]
    %d = input : f32[2,4,6]
    %p = library(%a, %b){name="aten.bmm.default", integer=0} : f32[2,8,6]
)";
  expect_rewrite(add_rounded_products, batches + R"(
    %q = library(%a, %c){name="aten.bmm.default", integer=1} : f32[2,8,6]
    %r = library(%a, %d){name="aten.bmm.default", integer=2} : f32[2,8,6]
    %s = add(add(%p, %q), %r)
    outputs (%s)
  )",
                 batches + R"(
    %q = library(%p, %a, %c){name="aten.baddbmm.default", integer=-1} : f32[2,8,6]
    %r = library(%q, %a, %d){name="aten.baddbmm.default", integer=-1} : f32[2,8,6]
    outputs (%r)
  )");
}

// Stored for the first product, and of no use after the second: its memory becomes the sum's.
const std::string kTwoSteps = R"(
    %x = input : f32[8,8]
    %w = input : f32[8,8]
    %c = relu(%x)
    %p = library(tanh(%c), %w){name="aten.mm.default", integer=0} : f32[8,8]
)";

TEST(AddInProducts, WhatTheProductDependsOnIsAddedByTheCall) {
  expect_rewrite(add_products, kTwoSteps + "%s = add(%c, %p)\noutputs (%s)\n", R"(
    %x = input : f32[8,8]
    %w = input : f32[8,8]
    %c = relu(%x)
    %s = library(%c, tanh(%c), %w){name="aten.addmm.default", integer=-1} : f32[8,8]
    outputs (%s)
  )");
}

TEST(AddInProducts, WhatIsReadAgainOrByTheProductItselfStays) {
  expect_unchanged(add_products, kTwoSteps + "%s = add(%c, %p)\noutputs (%s, %c)\n");
  expect_unchanged(add_products, kTwoSteps + "%s = add(%p, %c)\n%e = exp(%c)\noutputs (%s, %e)\n");
  expect_unchanged(add_products, kTwoSteps + "%s = add(%x, %p)\noutputs (%s)\n");
  expect_unchanged(add_products, R"(
    %x = input : f32[8,8]
    %w = input : f32[8,8]
    %c = relu(%x)
    %p = library(permute(%c){order=[1,0]}, %w){name="aten.mm.default", integer=0} : f32[8,8]
    %s = add(%c, %p)
    outputs (%s)
  )");
}

TEST(AddInProducts, SumsThatKernelsReadStay) {
  expect_unchanged(add_products,
                   with_weights(kTwoProducts + "    %s = relu(add(%p, %q))\n    outputs (%s)\n"));
  expect_unchanged(add_products, with_weights(kTwoProducts + R"(
    %s = add(%p, %q)
    %t = sum(reshape(%s){shape=[48]}){axes=[0]}
    outputs (%s, %t)
  )"));
}

TEST(AddInProducts, WhatIsAddedMustBeAProductThatNobodyElseReads) {
  for (const char* sum : {"add(%p, %q)", "add(%p, %x)", "add(%p, relu(%q))", "add(%p, %p)"}) {
    const std::string text = std::string("    %s = ") + sum + "\n    outputs (%s, %p, %q)\n";
    expect_unchanged(add_products, with_weights(kTwoProducts + text));
  }
  expect_unchanged(add_products, with_weights(kTwoProducts + R"(
    %s = add(%p, %x)
    %t = add(%q, relu(%x))
    outputs (%s, %t)
  )"));
}

TEST(AddInProducts, ProductsThatAreRoundedStay) {
  expect_unchanged(add_rounded_products,
                   with_weights(kTwoProducts + "    %s = add(%p, %q)\n    outputs (%s)\n"));
}

TEST(AddInProducts, NothingIsReadLaterThanAWrite) {
  expect_unchanged(add_products, with_weights(kTwoProducts + R"(
    %n = library(%a){name="aten.zero_.default", ints=[2], integer=2} : bf16[8,4]
    %s = add(%p, %q)
    outputs (%s)
  )"));
}

}  // namespace
}  // namespace stitch
