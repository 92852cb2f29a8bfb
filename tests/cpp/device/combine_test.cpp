// Reductions and memory access of the device headers on the host.
#include "device/stitch/block.cuh"
#include "device/stitch/convert.cuh"
#include "device/stitch/load_store.cuh"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace stitch_test {

using namespace stitch;

template <class Op, class T>
T fold(const std::vector<T>& values) {
  T result = Op::template identity<T>();
  for (size_t i = 0; i < values.size(); ++i) result = Op::apply(result, T(values[i]));
  return result;
}

TEST(Combine, FoldsEveryFunctor) {
  EXPECT_EQ((fold<Sum, f32>({1, 2, 3.5f})), 6.5f);
  EXPECT_EQ((fold<Sum, i8>({100, 100})), static_cast<i8>(200));
  EXPECT_EQ((fold<Prod, i64>({3, -4, 5})), -60);
  EXPECT_EQ((fold<Max, f32>({-3, -1, -2})), -1);
  EXPECT_EQ((fold<Min, i32>({3, -1, 2})), -1);
  EXPECT_EQ((fold<Max, f64>({})), -infinity<f64>());
  EXPECT_EQ((fold<Any, bool>({false, true})), true);
  EXPECT_EQ((fold<Any, bool>({})), false);
  EXPECT_EQ((fold<All, bool>({true, false})), false);
  EXPECT_EQ((fold<All, bool>({})), true);
}

TEST(Combine, TheLastOfSeveralStays) { EXPECT_EQ(Last::apply(Last::apply(1, 5), 3), 3); }

TEST(LoadStore, ANegativeEndOfASegmentIsReported) {
  int error = 0;
  EXPECT_EQ(check_segment(0, &error), 0);
  EXPECT_EQ(error, 0);
  EXPECT_EQ(check_segment(-1, &error), -1);
  EXPECT_EQ(error, kIndexOutOfRange);
}

TEST(Combine, MaximumHandsNanOnFromEitherSide) {
  const f32 nan = quiet_nan<f32>();
  EXPECT_TRUE(std::isnan(fold<Max, f32>({1, nan, 2})));
  EXPECT_TRUE(std::isnan(fold<Max, f32>({nan, infinity<f32>()})));
  EXPECT_TRUE(std::isnan(fold<Min, f32>({-infinity<f32>(), nan})));
}

template <class T>
Indexed<T> fold_max(const std::vector<T>& values) {
  auto result = ArgMax::identity<Indexed<T>>();
  // Backwards: the order of combination must not matter.
  for (size_t i = values.size(); i-- > 0;) {
    result = ArgMax::apply(result, Indexed<T>{values[i], static_cast<i64>(i)});
  }
  return result;
}

TEST(Combine, ArgMaxTakesTheFirstAndPrefersNan) {
  const f32 nan = quiet_nan<f32>(), inf = infinity<f32>();
  EXPECT_EQ(fold_max<f32>({1, 5, 5, 2}).index, 1);
  EXPECT_EQ(fold_max<f32>({1, nan, inf, nan}).index, 1);
  EXPECT_EQ(fold_max<f32>({-inf, -inf}).index, 0);
  EXPECT_EQ(fold_max<f32>({-0.0f, 0.0f}).index, 0);
  EXPECT_EQ(fold_max<i64>({kLowest<i64>, kLowest<i64>}).index, 0);
  EXPECT_EQ(fold_max<u8>({3, 200, 200}).index, 1);
  auto least = ArgMin::identity<Indexed<f32>>();
  const f32 values[] = {3, -2, nan, -2, nan};
  for (int i : {1, 3, 0}) least = ArgMin::apply(least, {values[i], i});
  EXPECT_EQ(least.index, 1);
  for (int i : {4, 2}) least = ArgMin::apply(least, {values[i], i});
  EXPECT_EQ(least.index, 2);
}

template <class Op, class T>
int find_next(const std::vector<T>& values) {
  auto result = Op::template identity<Indexed<T, i32>>();
  for (i32 i = 0; i < static_cast<i32>(values.size()); ++i)
    result = Op::next(result, Indexed<T, i32>{values[i], i});
  return result.index;
}

TEST(Combine, InTheirOrderElementsNeedNoIndicesToCompare) {
  const f32 nan = quiet_nan<f32>(), inf = infinity<f32>();
  EXPECT_EQ((find_next<ArgMax, f32>({1, 5, 5, 2})), 1);
  EXPECT_EQ((find_next<ArgMax, f32>({1, nan, inf, nan})), 1);
  EXPECT_EQ((find_next<ArgMax, f32>({-inf, -inf, nan, nan})), 2);
  EXPECT_EQ((find_next<ArgMax, f32>({-inf, -inf})), 0);
  EXPECT_EQ((find_next<ArgMin, f32>({3, -0.0f, 0.0f})), 1);
  EXPECT_EQ((find_next<ArgMin, f32>({inf, -2, nan, -inf})), 2);
  EXPECT_EQ((find_next<ArgMin, i64>({kHighest<i64>, kHighest<i64>})), 0);
  EXPECT_EQ((find_next<ArgMin, u8>({200, 3, 3})), 1);
}

TEST(Block, OneThreadReducesToItself) {
  STITCH_SHARED(f32, shared, 4);
  EXPECT_EQ((all_reduce<Sum, 0u, 1>(2.5f, shared)), 2.5f);
  EXPECT_EQ(tid(), 0);
}

TEST(LoadStore, MovesVectorsAndMasks) {
  alignas(16) f32 x[8] = {0, 1, 2, 3, 4, 5, 6, 7};
  const Vec<f32, 4> four = load_vec<4>(x + 4);
  EXPECT_EQ(four.v[0], 4);
  EXPECT_EQ(four.v[3], 7);
  store_vec(x, four);
  EXPECT_EQ(x[3], 7);
  EXPECT_EQ(alignof(Vec<f16, 8>), 16u);
  EXPECT_EQ(alignof(Vec<f64, 4>), 16u);
  EXPECT_EQ(alignof(Vec<u8, 4>), 4u);
  EXPECT_EQ(load_if(true, x, 5), 5);
  EXPECT_EQ(load_if(false, static_cast<const f32*>(nullptr), 5), 0);
}

TEST(LoadStore, ChecksIndices) {
  int error = 0;
  EXPECT_EQ(check_index(3, 4, &error), 3);
  EXPECT_EQ(check_index(wrap_index(-1, 4), 4, &error), 3);
  EXPECT_EQ(check_index(wrap_index(-4, 4), 4, &error), 0);
  EXPECT_EQ(error, 0);
  for (i64 bad : {i64(4), i64(-5), kHighest<i64>, kLowest<i64>}) {
    error = 0;
    EXPECT_EQ(check_index(bad, 4, &error), 0);
    EXPECT_EQ(error, 1) << bad;
    EXPECT_FALSE(is_index(wrap_index(bad, 4), 4)) << bad;
    EXPECT_EQ(safe_index(wrap_index(bad, 4), 4), 0) << bad;
  }
  EXPECT_EQ(safe_index(wrap_index(-1, 4), 4), 3);
  error = 0;
  report_bad_index(0, &error);
  EXPECT_EQ(error, 0);
  report_bad_index(1, &error);
  EXPECT_EQ(error, 1);
}

}  // namespace stitch_test
