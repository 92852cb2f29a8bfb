#include "rewrite/order_convolutions.h"

#include "rewrite/expect_rewrite.h"

namespace stitch {
namespace {

TEST(OrderConvolutions, OperandAndResultHaveChannelsLast) {
  expect_rewrite(order_convolutions, R"(
    %x = input : f32[2,3,5,7]
    %w = input : f32[4,3,1,1]
    %y = library(%x, %w){name="aten.convolution.default"} : f32[2,4,5,7]
    %out = relu(%y)
    outputs (%out)
  )",
                 R"(
    %x = input : f32[2,3,5,7]
    %w = input : f32[4,3,1,1]
    %l = layout(%x){strides=[105,1,21,3]}
    %y = library(%l, %w){name="aten.convolution.default"} : f32[2,4,5,7](140,1,28,4)
    %b = layout(%y){strides=[140,35,7,1]}
    %out = relu(%b)
    outputs (%out)
  )");
}

TEST(OrderConvolutions, PoolingOfOneFollows) {
  expect_rewrite(order_convolutions, R"(
    %x = input : f32[2,3,4,6]
    %w = input : f32[4,3,1,1]
    %y = library(%x, %w){name="aten.convolution.default"} : f32[2,4,4,6]
    %p = library(relu(%y)){name="aten.max_pool2d_with_indices.default"} : opaque[]
    %v = get(%p){ints=[0]} : f32[2,4,2,3]
    %out = exp(%v)
    outputs (%out)
  )",
                 R"(
    %x = input : f32[2,3,4,6]
    %w = input : f32[4,3,1,1]
    %l = layout(%x){strides=[72,1,18,3]}
    %y = library(%l, %w){name="aten.convolution.default"} : f32[2,4,4,6](96,1,24,4)
    %r = relu(layout(%y){strides=[96,24,6,1]})
    %q = layout(%r){strides=[96,1,24,4]}
    %p = library(%q){name="aten.max_pool2d_with_indices.default"} : opaque[]
    %v = get(%p){ints=[0]} : f32[2,4,2,3](24,1,12,4)
    %out = exp(layout(%v){strides=[24,6,3,1]})
    outputs (%out)
  )");
}

TEST(OrderConvolutions, LongSumsStay) {
  expect_unchanged(order_convolutions, R"(
    %x = input : f32[2,65,5,7]
    %w = input : f32[4,65,3,3]
    %y = library(%x, %w){name="aten.convolution.default"} : f32[2,4,3,5]
    %out = relu(%y)
    outputs (%out)
  )");
}

TEST(OrderConvolutions, WhatIsSeenOutsideOrIsNoImageStays) {
  expect_unchanged(order_convolutions, R"(
    %x = input : f32[2,3,5,7]
    %w = input : f32[4,3,1,1]
    %y = library(%x, %w){name="aten.convolution.default"} : f32[2,4,5,7]
    outputs (%y)
  )");
  expect_unchanged(order_convolutions, R"(
    %x = input : f32[2,3,5]
    %w = input : f32[4,3,1]
    %y = library(%x, %w){name="aten.convolution.default"} : f32[2,4,5]
    %out = relu(%y)
    outputs (%out)
  )");
  expect_unchanged(order_convolutions, R"(
    %x = input : f32[2,3,5,7]
    %y = library(%x){name="aten.avg_pool2d.default"} : f32[2,3,2,3]
    %out = relu(%y)
    outputs (%out)
  )");
}

}  // namespace
}  // namespace stitch
