#include "rewrite/attention/attention.h"

#include <gtest/gtest.h>

#include "rewrite/attention_graph.h"

namespace stitch {
namespace {

std::vector<Attention> find(const std::string& text) { return find_attention(read_graph(text)); }

// The only candidate.
Attention find_one(const std::string& text) {
  const std::vector<Attention> found = find(text);
  EXPECT_EQ(found.size(), 1u) << text;
  return found.empty() ? Attention() : found[0];
}

void expect_refused(const std::string& text, int rule, const std::string& why) {
  const Attention found = find_one(text);
  EXPECT_EQ(found.verdict.rule, rule) << found.verdict.why << text;
  EXPECT_NE(found.verdict.why.find(why), std::string::npos) << found.verdict.why;
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  for (size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
    text.replace(at, from.size(), to);
  return text;
}

TEST(FindAttention, ScaleIsTheProductOfAllFactors) {
  const Attention found = find_one(attention_text("%x = div(mul(0.5, %s), 4)"));
  EXPECT_TRUE(found.verdict) << found.verdict.why;
  EXPECT_EQ(found.scale, 0.125);
  EXPECT_TRUE(found.mask.empty());
  EXPECT_EQ(found.batch, (std::vector<Dim>{2, 3}));
  EXPECT_FALSE(found.key_is_flipped);
}

TEST(FindAttention, OperandsAreThoseBeforeTheBatchIsRegrouped) {
  const Graph graph = read_graph(attention_text("%x = mul(%s, 0.5)"));
  const Attention found = find_attention(graph).at(0);
  EXPECT_EQ(found.query, graph.inputs[0]);
  EXPECT_EQ(found.key, graph.inputs[1]);
  EXPECT_EQ(found.value, graph.inputs[2]);
}

TEST(FindAttention, MasksAreAddedSubtractedAndFilledIn) {
  const std::string inputs = R"(
    %m = input : f32[2,1,1,6]
    %c = input : bool[8,6]
  )";
  const Attention found = find_one(attention_text(R"(
    %a = add(%m, mul(%s, 0.5))
    %b = sub(%a, expand(%m){shape=[2,3,8,6]})
    %f = select(%c, -inf, %b)
    %x = select(%c, %f, -inf)
  )",
                                                  inputs));
  EXPECT_TRUE(found.verdict) << found.verdict.why;
  ASSERT_EQ(found.mask.size(), 4u);
  using Kind = MaskTerm::Kind;
  const Kind kinds[] = {Kind::kAdd, Kind::kSubtract, Kind::kFillWhere, Kind::kFillUnless};
  for (size_t i = 0; i < 4; ++i) EXPECT_EQ(found.mask[i].kind, kinds[i]) << i;
  EXPECT_EQ(found.mask[0].value, found.mask[1].value) << "an expanded mask is found unexpanded";
  EXPECT_EQ(found.scale, 0.5);
}

TEST(FindAttention, SixteenBitsWithTheSoftmaxInFp32) {
  const std::string text = R"(
    %q = input : bf16[6,8,4]
    %k = input : bf16[6,4,6]
    %v = input : bf16[6,6,4]
    %m = input : bf16[1,8,6]
    %s = library(%q, %k){name="aten.bmm.default", integer=0} : bf16[6,8,6]
    %x = cast(add(mul(%s, 0.5), %m)) : f32
    %e = exp(sub(%x, reshape(amax(%x){axes=[2]}){shape=[6,8,1]}))
    %p = cast(div(%e, reshape(sum(%e){axes=[2]}){shape=[6,8,1]})) : bf16
    %y = library(%p, %v){name="aten.bmm.default", integer=1} : bf16[6,8,4]
    outputs (%y)
  )";
  const Attention found = find_one(text);
  EXPECT_TRUE(found.verdict) << found.verdict.why;
  EXPECT_EQ(found.batch, (std::vector<Dim>{6, 1}));
  EXPECT_TRUE(found.key_is_flipped);
  std::string wide_mask = replaced(text, "%m = input : bf16", "%m = input : f32");
  wide_mask =
      replaced(wide_mask, "cast(add(mul(%s, 0.5), %m)) : f32", "add(cast(mul(%s, 0.5)) : f32, %m)");
  expect_refused(wide_mask, kRuleWideMask, "dtype lacks");
}

TEST(FindAttention, OtherProductsAreNoCandidates) {
  EXPECT_TRUE(find(replaced(attention_text("%x = mul(%s, 0.5)"), "amax", "amin")).empty());
  EXPECT_TRUE(find(replaced(attention_text("%x = mul(%s, 0.5)"), "axes=[3]}){shape=[2,3,8,1]",
                            "axes=[2]}){shape=[2,3,1,6]"))
                  .empty())
      << "a softmax over rows";
  EXPECT_TRUE(find(attention_text("%x = tanh(%s)")).empty());
  EXPECT_TRUE(find(attention_text("%x = mul(%s, %t)", "%t = input : f32[]")).empty())
      << "a scale that is only known when it runs";
}

TEST(FindAttention, WhatSomethingElseReadsStays) {
  const std::string text = attention_text("%x = mul(%s, 0.5)");
  expect_refused(replaced(text, "outputs (%y)", "outputs (%y, %p)"), kRuleScoresRead,
                 "are read by");
  expect_refused(replaced(text, "outputs (%y)", "%z = neg(%s3)\noutputs (%y, %z)"), kRuleScoresRead,
                 "are read by");
}

TEST(FindAttention, FillsThatAreNoLowestNumberStay) {
  const std::string mask = "%c = input : bool[8,6]";
  expect_refused(attention_text("%x = select(%c, -1e9, %s)", mask), kRuleFiniteFill, "-1000000000");
  EXPECT_TRUE(
      find_one(attention_text("%x = select(%c, -3.4028234663852886e38, %s)", mask)).verdict);
}

TEST(FindAttention, FormsThatTheCallDoesNotHaveStay) {
  const std::string mask = "%m = input : f32[8,6]";
  expect_refused(attention_text("%x = mul(add(%s, %m), 0.5)", mask), kRuleScaleAfterMask, "scaled");
  expect_refused(attention_text("%x = mul(%s, -0.5)"), kRuleNoLibraryForm, "positive");
  std::string wide = attention_text("%x = mul(%s, 0.5)");
  wide = replaced(wide, "%v = input : f32[2,3,6,4]", "%v = input : f32[2,3,6,5]");
  wide = replaced(wide, "{shape=[6,6,4]}", "{shape=[6,6,5]}");
  wide = replaced(wide, "integer=1} : f32[6,8,4]", "integer=1} : f32[6,8,5]");
  expect_refused(wide, kRuleNoLibraryForm, "widths");
}

TEST(FindAttention, OperandsThatMayBeWrittenBetweenTheProductsStay) {
  const std::string write =
      "%w = library(%v){name=\"aten.zero_.default\", ints=[2], integer=2} : f32[2,3,6,4]\n";
  expect_refused(attention_text(write + "%x = mul(%s, 0.5)"), kRuleWriteBetween, "aten.zero_");
}

}  // namespace
}  // namespace stitch
