#include "analysis/precision.h"

#include <gtest/gtest.h>

#include "support/parse_graph.h"

namespace stitch {
namespace {

std::vector<int> numbers_of(const std::vector<bool>& nodes) {
  std::vector<int> found;
  for (size_t i = 0; i < nodes.size(); ++i)
    if (nodes[i]) found.push_back(static_cast<int>(i));
  return found;
}

TEST(Precision, FactorsOfWhatIsRoundedTo16BitsAreShort) {
  const Precision found = find_precision(parse_graph(R"(
    %0 = input{name="x"} : f32[8]
    %1 = sigmoid(%0) : f32[8]
    %2 = mul(%0, %1) : f32[8]
    %3 = cast(%2) : bf16[8]
    %4 = tanh(%0) : f32[8]
    %5 = add(%4, %0) : f32[8]
    %6 = cast(%5) : bf16[8]
    %7 = exp(%0) : f32[8]
    %8 = cast(%7) : bf16[8]
    outputs (%3, %6, %7, %8)
  )"),
                                         {});
  // A term of a sum may cancel, and %7 is a result too.
  EXPECT_EQ(numbers_of(found.is_short), (std::vector<int>{1, 2, 3, 5, 6, 8}));
}

TEST(Precision, OnlyADivisorThatNeverVanishesIsShort) {
  const Precision found = find_precision(parse_graph(R"(
    %0 = input{name="x"} : f32[4,8]
    %1 = exp(%0) : f32[4,8]
    %2 = sum(%1){ints=[1]} : f32[4]
    %3 = reshape(%2) : f32[4,1]
    %4 = expand(%3) : f32[4,8]
    %5 = div(%1, %4) : f32[4,8]
    %6 = cast(%5) : bf16[4,8]
    %7 = sigmoid(%0) : f32[4,8]
    %8 = div(%0, %7) : f32[4,8]
    %9 = cast(%8) : bf16[4,8]
    outputs (%6, %9)
  )"),
                                         {});
  EXPECT_EQ(numbers_of(found.is_short), (std::vector<int>{1, 2, 3, 4, 5, 6, 8, 9}));
}

TEST(Precision, ExponentialsBelowOneMayVanishUnlessTheyDivide) {
  const auto find_vanishing = [](const std::string& rest) {
    const std::string below_one = R"(
    %0 = input{name="x"} : f32[4,8]
    %1 = amax(%0){ints=[1]} : f32[4]
    %2 = reshape(%1) : f32[4,1]
    %3 = sub(%0, %2) : f32[4,8]
    %4 = exp(%3) : f32[4,8]
)";
    return numbers_of(find_precision(parse_graph(below_one + rest), {}).may_vanish);
  };
  EXPECT_EQ(find_vanishing(R"(
    %5 = exp(%0) : f32[4,8]
    %6 = input{name="y"} : f32[4,8]
    %7 = sub(%6, %2) : f32[4,8]
    %8 = exp(%7) : f32[4,8]
    outputs (%4, %5, %8)
  )"),
            std::vector<int>{4});
  EXPECT_TRUE(find_vanishing(R"(
    %5 = permute(%4){ints=[1,0]} : f32[8,4]
    %6 = input{name="y"} : f32[8,4]
    %7 = div(%6, %5) : f32[8,4]
    outputs (%7)
  )")
                  .empty());
}

TEST(Precision, WhatIsRoundedAsEagerRoundsIsNotShort) {
  const Precision found = find_precision(parse_graph(R"(
    %0 = input{name="x"} : f32[8]
    %1 = sigmoid(%0) : f32[8]
    %2 = cast(%1) : bf16[8]
    outputs (%2)
  )"),
                                         {NodeId(2)});
  EXPECT_TRUE(numbers_of(found.is_short).empty());
}

TEST(Precision, WhatAComparisonOrAStepDependsOnIsDecisive) {
  const Precision found = find_precision(parse_graph(R"(
    %0 = input{name="x"} : f32[8]
    %1 = div(%0, %0) : f32[8]
    %2 = neg(%1) : f32[8]
    %3 = floor(%2) : f32[8]
    %4 = div(%0, %3) : f32[8]
    %5 = round(%4) : f32[8]
    %6 = cast(%5) : i8[8]
    outputs (%6)
  )"),
                                         {});
  EXPECT_EQ(numbers_of(found.is_decisive), (std::vector<int>{0, 1, 2}));
}

}  // namespace
}  // namespace stitch
