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

}  // namespace
}  // namespace stitch
