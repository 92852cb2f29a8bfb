// Each policy alone, and what auto makes of them.
#include <map>
#include <sstream>
#include <tuple>

#include "plan/plan_graph.h"
#include "plan/stitch_stages.h"
#include "rewrite/rewrite_graph.h"
#include "support/golden_graphs.h"

namespace stitch {
namespace {

StitchPlan plan_for(const Graph& graph, const std::string& target, const std::string& policy) {
  Planning planning(graph, target_of(target));
  return plan_by_policy(policy, planning.request());
}

constexpr const char* kWholeTensor = R"(
  %x = input : f32[4096,1024]
  %y = div(%x, amax(abs(%x)))
  outputs (%y)
)";

// Figs 7 and 9 of AStitch, over rows of two lengths.
Graph astitchs_example(const std::string& rows, const std::string& first, const std::string& then) {
  return read_graph("%p1 = input : f32[" + rows + "," + first + "]\n%p2 = input : f32[" + rows +
                    "]\n%p3 = input : f32[" + rows + "," + then + "]\n" +
                    "%a1 = add(reshape(%p2){shape=[" + rows + ",1]}, %p1)\n" +
                    "%r1 = sum(%a1){axes=[1]}\n%pw1 = pow(div(%r1, %p2), 3)\n" +
                    "%d2 = div(%p3, reshape(%pw1){shape=[" + rows + ",1]})\n" +
                    "%r2 = sum(%d2){axes=[1], keepdim}\n" + "%m1 = mul(%r2, reshape(%pw1){shape=[" +
                    rows + ",1]})\noutputs (%m1)\n");
}

// There Pw.1 and R.2 pass grid barriers, as their groups' mappings
// differ; here the rows of a block are one mapping for both groups.
TEST(Policies, AStitchsExampleIsOneKernelWithoutAnyOtherLaunch) {
  const Graph graph = astitchs_example("1024", "512", "512");
  const StitchPlan plan = plan_for(graph, "h200", "astitch");
  ASSERT_EQ(plan.kernels.size(), 1u);
  EXPECT_EQ(plan.steps.size(), 1u);
}

// With groups of [64, 512] and [64, 30000], whose rows four blocks share: R.1 stays in its blocks,
// what Pw.1 is made of passes a grid barrier, and so do R.2's parts, here to the last block alone.
TEST(Policies, AStitchsExampleMeetsTwiceWhereItsGroupsHaveOtherBlocks) {
  const Graph graph = rewrite_graph(
      split_reductions(astitchs_example("64", "512", "30000"), device_spec("h200"), 4));
  const StitchPlan plan = plan_for(graph, "h200", "astitch");
  ASSERT_EQ(plan.kernels.size(), 1u) << to_string(plan, graph);
  const auto joins = map_to_vector(plan.kernels[0].phases, &PlannedPhase::join);
  EXPECT_EQ(joins, (std::vector{Join::kLaunch, Join::kGrid, Join::kLastBlock}))
      << to_string(plan, graph);
}

// Without barriers of the grid its groups pass rows inside blocks (20.5).
TEST(Policies, AStitchsExampleIsOneKernelWithoutBarriersOfTheGrid) {
  for (const auto& [rows, then] : {std::pair("1024", "512"), {"64", "30000"}, {"16384", "30000"}}) {
    const StitchPlan plan = plan_stitches(astitchs_example(rows, "512", then), target_of("h200"),
                                          "fusionstitching2020");
    EXPECT_EQ(plan.kernels.size(), 1u) << rows << " " << then;
    EXPECT_EQ(plan.kernels[0].phases.size(), 1u) << rows << " " << then;
  }
}

// Both values of a cell of 128 x 128 leave most of the device idle, alone and together.
TEST(Policies, SmallElementwiseValuesShareAKernelWithoutBarriers) {
  const Graph graph = read_graph(R"(
    %g = input : f32[128,128]
    %c = input : f32[128,128]
    %w = input : f32[128,512]
    %n = add(mul(sigmoid(%g), %c), tanh(%g))
    %h = mul(sigmoid(%g), tanh(%n))
    %y = library(%h, %w){name="aten.mm.default"} : f32[128,512]
    outputs (%n, %y)
  )");
  EXPECT_EQ(plan_for(graph, "h200", "fusionstitching2020").kernels.size(), 1u);
}

TEST(Policies, OnlyAStitchMeetsAcrossBlocks) {
  for (const auto& [policy, kernels, phases] :
       {std::tuple("astitch", 1, 2), std::tuple("fusionstitching2020", 2, 1)}) {
    const Graph graph =
        rewrite_graph(split_reductions(read_graph(kWholeTensor), device_spec("h200"), 4));
    const StitchPlan plan = plan_for(graph, "h200", policy);
    EXPECT_GE(static_cast<int>(plan.kernels.size()), kernels) << policy;
    size_t most = 0;
    for (const PlannedKernel& kernel : plan.kernels) {
      most = std::max(most, kernel.phases.size());
    }
    EXPECT_GE(static_cast<int>(most), phases) << policy;
    if (phases == 1) {
      EXPECT_EQ(most, 1u) << policy;
    }
    if (kernels == 1) {
      EXPECT_EQ(plan.kernels.size(), 1u) << policy;
    }
  }
}

// Each reduction reads what the one before made.  The second kernel starts from an exponential that
// the first has computed, in place of all sums and the input.
TEST(Policies, FusionStitching2020PassesExpensiveValuesOnWhereThatIsFaster) {
  std::string text = "%y0 = input : f32[512,768]\n";
  for (int step = 0; step < 26; ++step) {
    const std::string last = "%y" + std::to_string(step), sum = "%s" + std::to_string(step);
    text += sum + " = sum(" + last + "){axes=[1], keepdim}\n";
    text += "%y" + std::to_string(step + 1) + " = exp(sub(" + last + ", mul(" + sum + ", 0.1)))\n";
  }
  const Graph graph = read_graph(text + "outputs (%y26)");
  const std::vector<Stage> stages = plan_for(graph, "h200", "fusionstitching2020").stages;
  ASSERT_EQ(stages.size(), 2u);
  ASSERT_EQ(stages[1].loads.size(), 1u);
  EXPECT_EQ(graph[stages[1].loads[0]].op, OpKind::k_exp);
  EXPECT_EQ(stages[0].stores, stages[1].loads);
}

// Means of columns, in pieces, variances of rows and a maximum of all have a common mapping, that
// of one block: 125 times as slow.
TEST(Policies, FusionStitching2020RefusesAMappingThatLeavesTheDeviceIdle) {
  const Graph graph = read_graph(R"(
    %x = input : f32[4096,4096]
    %pieces = reshape(%x){shape=[256,16,4096]}
    %columns = div(sum(sum(%pieces){axes=[1]}){axes=[0]}, 4096)
    %d = sub(%x, div(sum(%x){axes=[1], keepdim}, 4096))
    %squares = sum(mul(%d, %d)){axes=[1]}
    %rest = sum(%d){axes=[1]}
    %rows = div(maximum(sub(%squares, mul(%rest, div(%rest, 4096))), 0), 4095)
    %most = amax(amax(%pieces){axes=[1,2]})
    outputs (%columns, %rows, %most)
  )");
  const StitchPlan planned = plan_for(graph, "h200", "fusionstitching2020");
  const double auto_us = plan_for(graph, "h200", "auto").us();
  EXPECT_LT(planned.us(), 2 * auto_us) << to_string(planned, graph);
}

// 100 rows do not fill the device: alone, the product would be spread over more blocks.
TEST(Policies, ElementwiseGroupsTakeTheBlocksOfTheReductionsTheyRead) {
  const Graph graph = read_graph(R"(
    %x = input : f32[100,8192]
    %s = sum(%x){axes=[1], keepdim}
    %y = mul(%x, sigmoid(%s))
    outputs (%y)
  )");
  EXPECT_EQ(plan_for(graph, "h200", "astitch").stages.size(), 1u);
}

// The sum's columns and the product's are one axis: what both are made of is counted along it.
TEST(Policies, ColumnsThatNothingIsLoadedAlongAreOneAxis) {
  const Graph graph = read_graph(R"(
    %row = input : i64[4096,1]
    %p = input : f32[4096,50257]
    %hits = cast(eq(reshape(iota{count=50257} : i64){shape=[1,50257]}, %row)) : f32
    %s = sum(%hits){axes=[1], keepdim}
    %y = sub(%hits, mul(%p, %s))
    outputs (%y)
  )");
  for (const char* policy : {"auto", "astitch"}) {
    EXPECT_EQ(plan_for(graph, "h200", policy).stages.size(), 1u) << policy;
  }
}

// Softmax into a product: amax, sum and the quotient; the exponential is evaluated by both readers.
TEST(Policies, LoopsAreOneKernelForEachReductionAndOperandOfACall) {
  const Graph graph = read_graph(R"(
    %x = input : f32[8192,512]
    %w = input : f32[512,64]
    %e = exp(sub(%x, amax(%x){axes=[1], keepdim}))
    %p = div(%e, sum(%e){axes=[1], keepdim})
    %y = library(%p, %w){name="aten.mm.default"} : f32[8192,64]
    outputs (%y)
  )");
  for (const char* target : {"h200", "cpu"}) {
    const StitchPlan loops = plan_for(graph, target, "loops");
    EXPECT_EQ(loops.kernels.size(), 3u) << target;
    for (const PlannedKernel& kernel : loops.kernels) EXPECT_EQ(kernel.stages().size(), 1u);
    EXPECT_EQ(plan_for(graph, target, "none").kernels.size(), 5u) << target;
  }
}

TEST(Policies, AutoIsPredictedToTakeNoLongerThanAnyOther) {
  for (const GoldenGraph& golden : golden_graphs()) {
    const Graph graph = read_graph(golden.text);
    for (const char* target : {"h200", "a100"}) {
      const double us = plan_for(graph, target, "auto").us();
      for (const char* policy : {"search", "astitch", "fusionstitching2020", "loops", "none"}) {
        EXPECT_LE(us, plan_for(graph, target, policy).us())
            << golden.name << " " << target << " " << policy;
      }
    }
  }
}

TEST(Policies, AutoHasEachStageScoredOnce) {
  for (const GoldenGraph& golden : golden_graphs()) {
    const Graph graph = read_graph(golden.text);
    Planning planning(graph, target_of("h200"));
    std::map<std::tuple<std::vector<NodeId>, std::vector<NodeId>, std::vector<NodeId>>, int> asked;
    planning.prices.score = [&](const Graph& of, const Stage& stage, const Target& target) {
      ++asked[{stage.roots, stage.loads, stage.stores}];
      return score_stage(of, stage, target);
    };
    plan_by_policy("auto", planning.request());
    EXPECT_FALSE(asked.empty());
    for (const auto& [stage, times] : asked) EXPECT_EQ(times, 1) << golden.name;
  }
}

// What lies between the products of a layer, of which each has weights of its own.
std::string softmax_layers(int layers) {
  std::ostringstream text;
  text << "%x0 = input : f32[64,64]\n";
  for (int i = 0; i < layers; ++i)
    text << "%w" << i << " = input : f32[64,64]\n%m" << i << " = library(%x" << i << ", %w" << i
         << "){name=\"aten.mm.default\"} : f32[64,64]\n%e" << i << " = exp(%m" << i << ")\n%x"
         << i + 1 << " = div(%e" << i << ", reshape(sum(%e" << i << "){axes=[1]}){shape=[64,1]})\n";
  text << "outputs (%x" << layers << ")\n";
  return text.str();
}

TEST(Policies, StagesOfEqualLayersAreScoredOnce) {
  for (const char* target : {"h200", "cpu"}) {
    const auto count_scored = [&](int layers) {
      const Graph graph = read_graph(softmax_layers(layers));
      Planning planning(graph, target_of(target));
      int scored = 0;
      planning.prices.score = [&](const Graph& of, const Stage& stage, const Target& on) {
        ++scored;
        return score_stage(of, stage, on);
      };
      plan_by_policy("auto", planning.request());
      return scored;
    };
    EXPECT_EQ(count_scored(6), count_scored(3)) << target;
  }
}

TEST(Policies, TheHostTakesTheSearch) {
  EXPECT_EQ(plan_for(read_graph(kWholeTensor), "cpu", "auto").policy, "search");
}

TEST(Policies, AnUnknownNameIsAnError) {
  EXPECT_THROW(plan_for(read_graph(kWholeTensor), "h200", "astich"), UserError);
}

}  // namespace
}  // namespace stitch
