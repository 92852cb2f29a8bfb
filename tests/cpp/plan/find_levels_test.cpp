#include "plan/find_levels.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "plan/random_graph.h"
#include "support/read_graph.h"

namespace stitch {
namespace {

TEST(FindLevels, LevelsCountLibraryCallsOnTheLongestPath) {
  const Graph graph = read_graph(R"(
    %x = input : f32[8,8]
    %a = neg(%x)
    %m = library(%a){name="aten.mm.default"} : f32[8,8]
    %b = add(%m, %a)
    %n = library(%b, %x){name="aten.mm.default"} : f32[8,8]
    %c = add(%n, %m)
    outputs (%c)
  )");
  EXPECT_EQ(find_levels(graph), (std::vector<int>{0, 0, 0, 1, 1, 2}));
}

TEST(FindLevels, CallsThatWaitForNoKernelDoNotCount) {
  const Graph graph = read_graph(R"(
    %x = input : f32[8,8]
    %t = permute(%x){order=[1,0]}
    %m = library(%x, %t){name="aten.mm.default"} : f32[8,8]
    %n = library(%m, %x){name="aten.mm.default"} : f32[8,8]
    %a = neg(%n)
    %o = library(%a, %m){name="aten.mm.default"} : f32[8,8]
    %b = add(%o, %n)
    outputs (%b)
  )");
  EXPECT_EQ(find_levels(graph), (std::vector<int>{0, 0, 0, 0, 0, 0, 1}));
}

TEST(FindLevels, WhatWaitsForNoCallIsOfTheLevelOfItsFirstUser) {
  const Graph graph = read_graph(R"(
    %x = input : f32[8,8]
    %e = exp(%x)
    %s = sum(%x){axes=[1], keepdim}
    %a = neg(%x)
    %m = library(%a){name="aten.mm.default"} : f32[8,8]
    %n = library(abs(%m)){name="aten.mm.default"} : f32[8,8]
    %b = mul(%n, add(%e, %s))
    outputs (%b)
  )");
  const std::vector<int> levels = find_levels(graph);
  const std::map<OpKind, int> expected = {{OpKind::k_exp, 2}, {OpKind::k_add, 2},
                                          {OpKind::k_mul, 2}, {OpKind::k_abs, 1},
                                          {OpKind::k_sum, 0}, {OpKind::k_neg, 0}};
  std::map<OpKind, int> found;
  for (int n = 0; n < graph.size(); ++n)
    if (expected.count(graph.nodes[n]->op)) found[graph.nodes[n]->op] = levels[n];
  EXPECT_EQ(found, expected);
}

// The levels of these values.
std::vector<int> levels_of(const std::string& text, const std::vector<OpKind>& ops) {
  const Graph graph = read_graph(text);
  const std::vector<int> levels = find_levels(graph);
  std::vector<int> found;
  for (OpKind op : ops) {
    for (int n = 0; n < graph.size(); ++n)
      if (graph.nodes[n]->op == op) found.push_back(levels[n]);
  }
  return found;
}

// A gradient goes back through two calls and meets a layer of two calls that is made again.
constexpr const char* kLayerMadeAgain = R"(
  %saved = input : f32[8,8]
  %mask = input : f32[8,8]
  %gradient = input : f32[8,8]
  %w = input : f32[8,8]
  %b0 = library(neg(mul(%gradient, %mask)), %w){name="aten.mm.default"} : f32[8,8]
  %b1 = library(abs(%b0), %w){name="aten.mm.default"} : f32[8,8]
  %b2 = library(floor(%b1), %w){name="aten.mm.default"} : f32[8,8]
  %n = sub(%saved, sum(%saved){axes=[1], keepdim})
  %r0 = library(%n, %w){name="aten.mm.default"} : f32[8,8]
  %h = exp(%r0)
  %o = div(mul(%b2, %h), %n)
  outputs (%o)
)";

TEST(FindLevels, LayersMadeAgainRunWhenTheGradientComesThere) {
  EXPECT_EQ(levels_of(kLayerMadeAgain, {OpKind::k_floor, OpKind::k_div}), (std::vector{2, 3}));
  EXPECT_EQ(levels_of(kLayerMadeAgain, {OpKind::k_sum, OpKind::k_sub, OpKind::k_exp}),
            (std::vector{2, 2, 3}));
}

// Random draws keep their order: the first may not wait beyond the second, which is read at once.
TEST(FindLevels, LayersMadeAgainKeepTheOrderOfTheirEffects) {
  const auto text = [](const std::string& second) {
    return R"(
    %x = input : f32[8,8]
    %g = input : f32[8,8]
    %h = input : f32[8,8]
    %r0 = library(exp(%x)){name="mylib.draw.default", ints=[1]} : f32[8,8]
    %r1 = library(sin(%h)){name="mylib.draw.default", ints=[1]} : f32[8,8]
    %b0 = library(neg(%g), %g){name="aten.mm.default"} : f32[8,8]
    %b1 = library(abs(%b0), %g){name="aten.mm.default"} : f32[8,8]
    %b2 = library(floor(%b1), %g){name="aten.mm.default"} : f32[8,8]
    %o = mul(%b2, %r0)
    %p = mul()" +
           second + R"(, %r1)
    outputs (%o, %p)
  )";
  };
  EXPECT_EQ(levels_of(text("%b2"), {OpKind::k_exp, OpKind::k_sin}), (std::vector{2, 2}));
  EXPECT_EQ(levels_of(text("%b0"), {OpKind::k_exp, OpKind::k_sin}), (std::vector{0, 0}));
}

