// Chains: which stages become one, with which mapping, and what passes between them where.
#include "plan/kernels/chain_stages.h"

#include "plan/plan_graph.h"
#include "stage/block_ranges.h"
#include "stage/map_axes.h"

namespace stitch {
namespace {

Planned plan_chains(const std::string& text, const std::string& target = "h200") {
  return plan_graph(text, target);
}

std::string softmax_permuted(int batch, int rows, int columns) {
  const std::string shape =
      std::to_string(batch) + "," + std::to_string(rows) + "," + std::to_string(columns);
  return "%x = input : f32[" + shape + R"(]
    %m = amax(%x){axes=[2], keepdim}
    %e = exp(sub(%x, %m))
    %y = div(%e, sum(%e){axes=[2], keepdim})
    %t = permute(%y){order=[0,2,1]}
    %o = layout(%t) : f32[)" +
         std::to_string(batch) + "," + std::to_string(columns) + "," + std::to_string(rows) + R"(]
    outputs (%o)
  )";
}

// The blocks of several stages that a kernel has.
std::vector<PlannedBlocks> chains_of(const PlannedKernel& kernel) {
  std::vector<PlannedBlocks> chains;
  std::ranges::copy_if(kernel.blocks(), std::back_inserter(chains), &PlannedBlocks::is_chain);
  return chains;
}

TEST(ChainStages, APermutedStoreIsASecondStage) {
  const Planned p = plan_chains(softmax_permuted(64, 1024, 256));
  ASSERT_EQ(p.plan.kernels.size(), 1u);
  const PlannedKernel& kernel = p.plan.kernels[0];
  ASSERT_EQ(kernel.phases.size(), 1u);
  ASSERT_EQ(chains_of(kernel).size(), 1u) << to_string(p.plan, p.graph);
  const PlannedBlocks chain = chains_of(kernel)[0];
  EXPECT_EQ(chain.in_shared.size(), 1u);
  ASSERT_EQ(chain.stages.size(), 2u);
  const StageSchedule& first = p.plan.schedules[chain.stages[0]];
  const StageSchedule& then = p.plan.schedules[chain.stages[1]];
  EXPECT_EQ(first.threads, then.threads);
  EXPECT_EQ(first.grid, then.grid);
  EXPECT_GE(first.shared_bytes, then.shared_bytes);
  ASSERT_EQ(then.buffers.size(), 1u);
  EXPECT_EQ(then.buffers[0].length, 256);
  EXPECT_NE(to_string(p.plan, p.graph).find("block barrier, %"), std::string::npos);
  EXPECT_NE(to_string(then, p.graph).find("in shared memory"), std::string::npos);
}

TEST(ChainStages, WhatBlocksDoNotDivideStaysOneStage) {
  EXPECT_FALSE(plan_chains(softmax_permuted(64, 1021, 256)).plan.kernels[0].has_chains());
}

TEST(ChainStages, TheHostHasNone) {
  EXPECT_FALSE(plan_chains(softmax_permuted(64, 1024, 256), "cpu").plan.kernels[0].has_chains());
}

// The permuted softmax in two stages, chained whatever it costs.
struct Chained {
  Graph graph;
  std::vector<Stage> stages;
  PlannedKernel kernel;

