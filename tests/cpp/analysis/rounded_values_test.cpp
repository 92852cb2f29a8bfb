#include "analysis/precision.h"

#include <gtest/gtest.h>

#include "support/parse_graph.h"

namespace stitch {
namespace {

// The numbers of the nodes that are rounded.
std::vector<int> rounded_in(const std::string& text) {
  const std::set<NodeId> rounded = find_rounded(parse_graph(text));
  return map_to_vector(rounded, [](NodeId id) { return id.index(); });
}

TEST(RoundedValues, AllThatLeadsToAnExtremeOr16BitEquality) {
  EXPECT_EQ(rounded_in(R"(
    %0 = input{name="x"} : bf16[4,8]
    %1 = mul(%0, %0) : bf16[4,8]
    %2 = amax(%1){ints=[1]} : bf16[4]
    %3 = neg(%1) : bf16[4,8]
    outputs (%2, %3)
  )"),
            (std::vector<int>{0, 1}));
  EXPECT_EQ(rounded_in(R"(
    %0 = input{name="x"} : f16[8]
    %1 = exp(%0) : f16[8]
    %2 = reshape(%1) : f16[2,4]
    %3 = sum(%2){ints=[1]} : f16[2]
    %4 = neg(%3) : f16[2]
    %5 = eq(%3, %4) : bool[2]
    outputs (%5)
  )"),
            (std::vector<int>{0, 1, 2, 3, 4}));
}

TEST(RoundedValues, WhatIsLessWhatWasFoundOfItsRows) {
  EXPECT_EQ(rounded_in(R"(
    %0 = input{name="x"} : bf16[4,8]
    %1 = input{name="m"} : bf16[4,1]
    %2 = mul(%0, %0) : bf16[4,8]
    %3 = expand(%1) : bf16[4,8]
    %4 = sub(%2, %3) : bf16[4,8]
    %5 = sub(%4, %2) : bf16[4,8]
    outputs (%5)
  )"),
            (std::vector<int>{0, 1, 2, 3}));
}

TEST(RoundedValues, WhatAMeanThatIsKeptIsOf) {
  const std::string text = R"(
    %0 = input{name="x"} : bf16[4,8]
    %1 = mul(%0, %0) : bf16[4,8]
    %2 = cast(%1) : f32[4,8]
    %3 = sum(%2){ints=[1]} : f32[4]
    %4 = full{number=8} : f32[]
    %5 = expand(%4) : f32[4]
    %6 = div(%3, %5) : f32[4]
    %7 = cast(%6) : bf16[4]
    %8 = neg(%7) : bf16[4]
    outputs ()";
  EXPECT_EQ(rounded_in(text + "%6)"), (std::vector<int>{0, 1}));
  EXPECT_EQ(rounded_in(text + "%7)"), (std::vector<int>{0, 1}));
  EXPECT_EQ(rounded_in(text + "%8)"), (std::vector<int>{}));
}

TEST(RoundedValues, NotWhatIsWideBoundedOrInMemory) {
  EXPECT_EQ(rounded_in(R"(
    %0 = input{name="x"} : f32[4,8]
    %1 = mul(%0, %0) : f32[4,8]
    %2 = amax(%1){ints=[1]} : f32[4]
    outputs (%2)
  )"),
            (std::vector<int>{}));
  EXPECT_EQ(rounded_in(R"(
    %0 = input{name="x"} : bf16[8]
    %1 = exp(%0) : bf16[8]
    %2 = full{number=0} : bf16[]
    %3 = expand(%2) : bf16[8]
    %4 = le(%1, %3) : bool[8]
    outputs (%4)
  )"),
            (std::vector<int>{}));
}

}  // namespace
}  // namespace stitch
