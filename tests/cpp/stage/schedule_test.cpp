// Loop trees, values kept on chip, and the limits of arrays.
#include "stage/schedule_stage.h"

#include "plan/plan_graph.h"
#include "stage/build_loops.h"
#include "stage/place_values.h"

namespace stitch {
namespace {

// The loop tree on one line: "0{ amax } 0{ sum } 0{ div }", loops by their axis.
std::string tree(const Planned& planned) {
  const StageSchedule& s = planned.only();
  auto show = [&](auto& self, int block) -> std::string {
    std::string text;
    for (const LoopBlock::Item& item : s.blocks[block].items) {
      if (item.block >= 0) {
        const LoopSpec& spec = s.loops[s.blocks[item.block].loop];
        const char* level = spec.level == Level::kVector  ? "v"
                            : spec.level == Level::kChunk ? "c"
                            : spec.level == Level::kAlong ? "a"
                            : spec.level == Level::kStrip ? "s"
                                                          : "";
        text += level + std::to_string(spec.axis) + "{ " + self(self, item.block) + "} ";
      }
      for (NodeId root : item.roots) text += info(planned.graph[root]).name + std::string(" ");
    }
    return text;
  };
  return show(show, 0);
}

Scheme scheme_of(const Planned& planned, OpKind op) {
  for (const auto& [node, scheme] : planned.only().schemes) {
    if (planned.graph[node].op == op) return scheme;
  }
  ADD_FAILURE() << "no root or kept value is a " << info(op).name;
  return Scheme::kGlobal;
}

using Ops = std::vector<std::string>;

std::string softmax(const std::string& type) {
  return "%x = input : " + type +
         "\n%e = exp(sub(%x, amax(%x){axes=[1], keepdim}))\n"
         "%y = div(%e, sum(%e){axes=[1], keepdim})\noutputs (%y)\n";
}

constexpr const char* kSiblings = R"(
  %x = input : f32[4096,1000]
  %a = sum(%x){axes=[1]}
  %b = amax(%x){axes=[1]}
  outputs (%a, %b)
)";

// Softmax of a sum with scores that are laid out in columns.
std::string biased(const std::string& bias) {
  return "%x = input : f32[96,64]\n%b = input : " + bias +
         "\n%s = add(%x, reshape(%b){shape=[96,64]})\n%e = exp(sub(%s, amax(%s){axes=[1], "
         "keepdim}))\n"
         "%y = div(%e, sum(%e){axes=[1], keepdim})\noutputs (%y)\n";
}

TEST(KeptValues, AreAlsoThoseLoadedWhereNoVectorReaches) {
  EXPECT_EQ(kept(schedule_together(biased("f32[64,96](1,64)"), "cpu")), (Ops{"add", "exp"}));
  EXPECT_EQ(kept(schedule_together(biased("f32[64,96]"), "cpu")), Ops{"exp"})
      << "a cache serves the second read";
}

TEST(LoopTree, APassThatReadsAReductionComesAfterItsLoop) {
  EXPECT_EQ(tree(schedule_together(softmax("f32[64,1021]"), "cpu")),
            "0{ 1{ amax } 1{ sum } 1{ div } } ");
  EXPECT_EQ(tree(schedule_together(softmax("f32[64,1021]"), "h200")),
            "1{ amax } 1{ sum } 1{ div } ");
}

TEST(LoopTree, SiblingsShareOneLoop) {
  EXPECT_EQ(tree(schedule_together(kSiblings, "cpu")), "0{ a1{ s1{ sum amax } } } ");
}

TEST(LoopTree, ARootThatLacksAnAxisIsOutsideItsLoop) {
  EXPECT_EQ(tree(schedule_together(R"(
    %x = input : f32[64,1021]
    %m = amax(%x){axes=[1]}
    %y = neg(%m)
    outputs (%y)
  )",
                                   "cpu")),
            "0{ 1{ amax } neg } ");
}

TEST(LoopTree, ASecondReductionOfAFirstOnesResultsNests) {
  EXPECT_EQ(tree(schedule_together(R"(
    %x = input : f32[64,1021]
    %m = amax(%x){axes=[1]}
    %y = sum(%m){axes=[0]}
    outputs (%y)
  )",
                                   "cpu")),
            "0{ 1{ amax } sum } ");
}

TEST(LoopTree, EveryRootIsInExactlyOneLeaf) {
  const Planned planned = schedule_together(softmax("f32[4096,1024]"), "h200");
  for (const RootSpace& space : planned.only().spaces.roots) {
    int found = 0;
    for (const LoopBlock& block : planned.only().blocks) {
      for (const LoopBlock::Item& item : block.items) {
        found += static_cast<int>(std::count(item.roots.begin(), item.roots.end(), space.root));
      }
    }
    EXPECT_EQ(found, 1);
    EXPECT_EQ(path_to(planned.only(), space.root).front(), 0);
  }
}

