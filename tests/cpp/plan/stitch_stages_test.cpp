// What shares a launch: phases with a grid barrier between them, independent stages side by side.
#include "plan/stitch_stages.h"

#include <set>

#include "plan/plan_graph.h"
#include "plan/store_in_place.h"
#include "support/golden_graphs.h"

namespace stitch {
namespace {

Planned plan_stitched(const std::string& text, const std::string& target = "h200") {
  return plan_graph(text, target);
}

using ScoreOf = std::function<StageScore(const Stage&)>;

// Every root a stage of its own, each as `score` says.
StitchPlan plan_apart(const Graph& graph, const ScoreOf& score, const DeviceSpec& device) {
  Planning planning(graph, {device, kTestWorkers});
  planning.prices.kinds = count_to(graph.nodes.size());  // scores that go by place
  planning.prices.score = [&](const Graph&, const Stage& stage, const Target&) {
    if (stage.roots.size() > 1) return StageScore{Verdict::no(99, "the test says so")};
    return score(stage);
  };
  const PlanRequest in = planning.request();
  const NodeList roots = find_roots(graph, planning.demands, false, planning.target.device);
  StitchPlan plan = stitch_stages(in, join_stages(in, roots, JoinRule::kFaster), {});
  keep_kernel_cuts(graph, plan);
  plan.aliases = planning.demands.aliases;
  plan.in_place = find_in_place(graph, plan);
  return plan;
}

StitchPlan plan_apart(const Graph& graph, const StageScore& score, const DeviceSpec& device) {
  return plan_apart(graph, [&](const Stage&) { return score; }, device);
}

StageScore score_of(double us, double share, int statements) {
  return {Verdict::yes(), device_spec("h200").launch_us + us, {us, share}, statements};
}

StitchPlan plan_apart(const Graph& graph, int statements = 1) {
  return plan_apart(graph, score_of(1, 0.1, statements), device_spec("h200"));
}

std::vector<size_t> phase_sizes(const PlannedKernel& kernel) {
  std::vector<size_t> sizes;
  for (const PlannedPhase& phase : kernel.phases) sizes.push_back(phase.blocks.size());
  return sizes;
}

std::set<int> rules(const StitchPlan& plan) {
  std::set<int> found;
  for (const Cut& cut : plan.cuts) found.insert(cut.reason.rule);
  return found;
}

// What is in memory when a step or a phase begins.
struct Memory {
  const Graph& graph;
  const StitchPlan& plan;
  std::set<NodeId> present = {};

  void expect(NodeId value, const std::string& reader) {
    for (size_t a = plan.aliases.size(); a-- > 0;) {
      if (plan.aliases[a].node == value) value = plan.aliases[a].base;
    }
    if (graph[value].op == OpKind::k_get) value = graph[value].inputs[0];
    const bool is_made = graph[value].op == OpKind::k_library || !is_materialised(graph[value]);
    EXPECT_TRUE(!is_made || present.count(value)) << reader << " reads %" << value << " too early\n"
                                                  << to_string(plan, graph);
  }

