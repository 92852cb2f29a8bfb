#include "plan/group_dominants.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <set>
#include <sstream>

#include "plan/find_levels.h"
#include "plan/random_graph.h"
#include "support/read_graph.h"

namespace stitch {
namespace {

using Ops = std::vector<std::string>;

struct Grouped {
  Graph graph;
  std::vector<std::vector<NodeId>> scopes;
  std::vector<bool> is_output;
  std::vector<DominantGroup> found;

  Ops ops(const std::vector<NodeId>& ids) const {
    Ops names;
    for (NodeId id : ids) names.push_back(graph[id].op == OpKind::k_input ? "in" : name(id));
    return names;
  }
  std::string name(NodeId id) const { return info(graph[id]).name; }
  std::string dominant(size_t g) const { return name(found.at(g).dominant); }
  Ops subs(size_t g) const { return ops(found.at(g).sub_dominants); }
  Ops members(size_t g) const { return ops(found.at(g).members); }
  // Values from outside of the group's scope that its members read.
  std::vector<NodeId> operands(size_t g) const {
    const auto own = std::ranges::find_if(scopes, [&](const std::vector<NodeId>& scope) {
      return std::ranges::count(scope, found.at(g).dominant) > 0;
    });
    const std::vector<bool> is_constant = find_constants(graph);
    std::set<NodeId> values;
    for (NodeId id : found.at(g).members) {
      for (NodeId input : read_operands(graph[id])) {
        if (!std::ranges::count(*own, input) && !is_constant[input.index()]) values.insert(input);
      }
    }
    return {values.begin(), values.end()};
  }
  // By node; -1: of none.
  std::vector<int> groups() const {
    std::vector<int> group_of(graph.size(), -1);
    for (size_t g = 0; g < found.size(); ++g) {
      for (NodeId id : found[g].members) group_of[id.index()] = static_cast<int>(g);
    }
    return group_of;
  }
  // Reads of values that another group evaluates too: value, reader.
  std::vector<std::pair<NodeId, NodeId>> repeated_reads() const {
    std::set<NodeId> held;
    for (const DominantGroup& group : found) {
      held.insert(group.dominant);
      held.insert(group.sub_dominants.begin(), group.sub_dominants.end());
    }
    const std::vector<int> group_of = groups();
    std::vector<std::pair<NodeId, NodeId>> reads;
    for (int n = 0; n < graph.size(); ++n) {
      if (group_of[n] < 0) continue;
      for (NodeId input : graph.nodes[n]->inputs) {
        const int from = group_of[input.index()];
        NodeId made = input;  // behind views that only rename indices
        while (!held.count(made) && renames(made)) made = graph[made].inputs[0];
        const bool is_held = held.count(made) > 0;
        if (from >= 0 && from != group_of[n] && !is_held) reads.push_back({input, NodeId(n)});
      }
    }
    return reads;
  }
  bool renames(NodeId id) const {
    return family(graph[id]) == Family::kView && graph[id].op != OpKind::k_flip &&
           hint_elements(graph, id) == hint_elements(graph, graph[id].inputs[0]);
  }
  Ops repeated() const {
    std::set<NodeId> values;
    for (const auto& [value, reader] : repeated_reads()) values.insert(value);
    return ops({values.begin(), values.end()});
  }
  size_t count() const { return found.size(); }
};

Grouped group(const std::string& text) {
  Grouped out{read_graph(text), {}, {}, {}};
  const Demands demands = find_demands(out.graph);
  out.scopes = find_scopes(out.graph, demands);
  out.is_output = find_scope_outputs(out.graph, demands, out.scopes);
  out.found = group_dominants(out.graph, out.scopes, out.is_output);
  return out;
}

// Figs 7 and 9 of the paper, its broadcasts written out.
constexpr const char* kPaper = R"(
  %p1 = input : f32[4,128]
  %p2 = input : f32[4]
  %p3 = input : f32[4,128]
  %b1 = expand(reshape(%p2){shape=[4,1]}){shape=[4,128]}
  %a1 = add(%b1, %p1)
  %r1 = sum(%a1){axes=[1]}
  %d1 = div(%r1, %p2)
  %pw1 = pow(%d1, 3)
  %b2 = expand(reshape(%pw1){shape=[4,1]}){shape=[4,128]}
  %d2 = div(%p3, %b2)
  %r2 = sum(%d2){axes=[1]}
  %b3 = expand(reshape(%r2){shape=[4,1]}){shape=[4,128]}
  %m1 = mul(%b3, %b2)
  outputs (%m1)
)";

TEST(GroupDominants, ThePapersExampleHasTwoGroupsWithOneSubDominantEach) {
  const Grouped g = group(kPaper);
  ASSERT_EQ(g.count(), 2u);
  EXPECT_EQ(g.dominant(0), "sum");
  EXPECT_EQ(g.subs(0), Ops{"pow"});
  // B.1, A.1, R.1, D.1, Pw.1; a view that only renames indices belongs to what it is a view of.
  EXPECT_EQ(g.members(0), (Ops{"reshape", "expand", "add", "sum", "div", "pow", "reshape"}));
  EXPECT_EQ(g.operands(0), (std::vector<NodeId>{g.graph.inputs[0], g.graph.inputs[1]}));
  EXPECT_EQ(g.dominant(1), "sum");
  EXPECT_EQ(g.subs(1), Ops{"mul"});
  EXPECT_EQ(g.members(1), (Ops{"expand", "div", "sum", "reshape", "expand", "mul"}));
  EXPECT_EQ(g.operands(1), (std::vector<NodeId>{g.graph.inputs[2]}));
  EXPECT_LT(g.found[0].dominant, g.found[1].dominant);
  EXPECT_TRUE(g.repeated().empty());
}

TEST(GroupDominants, ImplicitBroadcastsGroupAsExplicitOnes) {
  const Grouped g = group(R"(
    %p1 = input : f32[4,128]
    %p2 = input : f32[4,1]
    %p3 = input : f32[4,128]
    %r1 = sum(add(%p2, %p1)){axes=[1], keepdim}
    %pw1 = pow(div(%r1, %p2), 3)
    %r2 = sum(div(%p3, %pw1)){axes=[1], keepdim}
    %m1 = mul(expand(%r2){shape=[4,128]}, %pw1)
    outputs (%m1)
  )");
  ASSERT_EQ(g.count(), 2u);
  EXPECT_EQ(g.members(0), (Ops{"add", "sum", "reshape", "div", "pow"}));
  EXPECT_EQ(g.members(1), (Ops{"div", "sum", "reshape", "expand", "mul"}))
      << "D.2 and M.1 share the broadcast of Pw.1";
}

// Pr.2 is what puts D.1 and Pw.1 beside R.1 in the paper's text; here nothing else could.
TEST(GroupDominants, ASharedOperandJoinsItsReaders) {
  const std::string text = R"(
    %p1 = input : f32[4,128]
    %p2 = input : f32[4,1]
    %p3 = input : f32[4,1]
    %r1 = sum(add(%p2, %p1)){axes=[1]}
    %y = neg(OPERAND)
    outputs (%r1, %y)
  )";
  auto with = [&](const char* operand) {
    std::string copy = text;
    return group(copy.replace(copy.find("OPERAND"), 7, operand));
  };
  EXPECT_EQ(with("%p3").count(), 2u);
  const Grouped g = with("%p2");
  ASSERT_EQ(g.count(), 1u);
  EXPECT_EQ(g.dominant(0), "sum");
  EXPECT_EQ(g.subs(0), Ops{"neg"});
}

