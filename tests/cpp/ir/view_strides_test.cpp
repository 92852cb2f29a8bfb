#include "ir/graph.h"

#include <gtest/gtest.h>

#include "support/symbols.h"

namespace stitch {
namespace {

using Dims = std::vector<Dim>;

TEST(ViewStrides, ContiguousTensorsAreViewedAnyWay) {
  EXPECT_EQ(view_strides({8, 6}, {6, 1}, {2, 4, 3, 2}), (Dims{24, 6, 2, 1}));
  EXPECT_EQ(view_strides({8, 6}, {6, 1}, {48}), (Dims{1}));
}

TEST(ViewStrides, SplittingATransposedDimensionIsAView) {
  EXPECT_EQ(view_strides({6, 8}, {1, 6}, {2, 3, 8}), (Dims{3, 1, 6}));
}

TEST(ViewStrides, MergingTransposedDimensionsTakesACopy) {
  EXPECT_EQ(view_strides({6, 8}, {1, 6}, {48}), std::nullopt);
}

TEST(ViewStrides, ExtentsOfOneHoldNothingUp) {
  EXPECT_EQ(view_strides({4, 1, 8}, {8, 99, 1}, {32}), (Dims{1}));
  EXPECT_EQ(view_strides({1, 8}, {1, 1}, {8}), (Dims{1}));
  EXPECT_EQ(view_strides({8}, {3}, {1, 8, 1}), (Dims{24, 3, 3}));
}

TEST(ViewStrides, SymbolsMergeWhereTheirStridesMultiply) {
  EXPECT_EQ(view_strides({s0, s1, 4}, {s1 * Dim(4), 4, 1}, {s0 * s1, 4}), (Dims{4, 1}));
  EXPECT_EQ(view_strides({s0, 12}, {12, 1}, {s0, 3, 4}), (Dims{12, 4, 1}));
  EXPECT_EQ(view_strides({4, s0 * s1}, {s0 * s1, 1}, {Dim(4) * s0, s1}), (Dims{s1, 1}));
  EXPECT_EQ(view_strides({s0, s1}, {1, s0}, {s0 * s1}), std::nullopt);
}

TEST(ViewStrides, ExpandedDimensionsStayExpandedWhenSplit) {
  EXPECT_EQ(view_strides({6, 4}, {0, 1}, {2, 3, 4}), (Dims{0, 0, 1}));
  EXPECT_EQ(view_strides({6, 4}, {0, 1}, {24}), std::nullopt);
}

TEST(ViewStrides, EmptyAndZeroDimensionalTensors) {
  EXPECT_EQ(view_strides({0, 4}, {1, 0}, {4, 0, 2}), (Dims{2, 2, 1}));
  EXPECT_EQ(view_strides({}, {}, {1, 1}), (Dims{1, 1}));
  EXPECT_EQ(view_strides({1, 1}, {5, 3}, {}), (Dims{}));
}

TEST(ExpandStrides, BroadcastDimensionsHaveStrideZero) {
  EXPECT_EQ(expand_strides({4, 1}, {1, 1}, {2, 4, s0}), (Dims{0, 1, 0}));
  EXPECT_EQ(expand_strides({4}, {1}, {1, 4}), (Dims{4, 1}));
}

}  // namespace
}  // namespace stitch
