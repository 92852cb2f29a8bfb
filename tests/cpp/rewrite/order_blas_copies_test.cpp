#include "rewrite/rewrite_graph.h"

#include "rewrite/expect_rewrite.h"

namespace stitch {
namespace {

TEST(OrderBlasCopies, TransposedKeysAreCopiedInTheOrderOfTheirSource) {
  expect_rewrite(order_blas_copies, R"(
    %q = input : f32[6,8,4]
    %k = input : f32[2,8,3,4]
    %t = permute(%k){order=[0,2,3,1]}
    %s = library(%q, reshape(%t){shape=[6,4,8]}){name="aten.bmm.default", integer=0} : f32[6,8,8]
    outputs (%s)
  )",
                 R"(
    %q = input : f32[6,8,4]
    %k = input : f32[2,8,3,4]
    %t = permute(permute(%k){order=[0,2,3,1]}){order=[0,1,3,2]}
    %c = permute(reshape(%t){shape=[6,8,4]}){order=[0,2,1]}
    %s = library(%q, %c){name="aten.bmm.default", integer=0} : f32[6,8,8]
    outputs (%s)
  )");
}

TEST(OrderBlasCopies, WhatIsNoCopyOrNoMatrixProductStays) {
  expect_unchanged(order_blas_copies, R"(
    %q = input : f32[3,8,4]
    %k = input : f32[1,8,3,4]
    %t = permute(%k){order=[0,2,3,1]}
    %s = library(%q, reshape(%t){shape=[3,4,8]}){name="aten.bmm.default", integer=0} : f32[3,8,8]
    outputs (%s)
  )");
  expect_unchanged(order_blas_copies, R"(
    %k = input : f32[2,8,3,4]
    %t = permute(%k){order=[0,2,3,1]}
    %s = library(reshape(%t){shape=[6,4,8]}){name="aten.cumsum.default", integer=0} : f32[6,4,8]
    outputs (%s)
  )");
}

}  // namespace
}  // namespace stitch