TEST(GroupDominants, ASoftmaxIsOneGroupLedByItsFirstReduction) {
  const Grouped g = group(R"(
    %x = input : f32[64,128]
    %e = exp(sub(%x, amax(%x){axes=[1], keepdim}))
    %y = div(%e, sum(%e){axes=[1], keepdim})
    outputs (%y)
  )");
  ASSERT_EQ(g.count(), 1u);
  EXPECT_EQ(g.dominant(0), "amax");
  EXPECT_EQ(g.subs(0), (Ops{"sum", "div"})) << "nobody broadcasts exp";
  EXPECT_EQ(g.members(0).size(), g.scopes[0].size());
}

TEST(GroupDominants, ALayerNormThatKeepsItsStatisticsIsOneGroup) {
  const Grouped g = group(R"(
    %x = input : f32[64,128]
    %w = input : f32[128]
    %mean = div(sum(%x){axes=[1], keepdim}, 128)
    %c = sub(%x, %mean)
    %rstd = rsqrt(add(div(sum(mul(%c, %c)){axes=[1], keepdim}, 128), 0.00001))
    %y = mul(mul(%c, %rstd), %w)
    outputs (%y, %mean, %rstd)
  )");
  ASSERT_EQ(g.count(), 1u);
  EXPECT_EQ(g.dominant(0), "sum");
  EXPECT_EQ(g.subs(0), (Ops{"div", "sum", "rsqrt", "mul"}));
}