TEST(FindLevels, NothingIsOfALowerLevelThanWhatItReads) {
  for (uint32_t seed = 0; seed < 300; ++seed) {
    const Graph graph = read_graph(random_graph(seed, 60, true));
    const std::vector<int> levels = find_levels(graph);
    for (int n = 0; n < graph.size(); ++n)
      for (NodeId input : graph.nodes[n]->inputs)
        ASSERT_LE(levels[input.index()], levels[n]) << seed << " %" << n << " " << input.index();
  }
}

// What is made of inputs alone may wait only as long as a reader that waits for something else.
TEST(FindLevels, ReadersThatCannotWaitHoldBackWhatTheyRead) {
  EXPECT_EQ(levels_of(R"(
    %x = input : f32[8,8]
    %y = input : f32[8,8]
    %b0 = library(neg(%y), %y){name="aten.mm.default"} : f32[8,8]
    %b1 = library(abs(%b0), %y){name="aten.mm.default"} : f32[8,8]
    %b2 = library(floor(%b1), %y){name="aten.mm.default"} : f32[8,8]
    %s = sum(%x){axes=[1], keepdim}
    %r = library(exp(sub(%x, %s)), %y){name="aten.mm.default"} : f32[8,8]
    %t = tanh(add(%r, %b0))
    %o = mul(%t, %b2)
    outputs (%o)
  )",
                      {OpKind::k_sum, OpKind::k_exp, OpKind::k_add, OpKind::k_mul}),
            (std::vector{0, 0, 1, 3}));
}

// Two norms of one input, one of which is multiplied and waits for what the other begins: they
// read the input once.
TEST(FindLevels, WhatWouldReadAnInputOnceMoreDoesNotWait) {
  const std::vector<int> levels = levels_of(R"(
    %x = input : f32[8,8]
    %w = input : f32[8,8]
    %a = library(div(%x, amax(%x){axes=[1], keepdim}), %w){name="aten.mm.default"} : f32[8,8]
    %b = library(abs(%a), %w){name="aten.mm.default"} : f32[8,8]
    %c = library(sub(%x, sum(%x){axes=[1], keepdim}), %w){name="aten.mm.default"} : f32[8,8]
    %o = add(%b, neg(%c))
    outputs (%o)
  )",
                                            {OpKind::k_amax, OpKind::k_sum});
  EXPECT_EQ(levels, (std::vector{0, 0}));
}

using Ops = std::vector<std::string>;

std::vector<std::vector<NodeId>> scopes_of(const Graph& graph) {
  return find_scopes(graph, find_demands(graph));
}

std::vector<Ops> ops_of_scopes(const std::string& text) {
  const Graph graph = read_graph(text);
  std::vector<Ops> out;
  for (const std::vector<NodeId>& scope : scopes_of(graph)) {
    Ops& ops = out.emplace_back();
    for (NodeId id : scope) ops.push_back(info(graph[id]).name);
  }
  return out;
}