  std::vector<StageSchedule> schedule(const char* target = "h200") {
    Schedules schedules;
    for (auto& [s, own] : KernelScheduler{graph, stages, target_of(target)}.schedule(kernel)) {
      schedules.push_back(own);
      name_blocks(graph.symbols, schedules.back());
    }
    return schedules;
  }
};

Chained chain_by_hand(const std::string& text) {
  Chained chained{read_graph(text), {}, {}};
  Stage first, then;
  NodeId handed;
  for (int n = 0; n < chained.graph.size(); ++n) {
    const Node& node = chained.graph.nodes[n];
    const bool moves = node.op == OpKind::k_permute || node.op == OpKind::k_layout;
    if (family(node) == Family::kInput) {
      first.loads.push_back(NodeId(n));
      continue;
    }
    (moves ? then : first).nodes.push_back(NodeId(n));
    if (node.op == OpKind::k_div) handed = NodeId(n);
    if (family(node) == Family::kReduce || NodeId(n) == handed) first.roots.push_back(NodeId(n));
  }
  first.stores = then.loads = {handed};
  then.roots = then.stores = {then.nodes.back()};
  chained.stages = {first, then};
  chained.kernel.phases = {{.blocks = {PlannedBlocks{{0, 1}, {handed}}}}};
  return chained;
}

TEST(ChainStages, BlocksOfOneRangeAreNotThoseOfAnother) {
  Chained chained = chain_by_hand(softmax_permuted(64, 1024, 256));
  const NodeId value = chained.stages[0].stores[0];
  const std::vector<StageSchedule> schedules = chained.schedule();
  ASSERT_EQ(schedules.size(), 2u);
  const std::optional<int64_t> range = find_block_range(schedules[0], value);
  ASSERT_TRUE(range);
  EXPECT_EQ(*range, schedules[0].axes[0].tile().value() * 256);
  EXPECT_TRUE(stays_in_range(schedules[1], value, *range));
  // Mapped for itself, the copy has blocks of both axes.
  const StageSchedule alone =
      schedule_stage(chained.graph, chained.stages[1], device_spec("h200"), chained.graph.symbols);
  EXPECT_FALSE(stays_in_range(alone, value, *range));
}

TEST(ChainStages, RowsAreAsFarApartAsBanksNeed) {
  Chained chained = chain_by_hand(softmax_permuted(64, 1024, 256));
  const StageSchedule first = chained.schedule()[0];
  for (const Access& access : first.accesses.list) {
    if (!access.is_store) continue;
    const auto padded = pad_rows(first, access.offset, 256, 260);
    ASSERT_TRUE(padded);
    for (const auto& [var, step] : padded->terms) {
      EXPECT_TRUE(step.is(1) || step.value() % 260 == 0) << to_string(step);
    }
    EXPECT_FALSE(pad_rows(first, access.offset, 100, 104)) << "rows that indices cross";
  }
}

TEST(ChainStages, WhatDoesNotFitPassesThroughGlobalMemory) {
  Chained chained = chain_by_hand(softmax_permuted(2, 256, 60000));
  EXPECT_TRUE(chained.schedule().empty()) << "240 KB of each row";
  chained.kernel.phases[0].blocks[0].in_shared.clear();
  const std::vector<StageSchedule> schedules = chained.schedule();
  ASSERT_EQ(schedules.size(), 2u);
  EXPECT_TRUE(schedules[0].buffers.empty());
  EXPECT_EQ(schedules[0].grid, schedules[1].grid);
}

constexpr const char* kPairs = R"(
  %x = input : f32[4096,16,64]
  %s = sum(exp(%x)){axes=[2]}
  %r = log(%s)
  %a = reshape(%r) : f32[4096,16,1]
  %b = reshape(%r) : f32[4096,1,16]
  %d = sub(%a, %b)
    outputs (%d)
)";

TEST(ChainStages, OneBarrierOfTheBlockInsteadOfTheGrids) {
  const Planned p = plan_chains(kPairs);
  ASSERT_EQ(p.plan.kernels.size(), 1u);
  EXPECT_EQ(p.plan.kernels[0].phases.size(), 1u) << to_string(p.plan, p.graph);
  ASSERT_EQ(chains_of(p.plan.kernels[0]).size(), 1u);
  const PlannedBlocks chain = chains_of(p.plan.kernels[0])[0];
  EXPECT_EQ(find_block_range(p.plan.schedules[chain.stages[0]], chain.in_shared[0]),
            p.plan.schedules[chain.stages[1]].buffers[0].elements);
}

