// Values read at fixed indices of an axis: rotated halves, interleaved pairs, pieces of pieces.
#include "stage/map_axes.h"

#include <regex>

#include "codegen/emit_kernel.h"
#include "plan/plan_graph.h"
#include "stage/map_axes.h"

namespace stitch {
namespace {

const std::vector<std::string> kTargets = {"cpu", "h200"};

// A row scaled by its largest value, plus itself with its pieces swapped and their signs changed.
// `scaled` is what is swapped.
std::string swap_halves(const std::string& batch, const std::string& scaled = "%n") {
  return "%x = input : f32[" + batch + R"(,128]
    %e = exp(%x)
    %n = div(%e, sum(%e){axes=[1], keepdim})
    %a = slice()" +
         scaled + R"(){dim=1, start=0, count=64}
    %b = slice()" +
         scaled + R"(){dim=1, start=64, count=64}
    %y = add(%n, cat(neg(%b), %a){dim=1})
    outputs (%y)
  )";
}

constexpr const char* kSwapPairs = R"(
  %x = input : f32[4096,64,2]
  %e = exp(%x)
  %n = div(%e, sum(%e){axes=[1,2], keepdim})
  %a = slice(%n){dim=2, start=0, count=1}
  %b = slice(%n){dim=2, start=1, count=1}
  %y = add(%n, cat(neg(%b), %a){dim=2})
  outputs (%y)
)";

// Halves of halves: only the first half of each row is rotated.
constexpr const char* kSwapQuarters = R"(
  %x = input : f32[4096,128]
  %e = exp(%x)
  %n = div(%e, sum(%e){axes=[1], keepdim})
  %a = slice(%n){dim=1, start=0, count=32}
  %b = slice(%n){dim=1, start=32, count=32}
  %rest = slice(%n){dim=1, start=64, count=64}
  %y = add(%n, cat(cat(neg(%b), %a){dim=1}, %rest){dim=1})
  outputs (%y)
)";

std::string text_of(const std::string& text, const std::string& target) {
  const Planned planned = schedule_together(text, target);
  return emit_planned(planned, 0).text;
}

int count_in(const std::string& text, const std::string& pattern) {
  const std::regex found(pattern);
  return static_cast<int>(
      std::distance(std::sregex_iterator(text.begin(), text.end(), found), std::sregex_iterator()));
}

using Ops = std::vector<std::string>;

TEST(PieceAxes, OneThreadHoldsTheHalvesThatARotationSwaps) {
  for (const char* text : {kSwapPairs, kSwapQuarters}) {
    const StageSchedule s = schedule_together(text, "h200").only();
    const std::set<int> pieces = find_piece_axes(read_graph(text), s);
    ASSERT_FALSE(pieces.empty());
    for (int a : pieces) {
      EXPECT_TRUE(s.axes[a].axis.extent.is(2));
      EXPECT_EQ(s.axes[a].threads(), 1);
      EXPECT_FALSE(s.axes[a].in_grid());
    }
  }
}

TEST(PieceAxes, ALongAxisKeepsItsThreads) {
  const Planned planned = schedule_together(R"(
    %x = input : f32[4096,1024]
    %e = exp(%x)
    %m = amax(%e){axes=[1], keepdim}
    %y = add(sub(%e, %m), slice(%e){dim=1, start=0, count=1})
    outputs (%y)
  )",
                                            "h200");
  EXPECT_EQ(find_piece_axes(planned.graph, planned.only()), std::set<int>{});
  EXPECT_EQ(kept(planned), Ops{}) << "the first element is in one thread only";
}

TEST(FixedAxes, AreTheAtomsThatStandStill) {
  const Planned planned = schedule_together(kSwapQuarters, "h200");
  const StageSchedule& s = planned.only();
  const Index& made = s.kept_on_chip.begin()->second;
  EXPECT_EQ(find_fixed_axes(s, s.accesses.vars, made, made), FixedAxes{});
  Index past = made;
  past[1].constant = 1;
  EXPECT_FALSE(find_fixed_axes(s, s.accesses.vars, made, past)) << "shifted, not fixed";
  Index last{made[0], IndexExpr{127, {}}};
  const auto fixed = find_fixed_axes(s, s.accesses.vars, made, last);
  ASSERT_TRUE(fixed);
  int64_t elements = 1;
  for (const auto& [a, index] : *fixed) {
    EXPECT_EQ(Dim(index + 1), s.axes[a].axis.extent);
    elements *= index + 1;
  }
  EXPECT_EQ(elements, 128);
  last[1].constant = 128;
  EXPECT_FALSE(find_fixed_axes(s, s.accesses.vars, made, last)) << "past the end";
}

