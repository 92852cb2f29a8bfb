#include "rewrite/rewrite_graph.h"

#include "rewrite/expect_rewrite.h"

namespace stitch {
namespace {

const std::string kSimplifiedHead = "%x = input : f32[4,1,s0]\n";

void expect_simplified(const std::string& before, const std::string& after) {
  SCOPED_TRACE(before);
  expect_rewrite(simplify_algebra, kSimplifiedHead + "%y = isnan(" + before + ")\noutputs (%y)\n",
                 kSimplifiedHead + "%y = isnan(" + after + ")\noutputs (%y)\n");
}

TEST(SimplifyAlgebra, ReductionsOverExtentsOfOneAreReshapes) {
  expect_simplified("amax(%x){axes=[1]}", "reshape(%x){shape=[4,s0]}");
  expect_simplified("prod(%x){axes=[1]} : f64", "cast(reshape(%x){shape=[4,s0]}) : f64");
  expect_simplified("argmax(%x){axes=[1]}", "expand(full{value=0} : i64){shape=[4,s0]}");
}

TEST(SimplifyAlgebra, ASumOfOneElementTurnsMinusZeroIntoZero) {
  expect_simplified("sum(%x){axes=[1]}", "add(reshape(%x){shape=[4,s0]}, 0.0)");
}

TEST(SimplifyAlgebra, OtherAxesAreStillReduced) {
  expect_simplified("sum(%x){axes=[0,1]}", "sum(reshape(%x){shape=[4,s0]}){axes=[0]}");
  expect_simplified("sum(%x){axes=[0,2]}", "sum(%x){axes=[0,2]}");
}

TEST(SimplifyAlgebra, ReductionsOfConstantsAreConstants) {
  expect_simplified("sum(expand(full{value=3} : f32){shape=[4,8]}){axes=[0]}",
                    "expand(full{value=12} : f32){shape=[8]}");
  expect_simplified("sum(expand(full{value=-0.0} : f32){shape=[4,8]}){axes=[0]}",
                    "expand(full{value=0} : f32){shape=[8]}");
  expect_simplified("sum(expand(full{value=1} : bool){shape=[4,8]}){axes=[0,1]}",
                    "full{value=32} : i64");
  expect_simplified("amax(expand(full{value=-7} : f32){shape=[4,8]}){axes=[1]}",
                    "expand(full{value=-7} : f32){shape=[4]}");
}

TEST(SimplifyAlgebra, EmptyAndSymbolicCountsStay) {
  for (const char* value : {"sum(expand(full{value=3} : f32){shape=[0,8]}){axes=[0]}",
                            "sum(expand(full{value=3} : f32){shape=[s0,8]}){axes=[0]}"})
    expect_simplified(value, value);
}

// Places along rows of 100, one for each of 4 rows.
void expect_places(const std::string& before, const std::string& after) {
  SCOPED_TRACE(before);
  const std::string head = R"(
    %at = input : i64[4,1]
    %value = input : f32[4,1]
    %counts = input : bool[4,1]
    %index = reshape(iota{dims=[0,1]} : i64[100]){shape=[1,100]}
    %short = reshape(iota{dims=[0,1]} : i32[100]){shape=[1,100]}
    %place = cast(%at) : i32
    %none = full{value=-1} : i32
    %first = full{value=0} : i32
    %end = full{value=100} : i32
    %zero = full{value=0} : f32
    %exists = logical_and(ge(%at, 0), lt(%at, 100))
    %y = )";
  expect_rewrite(simplify_algebra, head + before + "\noutputs (%y)\n",
                 head + after + "\noutputs (%y)\n");
}

TEST(SimplifyAlgebra, AnIndexIsComparedIn32BitsWithAPlaceThatMayBeNone) {
  expect_places("eq(%index, %at)", "eq(%short, select(%exists, %place, %none))");
  expect_places("logical_and(eq(%at, %index), %counts)",
                "eq(%short, select(%counts, select(%exists, %place, %none), %none))");
  for (const char* other : {"eq(%short, %place)", "lt(%index, %at)", "eq(%index, %index)",
                            "logical_and(eq(%short, %place), lt(%index, %at))"})
    expect_places(other, other);
}

TEST(SimplifyAlgebra, ASumOfOnePlaceIsWhatStandsThere) {
  expect_places("sum(select(eq(%short, %place), %value, %zero)){axes=[1]}",
                "reshape(add(select(logical_and(ge(%place, %first), lt(%place, %end)), %value, "
                "%zero), %zero)){shape=[4]}");
  for (const char* other : {"sum(select(eq(%short, %place), cast(%short) : f32, %zero)){axes=[1]}",
                            "sum(select(eq(%short, %place), %value, 1.0)){axes=[1]}",
                            "sum(select(lt(%short, %place), %value, %zero)){axes=[1]}",
                            "sum(select(eq(%short, %place), %value, %zero)){axes=[0]}"})
    expect_places(other, other);
}

void expect_integers(const std::string& before, const std::string& after) {
  const auto graph = [](const std::string& y) {
    return "%x = input : f32[8]\n%y = " + y + "\noutputs (%y)\n";
  };
  expect_rewrite(simplify_algebra, graph(before), graph(after));
}

TEST(SimplifyAlgebra, WhatIsClampedToIntegersIsRoundedLastOnItsWayToAnInteger) {
  expect_integers("cast(clamp(round(%x), -127.0, 127.0)) : i8",
                  "cast(round(clamp(%x, -127.0, 127.0))) : i8");
  for (const char* other :
       {"cast(clamp(round(%x), -127.5, 127.0)) : i8", "cast(clamp(floor(%x), -127.0, 127.0)) : i8",
        "cast(clamp(round(%x), -127.0, 127.0)) : bf16",
        "cast(clamp(round(%x), -127.0, 127.0)) : bool", "cast(clamp(round(%x), %x, 127.0)) : i8"})
    expect_integers(other, other);
}

}  // namespace
}  // namespace stitch
