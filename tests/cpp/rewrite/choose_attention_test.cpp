#include "rewrite/attention/attention.h"

#include <gtest/gtest.h>

#include "support/read_graph.h"

namespace stitch {
namespace {

// `heads` heads of `rows` rows and 512 columns.
Graph make_attention(const std::string& dtype, int heads, int rows = 512) {
  const std::string n = std::to_string(heads), r = std::to_string(rows);
  const std::string wide = dtype == "f32" ? "%s" : "cast(%s) : f32";
  const std::string scores = dtype + "[" + n + "," + r + ",512]";
  const std::string result = dtype + "[" + n + "," + r + ",64]";
  return read_graph("%q = input : " + result + "\n%k = input : " + dtype + "[" + n +
                    ",64,512]\n%v = input : " + dtype + "[" + n + ",512,64]" +
                    "\n%s = library(%q, %k){name=\"aten.bmm.default\", integer=0} : " + scores +
                    "\n%x = mul(" + wide + ", 0.125)\n%e = exp(sub(%x, reshape(amax(%x)" +
                    "{axes=[2]}){shape=[" + n + "," + r + ",1]}))\n%p = div(%e, reshape(sum(%e)" +
                    "{axes=[2]}){shape=[" + n + "," + r + ",1]})\n%r = cast(%p) : " + dtype +
                    "\n%y = library(%r, %v){name=\"aten.bmm.default\", integer=1} : " + result +
                    "\noutputs (%y)");
}

DeviceSpec host(bool multiplies_bf16) {
  DeviceSpec spec = device_spec("cpu");
  spec.multiplies_bf16 = multiplies_bf16;
  return spec;
}

const DeviceSpec kHost = host(false);

// 0: it becomes a call; -1: it is not looked at; else the rule that keeps it written out.
int rule_for(const Graph& graph, const Settings& settings, const DeviceSpec& device) {
  const std::vector<Attention> judged = choose_attention(graph, settings, device);
  EXPECT_LE(judged.size(), 1u);
  return judged.empty() ? -1 : judged[0].verdict.rule;
}

TEST(ChooseAttention, TheCostModelDecides) {
  const Graph small = make_attention("f32", 1), large = make_attention("f32", 96);
  const Settings settings;
  EXPECT_EQ(rule_for(small, settings, kHost), kRuleScoresInCache);
  EXPECT_EQ(rule_for(large, settings, kHost), 0);
  EXPECT_EQ(rule_for(small, settings, device_spec("h200")), kRuleScoresInCache);
  EXPECT_EQ(rule_for(large, settings, device_spec("h200")), 0);
  EXPECT_EQ(rule_for(make_attention("bf16", 1), settings, kHost), 0);
  EXPECT_EQ(rule_for(make_attention("f16", 1), settings, device_spec("h200")), 0);
}

TEST(ChooseAttention, HostsThatMultiplyBf16NeedNoLibrary) {
  EXPECT_EQ(rule_for(make_attention("bf16", 96), {}, host(true)), kRuleProductsInBf16);
  EXPECT_EQ(rule_for(make_attention("f16", 96), {}, host(true)), 0);
}

TEST(ChooseAttention, AQueryAloneIsAVectorOnAHost) {
  EXPECT_EQ(rule_for(make_attention("f16", 96, 1), {}, kHost), kRuleOneQuery);
  EXPECT_EQ(rule_for(make_attention("f16", 96, 2), {}, kHost), 0);
  EXPECT_EQ(rule_for(make_attention("f16", 96, 1), {}, device_spec("h200")), 0);
}

TEST(ChooseAttention, TheSettingsOverrideIt) {
  Settings settings;
  settings.attention = "library";
  EXPECT_EQ(rule_for(make_attention("f32", 1), settings, kHost), 0);
  settings.attention = "stitch";
  EXPECT_EQ(rule_for(make_attention("bf16", 96), settings, kHost), -1);
}

TEST(ChooseAttention, OtherPoliciesKeepItWrittenOut) {
  Settings settings;
  settings.policy = "none";
  EXPECT_EQ(rule_for(make_attention("bf16", 1), settings, kHost), -1);
  settings.attention = "library";
  EXPECT_EQ(rule_for(make_attention("bf16", 1), settings, kHost), 0);
}

TEST(ChooseAttention, EagerRoundingIsKeptOnRequest) {
  Settings settings;
  settings.emulate_eager_casts = true;
  EXPECT_EQ(rule_for(make_attention("bf16", 1), settings, kHost), kRuleEagerRounding);
  EXPECT_EQ(rule_for(make_attention("f32", 96), settings, kHost), 0);
}

TEST(ChooseAttention, RefusedOnesAreCutsBetweenTheirProducts) {
  const Graph graph = make_attention("f32", 1);
  const std::vector<Attention> judged = choose_attention(graph, {}, device_spec("cpu"));
  const std::vector<Cut> cuts = find_cuts(judged, graph, graph);
  ASSERT_EQ(cuts.size(), 1u);
  EXPECT_EQ(cuts[0].from, judged[0].scores);
  EXPECT_EQ(cuts[0].to, judged[0].result);
  EXPECT_EQ(cuts[0].reason.rule, kRuleScoresInCache);
}

}  // namespace
}  // namespace stitch