  void run(const PlannedKernel& kernel, std::set<int>& seen) {
    for (const PlannedPhase& phase : kernel.phases) {
      EXPECT_EQ(phase.join == Join::kLaunch, &phase == &kernel.phases.front());
      EXPECT_FALSE(phase.blocks.empty());
      for (int s : phase.stages()) {
        EXPECT_TRUE(seen.insert(s).second) << "stage " << s << " runs twice";
        for (NodeId load : plan.stages[s].loads) expect(load, "stage " + std::to_string(s));
      }
      for (int s : phase.stages())
        present.insert(plan.stages[s].stores.begin(), plan.stages[s].stores.end());
    }
  }
};

void expect_runnable(const Graph& graph, const StitchPlan& plan) {
  Memory memory{graph, plan};
  std::set<int> stages, kernels;
  for (const PlanStep& step : plan.steps) {
    if (!step.call.valid()) {
      EXPECT_TRUE(kernels.insert(step.kernel).second) << "kernel " << step.kernel << " runs twice";
      memory.run(plan.kernels[step.kernel], stages);
      continue;
    }
    for (NodeId input : graph[step.call].inputs) memory.expect(input, "a call");
    memory.present.insert(step.call);
  }
  EXPECT_EQ(stages.size(), plan.stages.size());
  EXPECT_EQ(kernels.size(), plan.kernels.size());
}

constexpr const char* kLargest = R"(
  %x = input : f32[4096,4096]
  %parts = amax(reshape(abs(%x)){shape=[256,65536]}){axes=[1]}
  %largest = amax(%parts)
  %y = div(%x, %largest)
  outputs (%y)
)";

TEST(StitchStages, AMaximumOfATensorAndItsConsumerAreOneKernel) {
  const Planned planned = plan_stitched(kLargest);
  const StitchPlan& plan = planned.plan;
  ASSERT_EQ(plan.kernels.size(), 1u) << to_string(plan, planned.graph);
  EXPECT_EQ(plan.kernels[0].phases.size(), 2u) << "each block finishes the maximum for itself";
  EXPECT_TRUE(plan.cuts.empty()) << "what passes a barrier is no cut";
  expect_runnable(planned.graph, plan);
}

// What it reads twice may still be in the cache: sizes are those of the first call.
TEST(StitchStages, StagesOfAnyNumberOfRowsAreJudgedByTheirHint) {
  const Planned planned = plan_stitched(R"(
    symbols s0 = input(0) hint 701
    %x = input : f32[s0,33]
    %e = exp(sub(%x, amax(%x){axes=[0], keepdim}))
    %y = div(%e, sum(%e){axes=[0], keepdim})
    outputs (%y)
  )");
  ASSERT_EQ(planned.plan.kernels.size(), 1u) << to_string(planned.plan, planned.graph);
  EXPECT_EQ(planned.plan.kernels[0].phases.size(), 2u);
  EXPECT_FALSE(emit_planned(planned, 0).phases[1].is_constant());
}

TEST(StitchStages, NothingIsStitchedWhereBlocksCannotMeet) {
  for (const Planned& planned :
       {plan_stitched(kLargest, "cpu"), plan_graph(kLargest, "h200", "none")}) {
    EXPECT_GT(planned.plan.kernels.size(), 1u);
    for (const PlannedKernel& kernel : planned.plan.kernels) {
      EXPECT_EQ(phase_sizes(kernel), std::vector<size_t>{1});
    }
    expect_runnable(planned.graph, planned.plan);
  }
}

TEST(StitchStages, IndependentStagesShareAPhase) {
  const Planned planned = plan_stitched(R"(
    %a = input : f32[64,64]
    %b = input : f32[1000,37]
    %c = exp(%a)
    %d = sum(%b){axes=[1]}
    outputs (%c, %d)
  )");
  ASSERT_EQ(planned.plan.kernels.size(), 1u) << to_string(planned.plan, planned.graph);
  EXPECT_EQ(phase_sizes(planned.plan.kernels[0]), std::vector<size_t>{2});
}

TEST(StitchStages, AStageRunsInTheFirstPhaseAfterAllThatItReads) {
  const Graph graph = read_graph(R"(
    %x = input : f32[8,6]
    %a = exp(%x)
    %b = sum(%a){axes=[1]}
    %c = amax(%b)
    %d = sum(%x){axes=[0]}
    %e = amax(%d)
    %y = add(%c, %e)
    outputs (%a, %y)
  )");
  const StitchPlan plan = plan_apart(graph);
  ASSERT_EQ(plan.kernels.size(), 1u) << to_string(plan, graph);
  EXPECT_EQ(phase_sizes(plan.kernels[0]), (std::vector<size_t>{2, 2, 1, 1}));
  expect_runnable(graph, plan);
}

TEST(StitchStages, NoKernelReachesAcrossALibraryCall) {
  const Planned planned = plan_stitched(R"(
    %x = input : f32[64,64]
    %a = exp(%x)
    %m = library(%a){name="aten.mm.default"} : f32[64,64]
    %y = add(%a, %m)
    %s = sum(%y){axes=[0]}
    outputs (%y, %s)
  )");
  const StitchPlan& plan = planned.plan;
  ASSERT_EQ(plan.kernels.size(), 2u) << to_string(plan, planned.graph);
  ASSERT_EQ(plan.steps.size(), 3u);
  EXPECT_TRUE(plan.steps[1].call.valid());
  EXPECT_EQ(rules(plan), std::set<int>{kRuleCycle});
  expect_runnable(planned.graph, plan);
}

// Read only after the call, it runs beside what must wait for the call.
TEST(StitchStages, AStageThatMayWaitJoinsTheLaterKernel) {
  const Planned planned = plan_stitched(R"(
    %x = input : f32[64,64]
    %w = input : f32[3000,70]
    %total = sum(%w){axes=[1]}
    %m = library(%x){name="aten.mm.default"} : f32[64,64]
    %y = mul(%m, amax(%total))
    outputs (%y)
  )");
  ASSERT_EQ(planned.plan.kernels.size(), 1u) << to_string(planned.plan, planned.graph);
  EXPECT_TRUE(planned.plan.steps[0].call.valid());
  expect_runnable(planned.graph, planned.plan);
}

TEST(StitchStages, AStageThatMayWaitJoinsTheKernelBeforeTheCall) {
  const Planned planned = plan_stitched(R"(
    %x = input : f32[64,64]
    %w = input : f32[3000,70]
    %a = exp(%x)
    %m = library(%a){name="aten.mm.default"} : f32[64,64]
    %total = sum(%w){axes=[1]}
    outputs (%m, %total)
  )");
  ASSERT_EQ(planned.plan.kernels.size(), 1u) << to_string(planned.plan, planned.graph);
  EXPECT_FALSE(planned.plan.steps[0].call.valid());
}

// Between a call and the next there is one kernel, whatever else hangs off the calls.
TEST(StitchStages, AChainOfCallsHasAKernelBetweenEachTwo) {
  std::string text = "%x = input : f32[64,64]\n%v = input : f32[500,30]\n";
  text += "%s0 = exp(%x)\n";
  std::string outputs;
  for (int i = 0; i < 4; ++i) {
    const std::string n = std::to_string(i), next = std::to_string(i + 1);
    text += "%m" + n + " = library(%s" + n + "){name=\"aten.mm.default\"} : f32[64,64]\n";
    text += "%s" + next + " = mul(%m" + n + ", add(%s0, " + n + "))\n";
    text += "%t" + n + " = sum(mul(%v, " + n + ".5)){axes=[" + std::to_string(i % 2) + "]}\n";
    outputs += "%t" + n + ", ";
  }
  const Planned planned = plan_stitched(text + "outputs (" + outputs + "%s4)\n");
  EXPECT_EQ(planned.plan.kernels.size(), 5u) << to_string(planned.plan, planned.graph);
  expect_runnable(planned.graph, planned.plan);
}

std::string many_graphs(int count, bool is_alike = false) {
  std::string text, outputs;
  for (int i = 0; i < count; ++i) {
    const std::string n = std::to_string(i);
    const std::string type = " : f32[" + std::to_string(is_alike ? 17 : 17 + i) + ",3]\n";
    text += "%a" + n + " = input" + type + "%b" + n + " = input" + type;
    text += "%c" + n + " = add(%a" + n + ", %b" + n + ")\n";
    outputs += (i ? ", %c" : "%c") + n;
  }
  return text + "outputs (" + outputs + ")\n";
}

TEST(StitchStages, ALaunchTakesSoManyTensors) {
  const Planned planned = plan_stitched(many_graphs(1200, true));
  EXPECT_EQ(planned.plan.stages.size(), 1200u);
  ASSERT_EQ(planned.plan.kernels.size(), 2u);
  for (size_t k = 0; k < 2; ++k) {
    EXPECT_LE(emit_planned(planned, k).pointers.size(), kMostPointers);
  }
  EXPECT_EQ(planned.plan.kernels[0].stages().size(), kMostPointers / 3);
  expect_runnable(planned.graph, planned.plan);
}

constexpr const char* kThreeInARow = R"(
  %x = input : f32[8,6,5]
  %a = sum(%x){axes=[2]}
  %b = sum(%a){axes=[1]}
  %c = sum(%b)
  outputs (%c)
)";