TEST(Schemes, FollowWhatAReductionCrosses) {
  EXPECT_EQ(scheme_of(schedule_together(softmax("f32[64,1024]"), "cpu"), OpKind::k_amax),
            Scheme::kLocal);
  const Planned narrow = schedule_together(softmax("f32[65536,64]"), "h200");
  EXPECT_EQ(scheme_of(narrow, OpKind::k_amax), Scheme::kWarp);
  EXPECT_EQ(narrow.only().shared_bytes, 0);
  const Planned wide = schedule_together(softmax("f32[64,4096]"), "h200");
  EXPECT_EQ(scheme_of(wide, OpKind::k_amax), Scheme::kRegional);
  EXPECT_GT(wide.only().shared_bytes, 0);
  EXPECT_EQ(scheme_of(wide, OpKind::k_div), Scheme::kStore);
}

TEST(PlaceValues, CudaKeepsWhatALaterPassReadsInRegisters) {
  EXPECT_EQ(kept(schedule_together(softmax("f32[4096,1024]"), "h200")), (Ops{"input", "exp"}));
}

TEST(PlaceValues, TheHostKeepsOnlyWhatIsCostlyToEvaluate) {
  EXPECT_EQ(kept(schedule_together(softmax("f32[4096,1024]"), "cpu")), Ops{"exp"});
  EXPECT_EQ(kept(schedule_together(R"(
    %x = input : f32[4096,1024]
    %m = sum(%x){axes=[1], keepdim}
    %y = sub(%x, %m)
    outputs (%y)
  )",
                                   "cpu")),
            Ops{})
      << "the cache serves the second read";
}

TEST(PlaceValues, NothingOfUnknownSizeIsKept) {
  for (const char* target : {"cpu", "h200"}) {
    EXPECT_EQ(kept(schedule_together(softmax("f32[4096,s1]"), target)), Ops{}) << target;
  }
}

TEST(PlaceValues, WhatDoesNotFitIsReadAgain) {
  const Planned planned = schedule_together(softmax("f32[512,131072]"), "h200");
  EXPECT_EQ(kept(planned), Ops{}) << "128 values in each of 1024 threads";
  EXPECT_EQ(kept(schedule_together(softmax("f32[64,1000000]"), "cpu")), Ops{});
}

TEST(PlaceValues, ValuesReadAtSeveralIndicesAreNotKept) {
  EXPECT_EQ(kept(schedule_together(R"(
    %x = input : f32[4096,1024]
    %m = amax(%x){axes=[1], keepdim}
    %y = add(sub(%x, %m), flip(%x){axes=[1]})
    outputs (%y)
  )",
                                   "h200")),
            Ops{});
}

TEST(PlannedBytes, CountBuffersOncePerPass) {
  auto bytes = [](const std::string& text, const char* target) {
    const Planned p = schedule_together(text, target);
    return planned_bytes(p.graph, p.plan.stages[0], p.only());
  };
  const int64_t row_bytes = 4096 * 1024 * 4;
  EXPECT_EQ(bytes(softmax("f32[4096,1024]"), "h200"), 2 * row_bytes) << "kept in registers";
  EXPECT_EQ(bytes(softmax("f32[4096,1024]"), "cpu"), 3 * row_bytes) << "read by two passes";
  EXPECT_EQ(bytes(kSiblings, "cpu"), 4096 * 1000 * 4 + 2 * 4096 * 4);
}

TEST(PlannedBytes, AGatherCountsTheRowsItReads) {
  const Planned p = schedule_together(R"(
    %i = input : i64[128]
    %w = input : f32[30000,64]
    %y = index(%w, %i){axes=[0]}
    outputs (%y)
  )",
                                      "h200");
  EXPECT_EQ(planned_bytes(p.graph, p.plan.stages[0], p.only()), 128 * 8 + 2 * 128 * 64 * 4);
}

// One result lacks an axis of the other: without elements along that the loop would not store it.
Verdict lacks_axis(const std::string& extent, const std::string& symbol) {
  const auto text = [&](const std::string& of) {
    return "symbols s0 = input(0) hint 64" + of + "\n%x = input : f32[64]\n%w = input : f32[64," +
           extent + "]\n%a = exp(%x)\n%y = add(%w, reshape(%a){shape=[64,1]})\noutputs (%a, %y)\n";
  };
  const Planned planned = schedule_together(text(""), "h200");
  const Stage& stage = planned.plan.stages[0];
  return describe_stages(read_graph(text(symbol)), {&stage}, device_spec("h200")).verdict;
}

TEST(EmptyAxes, SizesArePositiveNumbersOfTheUserAreAny) {
  for (const char* extent : {"8", "s0", "s0*8", "s0+1", "s0*s0"})
    EXPECT_TRUE(lacks_axis(extent, "")) << extent;
  for (const char* extent : {"s0", "s0*8", "s0+1", "s0*s0"})
    EXPECT_EQ(lacks_axis(extent, " unbounded").rule, kRuleEmptyAxis) << extent;
  EXPECT_TRUE(lacks_axis("8", " unbounded"));
}

