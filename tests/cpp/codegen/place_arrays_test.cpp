#include "codegen/kernel_body.h"

#include <gtest/gtest.h>

namespace stitch {
namespace {

using Kind = Statement::Kind;

Statement array(const std::string& type, const std::string& name, int64_t count) {
  return {Kind::kArray, type, name, "", "", "", "", count, {}};
}

TEST(PlaceArrays, SmallOnesStayOnTheStackWhateverTheirOrder) {
  KernelBody body{{array("f64", "s_0", 4096), array("f32", "s_1", 16)}};
  EXPECT_EQ(place_arrays(body), 4096 * 8);
  EXPECT_EQ(to_string(body), "  STITCH_SCRATCH(f64, s_0, 0);\n  STITCH_ARRAY(f32, s_1, 16);\n");
}

TEST(PlaceArrays, TheSumIsBoundedThoughEachIsSmall) {
  KernelBody body;
  for (int i = 0; i < 12; ++i) body.push_back(array("f32", "s_" + std::to_string(i), 256));
  EXPECT_EQ(place_arrays(body), 4 << 10);
  const std::string text = to_string(body);
  EXPECT_NE(text.find("STITCH_ARRAY(f32, s_7, 256)"), std::string::npos) << text;
  EXPECT_NE(text.find("STITCH_SCRATCH(f32, s_8, 0)"), std::string::npos) << text;
  EXPECT_NE(text.find("STITCH_SCRATCH(f32, s_11, 3072)"), std::string::npos) << text;
}

TEST(PlaceArrays, ArraysOfInnerLoopsCountAsOfTheBody) {
  Statement loop{Kind::kLoop, "i64", "i0", "0", "", "4", "", 0, {}};
  loop.body = {array("f64", "s_1", 1024), array("bf16", "s_2", 3)};
  KernelBody body{{array("u8", "s_0", 100000), loop}};
  EXPECT_EQ(place_arrays(body), 8192 + 100032);
  const std::string text = to_string(body);
  EXPECT_NE(text.find("STITCH_SCRATCH(f64, s_1, 0)"), std::string::npos) << text;
  EXPECT_NE(text.find("STITCH_SCRATCH(u8, s_0, 8192)"), std::string::npos) << text;
  EXPECT_NE(text.find("STITCH_ARRAY(bf16, s_2, 3)"), std::string::npos) << text;
}

TEST(PlaceArrays, ElementsWithAnIndexTakeSixteenBytes) {
  KernelBody body{{array("Indexed<f32>", "s_0", 1000)}};
  EXPECT_EQ(place_arrays(body), 16000);
}

}  // namespace
}  // namespace stitch