TEST(StitchStages, StatementsOfEqualStagesCountOnce) {
  const Graph graph = read_graph(many_graphs(8));
  const auto count = [&](bool is_alike) {
    const auto score = [&](const Stage& stage) {
      return score_of(is_alike ? 1 : 1 + 0.1 * stage.roots[0].index(), 0.1, 400);
    };
    return plan_apart(graph, ScoreOf(score), device_spec("h200")).kernels.size();
  };
  EXPECT_EQ(count(true), 1u);
  EXPECT_EQ(count(false), 3u);
}

TEST(StitchStages, AKernelHasSoManyStatements) {
  const Graph graph = read_graph(kThreeInARow);
  const StitchPlan plan = plan_apart(graph, 600);
  ASSERT_EQ(plan.kernels.size(), 2u) << to_string(plan, graph);
  EXPECT_EQ(plan.kernels[0].phases.size(), 2u);
  ASSERT_EQ(rules(plan), std::set<int>({kRuleLongKernel}));
  for (const Cut& cut : plan.cuts) {
    EXPECT_EQ(cut.to, plan.stages[2].roots[0]);
    EXPECT_EQ(cut.from, plan.stages[1].roots[0]);
  }
  expect_runnable(graph, plan);
}

// A later stage may still join a kernel that another did not fit into.
TEST(StitchStages, WhatDoesNotFitDoesNotCloseTheKernel) {
  const Graph graph = read_graph(R"(
    %x = input : f32[8,6]
    %y = input : f32[5]
    %z = input : f32[7,9]
    %a = exp(%x)
    %b = sum(%y)
    %c = neg(%z)
    outputs (%a, %b, %c)
  )");
  const auto score = [&](const Stage& stage) {
    return score_of(1, 0.1, graph[stage.roots[0]].op == OpKind::k_neg ? 100 : 700);
  };
  const StitchPlan plan = plan_apart(graph, ScoreOf(score), device_spec("h200"));
  ASSERT_EQ(plan.kernels.size(), 2u) << to_string(plan, graph);
  EXPECT_EQ(plan.kernels[0].stages(), (std::vector{0, 2}));
  EXPECT_EQ(plan.kernels[1].stages(), std::vector{1});
  EXPECT_EQ(phase_sizes(plan.kernels[0]), std::vector<size_t>{2});
}

