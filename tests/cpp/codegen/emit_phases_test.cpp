// Properties of the texts of kernels with several stages; tests/golden/text shows whole ones.
#include "codegen/emit_phases.h"

#include <regex>
#include <set>

#include "plan/plan_graph.h"
#include "support/golden_graphs.h"

namespace stitch {
namespace {

Planned plan_stitched(const std::string& text) { return plan_graph(text, "h200"); }

// Parameters and body of the kernel itself, without the functions of its stages.
std::string frame_of(const KernelSource& source) {
  return source.text.substr(source.text.find("STITCH_KERNEL("));
}

// "const f32* __restrict__ p0", as the kernel declares the pointer of this value.
std::string parameter_of(const KernelSource& source, NodeId value) {
  for (size_t p = 0; p < source.pointers.size(); ++p) {
    if (source.pointers[p].value != value) continue;
    const std::string frame = frame_of(source);
    const std::regex declared(R"([(,] ?([^(,]* p)" + std::to_string(p) + "),");
    std::smatch match;
    EXPECT_TRUE(std::regex_search(frame, match, declared)) << frame;
    return match[1];
  }
  ADD_FAILURE() << "%" << value << " is no argument";
  return "";
}

constexpr const char* kScaled = R"(
  %x = input : f32[4096,4096]
  %parts = amax(reshape(%x){shape=[256,65536]}){axes=[1]}
  %y = div(%x, amax(%parts))
)";

TEST(EmitPhases, ACompilerMayNotMoveLoadsOfWhatAPhaseStoresAcrossTheBarrier) {
  const Planned planned = plan_stitched(std::string(kScaled) + "outputs (%y)\n");
  const Graph& graph = planned.graph;
  const KernelSource source = emit_planned(planned, 0);
  ASSERT_EQ(source.phases.size(), 2u);
  const NodeId parts = planned.plan.stages[0].stores.at(0);
  EXPECT_EQ(parameter_of(source, parts), "f32* p1");
  EXPECT_EQ(parameter_of(source, graph.inputs[0]), "const f32* __restrict__ p0");
  EXPECT_EQ(parameter_of(source, graph.outputs[0].node), "f32* __restrict__ p2");
  const std::string loads = source.text.substr(source.text.find("void stage_1("));
  EXPECT_TRUE(std::regex_search(loads, std::regex(R"(, const f32\* p\d, )"))) << loads;
  EXPECT_FALSE(holds(loads.substr(0, loads.find("\n")), "f32* __restrict__ p1, i32")) << loads;
}

TEST(EmitPhases, MemoryStoredOverAnInputIsNotRestricted) {
  const Planned planned = plan_stitched(std::string(kScaled) + "mutate %x <- %y\noutputs (none)\n");
  ASSERT_EQ(planned.plan.in_place, std::vector<bool>{true}) << "phase 0 reads it before";
  const Mutation& mutation = planned.graph.mutations[0];
  const KernelSource source = emit_planned(planned, 0, {false, {{mutation.value, mutation.input}}});
  EXPECT_FALSE(holds(source.text, "__restrict__")) << source.text;
}

TEST(EmitPhases, EachTensorIsOneArgument) {
  for (const GoldenGraph& golden : golden_graphs()) {
    if (holds(golden.text, "sum_sq_dev")) continue;  // a rewrite expands it before kernels
    const Planned planned = plan_stitched(golden.text);
    for (size_t k = 0; k < planned.plan.kernels.size(); ++k) {
      std::set<NodeId> values;
      const KernelSource source = emit_planned(planned, k);
      for (const KernelArgument& pointer : source.pointers) {
        EXPECT_TRUE(values.insert(pointer.value).second) << golden.name << "\n" << source.text;
      }
      for (int s : planned.plan.kernels[k].stages()) {
        for (NodeId store : planned.plan.stages[s].stores) EXPECT_TRUE(values.count(store));
      }
    }
  }
}

// A row of 16 numbers, a long one, a column sum and a scalar.
constexpr const char* kMixed = R"(
  %a = input : f32[100000,16]
  %b = input : f32[7,8192]
  %c = input : f32[3000,70]
  %d = input : f32[5]
  %p = sum(%a){axes=[1]}
  %q = div(%b, sum(%b){axes=[1], keepdim})
  %r = amax(%c){axes=[0]}
  %s = mul(%d, 2.0)
  outputs (%p, %q, %r, %s)
)";

