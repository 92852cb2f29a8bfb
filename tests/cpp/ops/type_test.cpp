#include "ops/type.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "support/symbols.h"

namespace stitch {
namespace {

TEST(DType, NamesReadBack) {
  for (int i = 0; i <= static_cast<int>(DType::kOpaque); ++i) {
    const DType dtype = static_cast<DType>(i);
    EXPECT_EQ(dtype_from_name(info(dtype).name), dtype);
  }
}

TEST(DType, UnknownNameSuggestsTheNearest) {
  try {
    dtype_from_name("bf17");
    FAIL() << "no error";
  } catch (const UserError& error) {
    EXPECT_NE(std::string(error.what()).find("'bf16'"), std::string::npos) << error.what();
  }
}

TEST(DType, SixteenBitFloatsLiveAsF32InRegisters) {
  EXPECT_STREQ(info(DType::kBF16).register_name, "f32");
  EXPECT_STREQ(info(DType::kF16).register_name, "f32");
  EXPECT_STREQ(info(DType::kF64).register_name, "f64");
  EXPECT_EQ(info(DType::kBF16).bytes, 2);
}

TEST(TensorType, ContiguousStridesAreThoseOfEager) {
  EXPECT_EQ(contiguous_strides({2, s0, 4}), (std::vector<Dim>{s0 * Dim(4), 4, 1}));
  EXPECT_EQ(contiguous_strides({2, 0, 3}), (std::vector<Dim>{3, 3, 1}));
  EXPECT_TRUE(contiguous_strides({}).empty());
}

TEST(TensorType, PrintsStridesOnlyWhenTheySayMore) {
  EXPECT_EQ(to_string(contiguous_type(DType::kF32, {8, s0})), "f32[8,s0]");
  EXPECT_EQ(to_string(TensorType{DType::kI64, {8, s0}, {1, 8}}), "i64[8,s0](1,8)");
  EXPECT_EQ(to_string(contiguous_type(DType::kBool, {})), "bool[]");
}

TEST(TensorType, ElementCountIsAProductOfSymbols) {
  EXPECT_EQ(element_count({4, s0, 2}), s0 * Dim(8));
  EXPECT_TRUE(element_count({}).is(1));
}

}  // namespace
}  // namespace stitch
