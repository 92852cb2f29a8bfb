#include "ir/graph.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "ops/dim.h"
#include "plan/plan_graph.h"

namespace stitch {
namespace {

// Nothing but its size ties the last kernel to the call.
constexpr const char* kText = R"(
symbols s0 = input(0) hint 8, s1 = result(0,0,0) hint 4, s2 = floordiv(s1,2) hint 2
%x = input : f32[s0]
%y = exp(%x) : f32[s0]
%n = library(%y){name="aten.nonzero.default", integer=0} : i64[s1,1]
%i = iota{dims=[0,1]} : i64[s2]
%c = cast(%i) : f32[s2]
%z = exp(%c) : f32[s2]
outputs (%z)
)";

TEST(FindDefiners, SizesThatACallYieldsWaitForIt) {
  const Graph graph = parse_graph(kText);
  const auto definers = find_definers(graph);
  EXPECT_TRUE(definers[0].empty() && definers[1].empty() && definers[2].empty());
  for (int n = 3; n < graph.size(); ++n) {
    ASSERT_EQ(definers[n].size(), 1u) << n;
    EXPECT_EQ(graph[definers[n][0]].op, OpKind::k_library);
  }
}

TEST(FindDefiners, TextIsReadBack) {
  const std::string text = to_string(parse_graph(kText));
  EXPECT_EQ(to_string(parse_graph(text)), text);
  EXPECT_NE(text.find("s1 = result(0,0,0) hint 4"), std::string::npos) << text;
}

TEST(FindDefiners, ASizeBeforeItsCallIsRefused) {
  EXPECT_THROW(parse_graph(R"(
symbols s0 = result(0,0,0) hint 4
%x = input : f32[8]
%i = iota{dims=[0,1]} : i64[s0]
%n = library(%x){name="aten.nonzero.default", integer=0} : i64[s0,1]
outputs (%i, %n)
)"),
               InternalError);
}

TEST(FindDefiners, EveryPolicyRunsTheCallBeforeWhatItSizes) {
  for (const char* policy : {"auto", "search", "none", "astitch", "fusionstitching2020"}) {
    const Planned planned = plan_graph(kText, "cpu", policy);
    ASSERT_GE(planned.plan.steps.size(), 3u) << policy << to_string(planned.plan, planned.graph);
    EXPECT_TRUE(planned.plan.steps[1].call.valid()) << policy;
  }
}

TEST(LateSymbols, AreKnownOnceTheirCallHasRun) {
  const SymbolTable table = parse_graph(kText).symbols;
  std::vector<int64_t> values = table.evaluate({8});
  EXPECT_EQ(values, (std::vector<int64_t>{8, kUnknown, kUnknown}));
  EXPECT_THROW(evaluate(Dim::symbol(2) + 1, values), InternalError);
  values[1] = 7;
  complete(table, values);
  EXPECT_EQ(values[2], 3);
}

}  // namespace
}  // namespace stitch