TEST(PlaceValues, WhatARotationReadsAgainStaysOnChip) {
  const int64_t compulsory = 2 * 4096 * 128 * 4;
  for (const std::string& text :
       {swap_halves("4096"), std::string(kSwapPairs), std::string(kSwapQuarters)}) {
    const Planned planned = schedule_together(text, "h200");
    EXPECT_EQ(kept(planned), Ops{"exp"}) << text;
    EXPECT_EQ(bytes_of(planned), compulsory) << text;
    EXPECT_EQ(kept(schedule_together(text, "cpu")), Ops{"exp"}) << text;
  }
}

TEST(PlaceValues, ABatchOfUnknownSizeChangesNothing) {
  for (const std::string& target : kTargets) {
    EXPECT_EQ(kept(schedule_together(swap_halves("s0"), target)), Ops{"exp"}) << target;
  }
}

TEST(PlaceValues, PiecesOfUnknownSizeAreReadAgain) {
  for (const std::string& target : kTargets) {
    EXPECT_EQ(kept(schedule_together(R"(
      %x = input : f32[4096,2,s1]
      %e = exp(%x)
      %n = div(%e, sum(%e){axes=[1,2], keepdim})
      %a = slice(%n){dim=1, start=0, count=1}
      %b = slice(%n){dim=1, start=1, count=1}
      %y = add(%n, cat(neg(%b), %a){dim=1})
      outputs (%y)
    )",
                                     target)),
              Ops{})
        << target;
  }
}

// Both passes run inside one loop over the halves, whose array holds one half at a time.
TEST(PlaceValues, AnArrayInsideTheLoopOverThePiecesDoesNotHoldThem) {
  for (const std::string& target : kTargets) {
    const Planned planned = schedule_together(R"(
      %x = input : f32[8,2,1024]
      %e = exp(%x)
      %n = div(%e, sum(%e){axes=[2], keepdim})
      %a = slice(%e){dim=1, start=0, count=1}
      %b = slice(%e){dim=1, start=1, count=1}
      %y = add(%n, cat(neg(%b), %a){dim=1})
      outputs (%y)
    )",
                                              target);
    EXPECT_EQ(kept(planned), Ops{}) << target;
  }
}

// What is evaluated only under a condition has not been made for those that read it without one.
TEST(PlaceValues, AGuardedEvaluationMakesNothing) {
  for (const std::string& target : kTargets) {
    EXPECT_EQ(kept(schedule_together(R"(
      %x = input : f32[64,100]
      %e = exp(%x)
      %p = pad(%e){before=[0,0], shape=[64,104]}
      %m = amax(slice(%p){dim=1, start=0, count=100}){axes=[1], keepdim}
      %y = sub(%e, %m)
      outputs (%y)
    )",
                                     target)),
              Ops{})
        << target;
  }
}

TEST(Lowering, ReadsAnArrayAtTheOtherHalf) {
  const std::string cuda = text_of(swap_halves("4096"), "h200");
  EXPECT_EQ(count_in(cuda, R"(load_vec<4>\(p0)"), 1) << cuda;
  EXPECT_EQ(count_in(cuda, R"(= s_\d+\[0 \* 4 \+ i1\];)"), 1) << cuda;
  EXPECT_EQ(count_in(cuda, R"(= s_\d+\[1 \* 4 \+ i1\];)"), 1) << cuda;
  const std::string host = text_of(swap_halves("4096"), "cpu");
  EXPECT_EQ(count_in(host, R"(p0\[)"), 1) << host;
  EXPECT_EQ(count_in(host, R"(= s_\d+\[0 \* 64 \+ i1\];)"), 1) << host;
  EXPECT_EQ(count_in(host, R"(= s_\d+\[1 \* 64 \+ i1\];)"), 1) << host;
}

// The digit of a vector lane is fixed like that of a loop.
TEST(Lowering, ReadsAnArrayAtTheOtherLane) {
  const std::string cuda = text_of(kSwapPairs, "h200");
  EXPECT_EQ(count_in(cuda, R"(load_vec<2>\(p0)"), 1) << cuda;
  EXPECT_EQ(count_in(cuda, R"(= s_\d+\[([^\]]* \+ )?0\];)"), 1) << cuda;
  EXPECT_EQ(count_in(cuda, R"(= s_\d+\[([^\]]* \+ )?1\];)"), 1) << cuda;
}

TEST(Lowering, TheHostVectorisesAroundTheLoopOverPieces) {
  const std::string host = text_of(swap_halves("4096"), "cpu");
  const std::regex nest(R"(omp simd[^\n]*\n *for \(i64 i1 = 0; i1 < 64; [^\n]*\n)"
                        R"([^}]*STITCH_UNROLL\n *for \(i64 i2 = 0; i2 < 2;)");
  EXPECT_EQ(count_in(host, R"(omp simd)"), 2) << host;
  EXPECT_TRUE(std::regex_search(host, nest)) << host;
}

}  // namespace
}  // namespace stitch
