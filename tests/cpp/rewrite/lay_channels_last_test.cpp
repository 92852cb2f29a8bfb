#include "rewrite/rewrite_graph.h"

#include "rewrite/expect_rewrite.h"

namespace stitch {
namespace {

Graph lay_where_exact(const Graph& graph) { return merge_views(lay_channels_last(graph, "auto")); }
Graph lay_wherever(const Graph& graph) {
  return merge_views(lay_channels_last(graph, "channels_last"));
}

// By 3x3 places, padded by one.
std::string convolve(const std::string& channels, const std::string& end,
                     const std::string& operands = "%x, %w", const std::string& dtype = "f32") {
  return "library(" + operands +
         "){name=\"aten.convolution.default\", ints=[1,1,1,1], integer=0} : " + dtype + "[2," +
         channels + ",8,8]" + end;
}

std::string inputs(const std::string& channels, const std::string& per_group) {
  return "%x = input : f32[2," + channels + ",8,8]\n%w = input : f32[" + channels + "," +
         per_group + ",3,3]\n";
}

TEST(LayChannelsLast, WhatIsReadElementByElementIsComputedSo) {
  expect_rewrite(lay_where_exact,
                 inputs("16", "16") + "%s = input : f32[16,1,1]\n%c = " + convolve("16", "\n") +
                     "%y = relu(mul(%c, %s))\noutputs (%y)",
                 inputs("16", "16") + R"(
    %s = input : f32[16,1,1]
    %xl = layout(%x){strides=[1024,1,128,16]}
    %wl = layout(%w){strides=[144,1,48,16]}
    %c = )" + convolve("16", "(1024,1,128,16)", "%xl, %wl") +
                     R"(
    %cl = permute(%c){order=[0,2,3,1]}
    %sl = reshape(%s){shape=[1,1,1,16]}
    %y = layout(permute(relu(mul(%cl, %sl))){order=[0,3,1,2]})
    outputs (%y)
  )");
}

TEST(LayChannelsLast, ManyChannelsOfOneSumStay) {
  for (const char* channels : {"49", "64", "256"}) {
    const std::string text =
        inputs(channels, channels) + "%c = " + convolve(channels, "\n%y = relu(%c)\noutputs (%y)");
    expect_unchanged(lay_where_exact, text);
    EXPECT_NE(canonical_text(lay_wherever(read_graph(text))), canonical_text(read_graph(text)));
  }
}

TEST(LayChannelsLast, WhatIsReturnedTransposedOrOfAnotherTypeStays) {
  const std::string x = inputs("16", "16");
  expect_unchanged(lay_wherever, x + "%c = " + convolve("16", "\n%y = relu(%c)\noutputs (%c, %y)"));
  expect_unchanged(lay_wherever, x + R"(
    %c = library(%x, %w){name="aten.convolution.default", integer=0} : f32[2,16,8,8]
    %y = relu(%c)
    outputs (%y)
  )");
  expect_unchanged(lay_wherever,
                   "%x = input : bf16[2,16,8,8]\n%w = input : bf16[16,16,3,3]\n%c = " +
                       convolve("16", "\n%y = relu(%c)\noutputs (%y)", "%x, %w", "bf16"));
}

TEST(LayChannelsLast, ByOnePlaceItIsAProductOfRows) {
  const std::string call =
      "%c = library(%x, %w, %b){name=\"aten.convolution.default\", ints=[2,2,0,0], integer=0} : "
      "f32[2,8,2,2]";
  expect_rewrite(lay_where_exact, R"(
    %x = input : f32[2,32,4,4]
    %w = input : f32[8,32,1,1]
    %b = input : f32[8]
)" + call + R"(
    %y = relu(%c)
    outputs (%y)
  )",
                 R"(
    %x = input : f32[2,32,4,4]
    %w = input : f32[8,32,1,1]
    %b = input : f32[8]
    %xr = slice(permute(%x){order=[0,2,3,1]}){dim=1, count=2, step=2}
    %xl = slice(%xr){dim=2, count=2, step=2}
    %wt = permute(reshape(%w){shape=[8,32]}){order=[1,0]}
    %xm = reshape(%xl){shape=[8,32]}
    %m = library(%xm, %wt){name="aten.mm.default", number=0, integer=-1} : f32[8,8]
    %y = layout(permute(relu(add(reshape(%m){shape=[2,2,2,8]}, %b))){order=[0,3,1,2]})
    outputs (%y)
  )");
}

TEST(LayChannelsLast, ManyPlacesFollowWhatTheyRead) {
  const std::string x = "%x = input : f32[2,16,8,8]", w = "\n%w = input : f32[8,16,1,1]\n";
  const std::string call =
      "%c = library(%x, %w){name=\"aten.convolution.default\", ints=[1,1,0,0], integer=0} : "
      "f32[2,8,8,8]";
  expect_unchanged(lay_where_exact, x + w + call + "\n%y = relu(%c)\noutputs (%y)");
  const std::string laid_x = x + "(1024,1,128,16)" + w;
  const Graph laid = lay_where_exact(read_graph(laid_x + call + "\n%y = relu(%c)\noutputs (%y)"));
  EXPECT_NE(to_string(laid).find("aten.mm.default"), std::string::npos);
}

}  // namespace
}  // namespace stitch