TEST(EmitPhases, AllStagesOfAKernelHaveItsBlockSize) {
  const Planned planned = plan_stitched(kMixed);
  ASSERT_EQ(planned.plan.kernels.size(), 1u) << to_string(planned.plan, planned.graph);
  const KernelSource source = emit_planned(planned, 0);
  std::set<int> alone;
  for (size_t s = 0; s < planned.plan.stages.size(); ++s) {
    EXPECT_EQ(planned.plan.schedules[s].threads, source.threads);
    SymbolTable symbols = planned.graph.symbols;
    const Stage& stage = planned.plan.stages[s];
    alone.insert(schedule_stage(planned.graph, stage, device_spec("h200"), symbols).threads);
  }
  EXPECT_GT(alone.size(), 1u) << "each by itself would have blocks of another size";
  EXPECT_EQ(*alone.rbegin(), source.threads);
}

TEST(EmitPhases, StagesOfAPhaseShareOutItsBlocks) {
  const Planned planned = plan_stitched(kMixed);
  const KernelSource source = emit_planned(planned, 0);
  const SymbolTable& symbols = planned.graph.symbols;
  int64_t blocks = 0;
  const std::vector<PlannedBlocks>& all = planned.plan.kernels[0].phases.at(0).blocks;
  for (const PlannedBlocks& own : all) {
    const int s = own.stages.at(0);
    blocks += symbols.hint(planned.plan.schedules[s].grid);
    const std::string end = std::to_string(blocks);
    const bool is_last = &own == &all.back();
    EXPECT_NE(holds(frame_of(source), "block < " + end), is_last) << source.text;
  }
  ASSERT_EQ(source.phases.size(), 1u);
  EXPECT_EQ(symbols.hint(source.phases[0]), blocks);
  EXPECT_TRUE(holds(frame_of(source), "const i32 block = i32(block_index())"))
      << "the grid has a block for each, a loop would cost registers, and so would 64 bits";
}

TEST(EmitPhases, OnePhaseHasNoBarrier) {
  const KernelSource source = emit_planned(plan_stitched(kMixed), 0);
  for (const char* word : {"barrier", "first_phase", "end_phase"}) {
    EXPECT_FALSE(holds(frame_of(source), word)) << source.text;
  }
}

TEST(EmitPhases, ABarrierStandsBeforeEachPhaseButTheFirst) {
  const Planned planned = plan_stitched(std::string(kScaled) + "outputs (%y)\n");
  const std::string frame = frame_of(emit_planned(planned, 0));
  EXPECT_TRUE(holds(frame, "i32 first_phase, i32 end_phase, u32* barrier, i32* error)")) << frame;
  const std::string meet = "if (first_phase < 1 && 1 < end_phase) grid_barrier(barrier);";
  ASSERT_TRUE(holds(frame, meet)) << frame;
  EXPECT_LT(frame.find("stage_0("), frame.find(meet));
  EXPECT_LT(frame.find(meet), frame.find("stage_1("));
  EXPECT_EQ(frame.find("grid_barrier"), frame.rfind("grid_barrier"));
}

TEST(EmitPhases, TheLastBlockGoesOnAlone) {
  const Planned planned = plan_stitched(R"(
    %x = input : f32[4096,1000]
    %total = sum(log(sum(exp(%x)){axes=[1]})){axes=[0]}
    outputs (%total)
  )");
  const KernelSource source = emit_planned(planned, 0);
  EXPECT_TRUE(source.finishes);
  EXPECT_EQ(source.phases.size(), 1u);
  const std::string frame = frame_of(source);
  const std::string last = "if (!is_last_block(barrier)) return;";
  ASSERT_TRUE(holds(frame, last)) << frame;
  EXPECT_LT(frame.find("stage_0("), frame.find(last));
  EXPECT_LT(frame.find(last), frame.find("stage_1("));
  EXPECT_FALSE(holds(frame, "grid_barrier") || holds(frame, "first_phase"));
  EXPECT_TRUE(holds(frame, "block = 0; block < 1; ++block"));
}

TEST(EmitPhases, KeptValuesAreArraysOfTheFrame) {
  const Planned planned = plan_stitched(R"(
    %x = input : bf16[256,32768]
    %y = div(%x, amax(amax(%x){axes=[1]}))
    outputs (%y)
  )");
  const KernelSource source = emit_planned(planned, 0);
  const std::string frame = frame_of(source);
  EXPECT_TRUE(holds(frame, ", 512, 2)(")) << "two blocks on each multiprocessor: " << frame;
  EXPECT_TRUE(holds(frame, "const bool is_resident = grid_blocks() >= 256;")) << frame;
  EXPECT_TRUE(holds(frame, "registers_t<Vec<bf16, 8>> k0[8];")) << frame;
  EXPECT_TRUE(holds(frame, "k0, is_resident && first_phase <= 0, ")) << frame;
  const std::string filled = source.text.substr(0, source.text.find("void stage_1("));
  EXPECT_TRUE(holds(filled, "registers_t<Vec<bf16, 8>> (&k0)[8], ")) << filled;
  EXPECT_FALSE(holds(filled, "has_k0")) << filled;
  EXPECT_TRUE(holds(source.text, "if (!has_k0) k0[")) << source.text;
}