// Row and column sums of one tensor: no axis can be cut into blocks, so one of the two results
// needs an array per thread.
std::string crossed_sums(const std::string& type) {
  return "%x = input : " + type +
         "\n%a = sum(%x){axes=[0]}\n%b = sum(%x){axes=[1]}\noutputs (%a, %b)\n";
}

Verdict arrays_of(const std::string& text, const char* target) {
  const Planned planned = schedule_together(text, target);
  return check_arrays(planned.graph, planned.only());
}

TEST(ArrayLimits, SmallStaticArraysFit) {
  EXPECT_TRUE(arrays_of(crossed_sums("f32[64,64]"), "h200"));
  EXPECT_TRUE(arrays_of(crossed_sums("f32[64,4096]"), "cpu"));
}

TEST(ArrayLimits, ASizeOnlyKnownAtRunTimeIsRule21) {
  for (const char* target : {"cpu", "h200"}) {
    const Verdict verdict = arrays_of(crossed_sums("f32[s0,s1]"), target);
    EXPECT_EQ(verdict.rule, kRuleUnboundedArray) << target;
    EXPECT_NE(verdict.why.find("run time"), std::string::npos);
    EXPECT_FALSE(verdict.remedy.empty());
  }
}

TEST(ArrayLimits, AnArrayThatDoesNotFitIsRule23) {
  const Verdict cuda = arrays_of(crossed_sums("f32[64,1048576]"), "h200");
  EXPECT_EQ(cuda.rule, kRuleLargeArray);
  EXPECT_NE(cuda.why.find("64 fit"), std::string::npos) << cuda.why;
  EXPECT_EQ(arrays_of(crossed_sums("f32[64,1048576]"), "cpu").rule, kRuleLargeArray);
}

TEST(ArrayLimits, RefusedStagesArePlannedApart) {
  for (const char* target : {"cpu", "h200"}) {
    const Planned planned = plan_graph(crossed_sums("f32[s0,s1]"), target);
    EXPECT_EQ(planned.plan.stages.size(), 2u) << target;
  }
}

// The trips of the outermost loop after which a thread's first accumulator is emptied.
int carry_of(const std::string& type, const std::string& axes, const std::string& target) {
  const Planned planned = schedule_together(
      "%x = input : " + type + "\n%y = sum(%x){axes=[" + axes + "]}\noutputs (%y)\n", target);
  const StageSchedule& schedule = planned.only();
  const NodeId root = schedule.spaces.roots.front().root;
  for (int block : path_to(schedule, root)) {
    const int loop = schedule.blocks[block].loop;
    if (loop >= 0 && reduces_loop(schedule, space_of(schedule, root), loop))
      return find_carry(planned.graph, schedule, root, block);
  }
  return 0;
}

TEST(LongSums, OfOneThreadAreCarriedOver) {
  EXPECT_EQ(carry_of("f32[264,16384]", "1", "h200"), 0) << "16 terms";
  EXPECT_EQ(carry_of("f32[264,65536]", "1", "h200"), 2) << "16 trips of 4 terms";
  EXPECT_EQ(carry_of("f32[264,1048576]", "1", "h200"), 8) << "256 trips of 4 terms";
  EXPECT_EQ(carry_of("f32[65536,1024]", "0", "h200"), 32) << "2048 trips";
  EXPECT_EQ(carry_of("f32[264,0]", "1", "h200"), 0) << "no terms";
  EXPECT_EQ(carry_of("f32[s0,s1]", "1", "h200"), 32) << "trips known at run time";
}

TEST(LongSums, AreNotCarriedOverWhereTheTypeIsWiderOrTheTargetIsTheHost) {
  EXPECT_EQ(carry_of("f64[264,1048576]", "1", "h200"), 0);
  EXPECT_EQ(carry_of("bf16[264,1048576]", "1", "h200"), 0);
  EXPECT_EQ(carry_of("f32[264,1048576]", "1", "cpu"), 0);
}

TEST(LongKernels, AreRefusedOnlyWhenTheyCouldBeTwo) {
  std::string text = "%x = input : f32[64]\n%v0 = neg(%x)\n";
  for (int i = 1; i <= 700; ++i) {
    text += "%v" + std::to_string(i) + " = sin(%v" + std::to_string(i - 1) + ")\n";
  }
  const Planned one = schedule_together(text + "outputs (%v700)\n", "h200");
  const auto verdict_of = [](const Planned& planned) {
    return score_stage(planned.graph, planned.plan.stages[0], target_of("h200")).verdict;
  };
  EXPECT_TRUE(verdict_of(one)) << "one root cannot be cut";
  const Planned two = schedule_together(text + "%o = cos(%x)\noutputs (%v700, %o)\n", "h200");
  EXPECT_EQ(verdict_of(two).rule, kRuleLongKernel);
}

}  // namespace
}  // namespace stitch
