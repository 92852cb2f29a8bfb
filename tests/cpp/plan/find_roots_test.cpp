#include "plan/find_roots.h"

#include <gtest/gtest.h>

#include <map>

#include "plan/plan_graph.h"
#include "stage/schedule_stage.h"
#include "support/read_graph.h"

namespace stitch {
namespace {

// The ops of the roots, in order.
std::vector<std::string> roots_of(const std::string& text, bool every_op = false,
                                  bool on_gpu = true) {
  const Graph graph = read_graph(text);
  std::vector<std::string> ops;
  for (NodeId root :
       find_roots(graph, find_demands(graph), every_op, device_spec(on_gpu ? "h200" : "cpu"))) {
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

// Softplus of a row before the states that vectors walk (AStitch A.6); in long rows it is nothing.
TEST(FindRoots, AnExpensiveValueBeforeAShortBroadcastOnHosts) {
  const auto roots = [](const std::string& states, bool on_gpu) {
    return roots_of("%x = input : f32[64,1]\n%s = input : f32[64," + states +
                        "]\n%y = mul(%s, log1p(exp(%x)))\noutputs (%y)\n",
                    false, on_gpu);
  };
  EXPECT_EQ(roots("8", false), (Ops{"log1p", "mul"}));
  EXPECT_EQ(roots("8", true), (Ops{"mul"})) << "lanes compute it at once";
  EXPECT_EQ(roots("512", false), (Ops{"mul"}));
  EXPECT_EQ(roots("1", false), (Ops{"mul"}));
  const std::string part =
      "%x = input : f32[64,8]\n%y = mul(cat(exp(%x), %x){dim=1}, 2)\noutputs (%y)";
  EXPECT_EQ(roots_of(part, false, false), (Ops{"mul"})) << "each element is in one place";
}

// A row of scores and a mask of bytes would have as many lanes as bytes.
// Frequencies of positions: each row's vectors would compute the powers again, however many there
// are.
TEST(FindRoots, AnExpensiveRowThatRowsReadOnHosts) {
  const auto roots = [](const std::string& shape, bool on_gpu) {
    return roots_of("%f = input : f32[64]\n%p = input : f32[4096,1]\n%w = reshape(pow(%f, 2.5)){" +
                        shape + "}\n%y = mul(%p, %w)\noutputs (%y)\n",
                    false, on_gpu);
  };
  EXPECT_EQ(roots("shape=[64]", false), (Ops{"pow", "mul"}));
  EXPECT_EQ(roots("shape=[1,64]", false), (Ops{"pow", "mul"}));
  EXPECT_EQ(roots("shape=[1,64]", true), (Ops{"mul"}));
}

TEST(FindRoots, WhatIsMadeOfBytesBeforeABroadcastOnHosts) {
  const auto roots = [](const std::string& heads, bool on_gpu) {
    return roots_of("%m = input : bool[2,1,1,64]\n%s = input : f32[2," + heads +
                        ",64,64]\n%y = add(%s, select(%m, 0, -10000))\noutputs (%y)\n",
                    false, on_gpu);
  };
  EXPECT_EQ(roots("4", false), (Ops{"select", "add"}));
  EXPECT_EQ(roots("4", true), (Ops{"add"}));
  const std::string alone =
      "%m = input : bool[2,64]\n%s = input : f32[2,64]\n%y = add(%s, select(%m, 0, 1))\n"
      "outputs (%y)\n";
  EXPECT_EQ(roots_of(alone, false, false), (Ops{"add"})) << "each byte is read once";
}

TEST(FindRoots, WhatIsAnIndexForLongerRowsIsExpensiveOnce) {
  const std::string buckets =
      "%t = input : f32[32,4]\n%d = input : f32[64,64]\n%i = cast(log(%d)) : i64\n"
      "%y = mul(index(%t, %i){axes=[0]}, 2)\noutputs (%y)\n";
  EXPECT_EQ(roots_of(buckets, false, false), (Ops{"cast", "mul"}));
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

// All 4M threads of [4096, 4096] would take longer for it than to meet at a barrier; those of [64,
// 64] do not, and what is reduced in the kernel is waited for in any case.
TEST(FindRoots, AUniformValueThatAllThreadsTakeLongFor) {
  const auto roots = [](const std::string& size, const std::string& step, bool on_gpu = true) {
    return roots_of("%x = input : f32[" + size + "," + size +
                        "]\n%n = input : f32[]\n%y = mul(%x, " + "neg(pow(%n, " + step +
                        ")))\noutputs (%y)\n",
                    false, on_gpu);
  };
  EXPECT_EQ(roots("4096", "%n"), (Ops{"neg", "mul"}));
  EXPECT_EQ(roots("64", "%n"), (Ops{"mul"}));
  EXPECT_EQ(roots("4096", "amax(%x)"), (Ops{"amax", "mul"}));
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
  const std::vector<NodeId> roots =
      find_roots(graph, find_demands(graph), false, device_spec("h200"));
  std::vector<std::string> names;
  for (NodeId root : add_expensive(graph, roots)) names.push_back(info(graph[root]).name);
  EXPECT_EQ(names, (std::vector<std::string>{"tanh", "exp", "sum", "exp"}));
}

// The loss of each row is made where the rows are; what one block would sum in any case is not.
TEST(FindRoots, WhatASumOfEverythingChoosesFromRowsMayBeARoot) {
  const std::string losses = R"(
    %x = input : f32[64,1000]
    %i = input : i64[64,1]
    %m = amax(%x){axes=[1]}
    %d = sub(%x, reshape(%m){shape=[64,1]})
    %l = neg(reshape(gather(%d, %i){ints=[1], integer=1}){shape=[64]})
)";
  const auto added = [](const std::string& text) {
    const Graph graph = read_graph(text);
    const NodeList roots = find_roots(graph, find_demands(graph), false, device_spec("h200"));
    std::vector<std::string> names;
    for (NodeId root : add_gathered(graph, roots))
      if (!std::ranges::binary_search(roots, root)) names.push_back(info(graph[root]).name);
    return names;
  };
  EXPECT_EQ(added(losses + "%s = sum(%l){axes=[0]}\noutputs (%s)\n"), Ops{"neg"});
  EXPECT_EQ(added(losses + "%s = sum(reshape(%l){shape=[8,8]}){axes=[0]}\noutputs (%s)\n"), Ops{});
  EXPECT_EQ(added("%x = input : f32[64]\n%s = sum(neg(%x)){axes=[0]}\noutputs (%s)\n"), Ops{});
}

// What is made of one value, at no more cost than an exponential's, is made of it wherever it is
// read; what joins two values, or takes longer, is a root.
TEST(FindRoots, CheapValuesOfOneValueAreNotWorthStoring) {
  const Graph graph = read_graph(R"(
    %x = input : f32[8,64]
    %row = input : f32[64]
    %z = input : f32[8,64]
    %e = lgamma(%x)
    %f = exp(%e)
    %a = neg(%f)
    %b = mul(%a, %e)
    %c = add(%b, %row)
    %d = sub(%c, %z)
    %o = relu(%d)
    outputs (%o)
  )");
  const Demands demands = find_demands(graph);
  std::vector<NodeId> roots = find_roots(graph, demands, true, device_spec("h200"));
  std::vector<std::string> names;
  for (NodeId root : drop_cheap(graph, demands, roots)) names.push_back(info(graph[root]).name);
  EXPECT_EQ(names, (std::vector<std::string>{"lgamma", "sub", "relu"}));
}

// A scan written as a tree: pairs are combined, scanned, and combined with what lies between.
std::string scan_text(int length, int64_t row) {
  std::string text;
  int next = 0;
  const std::string width = "," + std::to_string(row) + "]";
  auto add = [&](const std::string& expr) {
    const std::string name = "%v" + std::to_string(next++);
    text += name + " = " + expr + "\n";
    return name;
  };
  auto part = [&](const std::string& of, int start, int step, int count) {
    return add("slice(" + of + "){dim=0, start=" + std::to_string(start) +
               ", count=" + std::to_string(count) + ", step=" + std::to_string(step) + "}");
  };
  auto scan = [&](auto& self, const std::string& x, int n) -> std::string {
    if (n == 1) return x;
    const std::string pairs =
        add("mul(" + part(x, 0, 2, n / 2) + ", " + part(x, 1, 2, n / 2) + ")");
    const std::string odd = self(self, pairs, n / 2);
    std::string even = part(x, 0, 1, 1);
    if (n > 2) {
      const std::string between =
          add("mul(" + part(odd, 0, 1, n / 2 - 1) + ", " + part(x, 2, 2, n / 2 - 1) + ")");
      even = add("cat(" + even + ", " + between + "){dim=0}");
    }
    const std::string flat = add("cat(" + even + ", " + odd + "){dim=1}");
    return add("reshape(" + flat + "){shape=[" + std::to_string(n) + width + "}");
  };
  text = "%x = input : f32[" + std::to_string(length) + width + "\n";
  const std::string result = scan(scan, "%x", length);
  return text + "outputs (" + result + ")\n";
}

TEST(RepeatedEvaluation, OfAScanWrittenAsATreeIsBounded) {
  for (const char* target : {"cpu", "h200"}) {
    for (int length : {4, 16, 64, 256}) {
      const Planned planned = plan_graph(scan_text(length, 4096), target, "auto");
      for (size_t s = 0; s < planned.plan.schedules.size(); ++s) {
        const StageSchedule& schedule = planned.plan.schedules[s];
        EXPECT_LE(count_statements(schedule), 600) << target << " " << length;
        for (const auto& [root, evaluated] : schedule.accesses.evaluated)
          for_each_value(evaluated, [&](const auto& evaluations) {
            EXPECT_LE(evaluations.size(), 100u)
                << target << " " << length << " value " << evaluations.front().value;
          });
      }
    }
  }
}

TEST(RepeatedEvaluation, AFewReadsOfWhatCostsLittleStayInOneKernel) {
  for (const char* target : {"cpu", "h200"}) {
    const Planned planned = plan_graph(R"(
      %x = input : bf16[64,4096]
      %w = cast(%x) : f32
      %a = slice(%w){dim=1, start=0, count=4094}
      %b = slice(%w){dim=1, start=1, count=4094}
      %c = slice(%w){dim=1, start=2, count=4094}
      %y = add(add(%a, %b), %c)
      outputs (%y)
    )",
                                       target, "auto");
    EXPECT_EQ(planned.plan.stages.size(), 1u) << to_string(planned.plan, planned.graph);
  }
}

}  // namespace
}  // namespace stitch
