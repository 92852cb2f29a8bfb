#include "plan/stitch_stages.h"

#include "plan/plan_graph.h"

namespace stitch {
namespace {

const Cut* cut_by_rule(const std::vector<Cut>& cuts, int rule) {
  for (const Cut& cut : cuts) {
    if (cut.reason.rule == rule) return &cut;
  }
  return nullptr;
}

// Stages alone: kernels may join them again at a grid barrier.
JoinedStages join_graph(const Graph& graph, const std::string& target) {
  Planning planning(graph, target_of(target));
  return join_stages(planning.request(),
                     find_roots(graph, planning.demands, false, planning.target.device),
                     JoinRule::kFaster);
}

class Joins : public testing::TestWithParam<const char*> {
 protected:
  Planned plan(const std::string& text, const std::string& policy = "search") const {
    return plan_graph(text, GetParam(), policy);
  }
};

constexpr const char* kLargeSoftmax = R"(
  %x = input : f32[4096,1024]
  %e = exp(sub(%x, amax(%x){axes=[1], keepdim}))
  %y = div(%e, sum(%e){axes=[1], keepdim})
  outputs (%y)
)";

TEST_P(Joins, ASoftmaxIsOneKernelThatStoresOnlyItsResult) {
  const Planned planned = plan(kLargeSoftmax);
  ASSERT_EQ(planned.plan.kernels.size(), 1u) << to_string(planned.plan, planned.graph);
  EXPECT_EQ(planned.plan.stages[0].roots.size(), 3u);
  EXPECT_EQ(planned.plan.stages[0].stores, std::vector<NodeId>{planned.graph.outputs[0].node});
  EXPECT_EQ(planned.plan.stages[0].loads, planned.graph.inputs);
}

TEST_P(Joins, ThePolicyNoneIsOneKernelPerOp) {
  const Planned planned = plan(kLargeSoftmax, "none");
  EXPECT_EQ(planned.plan.kernels.size(), 5u);
  for (const Stage& stage : planned.plan.stages) EXPECT_EQ(stage.roots.size(), 1u);
  EXPECT_TRUE(planned.plan.cuts.empty()) << "nothing was tried";
}

TEST_P(Joins, SiblingsThatReadOneTensorShareItsPass) {
  const Planned planned = plan(R"(
    %x = input : f32[4096,1024]
    %total = sum(%x){axes=[1]}
    %largest = amax(%x){axes=[1]}
    %y = exp(%x)
    outputs (%total, %largest, %y)
  )");
  ASSERT_EQ(planned.plan.kernels.size(), 1u) << to_string(planned.plan, planned.graph);
  EXPECT_EQ(planned.plan.stages[0].stores.size(), 3u);
}

TEST_P(Joins, IndependentValuesOfOneShapeShareALaunch) {
  const Planned planned = plan(R"(
    %a = input : f32[64,64]
    %b = input : f32[64,64]
    %c = exp(%a)
    %d = neg(%b)
    outputs (%c, %d)
  )");
  EXPECT_EQ(planned.plan.kernels.size(), 1u) << to_string(planned.plan, planned.graph);
}

TEST_P(Joins, NothingCrossesALibraryCall) {
  const Planned planned = plan(R"(
    %x = input : f32[64,64]
    %a = exp(%x)
    %m = library(%a){name="aten.mm.default"} : f32[64,64]
    %y = add(%a, %m)
    outputs (%y)
  )");
  const StitchPlan& joined = planned.plan;
  ASSERT_EQ(joined.kernels.size(), 2u);
  ASSERT_EQ(joined.steps.size(), 3u);
  EXPECT_FALSE(joined.steps[0].call.valid());
  EXPECT_TRUE(joined.steps[1].call.valid());
  EXPECT_FALSE(joined.steps[2].call.valid());
  const Cut* cut = cut_by_rule(joined.cuts, kRuleCycle);
  ASSERT_NE(cut, nullptr) << to_string(joined, planned.graph);
  EXPECT_EQ(info(planned.graph[cut->from]).name, std::string("exp"));
  EXPECT_EQ(cut->to, planned.graph.outputs[0].node);
  EXPECT_NE(cut->reason.why.find("library call"), std::string::npos);
}

TEST_P(Joins, ADiagonalGoesThroughMemory) {
  const Graph graph = read_graph(R"(
    %x = input : f32[256,4096]
    %m = sum(%x){axes=[1]}
    %y = sub(reshape(%m){shape=[256,1]}, reshape(%m){shape=[1,256]})
    outputs (%y)
  )");
  const JoinedStages joined = join_graph(graph, GetParam());
  EXPECT_EQ(joined.stages.size(), 2u);
  EXPECT_NE(cut_by_rule(joined.cuts, kRuleDiagonal), nullptr);
}

TEST_P(Joins, AViewThatIsReturnedAliasesTheStore) {
  const Planned planned = plan(R"(
    %x = input : f32[64,32]
    %a = exp(%x)
    %y = permute(%a){order=[1,0]}
    outputs (%y)
  )");
  ASSERT_EQ(planned.plan.aliases.size(), 1u);
  EXPECT_EQ(planned.plan.stages[0].stores, std::vector<NodeId>{planned.plan.aliases[0].base});
}

INSTANTIATE_TEST_SUITE_P(Targets, Joins, testing::Values("cpu", "h200"),
                         [](const auto& instance) { return std::string(instance.param); });

// Second halves of split column sums: joined with the first, 8 blocks would do all the work.
TEST(JoinStages, KernelsThatWouldLoseAllParallelismStayApart) {
  const Graph graph = read_graph(R"(
    %x = input : f32[8,2048,768]
    %parts = sum(%x){axes=[1]}
    %y = sum(%parts){axes=[0]}
    outputs (%y)
  )");
  const JoinedStages joined = join_graph(graph, "h200");
  EXPECT_EQ(joined.stages.size(), 2u);
  const Cut* cut = cut_by_rule(joined.cuts, kRuleSlower);
  ASSERT_NE(cut, nullptr);
  EXPECT_EQ(cut->to, graph.outputs[0].node);
}

// Says yes to everything, except kernels that hold both of two ops.
JoinedStages join_unless(const Graph& graph, OpKind one, OpKind other) {
  Planning planning(graph, target_of("cpu"));
  planning.prices.score = [&](const Graph&, const Stage& stage, const Target&) -> StageScore {
    auto holds = [&](OpKind op) {
      return std::any_of(stage.roots.begin(), stage.roots.end(),
                         [&](NodeId root) { return graph[root].op == op; });
    };
    if (holds(one) && holds(other)) return {Verdict::no(99, "the test says so"), 0};
    return {Verdict::yes(), 1};
  };
  return join_stages(planning.request(),
                     find_roots(graph, planning.demands, false, planning.target.device),
                     JoinRule::kFaster);
}

TEST(JoinStages, AJoinAroundAThirdKernelIsACycle) {
  const Graph graph = read_graph(R"(
    %x = input : f32[8,6]
    %first = amax(%x){axes=[1], keepdim}
    %second = sum(sub(%x, %first)){axes=[1], keepdim}
    %y = div(%first, %second)
    outputs (%y)
  )");
  // amax and sum must not join, so amax and div must not either: sum runs between them.
  const JoinedStages joined = join_unless(graph, OpKind::k_amax, OpKind::k_sum);
  ASSERT_EQ(joined.stages.size(), 2u);
  EXPECT_EQ(joined.stages[0].roots, std::vector<NodeId>{NodeId(1)});
  EXPECT_EQ(joined.stages[1].roots.size(), 2u);
  std::set<int> rules;
  for (const Cut& cut : joined.cuts) rules.insert(cut.reason.rule);
  EXPECT_TRUE(rules.count(99));
}

// Twelve calls, each of a value of its own that is made of one that all read.
std::string calls_text(int64_t rows) {
  std::string text = "%x = input : f32[" + std::to_string(rows) + ",64]\n%w = input : f32[64,4]\n";
  std::string outputs;
  for (int i = 0; i < 12; ++i) {
    const std::string n = std::to_string(i);
    text += "%a" + n + " = mul(%x, " + n + ".5)\n%m" + n + " = library(%a" + n +
            ", %w){name=\"aten.mm.default\"} : f32[" + std::to_string(rows) + ",4]\n";
    outputs += (i ? ", %m" : "%m") + n;
  }
  return text + "outputs (" + outputs + ")\n";
}

TEST(JoinStages, LargeValuesOfManyCallsAreMadeAFewAtATime) {
  const auto most_stores = [](int64_t rows) {
    size_t most = 0;
    for (const Stage& stage : join_graph(read_graph(calls_text(rows)), "cpu").stages)
      most = std::max(most, stage.stores.size());
    return most;
  };
  EXPECT_EQ(most_stores(8), 12u);
  EXPECT_LE(most_stores(4096), 4u);
}

// Two values of nothing in common, each of them of its own call.
TEST(JoinStages, LargeValuesOfTwoCallsAreMadeTogetherOnlyWhereThatSavesTime) {
  const auto stages_of = [](const std::string& rows) {
    const std::string type = "f32[" + rows + ",512]";
    const Graph graph = parse_graph(
        "%x = input : " + type + "\n%y = input : " + type + "\n%a = erf(%x)\n%b = erf(%y)\n" +
        "%m = library(%a){name=\"aten.mm.default\"} : f32[8,8]\n" +
        "%n = library(%b){name=\"aten.mm.default\"} : f32[8,8]\noutputs (%m, %n)");
    return join_graph(graph, "cpu").stages.size();
  };
  EXPECT_EQ(stages_of("5"), 1u) << "a launch is most of the time";
  EXPECT_EQ(stages_of("512"), 2u) << "the one would wait for the other's call";
}

TEST(JoinStages, ValuesReadByAnotherKernelAreStored) {
  const Graph graph = read_graph(R"(
    %x = input : f32[8,6]
    %a = amax(%x){axes=[1], keepdim}
    %b = sum(sub(%x, %a)){axes=[1]}
    outputs (%b)
  )");
  const JoinedStages apart = join_unless(graph, OpKind::k_amax, OpKind::k_sum);
  ASSERT_EQ(apart.stages.size(), 2u);
  EXPECT_EQ(apart.stages[0].stores, apart.stages[0].roots);
  EXPECT_EQ(apart.stages[1].loads.back(), apart.stages[0].roots[0]);
  const JoinedStages joined = join_unless(graph, OpKind::k_prod, OpKind::k_sum);
  ASSERT_EQ(joined.stages.size(), 1u);
  EXPECT_EQ(joined.stages[0].stores, std::vector<NodeId>{graph.outputs[0].node});
}

// A cut is shown to people as an edge of their graph.
TEST(JoinStages, EveryCutNamesAValueThatTheOtherSideReads) {
  const Graph graph = read_graph(R"(
    %x = input : f32[256,16,4096]
    %parts = sum(%x){axes=[1]}
    %columns = sum(%parts){axes=[0]}
    %rows = amax(%x){axes=[1,2]}
    %largest = amax(%rows)
    outputs (%columns, %largest)
  )");
  const JoinedStages joined = join_graph(graph, "h200");
  ASSERT_FALSE(joined.cuts.empty());
  for (const Cut& cut : joined.cuts) {
    const std::vector<NodeId>& inputs = graph[cut.to].inputs;
    EXPECT_TRUE(std::count(inputs.begin(), inputs.end(), cut.from))
        << "%" << cut.from << " -> %" << cut.to << " is no edge";
  }
}

}  // namespace
}  // namespace stitch