constexpr const char* kMeanOfRows = R"(
  %x = input : f32[4096,1000]
  %rows = sum(exp(%x)){axes=[1]}
  %total = sum(log(%rows)){axes=[0]}
)";

TEST(StitchStages, ATotalIsLeftToTheLastBlock) {
  const Planned planned = plan_stitched(std::string(kMeanOfRows) + "outputs (%total)\n");
  ASSERT_EQ(planned.plan.kernels.size(), 1u);
  EXPECT_EQ(planned.plan.kernels[0].phases.size(), 2u);
  EXPECT_EQ(planned.plan.kernels[0].phases[1].join, Join::kLastBlock)
      << to_string(planned.plan, planned.graph);
}

TEST(StitchStages, WhatAllBlocksReadIsNot) {
  const Planned planned = plan_stitched(std::string(kMeanOfRows) + R"(
    %y = div(%x, %total)
    outputs (%y)
  )");
  for (const PlannedKernel& kernel : planned.plan.kernels)
    for (const PlannedPhase& phase : kernel.phases) EXPECT_NE(phase.join, Join::kLastBlock);
}

TEST(StitchStages, ABarrierThatCostsMoreThanALaunchIsACut) {
  const Graph graph = read_graph(kThreeInARow);
  DeviceSpec slow = device_spec("h200");
  slow.barrier_us = slow.launch_us + 0.1;
  const StitchPlan plan = plan_apart(graph, score_of(1, 0.1, 1), slow);
  EXPECT_EQ(plan.kernels.size(), 3u) << to_string(plan, graph);
  EXPECT_TRUE(rules(plan).count(kRuleSlower));
  slow.barrier_us = slow.launch_us - 0.1;
  EXPECT_EQ(plan_apart(graph, score_of(1, 0.1, 1), slow).kernels.size(), 1u);
}

TEST(StitchStages, TheOrderOfEveryGoldenGraphCanRun) {
  for (const GoldenGraph& golden : golden_graphs()) {
    for (const char* target : {"cpu", "a100", "h200"}) {
      const Planned planned = plan_stitched(golden.text, target);
      expect_runnable(planned.graph, planned.plan);
    }
  }
}

// Calls, views of their results and stages that read any of the values before them.
std::string random_text(unsigned seed) {
  auto draw = [&seed](unsigned below) {
    seed = seed * 1664525u + 1013904223u;
    return (seed >> 16) % below;
  };
  std::string text = "%v0 = input : f32[6,6]\n%v1 = input : f32[6,6]\n", outputs;
  for (unsigned i = 2; i < 24; ++i) {
    const std::string a = "%v" + std::to_string(draw(i)), b = "%v" + std::to_string(draw(i));
    const std::string ops[] = {
        "library(" + a + ", " + b + "){name=\"aten.mm.default\"} : f32[6,6]",
        "permute(" + a + "){order=[1,0]}",
        "sub(" + a + ", sum(" + b + "){axes=[1], keepdim})",
        "mul(" + a + ", amax(" + b + "){axes=[0], keepdim})",
        "add(exp(" + a + "), " + b + ")",
    };
    text += "%v" + std::to_string(i) + " = " + ops[draw(5)] + "\n";
    if (i == 23 || draw(4) == 0) outputs += (outputs.empty() ? "%v" : ", %v") + std::to_string(i);
  }
  return text + "outputs (" + outputs + ")\n";
}

