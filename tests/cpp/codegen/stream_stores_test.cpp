#include "codegen/split_loops.h"

#include <gtest/gtest.h>

#include <regex>

#include "plan/plan_graph.h"

namespace stitch {
namespace {

std::string streamed_text(const std::string& graph, const std::string& target = "cpu") {
  const Planned planned = plan_graph(graph, target);
  LoweringOptions options;
  options.streamed = find_streamed(planned.graph, planned.plan, device_spec(target));
  return emit_planned(planned, 0, options).text;
}

int occurrences(const std::string& text, const std::string& pattern) {
  const std::regex regex(pattern);
  return static_cast<int>(std::distance(std::sregex_iterator(text.begin(), text.end(), regex), {}));
}

std::string pointwise(const std::string& type) {
  return "%x = input : " + type + "\n%y = exp(%x)\noutputs (%y)\n";
}

TEST(StreamStores, ALaunchThatMovesMoreThanTheCacheHoldsStreamsByRows) {
  const std::string text = streamed_text(pointwise("f32[8192,1024]"));
  EXPECT_EQ(occurrences(text, R"(STITCH_ARRAY\(f32, s_\d+, 256\))"), 1) << text;
  EXPECT_EQ(occurrences(text, R"(stream_out\(&p1\[)"), 1) << text;
  EXPECT_EQ(occurrences(text, R"(p1\[[^&]*\] = )"), 0) << text;
  EXPECT_EQ(occurrences(text, R"(end_streams\(\))"), 1) << text;
  EXPECT_EQ(occurrences(streamed_text(pointwise("f32[4096,1024]")), "stream"), 0) << "32 MB";
}

TEST(StreamStores, WhatDoesNotDivideIsARowOfItsOwn) {
  const std::string text = streamed_text(
      "%x = input : f32[8192,1000]\n%b = input : f32[1000]\n%y = add(%x, %b)\noutputs (%y)\n");
  EXPECT_EQ(occurrences(text, R"(STITCH_ARRAY\(f32, s_\d+, 256\))"), 1) << text;
  EXPECT_EQ(occurrences(text, R"(STITCH_ARRAY\(f32, s_\d+, 232\))"), 1) << text;
  EXPECT_EQ(occurrences(text, "stream_out"), 2) << text;
}

TEST(StreamStores, RunTimeSizesEndWithAShorterRow) {
  const std::string text =
      streamed_text("symbols s0 = input(0) hint 8192\n" + pointwise("f32[s0,1024]"));
  EXPECT_EQ(occurrences(text, "stream_out"), 1) << text;
}

TEST(StreamStores, ResultsOfRowsStayInTheCaches) {
  const std::string text = streamed_text(
      "%x = input : f32[8192,2048]\n%s = sum(%x){axes=[1]}\n%y = exp(%x)\noutputs (%s, %y)\n");
  EXPECT_EQ(occurrences(text, "stream_out"), 1) << text;
}

TEST(StreamStores, AGpuHasNoRowsToStream) {
  EXPECT_EQ(occurrences(streamed_text(pointwise("f32[8192,4096]"), "h200"), "stream"), 0);
}

TEST(StreamStores, WhatIsStoredOverAnArgumentIsInTheCachesAlready) {
  const std::string graph =
      "%x = input : f32[8192,1024]\n%y = exp(%x)\nmutate %x <- %y\noutputs ()\n";
  EXPECT_EQ(occurrences(streamed_text(graph), "stream"), 0);
}

std::string drawn_text(const std::string& type, const std::string& rest,
                       const std::string& target = "cpu") {
  return streamed_text(
      "%k = input : i64[]\n%s = input : i64[]\n%i = iota{dims=[0,1]} : i64[" + type + "]\n" + rest,
      target);
}

// One counter has the words of four elements, or of eight of a coarse stream.
TEST(RowsOfWords, ALoopReadsThemFromARowThatIsMadeBeforeIt) {
  for (const auto& [op, words] : {std::pair{"random", "4"}, {"coarse_random", "8"}}) {
    const std::string text = drawn_text(
        "65536", std::string("%u = ") + op + "(%k, %s, %i)\n%y = exp(%u)\noutputs (%y)\n");
    const std::string row = std::string("draw_words<") + words + R"(>\(s_\d+ \+ 8, )";
    EXPECT_EQ(occurrences(text, R"(STITCH_ARRAY\(u32, s_\d+, 272\))"), 1) << text;
    EXPECT_EQ(occurrences(text, row), 1) << text;
    EXPECT_EQ(occurrences(text, "draw_word<"), 0) << text;
    EXPECT_LT(text.find("draw_words"), text.find("omp simd")) << text;
  }
}

TEST(RowsOfWords, SumsHaveARowForSeveralSpansOrForAllStrips) {
  const auto text_of_sums = [](const std::string& columns) {
    const std::string rest =
        "%x = input : f32[64,COLUMNS]\n%m = reshape(%i) : i64[64,COLUMNS]\n"
        "%u = random(%k, %s, %m)\n%d = mul(%u, %x)\n%y = sum(%d){axes=[1]}\noutputs (%y)\n";
    return drawn_text(columns == "1024" ? "65536" : "64000",
                      std::regex_replace(rest, std::regex("COLUMNS"), columns));
  };
  for (const auto& [columns, words] : {std::pair{"1024", "272"}, {"1000", "1016"}}) {
    const std::string text = text_of_sums(columns);
    const std::string row = R"(STITCH_ARRAY\(u32, s_\d+, )" + std::string(words) + R"(\))";
    EXPECT_EQ(occurrences(text, row), 1) << text;
    EXPECT_EQ(occurrences(text, "draw_words<4>"), 1) << text;
    EXPECT_EQ(occurrences(text, "draw_word<"), 0) << text;
  }
}

TEST(RowsOfWords, WhatIsNoNeighbourIsDrawnByItself) {
  const std::string every_second =
      "%t = mul(%i, full{value=2} : i64)\n%u = random(%k, %s, %t)\noutputs (%u)\n";
  const std::string few = "%u = random(%k, %s, %i)\noutputs (%u)\n";
  EXPECT_EQ(occurrences(drawn_text("65536", every_second), "draw_words"), 0);
  EXPECT_EQ(occurrences(drawn_text("31", few), "draw_words"), 0);
  EXPECT_EQ(occurrences(drawn_text("65536", few, "h200"), "draw_word"), 0) << "its lanes share";
}

}  // namespace
}  // namespace stitch
