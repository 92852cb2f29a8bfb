#include "codegen/kernel_body.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace stitch {
namespace {

using Kind = Statement::Kind;

Statement let(const std::string& name, const std::string& expr) {
  return {Kind::kLet, "f32", name, expr, "", "", "", 0, {}};
}

Statement assign(const std::string& name, const std::string& expr, Kind kind = Kind::kAssign) {
  return {kind, "", name, expr, "", "", "", 0, {}};
}

Statement loop(const std::string& name, const std::string& bound, std::vector<Statement> body) {
  return {Kind::kLoop, "i64", name, "0", "", bound, "", 0, std::move(body)};
}

std::string error_of(const KernelBody& body) {
  try {
    verify_body(body, {"p0", "p1", "n0"});
  } catch (const InternalError& error) {
    return error.what();
  }
  return "";
}

void expect_error(const KernelBody& body, const std::string& part) {
  EXPECT_NE(error_of(body).find(part), std::string::npos) << "'" << error_of(body) << "'";
}

TEST(VerifyBody, AcceptsNamesAfterTheirDefinition) {
  EXPECT_EQ(
      error_of({{let("s_0", "p0[0]"), loop("i0", "n0",
                                           {let("x0", "i0 * 4"), let("s_1", "add(s_0, p0[x0])"),
                                            assign("p1[x0]", "s_1", Kind::kStore)})}}),
      "");
}

TEST(VerifyBody, RejectsANameThatNobodyDefines) {
  expect_error({{let("s_0", "add(s_1, p0[0])")}}, "s_1 is used before it is defined");
  expect_error({{assign("p1[x3]", "p0[0]", Kind::kStore)}}, "x3");
  expect_error({{let("s_0", "p2[0]")}}, "p2");
  expect_error({{loop("i0", "n1", {})}}, "n1");
}

TEST(VerifyBody, RejectsANameBeforeItsDefinition) {
  expect_error({{let("s_0", "s_1"), let("s_1", "p0[0]")}}, "s_1 is used before it is defined");
}

TEST(VerifyBody, RejectsANameOfALoopThatIsClosed) {
  expect_error({{loop("i0", "4", {let("s_0", "p0[i0]")}), assign("p1[0]", "s_0", Kind::kStore)}},
               "s_0");
  expect_error({{loop("i0", "4", {}), let("s_0", "p0[i0]")}}, "i0");
}

TEST(VerifyBody, RejectsASecondDefinition) {
  expect_error({{let("s_0", "p0[0]"), let("s_0", "p0[1]")}}, "s_0 is defined twice");
  const std::vector<Statement> again = {let("s_0", "p0[i0]")};
  expect_error({{let("s_0", "p0[0]"), loop("i0", "4", again)}}, "s_0 is defined twice");
  // What depends on an index is defined again where a loop inside walks it again.
  EXPECT_EQ(error_of({{loop("i0", "4", {let("s_0", "p0[i0]"), loop("i0", "2", again)})}}), "");
}

TEST(VerifyBody, RejectsPredicatesOfUnknownNames) {
  Statement store = assign("p1[0]", "1", Kind::kStore);
  store.predicate = "ok3 & (t0 == 0)";
  expect_error({{store}}, "ok3");
}

TEST(VerifyBody, RejectsABarrierThatNotEveryThreadReaches) {
  Statement reduce{
      Kind::kReduce, "f32", "s_1", "all_reduce<Sum, 31u, 32>(p0[0], 0)", "", "", "", 0, {}};
  EXPECT_EQ(error_of({{reduce}}), "");
  reduce.predicate = "(p0[0] == 0)";
  expect_error({{reduce}}, "a barrier sits under a predicate");
}

TEST(VerifyBody, NumbersAndTypesAreNoNames) {
  EXPECT_EQ(error_of({{let("s_0", "i64(12LL) + 0x1p+11f + i32(3) + -1.5e2f")}}), "");
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
  Statement store = assign("p1[s_0]", "1.0f", Kind::kStore);
  store.predicate = "s_1";
  const KernelBody body{
      {let("s_0", "3"), let("s_1", "true"), let("s_2", "4"), loop("i0", "s_2", {store})}};
  EXPECT_EQ(to_string(remove_unused(body)), to_string(body));
}

TEST(PrintBody, EveryKindOfStatement) {
  Statement store = assign("p1[0]", "s_0", Kind::kStore);
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
