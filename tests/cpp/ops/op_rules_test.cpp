#include "ops/op.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/error.h"
#include "support/symbols.h"

namespace stitch {
namespace {

using Shape = std::vector<Dim>;

TEST(BroadcastShape, ExtentsAreEqualOrOneRightAligned) {
  EXPECT_EQ(broadcast_shape({8, 1, 4}, {s0, 4}), (Shape{8, s0, 4}));
  EXPECT_EQ(broadcast_shape({}, {s0}), (Shape{s0}));
  EXPECT_EQ(broadcast_shape({1}, {0}), (Shape{0}));
}

TEST(BroadcastShape, DifferentConstantsAreTheUsersError) {
  EXPECT_THROW(broadcast_shape({4}, {3}), UserError);
  EXPECT_THROW(broadcast_shape({s0}, {s0 + Dim(1)}), UserError);
}

TEST(BroadcastShape, DifferentSymbolsAreUnsupported) {
  EXPECT_THROW(broadcast_shape({s0}, {s1}), UnsupportedError);
  EXPECT_THROW(broadcast_shape({s0}, {4}), UnsupportedError);
}

TEST(BroadcastsTo, IsOneDirectional) {
  EXPECT_TRUE(broadcasts_to({1, 4}, {8, s0, 4}));
  EXPECT_FALSE(broadcasts_to({8, 4}, {1, 4}));
  EXPECT_FALSE(broadcasts_to({1, 1, 4}, {4}));
}

TEST(ResultDtype, FollowsTheRuleOfTheRow) {
  const auto of = [](OpKind op, std::vector<DType> operands) {
    return result_dtype(info(op), operands, DType::kF64);
  };
  EXPECT_EQ(of(OpKind::k_add, {DType::kBF16, DType::kBF16}), DType::kBF16);
  EXPECT_EQ(of(OpKind::k_lt, {DType::kI32, DType::kI32}), DType::kBool);
  EXPECT_EQ(of(OpKind::k_select, {DType::kBool, DType::kF16, DType::kF16}), DType::kF16);
  EXPECT_EQ(of(OpKind::k_argmax, {DType::kF32}), DType::kI64);
  EXPECT_EQ(of(OpKind::k_random, {DType::kI64, DType::kI64, DType::kI64}), DType::kF32);
  EXPECT_EQ(of(OpKind::k_coarse_random, {DType::kI64, DType::kI64, DType::kI64}), DType::kF32);
  EXPECT_EQ(of(OpKind::k_sum, {DType::kF32}), DType::kF64);
}

TEST(ResultDtype, MixedOperandsNeedACast) {
  EXPECT_THROW(result_dtype(info(OpKind::k_add), {DType::kF32, DType::kI32}, DType::kF32),
               UserError);
  EXPECT_THROW(
      result_dtype(info(OpKind::k_select), {DType::kF32, DType::kF32, DType::kF32}, DType::kF32),
      UserError);
}

TEST(DividesIntegers, QuotientsAndRemaindersDoAndNoFloatDoes) {
  std::vector<std::string> names;
  for (const OpInfo& op : all_ops()) {
    EXPECT_FALSE(divides_integers(op, DType::kF32)) << op.name;
    if (op.name != std::string("div") && divides_integers(op, DType::kI8)) names.push_back(op.name);
  }
  EXPECT_EQ(names, (std::vector<std::string>{"div_floor", "div_trunc", "remainder", "fmod"}));
}

TEST(IsValuePreserving, HoldsExactlyForWideningConversions) {
  using enum DType;
  for (DType wide : {kF32, kF64}) {
    EXPECT_TRUE(is_value_preserving(kBF16, wide));
    EXPECT_TRUE(is_value_preserving(kF16, wide));
    EXPECT_TRUE(is_value_preserving(kI16, wide));
    EXPECT_FALSE(is_value_preserving(kI64, wide));
  }
  EXPECT_TRUE(is_value_preserving(kI32, kF64));
  EXPECT_TRUE(is_value_preserving(kU8, kBF16));
  EXPECT_TRUE(is_value_preserving(kBool, kI8));
  EXPECT_TRUE(is_value_preserving(kI32, kI64));
  EXPECT_FALSE(is_value_preserving(kI32, kF32));
  EXPECT_FALSE(is_value_preserving(kI8, kU8));
  EXPECT_FALSE(is_value_preserving(kU8, kI8));
  EXPECT_FALSE(is_value_preserving(kF16, kBF16));
  EXPECT_FALSE(is_value_preserving(kBF16, kF16));
  EXPECT_FALSE(is_value_preserving(kF32, kBF16));
  EXPECT_FALSE(is_value_preserving(kF16, kI64));
  EXPECT_FALSE(is_value_preserving(kU8, kBool));
}

}  // namespace
}  // namespace stitch
