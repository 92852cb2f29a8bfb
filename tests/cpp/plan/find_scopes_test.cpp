#include "plan/find_scopes.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "plan/random_graph.h"
#include "support/read_graph.h"

namespace stitch {
namespace {

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
    for (NodeId input : graph.nodes[n].inputs) {
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