TEST(GroupDominants, ReductionsOfOneTensorOverDifferentAxesShareItsPass) {
  const Grouped g = group(R"(
    %x = input : f32[64,128]
    %rows = sum(%x){axes=[1]}
    %columns = amax(%x){axes=[0]}
    outputs (%rows, %columns)
  )");
  ASSERT_EQ(g.count(), 1u);
  EXPECT_EQ(g.dominant(0), "sum");
  EXPECT_EQ(g.subs(0), Ops{"amax"});
}

TEST(GroupDominants, TheReductionOfMostElementsLeads) {
  const Grouped g = group(R"(
    %x = input : f32[64,128]
    %t = input : f32[64]
    %small = sum(%t){axes=[0]}
    %rows = amax(%x){axes=[1]}
    %y = add(%rows, %t)
    outputs (%small, %y)
  )");
  ASSERT_EQ(g.count(), 1u);
  EXPECT_EQ(g.dominant(0), "amax");
  EXPECT_EQ(g.subs(0), (Ops{"sum", "add"})) << "a one-to-one reader belongs to the reduction";
}

TEST(GroupDominants, AReductionLeadsWhatItReads) {
  const Grouped g = group(R"(
    %x = input : f32[64,128]
    %a = relu(%x)
    %s = sum(%a){axes=[1]}
    outputs (%a, %s)
  )");
  ASSERT_EQ(g.count(), 1u);
  EXPECT_EQ(g.dominant(0), "sum");
  EXPECT_EQ(g.subs(0), Ops{"relu"});
}

TEST(GroupDominants, AnOutputReadBackwardsIsReadAcrossGroups) {
  const Grouped g = group(R"(
    %x = input : f32[64]
    %a = relu(%x)
    %b = exp(flip(%a){axes=[0]})
    outputs (%a, %b)
  )");
  ASSERT_EQ(g.count(), 2u);
  EXPECT_EQ(g.members(0), Ops{"relu"});
  EXPECT_EQ(g.members(1), (Ops{"flip", "exp"}));
}

TEST(GroupDominants, PointwiseValuesAreOneGroupThatMayAdapt) {
  const Grouped g = group(R"(
    %x = input : f32[64,128]
    %a = relu(%x)
    %b = exp(permute(%a){order=[1,0]})
    outputs (%a, %b)
  )");
  ASSERT_EQ(g.count(), 1u);
  EXPECT_EQ(g.dominant(0), "relu");
  EXPECT_EQ(g.subs(0), Ops{"exp"});
  EXPECT_EQ(g.members(0), (Ops{"relu", "permute", "exp"}));
}

TEST(GroupDominants, OutputsWithNothingInCommonAreGroupsOfTheirOwn) {
  const Grouped g = group(R"(
    %x = input : f32[64]
    %y = input : f32[64]
    %scale = input : f32[]
    %a = mul(%x, %scale)
    %b = mul(%y, %scale)
    %c = iota{count=64} : f32[64]
    %d = mul(%x, %c)
    %e = mul(%y, %c)
    outputs (%a, %b, %d, %e)
  )");
  ASSERT_EQ(g.count(), 2u) << "neither a constant nor one number joins two tensors";
  EXPECT_EQ(g.found[0].members.size(), 2u);
  EXPECT_EQ(g.operands(0), (std::vector<NodeId>{g.graph.inputs[0], g.graph.inputs[2]}));
  EXPECT_EQ(g.operands(1), (std::vector<NodeId>{g.graph.inputs[1], g.graph.inputs[2]}));
}

