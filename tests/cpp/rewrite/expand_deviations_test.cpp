#include "rewrite/rewrite_graph.h"

#include "rewrite/expect_rewrite.h"

namespace stitch {
namespace {

TEST(ExpandDeviations, IsTwoPassesAndWhatTheMeanIsOffBy) {
  expect_rewrite(expand_deviations, R"(
    %x = input : bf16[4,8]
    %v = sum_sq_dev(%x){axes=[1]} : f32
    outputs (%v)
  )",
                 R"(
    %x = input : bf16[4,8]
    %f = cast(%x) : f32
    %s = sum(%f){axes=[1]}
    %n = full{value=8} : f32
    %m = div(%s, %n)
    %d = sub(%f, reshape(%m){shape=[4,1]})
    %t = sum(mul(%d, %d)){axes=[1]}
    %r = sum(%d){axes=[1]}
    %v = maximum(sub(%t, mul(%r, div(%r, %n))), 0)
    outputs (%v)
  )");
}

TEST(ExpandDeviations, ASymbolicCountIsASizeAtRunTime) {
  expect_rewrite(expand_deviations, R"(
    %x = input : f32[s0,8,s1]
    %v = sum_sq_dev(%x){axes=[0,2]}
    outputs (%v)
  )",
                 R"(
    %x = input : f32[s0,8,s1]
    %s = sum(%x){axes=[0,2]}
    %n = full{size=s0*s1} : f32
    %m = div(%s, %n)
    %d = sub(%x, reshape(%m){shape=[1,8,1]})
    %t = sum(mul(%d, %d)){axes=[0,2]}
    %r = sum(%d){axes=[0,2]}
    %v = maximum(sub(%t, mul(%r, div(%r, %n))), 0)
    outputs (%v)
  )");
}

TEST(ExpandDeviations, OfANarrowerTypeInF64AreFromTheFirstElementInOnePass) {
  expect_rewrite(expand_deviations, R"(
    %x = input : f32[4,8]
    %f = cast(%x) : f64
    %v = sum_sq_dev(%f){axes=[1]}
    outputs (%v)
  )",
                 R"(
    %x = input : f32[4,8]
    %f = cast(%x) : f64
    %d = sub(%f, slice(%f){dim=1, count=1})
    %t = sum(mul(%d, %d)){axes=[1]}
    %r = sum(%d){axes=[1]}
    %n = full{value=8} : f64
    %v = maximum(sub(%t, mul(%r, div(%r, %n))), 0)
    outputs (%v)
  )");
}

TEST(ExpandDeviations, OneOfNoneIsNotRead) {
  const Graph graph = expand_deviations(read_graph(R"(
    %x = input : f32[s0,4]
    %v = sum_sq_dev(cast(%x) : f64){axes=[0]}
    outputs (%v)
  )"));
  EXPECT_EQ(to_string(graph).find("slice"), std::string::npos) << "s0 may be 0";
}

TEST(ExpandDeviations, OfOneNumberIsZeroOrNaN) {
  expect_rewrite(expand_deviations, R"(
    %x = input : f32[]
    %v = sum_sq_dev(%x)
    outputs (%v)
  )",
                 R"(
    %x = input : f32[]
    %v = sub(%x, %x)
    outputs (%v)
  )");
}

}  // namespace
}  // namespace stitch