// What a value's step runs after, were each scope one kernel: false if that never ends.
bool can_run(const Graph& graph, const std::vector<std::vector<NodeId>>& scopes) {
  std::vector<int> step_of(graph.size());
  for (int n = 0; n < graph.size(); ++n) step_of[n] = n;
  for (const auto& scope : scopes) {
    for (NodeId id : scope) step_of[id.index()] = scope.front().index();
  }
  std::map<int, std::set<int>> waits;
  for (int n = 0; n < graph.size(); ++n) {
    for (NodeId input : graph.nodes[n]->inputs) {
      if (step_of[n] != step_of[input.index()]) waits[step_of[n]].insert(step_of[input.index()]);
    }
  }
  std::set<int> open, done;
  auto ends = [&](auto& self, int step) -> bool {
    if (done.count(step)) return true;
    if (!open.insert(step).second) return false;
    for (int other : waits[step]) {
      if (!self(self, other)) return false;
    }
    open.erase(step);
    return done.insert(step).second;
  };
  for (int n = 0; n < graph.size(); ++n) {
    if (!ends(ends, step_of[n])) return false;
  }
  return true;
}

TEST(FindScopes, TheyNeverFormACycle) {
  size_t scopes = 0;
  for (uint32_t seed = 0; seed < 300; ++seed) {
    const Graph graph = read_graph(random_graph(seed, 60, true));
    const auto found = scopes_of(graph);
    EXPECT_TRUE(can_run(graph, found)) << "seed " << seed;
    scopes += found.size();
  }
  EXPECT_GT(scopes, 500u) << "the graphs hold several scopes each";
}

TEST(FindScopes, TheyStopAtLibraryCalls) {
  EXPECT_EQ(ops_of_scopes(R"(
    %x = input : f32[64,64]
    %a = exp(%x)
    %m = library(%a){name="aten.mm.default"} : f32[64,64]
    %b = neg(%m)
    %y = add(%a, %b)
    outputs (%y)
  )"),
            (std::vector<Ops>{{"exp"}, {"neg", "add"}}));
}

TEST(FindScopes, AValueWaitsForItsFirstReaderAndAReductionDoesNot) {
  auto with = [](const std::string& op) {
    return ops_of_scopes(R"(
      %x = input : f32[64,64]
      %s = abs(%x)
      %m = library(%s){name="aten.mm.default"} : f32[64,64]
      %a = )" + op + R"(
      %y = add(%m, %a)
      outputs (%y)
    )");
  };
  EXPECT_EQ(with("neg(%x)"), (std::vector<Ops>{{"abs"}, {"neg", "add"}}));
  EXPECT_EQ(with("amax(%x){axes=[1]}"), (std::vector<Ops>{{"abs", "amax"}, {"add"}}));
}

TEST(FindScopes, IndependentOnesAreJoinedAcrossACall) {
  EXPECT_EQ(ops_of_scopes(R"(
    %x = input : f32[64,64]
    %m = library(%x){name="aten.mm.default"} : f32[64,64]
    %a = sum(%x){axes=[1]}
    %y = neg(%m)
    outputs (%a, %y)
  )"),
            (std::vector<Ops>{{"sum", "neg"}}));
}

TEST(FindScopes, HoldNeitherDeadValuesNorConstants) {
  EXPECT_EQ(ops_of_scopes(R"(
    %x = input : f32[64,64]
    %dead = exp(%x)
    %c = expand(full{value=1} : f32[]){shape=[64,64]}
    %y = add(%x, %c)
    outputs (%y)
  )"),
            (std::vector<Ops>{{"add"}}));
}

TEST(FindScopes, AConstantThatIsDemandedIsStored) {
  EXPECT_EQ(ops_of_scopes(R"(
    %c = flip(iota{count=64} : i64[64]){axes=[0]}
    outputs (%c)
  )"),
            (std::vector<Ops>{{"flip"}}));
}

TEST(FindScopes, AViewOfAnotherScopesValueNeedsNoMemory) {
  const Graph graph = read_graph(R"(
    %x = input : f32[64,64]
    %a = exp(%x)
    %t = reshape(%a){shape=[4096]}
    %s = sum(%t){axes=[0]}
    %m = library(%s, %x){name="aten.mul.Tensor"} : f32[64,64]
    %y = add(reshape(%m){shape=[4096]}, %t)
    outputs (%y)
  )");
  const auto scopes = scopes_of(graph);
  ASSERT_EQ(scopes.size(), 2u);
  const std::vector<bool> is_output = find_scope_outputs(graph, find_demands(graph), scopes);
  Ops outputs;
  for (NodeId id : scopes[0]) {
    if (is_output[id.index()]) outputs.push_back(info(graph[id]).name);
  }
  EXPECT_EQ(outputs, (Ops{"exp", "sum"}));
}

}  // namespace
}  // namespace stitch