TEST(GroupDominants, OnlyAnExpensiveValueThatIsBroadcastIsACandidate) {
  auto subs = [](const std::string& make_row) {
    const Grouped g = group("%x = input : f32[64,1]\n%z = input : f32[64,128]\n" + make_row +
                            "%y = add(%z, %v)\noutputs (%y)\n");
    Ops all;
    for (size_t i = 0; i < g.count(); ++i) {
      all.push_back(g.dominant(i));
      for (const std::string& op : g.subs(i)) all.push_back(op);
    }
    return all;
  };
  EXPECT_EQ(subs("%v = exp(%x)\n"), (Ops{"exp", "add"}));
  EXPECT_EQ(subs("%v = relu(%x)\n"), Ops{"add"});
  EXPECT_EQ(subs("%v = exp(expand(%x){shape=[64,128]})\n"), Ops{"add"}) << "read one-to-one";
  EXPECT_EQ(subs("%v = cast(mul(exp(%x), 2)) : f32\n"), (Ops{"exp", "add"}))
      << "light ops between it and the broadcast would evaluate it as often";
  EXPECT_EQ(subs("%v = exp(exp(%x))\n"), (Ops{"exp", "add"})) << "the last one is buffered";
}

// Or else every normalisation would join what it reads with all that reads it.
TEST(GroupDominants, LightOpsBetweenAReductionAndABroadcastDoNotJoinIt) {
  const Grouped g = group(R"(
    %x = input : f32[64,256]
    %z = input : f32[64,128]
    %scale = rsqrt(sum(%x){axes=[1], keepdim})
    %y = mul(%z, %scale)
    outputs (%y)
  )");
  ASSERT_EQ(g.count(), 2u);
  EXPECT_EQ(g.members(0), (Ops{"sum", "reshape"}));
  EXPECT_EQ(g.members(1), (Ops{"rsqrt", "mul"}));
  EXPECT_TRUE(g.repeated().empty());
}

// Gradient clipping: all tensors are scaled by one number, and no mapping suits them all.
TEST(GroupDominants, ALightNumberIsEvaluatedAgainByEveryGroupThatReadsIt) {
  const Grouped g = group(R"(
    %a = input : f32[64]
    %b = input : f32[32,8]
    %norm = input : f32[1]
    %scale = reciprocal(%norm)
    %c = mul(%a, %scale)
    %d = mul(%b, %scale)
    outputs (%c, %d)
  )");
  ASSERT_EQ(g.count(), 2u);
  EXPECT_EQ(g.members(0), (Ops{"reciprocal", "mul"}));
  EXPECT_EQ(g.members(1), Ops{"mul"});
  EXPECT_EQ(g.repeated(), Ops{"reciprocal"});
}

TEST(GroupDominants, SlicesOfOneValueAreGroupsThatEvaluateTheirPart) {
  const Grouped g = group(R"(
    %x = input : f32[64,6]
    %bias = input : f32[6]
    %s = add(%x, %bias)
    %l = layout(slice(%s){dim=1, start=0, count=3}){strides=[3,1]}
    %r = neg(slice(%s){dim=1, start=3, count=3})
    outputs (%l, %r)
  )");
  ASSERT_EQ(g.count(), 2u);
  EXPECT_EQ(g.members(0), (Ops{"add", "slice", "layout"}));
  EXPECT_EQ(g.members(1), (Ops{"slice", "neg"}));
  EXPECT_EQ(g.repeated(), Ops{"add"});
}

TEST(GroupDominants, WhatAnotherScopeMakesIsAnOperand) {
  const Grouped g = group(R"(
    %x = input : f32[64,64]
    %a = exp(%x)
    %m = library(%a){name="aten.mm.default"} : f32[64,64]
    %y = add(%a, %m)
    outputs (%y)
  )");
  ASSERT_EQ(g.count(), 2u);
  EXPECT_EQ(g.dominant(0), "exp");
  EXPECT_EQ(g.ops(g.operands(1)), (Ops{"exp", "library"}));
}

