#include "rewrite/rewrite_graph.h"

#include "rewrite/expect_rewrite.h"

namespace stitch {
namespace {

const std::string kMergedHead = "%x = input : f32[s0,8,1,6]\n";

void expect_view(const std::string& before, const std::string& after) {
  SCOPED_TRACE(before);
  expect_rewrite(merge_views, kMergedHead + "%y = exp(" + before + ")\noutputs (%y)\n",
                 kMergedHead + "%y = exp(" + after + ")\noutputs (%y)\n");
}

TEST(MergeViews, ViewsThatChangeNothingGo) {
  expect_view("reshape(%x){shape=[s0,8,1,6]}", "%x");
  expect_view("permute(%x){order=[0,1,2,3]}", "%x");
  expect_view("expand(%x){shape=[s0,8,1,6]}", "%x");
  expect_view("flip(%x){axes=[2]}", "%x");
}

TEST(MergeViews, ReshapesCompose) {
  expect_view("reshape(reshape(%x){shape=[s0*48]}){shape=[s0,48]}", "reshape(%x){shape=[s0,48]}");
  expect_view("reshape(reshape(%x){shape=[s0*48]}){shape=[s0,8,1,6]}", "%x");
}

TEST(MergeViews, PermutationsCompose) {
  expect_view("permute(permute(%x){order=[1,0,3,2]}){order=[2,0,1,3]}",
              "permute(%x){order=[3,1,0,2]}");
  expect_view("permute(permute(%x){order=[1,0,3,2]}){order=[1,0,3,2]}", "%x");
}

TEST(MergeViews, MovingExtentsOfOneIsAReshape) {
  expect_view("permute(%x){order=[2,0,1,3]}", "reshape(%x){shape=[1,s0,8,6]}");
  expect_view("reshape(permute(%x){order=[0,1,3,2]}){shape=[s0,48]}", "reshape(%x){shape=[s0,48]}");
}

TEST(MergeViews, ExpandsCompose) {
  expect_view("expand(expand(%x){shape=[s0,8,5,6]}){shape=[3,s0,8,5,6]}",
              "expand(%x){shape=[3,s0,8,5,6]}");
  expect_view("expand(%x){shape=[1,s0,8,1,6]}", "reshape(%x){shape=[1,s0,8,1,6]}");
  expect_view("expand(expand(%x){shape=[1,s0,8,1,6]}){shape=[2,s0,8,1,6]}",
              "expand(%x){shape=[2,s0,8,1,6]}");
}

TEST(MergeViews, SlicesOfOneDimensionCompose) {
  expect_view("slice(slice(%x){dim=1, start=1, step=2, count=3}){dim=1, start=1, count=2}",
              "slice(%x){dim=1, start=3, step=2, count=2}");
  const char* two = "slice(slice(%x){dim=1, count=3}){dim=3, count=2}";
  expect_view(two, two);
}

TEST(MergeViews, FlipsCancel) {
  expect_view("flip(flip(%x){axes=[0,1]}){axes=[1,3]}", "flip(%x){axes=[0,3]}");
  expect_view("flip(flip(%x){axes=[0]}){axes=[0]}", "%x");
}

TEST(MergeViews, ViewsOfAConstantAreTheConstant) {
  expect_view("add(%x, reshape(expand(full{value=2} : f32){shape=[8,6]}){shape=[8,1,6]})",
              "add(%x, expand(full{value=2} : f32){shape=[8,1,6]})");
  expect_view("add(%x, slice(expand(full{size=s0} : f32){shape=[12]}){dim=0, count=6})",
              "add(%x, expand(full{size=s0} : f32){shape=[6]})");
}

TEST(MergeViews, OutputsKeepTheirStrides) {
  expect_unchanged(merge_views, R"(
    %x = input : f32[4,8,6]
    %a = reshape(permute(%x){order=[1,0,2]}){shape=[8,24]}
    %y = permute(reshape(%a){shape=[8,4,6]}){order=[1,0,2]}
    outputs (%y)
  )");
}

TEST(MergeViews, OutputsKeepWhatTheyAlias) {
  expect_rewrite(merge_views, R"(
    %x = input : f32[4,8]
    %y = reshape(reshape(%x){shape=[32]}){shape=[8,4]}
    outputs (%y)
  )",
                 R"(
    %x = input : f32[4,8]
    %y = reshape(%x){shape=[8,4]}
    outputs (%y)
  )");
}

}  // namespace
}  // namespace stitch
