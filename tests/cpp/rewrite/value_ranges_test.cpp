#include "rewrite/constants.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "support/read_graph.h"

namespace stitch {
namespace {

// Of the only output of a graph with these statements.
ValueRange range_of(const std::string& text) {
  const Graph graph = read_graph(text + "\noutputs (%y)");
  return find_ranges(graph)[graph.outputs[0].node.index()];
}

void expect_range(const std::string& text, double low, double high) {
  const ValueRange found = range_of(text);
  EXPECT_EQ(found.low, low) << text;
  EXPECT_EQ(found.high, high) << text;
}

TEST(ValueRanges, ConstantsAndWhatIsComputedFromThem) {
  expect_range("%m = input : bool[4]\n%y = select(%m, 2, -3.5)", -3.5, 2);
  expect_range("%m = input : bool[4]\n%y = mul(sub(1, cast(%m) : f32), -10000)", -10000, 0);
  expect_range("%m = input : bool[4]\n%f = cast(%m) : f32\n%y = neg(add(maximum(%f, 0.5), %f))", -2,
               -0.5);
  expect_range("%m = input : bool[4]\n%y = minimum(reshape(cast(%m) : f32){shape=[2,2]}, 0.25)", 0,
               0.25);
}

TEST(ValueRanges, FloatsThatComeFromOutsideMayBeAnything) {
  expect_range("%x = input : f32[4]\n%y = exp(%x)", -INFINITY, INFINITY);
  expect_range("%x = input : f32[4]\n%y = mul(%x, 0)", -INFINITY, INFINITY);
}

TEST(ValueRanges, WhatADtypeCannotHoldIsInfinite) {
  const std::string mask = "%m = input : i64[4]\n%k = cast(%m) : f32\n";
  EXPECT_TRUE(std::isfinite(range_of(mask + "%y = mul(sub(1, %k), -10000)").low));
  EXPECT_EQ(range_of(mask + "%y = mul(sub(1, %k), -3e38)").low, -INFINITY);
  expect_range("%m = input : bool[4]\n%y = cast(select(%m, -70000.0, 0.0)) : f16", -INFINITY, 0);
}

}  // namespace
}  // namespace stitch
