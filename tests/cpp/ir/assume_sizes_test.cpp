#include "ir/assume_sizes.h"

#include <gtest/gtest.h>

#include "support/read_graph.h"
#include "support/symbols.h"

namespace stitch {
namespace {

using Nearness = SymbolTable::Nearness;

Graph near(const std::string& text, Nearness nearness = Nearness::kClass) {
  Graph graph = read_graph(text);
  graph.symbols.nearness = nearness;
  return graph;
}

std::string softmax(int64_t rows, int64_t columns) {
  return "symbols s0 = input(0) hint " + std::to_string(rows) + ", s1 = input(1) hint " +
         std::to_string(columns) + "\n" + R"(
arguments 1 tensors [0] integers [1,2]
%x = input : f32[s0,s1]
%m = amax(%x){axes=[1]}
%r = reshape(%m) : f32[s0,1]
%y = sub(%x, %r)
outputs (%y)
)";
}

std::vector<std::string> shapes_of(const Graph& graph) {
  std::vector<std::string> shapes;
  for (const Node& node : graph.nodes) shapes.push_back(to_string(node.type));
  return shapes;
}

TEST(AssumeUnits, ContiguousExtentsThatAreMultiplesOfEightAtTheHintsAre) {
  const Graph graph = assume_units(near(softmax(40, 2000)));
  verify_graph(graph);
  EXPECT_EQ(shapes_of(graph)[0], "f32[s0,s2*8]");
  EXPECT_EQ(shapes_of(graph)[1], "f32[s0]");  // the batch is as it was, whatever its hint
  ASSERT_EQ(graph.symbols.assumptions.size(), 1u);
  for (const int64_t columns : {8, 2000, 4096, 2001, 7}) {
    const std::vector<int64_t> values = graph.symbols.evaluate({3, columns});
    EXPECT_EQ(graph.symbols.holds(values), columns % 8 == 0) << columns;
    if (columns % 8 == 0) {
      EXPECT_EQ(evaluate(graph.nodes[0]->type.shape[1], values), columns);
    }
  }
}

// A chunk has (s0 + 1) / 2 elements: half of 16 k has 8 k, without a symbol of its own.
TEST(AssumeUnits, WhatIsAskedOfAHalfIsAskedTwiceOfTheWhole) {
  const char* halves = R"(
arguments 1 tensors [0] integers [1]
%x = input : f32[64,s0]
%a = slice(%x){ints=[1], dims=[0,1]} : f32[64,s1]
%b = neg(%a)
outputs (%b)
)";
  const std::string symbols = "symbols s0 = input(0) hint 128, s1 = floordiv(s0+1,2) hint 64\n";
  const Graph graph = assume_units(near(symbols + halves));
  EXPECT_EQ(shapes_of(graph)[0], "f32[64,s2*16]");
  EXPECT_EQ(shapes_of(graph)[2], "f32[64,s2*8]");
  ASSERT_EQ(graph.symbols.assumptions.size(), 1u);
  for (const int64_t size : {16, 160, 24, 127})
    EXPECT_EQ(graph.symbols.holds(graph.symbols.evaluate({size})), size % 16 == 0) << size;
}

TEST(AssumeUnits, ReducedRowsAreMultiplesOfSixteenOrEight) {
  const std::string sum =
      "\narguments 1 tensors [0] integers [1]\n%x = input : f32[s0,64]\n"
      "%y = sum(%x){axes=[0]}\noutputs (%y)\n";
  // Long rows are cut in pieces of whole blocks: eight units of each.
  for (const auto& [hint, shape] : {std::pair{"4096", "f32[s1*16,64]"},
                                    {"4088", "f32[s1*8,64]"},
                                    {"1048576", "f32[s1*131072,64]"},
                                    {"1048592", "f32[s1*16,64]"}}) {
    const std::string symbols = "symbols s0 = input(0) hint " + std::string(hint);
    EXPECT_EQ(shapes_of(assume_units(near(symbols + sum)))[0], shape);
  }
}

TEST(AssumeUnits, NothingIsAssumedOfOddHintsOfCallsNorWithoutLeave) {
  for (const Graph& graph :
       {near(softmax(40, 2001)), near(softmax(40, 2000), Nearness::kSmall),
        near(softmax(40, 2000), Nearness::kAny),
        near("symbols s0 = input(0) hint 7, s1 = result(0,0,0) hint 64\n%x = input : f32[s0]\n"
             "%n = library(%x){name=\"aten.nonzero.default\", integer=0} : i64[s1]\n"
             "%y = cast(%n) : f32[s1]\noutputs (%y)\n")}) {
    const Graph same = assume_units(graph);
    EXPECT_EQ(to_string(same), to_string(graph));
    EXPECT_TRUE(same.symbols.assumptions.empty());
  }
}

SymbolTable one_symbol(int64_t hint, Nearness nearness) {
  SymbolTable symbols;
  symbols.add_input(0, hint);
  symbols.nearness = nearness;
  return symbols;
}

TEST(AssumeFewTrips, CoverTheHintByLittleMore) {
  const auto most = [](int64_t hint, int64_t step) {
    const auto few = assume_few_trips(one_symbol(hint, Nearness::kClass), s0, step, 16);
    return few ? few->most : 0;
  };
  EXPECT_EQ(most(3000, 512), 3072);
  EXPECT_EQ(most(2048, 2048), 2048);
  EXPECT_EQ(most(1, 32), 32);
  EXPECT_EQ(most(0, 32), 32);
  EXPECT_EQ(most(1000, 32), 0);  // 32 trips
  for (int64_t hint = 1; hint <= 16 * 64; ++hint) {
    EXPECT_GE(most(hint, 64), hint);
    EXPECT_LE(most(hint, 64), hint + std::max<int64_t>(63, hint / 4)) << hint;
  }
  EXPECT_FALSE(assume_few_trips(one_symbol(64, Nearness::kSmall), s0, 64, 16));
}

TEST(AssumeSmall, HoldsUpToTheLargestOffset) {
  const auto small = assume_small(one_symbol(1000, Nearness::kSmall), s0 * s0);
  ASSERT_TRUE(small);
  SymbolTable symbols = one_symbol(1000, Nearness::kSmall);
  symbols.assumptions = {*small};
  EXPECT_TRUE(symbols.holds({46340}));
  EXPECT_FALSE(symbols.holds({46341}));
  EXPECT_FALSE(assume_small(one_symbol(46341, Nearness::kSmall), s0 * s0));
  EXPECT_FALSE(assume_small(one_symbol(2, Nearness::kAny), s0));
}

TEST(WithHints, SizesOfACallAndWhatFollowsFromThem) {
  SymbolTable symbols = one_symbol(1000, Nearness::kAny);
  symbols.divide_up(s0, 256);
  const SymbolTable other = with_hints(symbols, {5000});
  EXPECT_EQ(other.hint(s0), 5000);
  EXPECT_EQ(other.symbols.back().hint, 20);
}

}  // namespace
}  // namespace stitch
