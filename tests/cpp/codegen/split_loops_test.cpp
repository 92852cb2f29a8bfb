#include "codegen/split_loops.h"

#include <gtest/gtest.h>

#include "plan/plan_graph.h"

namespace stitch {
namespace {

Statement make_loop(const std::string& first, const std::string& end, const std::string& pragma) {
  return {Statement::Kind::kLoop, "i64", "i0", first, "", end, pragma, 0, {}};
}

// "0-32 32-36"
std::string bounds_of(const std::vector<Statement>& loops) {
  std::string text;
  for (const Statement& loop : loops)
    text += (text.empty() ? "" : " ") + loop.expr + "-" + loop.bound;
  return text;
}

constexpr const char* kSimd = "_Pragma(\"omp simd\")";

TEST(SplitVectors, WholeVectorsThenNarrowerOnesThenTheRest) {
  EXPECT_EQ(bounds_of(split_vectors(make_loop("0", "36", kSimd))), "0-32 32-36");
  EXPECT_EQ(bounds_of(split_vectors(make_loop("0", "31", kSimd))), "0-16 16-24 24-28 28-31");
  EXPECT_EQ(bounds_of(split_vectors(make_loop("7", "20", kSimd))), "7-15 15-19 19-20");
  EXPECT_EQ(bounds_of(split_vectors(make_loop("0", "64", kSimd))), "0-64");
  EXPECT_EQ(bounds_of(split_vectors(make_loop("0", "4", kSimd))), "0-4");
}

TEST(SplitVectors, LoopsThatStayWhole) {
  EXPECT_EQ(bounds_of(split_vectors(make_loop("0", "3", kSimd))), "0-3");
  EXPECT_EQ(bounds_of(split_vectors(make_loop("0", "n0", kSimd))), "0-n0");
  EXPECT_EQ(bounds_of(split_vectors(make_loop("0", "36", ""))), "0-36");
  EXPECT_EQ(bounds_of(split_vectors(make_loop("0", "36", "STITCH_UNROLL"))), "0-36");
}

std::string text_of(const std::string& graph, const std::string& target) {
  return emit_planned(schedule_together(graph, target), 0, {}).text;
}

constexpr const char* kCat = R"(
  %a = input : f32[64,16]
  %b = input : f32[64,32]
  %c = input : f32[64,48]
  %y = exp(cat(%a, %b, neg(%c)){dim=1})
  outputs (%y)
)";

TEST(FindRanges, EachPartOfACatHasItsLoop) {
  const std::string text = text_of(kCat, "cpu");
  for (const char* loop : {"i1 = 0; i1 < 16;", "i1 = 16; i1 < 48;", "i1 = 48; i1 < 96;"}) {
    EXPECT_TRUE(holds(text, loop)) << text;
  }
  EXPECT_FALSE(holds(text, "load_if")) << text;
  EXPECT_FALSE(holds(text, " ? ")) << text;
}

// Parts of rotated halves, in the last part of a cat: no index is divided, none is looked for.
TEST(FindRanges, PartsInPartsHaveLoopsOfTheirOwn) {
  const std::string text = text_of(R"(
    %a = input : f32[64,32]
    %b = input : f32[64,16]
    %h = reshape(%b){shape=[64,2,8]}
    %l = reshape(slice(%h){dim=1, start=0, count=1}){shape=[64,8]}
    %r = reshape(slice(%h){dim=1, start=1, count=1}){shape=[64,8]}
    %y = exp(cat(%a, cat(%r, neg(%l)){dim=1}){dim=1})
    outputs (%y)
  )",
                                   "cpu");
  for (const char* loop : {"i1 = 0; i1 < 32;", "i1 = 32; i1 < 40;", "i1 = 40; i1 < 48;"}) {
    EXPECT_TRUE(holds(text, loop)) << text;
  }
  for (const char* other : {"load_if", " ? ", " / ", " % "})
    EXPECT_FALSE(holds(text, other)) << text;
}

TEST(FindRanges, APaddedRowIsThreeLoops) {
  const std::string text = text_of(R"(
    %x = input : f32[64,48]
    %y = exp(pad(%x){before=[0,2], shape=[64,52]})
    outputs (%y)
  )",
                                   "cpu");
  for (const char* loop : {"i1 = 0; i1 < 2;", "i1 = 2; i1 < 50;", "i1 = 50; i1 < 52;"}) {
    EXPECT_TRUE(holds(text, loop)) << text;
  }
  EXPECT_FALSE(holds(text, "load_if")) << text;
}

// Every second element of a padded row: index 2 * x1 lies in the row from x1 = 1 on, up to 24.
TEST(FindRanges, StepsOfAPaddedRowAreCutWhereTheyReachIt) {
  const std::string text = text_of(R"(
    %x = input : f32[64,48]
    %p = pad(%x){before=[0,1], shape=[64,52]}
    %y = exp(slice(%p){dim=1, start=0, count=26, step=2})
    outputs (%y)
  )",
                                   "cpu");
  for (const char* loop :
       {"i1 = 0; i1 < 1;", "i1 = 1; i1 < 17;", "i1 = 17; i1 < 25;", "i1 = 25; i1 < 26;"}) {
    EXPECT_TRUE(holds(text, loop)) << text;
  }
  EXPECT_FALSE(holds(text, "load_if")) << text;
}

// Each block walks the part of a range that lies in it.
TEST(FindRanges, AnAxisOfTheGridIsCutToo) {
  const std::string text = text_of(R"(
    %x = input : f32[100000]
    %y = exp(pad(%x){before=[3], shape=[100008]})
    outputs (%y)
  )",
                                   "cpu");
  EXPECT_TRUE(holds(text, "max_index(3 - g0 * ")) << text;
  EXPECT_TRUE(holds(text, "min_index(100003 - g0 * ")) << text;
  EXPECT_FALSE(holds(text, "load_if")) << text;
}

// Of parts that begin and end at multiples of a vector, a vector at a time.
TEST(FindRanges, AGpuChooses) { EXPECT_TRUE(holds(text_of(kCat, "h200"), "load_vec_if<4>(")); }

TEST(FindRanges, ReductionsChoose) {
  EXPECT_TRUE(holds(text_of(R"(
    %a = input : f32[64,16]
    %b = input : f32[64,32]
    %c = input : f32[64,48]
    %y = sum(cat(%a, %b, %c){dim=1}){axes=[1]}
    outputs (%y)
  )",
                            "cpu"),
                    "load_if"));
}

TEST(FindRanges, APartThatIsTheSameAllAlongIsReadOncePerRow) {
  const std::string text = text_of(R"(
    %a = input : f32[64,16]
    %b = input : f32[64,1]
    %c = input : f32[64,48]
    %y = cat(%a, expand(%b){shape=[64,32]}, %c){dim=1}
    outputs (%y)
  )",
                                   "cpu");
  EXPECT_FALSE(holds(text, "load_if")) << text;
  for (const char* load : {"p0[x0 * 16 + x1]", "p1[x0]", "p2[x0 * 48 + x1 + -48]"}) {
    EXPECT_TRUE(holds(text, load)) << text;
  }
}

}  // namespace
}  // namespace stitch
