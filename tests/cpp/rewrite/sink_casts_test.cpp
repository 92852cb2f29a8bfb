#include "rewrite/rewrite_graph.h"

#include "rewrite/expect_rewrite.h"

namespace stitch {
namespace {

const std::string kCastHead = R"(
    %x = input : bf16[s0,8]
    %i = input : i64[3]
    %g = input : i64[s0,2]
)";

void expect_sunk(const std::string& before, const std::string& after) {
  SCOPED_TRACE(before);
  expect_rewrite(sink_casts, kCastHead + "%y = exp(" + before + ")\noutputs (%y)\n",
                 kCastHead + "%y = exp(" + after + ")\noutputs (%y)\n");
}

TEST(SinkCasts, ViewsReadTheNarrowValue) {
  expect_sunk("reshape(cast(%x) : f32){shape=[s0*8]}", "cast(reshape(%x){shape=[s0*8]}) : f32");
  expect_sunk("permute(cast(%x) : f32){order=[1,0]}", "cast(permute(%x){order=[1,0]}) : f32");
  expect_sunk("expand(cast(%x) : f32){shape=[4,s0,8]}", "cast(expand(%x){shape=[4,s0,8]}) : f32");
  expect_sunk("slice(cast(%x) : f32){dim=1, start=2, count=4}",
              "cast(slice(%x){dim=1, start=2, count=4}) : f32");
  expect_sunk("flip(cast(%x) : f32){axes=[0]}", "cast(flip(%x){axes=[0]}) : f32");
}

TEST(SinkCasts, ChainsOfViewsAreCrossedAtOnce) {
  expect_sunk("permute(slice(cast(%x) : f32){dim=1, count=4}){order=[1,0]}",
              "cast(permute(slice(%x){dim=1, count=4}){order=[1,0]}) : f32");
}

TEST(SinkCasts, ReadersGatherTheNarrowValue) {
  expect_sunk("index(cast(%x) : f32, %i){axes=[0]}", "cast(index(%x, %i){axes=[0]}) : f32");
  expect_sunk("gather(cast(%x) : f32, %g){dim=1}", "cast(gather(%x, %g){dim=1}) : f32");
  expect_sunk("cat(cast(%x) : f32, cast(neg(%x)) : f32){dim=1}",
              "cast(cat(%x, neg(%x)){dim=1}) : f32");
  expect_sunk("pad(cast(%x) : f32){before=[0,1], shape=[s0,9], value=0}",
              "cast(pad(%x){before=[0,1], shape=[s0,9], value=0}) : f32");
}

TEST(SinkCasts, CastsThatMayRoundStay) {
  const char* value = "permute(cast(cast(%x) : f32) : f16){order=[1,0]}";
  expect_sunk(value, value);
}

TEST(SinkCasts, PartsOfSeveralDtypesStay) {
  const char* value = "cat(cast(%x) : f64, cast(cast(%x) : f16) : f64){dim=1}";
  expect_sunk(value, value);
}

TEST(SinkCasts, PadsWithOtherNumbersThanZeroStay) {
  const char* value = "pad(cast(%x) : f32){before=[0,1], shape=[s0,9], value=0.1}";
  expect_sunk(value, value);
}

TEST(SinkCasts, OutputsKeepTheStridesAndAliasesOfTheirView) {
  expect_unchanged(sink_casts, R"(
    %x = input : bf16[4,8]
    %f = cast(%x) : f32
    %y = permute(%f){order=[1,0]}
    outputs (%y)
  )");
}

}  // namespace
}  // namespace stitch