TEST(ChainStages, BlocksThatRunTwoStagesMayRunAThird) {
  const Planned p = plan_chains(R"(
    %x = input : f32[256,16,64]
    %r = log(sum(exp(%x)){axes=[2]})
    %d = sub(reshape(%r){shape=[256,16,1]}, reshape(%r){shape=[256,1,16]})
    %t = sum(tanh(%d)){axes=[2]}
    %o = mul(reshape(%t){shape=[256,16,1]}, reshape(%t){shape=[256,1,16]})
    outputs (%o)
  )");
  ASSERT_EQ(p.plan.kernels.size(), 1u);
  const std::vector<PlannedBlocks> chains = chains_of(p.plan.kernels[0]);
  ASSERT_EQ(chains.size(), 1u) << to_string(p.plan, p.graph);
  EXPECT_EQ(chains[0].stages.size(), 3u) << to_string(p.plan, p.graph);
  EXPECT_EQ(chains[0].in_shared.size(), 2u);
  EXPECT_EQ(p.plan.kernels[0].phases.size(), 1u);
  for (int s : chains[0].stages) {
    const StageSchedule& own = p.plan.schedules[s];
    ASSERT_EQ(own.buffers.size(), 2u) << "one place in shared memory, the same for all";
    EXPECT_GE(own.buffers[1].shared_offset, own.buffers[0].size() * 4);
    EXPECT_EQ(own.grid, p.plan.schedules[chains[0].stages[0]].grid);
  }
}

// AStitch's Fig 7, rows of 64 and of 3,000: two mappings, and no barrier of the grid.
constexpr const char* kUnlikeRows = R"(
  %p1 = input : f32[2112,64]
  %p2 = input : f32[2112,1]
  %p3 = input : f32[2112,3000]
  %w = pow(sum(add(%p2, %p1)){axes=[1], keepdim}, 3)
  %r = sum(div(%p3, %w)){axes=[1], keepdim}
  %y = mul(%r, %w)
  outputs (%y)
)";

TEST(ChainStages, KernelsOfAPolicyWithoutBarriersBecomeOne) {
  const Planned p = plan_graph(kUnlikeRows, "h200", "fusionstitching2020");
  ASSERT_EQ(p.plan.kernels.size(), 1u) << to_string(p.plan, p.graph);
  EXPECT_EQ(p.plan.steps.size(), 1u);
  EXPECT_TRUE(p.plan.cuts.empty());
  EXPECT_EQ(p.plan.kernels[0].phases.size(), 1u);
  EXPECT_EQ(chains_of(p.plan.kernels[0]).size(), 1u);
}

TEST(ChainStages, ShortRowsHaveTheBlocksOfTheLongOnesThatReadThem) {
  const Planned p = plan_graph(kUnlikeRows, "h200", "fusionstitching2020");
  for (const StageSchedule& schedule : p.plan.schedules)
    EXPECT_EQ(count_static_blocks(schedule), 2112) << to_string(schedule, p.graph);
  const Planned alone =
      plan_graph("%x = input : f32[2112,64]\n%y = sum(%x){axes=[1]}\noutputs (%y)", "h200",
                 "fusionstitching2020");
  EXPECT_LT(count_static_blocks(alone.only()), 2112);
}

TEST(ChainStages, ALaunchThatNoChainReplacesStays) {
  std::string text = kUnlikeRows;
  text.replace(text.find("mul(%r, %w)"), 11, "mul(sum(%r), %w)");
  const Planned p = plan_graph(text, "h200", "fusionstitching2020");
  EXPECT_EQ(p.plan.kernels.size(), 2u) << to_string(p.plan, p.graph);
  EXPECT_EQ(p.plan.cuts.size(), 1u);
  for (const PlannedKernel& kernel : p.plan.kernels) EXPECT_EQ(kernel.phases.size(), 1u);
}

TEST(ChainStages, RowsThatNeedOtherBlocksKeepTheGridBarrier) {
  const Planned p = plan_chains(R"(
    %x = input : f32[64,1024,64]
    %s = sum(exp(%x)){axes=[2]}
    %a = reshape(%s) : f32[64,1024,1]
    %b = reshape(%s) : f32[64,1,1024]
    %d = sub(%a, %b)
    outputs (%d)
  )");
  for (const PlannedKernel& kernel : p.plan.kernels) EXPECT_FALSE(kernel.has_chains());
}

}  // namespace
}  // namespace stitch