TEST(GroupDominants, AnOperandOfTwoScopesJoinsTheReadersOfEach) {
  const Grouped g = group(R"(
    %x = input : f32[64,32]
    %p = input : f32[64,1]
    %a = add(%x, %p)
    %m = library(%a){name="aten.mm.default"} : f32[64,16]
    %q = library(%a){name="aten.mv.default"} : f32[64,1]
    %r = sum(add(%m, %p)){axes=[1], keepdim}
    %t = mul(%q, %p)
    outputs (%r, %t)
  )");
  ASSERT_EQ(g.count(), 2u);
  EXPECT_EQ(g.operands(0), g.graph.inputs);
  EXPECT_EQ(g.members(1), (Ops{"add", "sum", "mul"}));
}

TEST(GroupDominants, TwoGroupsMayReadFromEachOther) {
  const Grouped g = group(R"(
    %x = input : f32[64,128]
    %z = input : f32[64,256]
    %r1 = sum(%x){axes=[1], keepdim}
    %r2 = sum(mul(%z, %r1)){axes=[1], keepdim}
    %y = sub(%x, %r2)
    outputs (%y)
  )");
  ASSERT_EQ(g.count(), 2u);
  EXPECT_EQ(g.members(0), (Ops{"sum", "reshape", "sub"}));
  EXPECT_EQ(g.members(1), (Ops{"mul", "sum", "reshape"}));
}

TEST(GroupDominants, SymbolicShapesGroupAsStaticOnes) {
  std::string text = kPaper;
  for (size_t at; (at = text.find("[4")) != std::string::npos;) text.replace(at, 2, "[s0");
  const Grouped g = group("symbols s0 = input(0) hint 4\n" + text), fixed = group(kPaper);
  EXPECT_EQ(g.groups(), fixed.groups());
}

TEST(GroupDominants, GroupsMeetAtDominantsAndRepeatedValuesOnly) {
  for (uint32_t seed = 0; seed < 200; ++seed) {
    const Grouped g = group(random_graph(seed, 40, false));
    size_t members = 0;
    ASSERT_EQ(g.scopes.size(), 1u);
    for (const DominantGroup& one : g.found) members += one.members.size();
    EXPECT_EQ(members, g.scopes[0].size()) << "every live value has one group, seed " << seed;
    for (const auto& [value, reader] : g.repeated_reads()) {
      const bool is_elsewhere = family(g.graph[reader]) == Family::kReader ||
                                g.graph[reader].op == OpKind::k_flip ||
                                hint_elements(g.graph, reader) != hint_elements(g.graph, value);
      EXPECT_TRUE(is_elsewhere) << "%" << value << " in %" << reader << ", seed " << seed;
    }
  }
}

double seconds_to_group(const Graph& graph) {
  const Demands demands = find_demands(graph);
  const auto start = std::chrono::steady_clock::now();
  const auto scopes = find_scopes(graph, demands);
  const std::vector<bool> is_output = find_scope_outputs(graph, demands, scopes);
  group_dominants(graph, scopes, is_output);
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// Each takes about 10 ms; anything quadratic in nodes, readers or scopes takes a hundred times
// that.
TEST(GroupDominants, TenThousandNodesTakeFarLessThanASecond) {
  std::ostringstream chain, fan, recurrence;
  for (std::ostringstream* text : {&chain, &fan, &recurrence}) {
    *text << "%n0 = input : f32[64,64]\n%x = input : f32[64,1]\n%v = relu(%x)\n";
  }
  std::string outputs = "%n0";
  for (int i = 1; i <= 3333; ++i) {
    const std::string last = "%n" + std::to_string(i - 1), name = "%n" + std::to_string(i);
    chain << name << " = mul(" << last << ", rsqrt(sum(" << last << "){axes=[1], keepdim}))\n";
    fan << name << " = relu(exp(expand(%v){shape=[64," << i + 1 << "]}))\n";
    recurrence << name << " = add(" << last << ", tanh(library(" << last
               << "){name=\"aten.mm.default\"} : f32[64,64]))\n";
    outputs += ", " + name;
  }
  for (std::ostringstream* text : {&chain, &fan, &recurrence}) {
    *text << "outputs (" << outputs << ")\n";
    EXPECT_LT(seconds_to_group(read_graph(text->str())), 1.0);
  }
}

}  // namespace
}  // namespace stitch