TEST(EmitPhases, AGroupHasTheSameBlocksInEachPhase) {
  Planned planned = plan_stitched(R"(
    %x = input : f32[128,8192]
    %z = input : f32[120,8192]
    %y = div(%x, amax(amax(%x){axes=[1]}))
    %w = div(%z, sum(sum(%z){axes=[1]}))
    outputs (%y, %w)
  )");
  ASSERT_EQ(planned.plan.kernels.size(), 1u) << to_string(planned.plan, planned.graph);
  ASSERT_EQ(planned.plan.kernels[0].kept.size(), 2u) << to_string(planned.plan, planned.graph);
  const std::string frame = frame_of(emit_planned(planned, 0));
  EXPECT_TRUE(holds(frame, "is_resident = grid_blocks() >= 248;")) << frame;
  const std::regex first(R"(if \(block < 128\) stage_\d\(block, [^\n]*k0, )");
  const std::regex second(R"(else stage_\d\(block - 128, [^\n]*k1, )");
  for (const std::regex& call : {first, second}) {
    const std::ptrdiff_t calls = std::distance(
        std::sregex_iterator(frame.begin(), frame.end(), call), std::sregex_iterator());
    EXPECT_EQ(calls, 2) << frame;
  }
}

TEST(EmitPhases, SharedMemoryIsDeclaredOnceForTheLargest) {
  const Planned planned = plan_stitched(kMixed);
  const KernelSource source = emit_planned(planned, 0);
  int largest = 0;
  for (const StageSchedule& schedule : planned.plan.schedules) {
    largest = std::max(largest, schedule.shared_bytes);
  }
  ASSERT_GT(largest, 0);
  const std::string declared = "STITCH_SHARED(u8, shared, " + std::to_string(largest) + ");";
  ASSERT_TRUE(holds(source.text, declared)) << source.text;
  EXPECT_EQ(source.text.find("STITCH_SHARED"), source.text.rfind("STITCH_SHARED"));
}

TEST(EmitPhases, SizesOfTheCallAreArguments) {
  const Planned planned = plan_stitched(R"(
    symbols s0 = input(0) hint 100000, s1 = input(1) hint 77
    %a = input : f32[s0,300]
    %b = input : f32[s1,70]
    %c = sum(%a){axes=[1]}
    %d = exp(%b)
    %e = div(%c, amax(%c))
    outputs (%d, %e)
  )");
  ASSERT_EQ(planned.plan.kernels.size(), 1u) << to_string(planned.plan, planned.graph);
  const KernelSource source = emit_planned(planned, 0);
  ASSERT_EQ(source.phases.size(), 3u);
  EXPECT_FALSE(source.phases[0].is_constant());
  std::set<std::string> declared, used;
  const std::string frame = frame_of(source);
  const std::string head = frame.substr(0, frame.find("{")), body = frame.substr(frame.find("{"));
  const std::regex number(R"(\bn(\d+)\b)");
  for (std::sregex_iterator at(head.begin(), head.end(), number), end; at != end; ++at) {
    EXPECT_TRUE(declared.insert((*at)[0]).second) << head;
  }
  for (std::sregex_iterator at(body.begin(), body.end(), number), end; at != end; ++at) {
    used.insert((*at)[0]);
  }
  EXPECT_EQ(declared.size(), source.sizes.size());
  EXPECT_EQ(declared, used) << frame;
  const auto bound = std::find(source.sizes.begin(), source.sizes.end(), source.phases[0]);
  ASSERT_NE(bound, source.sizes.end()) << "where the first phase ends";
  const std::string end = "n" + std::to_string(bound - source.sizes.begin());
  EXPECT_TRUE(holds(body, "forward<i64>(" + end + ")")) << "there may be any number of blocks";
}

