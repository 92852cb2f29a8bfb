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

}  // namespace
}  // namespace stitch