TEST(StitchStages, TheOrderOfRandomGraphsCanRun) {
  int kernels = 0, phases = 0, calls = 0;
  for (unsigned seed = 0; seed < 300; ++seed) {
    const Graph graph = read_graph(random_text(seed));
    const StitchPlan plan = plan_apart(graph, seed % 3 ? 1 : 500);
    expect_runnable(graph, plan);
    kernels += static_cast<int>(plan.kernels.size());
    calls += static_cast<int>(plan.steps.size() - plan.kernels.size());
    for (const PlannedKernel& kernel : plan.kernels) {
      phases += static_cast<int>(kernel.phases.size());
    }
    if (testing::Test::HasFailure()) FAIL() << "seed " << seed << "\n" << random_text(seed);
  }
  EXPECT_GT(phases, kernels + 300) << "barriers were drawn";
  EXPECT_GT(calls, 300);
}

bool is_in_place(const std::string& lines, const DeviceSpec& device) {
  const Graph graph = read_graph("%x = input : f32[6,6]\n" + lines + "\n");
  const StitchPlan plan = plan_apart(graph, score_of(1, 0.1, 1), device);
  EXPECT_EQ(plan.kernels.size() == 1, device.barrier_us > 0) << to_string(plan, graph);
  return plan.in_place.at(0);
}

TEST(StitchStages, AnEarlierPhaseMayReadWhatALaterOneReplaces) {
  const char* text = "%s = sum(%x)\n%y = sub(%x, %s)\nmutate %x <- %y\noutputs (none)";
  EXPECT_TRUE(is_in_place(text, device_spec("h200")));
}

TEST(StitchStages, ALaterPhaseMayNotReadWhatAnEarlierOneReplaces) {
  const char* text =
      "%y = add(%x, 1)\nmutate %x <- %y\n%s = sum(%y)\n%z = mul(flip(%x){axes=[0]}, %s)\n"
      "outputs (%z)";
  EXPECT_FALSE(is_in_place(text, device_spec("h200")));
}

TEST(StitchStages, AStageThatReplacesRunsAfterOthersThatReadTheOldValue) {
  const char* text = "%y = add(%x, 1)\n%s = sum(%x){axes=[0]}\nmutate %x <- %y\noutputs (%s)";
  const char* through_a_view =
      "%y = add(%x, 1)\n%s = sum(permute(%x){order=[1,0]}){axes=[0]}\nmutate %x <- %y\n"
      "outputs (%s)";
  for (const char* target : {"h200", "cpu"}) {
    EXPECT_TRUE(is_in_place(text, device_spec(target)));
    EXPECT_TRUE(is_in_place(through_a_view, device_spec(target)));
  }
}

TEST(StitchStages, AStageThatReplacesWaitsForCallsThatReadTheOldValue) {
  const Graph graph = read_graph(R"(
    %x = input : f32[64,64]
    %y = add(%x, 1)
    %first = library(%x){name="aten.normal.Tensor_float", ints=[1]} : f32[64,64]
    %second = library(%x){name="aten.rand_like.default", ints=[1]} : f32[64,64]
    %z = add(%first, %second)
    mutate %x <- %y
    outputs (%z)
  )");
  for (const char* target : {"h200", "cpu"}) {
    const StitchPlan plan = plan_apart(graph, score_of(1, 0.1, 1), device_spec(target));
    EXPECT_TRUE(plan.in_place.at(0)) << to_string(plan, graph);
    expect_runnable(graph, plan);
  }
}

// The first draw waits for a stage that would rather be in the later kernel.
TEST(StitchStages, RandomCallsKeepTheirOrder) {
  const Graph graph = read_graph(R"(
    %x = input : f32[512,512]
    %w = input : f32[512,512]
    %a = sum(%x){axes=[0]}
    %first = library(%a){name="aten.normal.Tensor_float", ints=[1]} : f32[512]
    %second = library(%x){name="aten.rand_like.default", ints=[1]} : f32[512,512]
    %y = library(%second, %w){name="aten.mm.default"} : f32[512,512]
    %z = add(amax(%x), sum(%y){axes=[0]})
    outputs (%first, %z)
  )");
  for (const char* target : {"cpu", "h200"}) {
    for (const char* policy : {"search", "astitch", "auto"}) {
      const StitchPlan plan = plan_stitches(graph, target_of(target), policy);
      std::vector<std::string> drawn;
      for (const PlanStep& step : plan.steps) {
        if (!step.call.valid()) continue;
        if (graph[step.call].name != "aten.mm.default") drawn.push_back(graph[step.call].name);
      }
      EXPECT_EQ(drawn,
                (std::vector<std::string>{"aten.normal.Tensor_float", "aten.rand_like.default"}))
          << target << " " << policy;
    }
  }
}

}  // namespace
}  // namespace stitch
