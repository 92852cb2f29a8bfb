#include "codegen/kernel_body.h"

#include <gtest/gtest.h>

namespace stitch {
namespace {

using Kind = Statement::Kind;

Statement let(const std::string& name, const std::string& expr) {
  return {Kind::kLet, "f32", name, expr, "", "", "", 0, {}};
}

Statement assign(const std::string& name, const std::string& expr) {
  return {Kind::kAssign, "", name, expr, "", "", "", 0, {}};
}

Statement loop(const std::string& name, const std::string& bound, std::vector<Statement> body) {
  return {Kind::kLoop, "i64", name, "0", "", bound, "", 0, std::move(body)};
}

TEST(RemoveUnused, DefinitionsGoWithWhatOnlyTheyRead) {
  const KernelBody body = remove_unused(
      {{let("s_0", "p0[0]"), let("s_1", "exp(s_0)"), let("s_2", "p0[1]"),
        loop("i0", "4", {let("x0", "i0"), let("s_3", "s_1"), assign("p1[0]", "s_2")})}});
  EXPECT_EQ(to_string(body),
            "  const f32 s_2 = p0[1];\n"
            "  for (i64 i0 = 0; i0 < 4; ++i0) {\n"
            "    p1[0] = s_2;\n"
            "  }\n");
}

TEST(RemoveUnused, NamesInTargetsBoundsAndPredicatesAreUses) {
  Statement store = assign("p1[s_0]", "1.0f");
  store.predicate = "s_1";
  const KernelBody body{
      {let("s_0", "3"), let("s_1", "true"), let("s_2", "4"), loop("i0", "s_2", {store})}};
  EXPECT_EQ(to_string(remove_unused(body)), to_string(body));
}

TEST(PrintBody, EveryKindOfStatement) {
  Statement store = assign("p1[0]", "s_0");
  store.predicate = "ok0";
  Statement unrolled = loop("i0", "8", {store});
  unrolled.pragma = "STITCH_UNROLL";
  const KernelBody body{{let("s_0", "p0[0]"),
                         {Kind::kVar, "f32", "s_1", "", "", "", "", 0, {}},
                         {Kind::kVar, "f32", "s_2", "0.0f", "", "", "", 0, {}},
                         {Kind::kArray, "f32", "s_3", "", "", "", "", 16, {}},
                         {Kind::kCall, "", "", "store_vec(p1, s_4)", "ok0", "", "", 0, {}},
                         unrolled}};
  EXPECT_EQ(to_string(body),
            "  const f32 s_0 = p0[0];\n"
            "  f32 s_1;\n"
            "  f32 s_2 = 0.0f;\n"
            "  STITCH_ARRAY(f32, s_3, 16);\n"
            "  if (ok0) store_vec(p1, s_4);\n"
            "  STITCH_UNROLL\n"
            "  for (i64 i0 = 0; i0 < 8; ++i0) {\n"
            "    if (ok0) p1[0] = s_0;\n"
            "  }\n");
}

}  // namespace
}  // namespace stitch
