#include "rewrite/rewrite_graph.h"

#include "rewrite/expect_rewrite.h"

namespace stitch {
namespace {

const std::string kCopiedHead = "%x = input : f32[4,s0]\n%z = input : f32[4,3]\n";

void expect_removed(const std::string& before, const std::string& after) {
  SCOPED_TRACE(before);
  expect_rewrite(remove_copies, kCopiedHead + "%y = exp(" + before + ")\noutputs (%y)\n",
                 kCopiedHead + "%y = exp(" + after + ")\noutputs (%y)\n");
}

TEST(RemoveCopies, LayoutsNobodySeesGo) {
  expect_removed("layout(permute(%x){order=[1,0]}){strides=[4,1]}", "permute(%x){order=[1,0]}");
  expect_removed("layout(neg(%x))", "neg(%x)");
}

TEST(RemoveCopies, WhatCoversEverythingGoes) {
  expect_removed("slice(%x){dim=1, count=s0}", "%x");
  expect_removed("cat(%x){dim=1}", "%x");
  expect_removed("cat(%x, slice(%x){dim=1, count=0}){dim=1}", "%x");
  expect_removed("pad(%x){before=[0,0], shape=[4,s0], value=1}", "%x");
  expect_removed("slice_scatter(%z, neg(%z)){dim=1}", "neg(%z)");
}

TEST(RemoveCopies, ASlicePutBackWhereItWasGoes) {
  expect_removed("slice_scatter(%z, slice(%z){dim=1, start=1, count=2}){dim=1, start=1}", "%z");
}

TEST(RemoveCopies, WhatMovesSomethingStays) {
  for (const char* value :
       {"slice(%x){dim=0, start=1, count=3}", "slice(%x){dim=0, step=2, count=2}",
        "pad(%x){before=[1,0], shape=[4,s0], value=1}",
        "slice_scatter(%z, slice(%z){dim=1, count=2}){dim=1, start=1}"})
    expect_removed(value, value);
}

TEST(RemoveCopies, APartSlicedOutOfACatIsThePart) {
  expect_removed("slice(cat(%x, %z){dim=1}){dim=1, start=s0, count=3}", "%z");
  expect_removed("slice(cat(%x, %z){dim=1}){dim=1, count=s0}", "%x");
  const char* across = "slice(cat(%x, %z){dim=1}){dim=1, start=1, count=s0}";
  expect_removed(across, across);
}

TEST(RemoveCopies, StridesOfOutputsStay) {
  expect_unchanged(remove_copies, R"(
    %x = input : f32[4,8]
    %y = layout(permute(%x){order=[1,0]}){strides=[4,1]}
    %v = reshape(%y){shape=[32]}
    outputs (%v)
  )");
}

TEST(RemoveCopies, ACloneOfAnInputStaysACloneAndThatOfAFreshValueGoes) {
  expect_rewrite(remove_copies, R"(
    %x = input : f32[4]
    %a = layout(%x)
    %n = neg(%x)
    %b = layout(%n)
    outputs (%a, %b)
  )",
                 R"(
    %x = input : f32[4]
    %a = layout(%x)
    %b = neg(%x)
    outputs (%a, %b)
  )");
}

TEST(RemoveCopies, ACloneOfWhatIsStoredInAnArgumentStays) {
  expect_unchanged(remove_copies, R"(
    %x = input : f32[3,4](1,3)
    %s = input : f32[2,4]
    %w = write_slice(%x, %s){dims=[1,1,0,1]}
    %a = layout(%w){strides=[1,3]}
    mutate %x <- %w
    outputs (%a)
  )");
}

TEST(RemoveCopies, APartThatIsReturnedStillAliasesTheCat) {
  expect_unchanged(remove_copies, R"(
    %x = input : f32[4]
    %c = cat(%x, neg(%x)){dim=0}
    %p = slice(%c){dim=0, count=4}
    outputs (%c, %p)
  )");
}

TEST(RemoveCopies, TwoClonesOfOneValueStayTwoTensors) {
  expect_unchanged(remove_copies, R"(
    %x = input : f32[4]
    %n = neg(%x)
    %a = layout(%n)
    outputs (%n, %a)
  )");
}

TEST(RemoveCopies, MatrixProductsTakeTransposedOperandsOtherCallsDoNot) {
  expect_rewrite(remove_copies, R"(
    %k = input : f32[2,8,4]
    %c = layout(permute(%k){order=[0,2,1]}){strides=[32,8,1]}
    %m = library(%k, %c){name="aten.bmm.default", integer=0} : f32[2,8,8]
    %f = library(%c){name="aten._fft.default", integer=1} : f32[2,4,8]
    outputs (%m, %f)
  )",
                 R"(
    %k = input : f32[2,8,4]
    %c = layout(permute(%k){order=[0,2,1]}){strides=[32,8,1]}
    %m = library(%k, %c){name="aten.bmm.default", integer=0} : f32[2,8,8]
    %f = library(%c){name="aten._fft.default", integer=1} : f32[2,4,8]
    outputs (%m, %f)
  )");
  expect_rewrite(remove_copies, R"(
    %k = input : f32[2,8,4]
    %c = layout(permute(%k){order=[0,2,1]}){strides=[32,8,1]}
    %m = library(%k, %c){name="aten.bmm.default", integer=0} : f32[2,8,8]
    outputs (%m)
  )",
                 R"(
    %k = input : f32[2,8,4]
    %m = library(%k, permute(%k){order=[0,2,1]}){name="aten.bmm.default", integer=0} : f32[2,8,8]
    outputs (%m)
  )");
}

TEST(RemoveCopies, StridesThatBlasCannotExpressAreMadeContiguous) {
  expect_rewrite(remove_copies, R"(
    %k = input : f32[8,4,2]
    %c = layout(permute(%k){order=[2,0,1]}){strides=[32,4,1]}
    %m = library(%c, %c){name="aten.bmm.default", integer=0} : f32[2,8,8]
    outputs (%m)
  )",
                 R"(
    %k = input : f32[8,4,2]
    %p = permute(%k){order=[2,0,1]}
    %a = layout(%p){strides=[32,4,1]}
    %b = layout(%p){strides=[32,4,1]}
    %m = library(%a, %b){name="aten.bmm.default", integer=0} : f32[2,8,8]
    outputs (%m)
  )");
}

TEST(RemoveCopies, ACloneThatACallWritesStays) {
  expect_unchanged(remove_copies, R"(
    %x = input : f32[4]
    %n = neg(%x)
    %c = layout(%n)
    %w = library(%c){name="aten.zero_.default", ints=[2], integer=0} : f32[4]
    %y = add(%n, %w)
    outputs (%y)
  )");
}

}  // namespace
}  // namespace stitch