TEST(EmitPhases, ALaterPhaseBeginsWithWhatTheOneBeforeReadLast) {
  const KernelSource rows = emit_planned(plan_graph(R"(
    %x = input : f32[8192,4096]
    %y = div(%x, amax(amax(%x){axes=[1]}))
    outputs (%y)
  )",
                                                    "h200"),
                                         0);
  const std::string before = "forward<i32>(" + to_string(rows.phases[0]) + ")";
  const std::string later = "backward<i32>(" + to_string(rows.phases.back()) + ", i64(" +
                            to_string(rows.phases[rows.phases.size() - 2]) + ") <= grid_blocks())";
  EXPECT_TRUE(holds(frame_of(rows), before)) << rows.text;
  EXPECT_TRUE(holds(frame_of(rows), later)) << rows.text;
  EXPECT_EQ(rows.in_turns.size(), rows.phases.size()) << "one launch, of resident blocks";
}

// %y0 = mul(%a0, %b0) and so on, each with tensors of its own.
std::string products(int count, const std::string& end) {
  std::string text = "%z = input : f32[50]\n%t = exp(%z)\n", outputs;
  for (int i = 0; i < count; ++i) {
    const std::string n = std::to_string(i);
    text += "%a" + n + " = input : f32[64,64]\n%b" + n + " = input : f32[64,64]\n";
    text += "%y" + n + " = mul(%a" + n + ", %b" + n + ")\n";
    outputs += "%y" + n + ", ";
  }
  return text + end + "outputs (" + outputs + "%t)\n";
}

int count_functions(const KernelSource& source) {
  const std::regex function("void stage_");
  return static_cast<int>(
      std::distance(std::sregex_iterator(source.text.begin(), source.text.end(), function), {}));
}

TEST(EmitPhases, EqualStagesAreOneFunctionThatATableGivesItsTensors) {
  const Planned planned = plan_stitched(products(kFewestRecords, ""));
  ASSERT_EQ(planned.plan.kernels.size(), 1u) << to_string(planned.plan, planned.graph);
  const KernelSource source = emit_planned(planned, 0);
  EXPECT_EQ(count_functions(source), 2) << source.text;
  ASSERT_EQ(source.tensors.size(), 3u * kFewestRecords);
  EXPECT_EQ(std::set(source.tensors.begin(), source.tensors.end()).size(), source.tensors.size());
  for (size_t i = 0; i < source.pointers.size(); ++i) {
    const bool is_listed = std::ranges::count(source.tensors, i) == 1;
    EXPECT_EQ(source.pointers[i].is_tabled, is_listed);
    EXPECT_NE(holds(frame_of(source), concat(" p", i, ",")), is_listed) << "is a parameter";
  }
  for (int column = 0; column < 3; ++column) {  // one place of each product
    const KernelArgument& first = source.pointers[source.tensors[column * kFewestRecords]];
    for (int record = 0; record < kFewestRecords; ++record)
      EXPECT_EQ(source.pointers[source.tensors[column * kFewestRecords + record]].is_store,
                first.is_store);
  }
}

TEST(EmitPhases, FewEqualStagesNameTheirTensors) {
  const Planned planned = plan_stitched(products(kFewestRecords - 1, ""));
  const KernelSource source = emit_planned(planned, 0);
  EXPECT_EQ(count_functions(source), kFewestRecords);
  EXPECT_TRUE(source.tensors.empty());
  EXPECT_EQ(std::ranges::count(source.pointers, true, &KernelArgument::is_tabled), 0);
}

TEST(EmitPhases, WhatIsStoredOverAnInputIsInTheTableOnce) {
  std::string changes;
  LoweringOptions options;
  for (int i = 0; i < kFewestRecords; ++i) changes += concat("mutate %a", i, " <- %y", i, "\n");
  const Planned planned = plan_stitched(products(kFewestRecords, changes));
  for (const Mutation& mutation : planned.graph.mutations)
    options.stored_over.emplace(mutation.value, mutation.input);
  const KernelSource source = emit_planned(planned, 0, options);
  EXPECT_EQ(source.tensors.size(), 2u * kFewestRecords) << source.text;
}

TEST(EmitPhases, WhatOneStageReportsTheKernelReports) {
  auto may_fail = [](const std::string& read) {
    const Planned planned = plan_stitched(
        "%x = input : f32[64,64]\n%i = input : i64[10]\n%w = input : f32[5,9]\n%y = exp(%x)\n%z "
        "= " +
        read + "\noutputs (%y, %z)\n");
    EXPECT_EQ(planned.plan.stages.size(), 2u);
    return emit_planned(planned, 0).may_fail;
  };
  EXPECT_TRUE(may_fail("index(%w, %i){axes=[0]}"));
  EXPECT_FALSE(may_fail("neg(%w)"));
}

}  // namespace
}  // namespace stitch
