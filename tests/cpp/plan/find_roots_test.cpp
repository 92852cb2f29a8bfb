#include "plan/find_roots.h"

#include <gtest/gtest.h>

#include "support/read_graph.h"

namespace stitch {
namespace {

// The ops of the roots, in order.
std::vector<std::string> roots_of(const std::string& text, bool every_op = false,
                                  bool on_gpu = true) {
  const Graph graph = read_graph(text);
  std::vector<std::string> ops;
  for (NodeId root : find_roots(graph, find_demands(graph), every_op, on_gpu)) {
    ops.push_back(info(graph[root]).name);
  }
  return ops;
}

using Ops = std::vector<std::string>;

constexpr const char* kSoftmax = R"(
  %x = input : f32[8,6]
  %e = exp(sub(%x, amax(%x){axes=[1], keepdim}))
  %y = div(%e, sum(%e){axes=[1], keepdim})
  outputs (%y)
)";

TEST(FindRoots, ReductionsAndDemandedValues) {
  EXPECT_EQ(roots_of(kSoftmax), (Ops{"amax", "sum", "div"}));
}

// Else each element that reads one would walk its segment again.
TEST(FindRoots, SegmentsAreOnes) {
  EXPECT_EQ(roots_of(R"(
    %x = input : f32[4]
    %s = input : f32[9]
    %order = input : i64[9]
    %offsets = input : i64[5]
    %total = segment_sum(%x, %s, %order, %offsets){dim=0}
    %y = exp(index(%total, %order){axes=[0]})
    outputs (%y)
  )"),
            (Ops{"segment_sum", "exp"}));
}

TEST(FindRoots, WhatSegmentsReadInAnyOrderIsOneIfItTakesLong) {
  const std::string head =
      "%x = input : f32[4]\n%s = input : f32[9]\n%order = input : i64[9]\n"
      "%offsets = input : i64[5]\n";
  const std::string tail =
      "%y = segment_sum(%x, reshape(%v){shape=[9]}, %order, %offsets){dim=0}\noutputs (%y)\n";
  EXPECT_EQ(roots_of(head + "%v = mul(%s, 2)\n" + tail), (Ops{"segment_sum"}));
  EXPECT_EQ(roots_of(head + "%v = mul(exp(%s), 2)\n" + tail), (Ops{"mul", "segment_sum"}));
}

// Where it takes single elements; rows of several are computed by vectors.
TEST(FindRoots, WhatAScatterOnAHostCombinesIsOneIfItTakesLong) {
  const auto roots = [](const std::string& width, const std::string& value) {
    return roots_of("%s = input : f32[18" + width + "]\n%i = input : i64[2,9" +
                        (width.empty() ? "" : ",1") + "]\n%v = " + value +
                        "\n%x = expand(full{number=0} : f32[]){shape=[2,4" + width + "]}\n" +
                        "%y = neg(sum(scatter_sum(%x, reshape(%v){shape=[2,9" + width +
                        "]}, %i){dim=1}){axes=[0]})\noutputs (%y)\n",
                    false, false);
  };
  EXPECT_EQ(roots("", "mul(%s, 2)"), (Ops{"scatter_sum", "sum", "neg"}));
  EXPECT_EQ(roots("", "mul(exp(%s), 2)"), (Ops{"mul", "scatter_sum", "sum", "neg"}));
  EXPECT_EQ(roots(",64", "mul(exp(%s), 2)"), (Ops{"scatter_sum", "sum", "neg"}));
}

TEST(FindRoots, EveryComputingOpForThePolicyNone) {
  EXPECT_EQ(roots_of(kSoftmax, true), (Ops{"amax", "sub", "exp", "sum", "div"}));
}

TEST(FindRoots, DeadReductionsAreNone) {
  EXPECT_EQ(roots_of(R"(
    %x = input : f32[8,6]
    %unused = sum(%x){axes=[1]}
    %y = neg(%x)
    outputs (%y)
  )"),
            Ops{"neg"});
}

// Without this, step n of a recurrence would evaluate all n-1 before it.
TEST(FindRoots, ARecurrenceStoresWhatTwoLibraryLevelsWant) {
  const std::string recurrence = R"(
    %x = input : f32[64,64]
    %h = input : f32[64,64]
    %a = mul(tanh(%x), %h)
    %e = exp(%x)
    %m = library(%e){name="aten.mm.default"} : f32[64,64]
    %p = neg(%a)
    %b = add(%m, %a)
    outputs (%p, %b)
  )";
  EXPECT_EQ(roots_of(recurrence), (Ops{"mul", "exp", "neg", "add"}));
}

TEST(FindRoots, WhatIsCheapToEvaluateAgainIsNotStored) {
  const std::string cheap = R"(
    %x = input : f32[64,64]
    %a = tanh(%x)
    %m = library(%x){name="aten.mm.default"} : f32[64,64]
    %p = neg(%a)
    %b = add(%m, %a)
    outputs (%p, %b)
  )";
  EXPECT_EQ(roots_of(cheap), (Ops{"neg", "add"})) << "it reads no more bytes than it has";
}

TEST(FindRoots, ExpensiveValuesAreAddedWhereTheyAreEvaluated) {
  const Graph graph = read_graph(R"(
    %x = input : f32[8,8]
    %t = tanh(%x)
    %e = exp(neg(%t))
    %dead = erf(%e)
    %s = sum(mul(%e, %t)){axes=[1]}
    %y = exp(%s)
    outputs (%y)
  )");
  const std::vector<NodeId> roots = find_roots(graph, find_demands(graph), false);
  std::vector<std::string> names;
  for (NodeId root : add_expensive(graph, roots)) names.push_back(info(graph[root]).name);
  EXPECT_EQ(names, (std::vector<std::string>{"tanh", "exp", "sum", "exp"}));
}

TEST(FindRoots, LevelsCountLibraryCallsOnTheLongestPath) {
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

TEST(FindRoots, CallsThatWaitForNoKernelDoNotCount) {
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

}  // namespace
}  // namespace stitch
