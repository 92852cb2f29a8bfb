#include "rewrite/rewrite_graph.h"

#include "rewrite/expect_rewrite.h"

namespace stitch {
namespace {

std::string graph_of(const std::string& value, const std::string& dtype) {
  return "%x = input : " + dtype + "[4]\n%c = input : bool[4]\n%z = isnan(" + value +
         ")\noutputs (%z)\n";
}

// `value` reads %x of `dtype` and %c of bool.
void expect_folded(const std::string& dtype, const std::string& value, const std::string& folded) {
  SCOPED_TRACE(value);
  expect_rewrite(fold_constants, graph_of(value, dtype), graph_of(folded, dtype));
}

TEST(FoldConstants, IdentitiesThatKeepEveryBit) {
  expect_folded("f32", "add(mul(%x, 1), neg(%x))", "add(%x, neg(%x))");
  expect_folded("f32", "mul(1, neg(%x))", "neg(%x)");
  expect_folded("f32", "div(neg(%x), 1)", "neg(%x)");
  expect_folded("f32", "sub(neg(%x), 0)", "neg(%x)");
  expect_folded("f32", "add(neg(%x), -0.0)", "neg(%x)");
  expect_folded("i32", "add(0, neg(%x))", "neg(%x)");
  expect_folded("f32", "pow(neg(%x), 1)", "neg(%x)");
  expect_folded("f32", "exp(neg(neg(%x)))", "exp(%x)");
}

TEST(FoldConstants, WhatWouldChangeASignedZeroStays) {
  for (const char* value : {"add(neg(%x), 0.0)", "sub(neg(%x), -0.0)", "mul(neg(%x), 0)",
                            "sub(0, neg(%x))", "pow(neg(%x), 0.5)", "pow(neg(%x), -0.5)"})
    expect_folded("f32", value, value);
}

TEST(FoldConstants, RandomNumbersAreComparedAsTheirWords) {
  const auto expect = [](const std::string& compared, const std::string& bound, bool is_least) {
    const std::string op = compared.find("coarse") < 8 ? "coarse_least" : "random_least";
    const std::string holds = op + "(full{value=" + bound + "} : i64, %x, %x, %x)";
    const std::string folded = is_least ? holds : "logical_not(" + holds + ")";
    expect_folded("i64", "cast(" + compared + ") : f32", "cast(" + folded + ") : f32");
  };
  expect("ge(random(%x, %x, %x), 0.5)", "2147483648", true);
  expect("lt(random(%x, %x, %x), 0.5)", "2147483648", false);
  expect("gt(random(%x, %x, %x), 0.5)", "2147483904", true);  // 2^-24 further
  expect("le(random(%x, %x, %x), 0.5)", "2147483904", false);
  expect("ge(random(%x, %x, %x), 1e-9)", "256", true);
  expect("ge(coarse_random(%x, %x, %x), 0.5)", "2147483648", true);
  expect("lt(coarse_random(%x, %x, %x), 0.5)", "2147483648", false);
  const auto expect_same = [](const std::string& draw, const std::string& number) {
    const std::string same = "cast(ge(" + draw + "(%x, %x, %x), " + number + ")) : f32";
    expect_folded("i64", same, same);
  };
  for (const char* number : {"0", "1", "-0.5", "nan", "inf"}) expect_same("random", number);
  for (const char* number : {"0.00003", "0.99997"}) expect_same("coarse_random", number);
}

TEST(FoldConstants, WithAMaskAConstantIsOneOfTwo) {
  expect_folded("f32", "mul(mul(%x, cast(%c) : f32), 2)", "mul(%x, select(%c, 2, 0))");
  expect_folded("f32", "mul(-2, mul(cast(%c) : f32, %x))", "mul(%x, select(%c, -2, -0.0))");
  for (const char* value :
       {"mul(mul(%x, %x), 2)", "mul(%x, cast(%c) : f32)", "mul(mul(%x, cast(%c) : f32), inf)"})
    expect_folded("f32", value, value);
}

TEST(FoldConstants, SmallPowersAreProductsAsInEager) {
  expect_folded("f32", "pow(%x, 2)", "mul(%x, %x)");
  expect_folded("f32", "pow(%x, 3)", "mul(mul(%x, %x), %x)");
}

TEST(FoldConstants, ArithmeticOnConstantsIsThatOfTheDtype) {
  expect_folded("f32", "add(%x, div(1, 3))", "add(%x, 0.3333333432674408)");
  expect_folded("f64", "add(%x, div(full{value=1} : f64, full{value=3} : f64))",
                "add(%x, 0.3333333333333333)");
  expect_folded("i8", "add(%x, mul(full{value=100} : i8, full{value=2} : i8))", "add(%x, -56)");
  expect_folded("f32", "add(%x, sqrt(full{value=2} : f32))", "add(%x, 1.4142135381698608)");
  expect_folded("f32", "add(%x, maximum(full{number=nan} : f32, full{value=2} : f32))",
                "add(%x, nan)");
}

TEST(FoldConstants, CastsOfConstantsRoundAsEagerDoes) {
  expect_folded("f32", "add(%x, cast(cast(full{value=0.1} : f32) : bf16) : f32)",
                "add(%x, 0.10009765625)");
  expect_folded("f32", "add(%x, cast(cast(full{value=65520} : f32) : f16) : f32)", "add(%x, inf)");
  expect_folded("f32", "add(%x, cast(cast(full{value=1e-7} : f32) : f16) : f32)",
                "add(%x, 1.1920928955078125e-07)");
  expect_folded("i32", "add(%x, cast(full{value=-2.7} : f32) : i32)", "add(%x, -2)");
}

TEST(FoldConstants, ConversionsOutOfRangeAreLeftToTheDevice) {
  const char* value = "add(%x, cast(full{value=300.0} : f32) : u8)";
  expect_folded("u8", value, value);
}

TEST(FoldConstants, FunctionsThatDevicesRoundDifferentlyStay) {
  expect_folded("f32", "add(%x, exp(full{value=2} : f32))", "add(%x, exp(full{value=2} : f32))");
}

TEST(FoldConstants, ConstantsAreFoundBehindViews) {
  expect_folded("f32", "mul(neg(%x), expand(full{value=1} : f32){shape=[4]})", "neg(%x)");
  expect_folded("f32", "mul(neg(%x), expand(full{value=1} : f32){shape=[3,4]})",
                "expand(neg(%x)){shape=[3,4]}");
}

TEST(FoldConstants, SizesAreNoConstants) {
  expect_folded("f32", "div(%x, full{size=s0} : f32)", "div(%x, full{size=s0} : f32)");
}

TEST(FoldConstants, ConditionsThatAreKnownChooseTheirBranch) {
  expect_folded("f32", "select(full{value=1} : bool, neg(%x), exp(%x))", "neg(%x)");
  expect_folded("f32", "select(expand(full{value=0} : bool){shape=[4]}, neg(%x), exp(%x))",
                "exp(%x)");
  expect_folded("f32", "select(%c, %x, %x)", "%x");
}

TEST(FoldConstants, BooleanAlgebra) {
  expect_folded("f32", "logical_and(%c, true)", "%c");
  expect_folded("f32", "bitwise_or(%c, false)", "%c");
  expect_folded("f32", "logical_not(logical_not(%c))", "%c");
  expect_folded("f32", "logical_and(%x, 1)", "logical_and(%x, 1)");
}

TEST(FoldConstants, NegatedComparisonsHoldForNaN) {
  expect_folded("f32", "logical_not(eq(%x, 2))", "ne(%x, 2)");
  expect_folded("f32", "logical_not(lt(%x, 2))", "logical_not(lt(%x, 2))");
  expect_folded("i32", "logical_not(lt(%x, 2))", "ge(%x, 2)");
}

TEST(FoldConstants, CastsCollapseWhenTheFirstLosesNothing) {
  expect_folded("bf16", "neg(cast(cast(%x) : f32) : bf16)", "neg(%x)");
  expect_folded("i8", "cast(cast(%x) : i32) : f16", "cast(%x) : f16");
  expect_folded("f32", "cast(cast(%x) : bf16) : f32", "cast(cast(%x) : bf16) : f32");
  expect_folded("i8", "cast(cast(%x) : f32) : u8", "cast(cast(%x) : f32) : u8");
  expect_folded("i64", "cast(cast(%x) : f32) : f64", "cast(cast(%x) : f32) : f64");
}

TEST(FoldConstants, AnOutputNeverBecomesItsInput) {
  expect_rewrite(fold_constants, R"(
    %x = input : f32[4]
    %y = mul(%x, 1)
    %v = reshape(%y){shape=[2,2]}
    outputs (%y, %v)
  )",
                 R"(
    %x = input : f32[4]
    %y = layout(%x)
    %v = reshape(%y){shape=[2,2]}
    outputs (%y, %v)
  )");
}

}  // namespace
}  // namespace stitch
