#include "analysis/iteration_space.h"

#include "analysis/one_kernel.h"

namespace stitch {
namespace {

int rule_of(const std::string& text) { return one_kernel(text).verdict.rule; }

constexpr const char* kRowMaximum = "%x = input : f32[8,8]\n%m = amax(%x){axes=[1]}\n";

// Of what is read at indices, or a part of, neither dimension of the operand is seen; its own are.
TEST(IterationSpace, ThePassesOfASoftmaxShareTheirAtoms) {
  for (const char* rows : {"%x = input : f32[8,64]", "%x = index(%t, %i){axes=[0]}",
                           "%x = slice(%t){dim=1, start=0, count=64}", "%x = flip(%t){axes=[1]}"}) {
    const OneKernel kernel =
        one_kernel("%t = input : f32[8,768]\n%i = input : i64[8]\n" + std::string(rows) + R"(
      %e = exp(sub(%x, amax(%x){axes=[1], keepdim}))
      %y = div(%e, sum(%e){axes=[1], keepdim})
      outputs (%y)
    )");
    ASSERT_TRUE(kernel.verdict) << kernel.verdict.why;
    ASSERT_EQ(kernel.spaces.roots.size(), 3u);
    EXPECT_EQ(kernel.space(0).kept_atoms, kernel.space(1).kept_atoms) << rows;
    EXPECT_EQ(kernel.space(0).reduced_atoms, kernel.space(1).reduced_atoms) << rows;
    EXPECT_EQ(kernel.last().dims[0], kernel.space(0).kept_atoms) << rows;
    EXPECT_EQ(kernel.last().dims[1], kernel.space(0).reduced_atoms) << rows;
    EXPECT_TRUE(kernel.last().reduced_atoms.empty());
    const NodeId maximum = kernel.space(0).root, total = kernel.space(1).root;
    EXPECT_EQ(kernel.spaces.depends.at(total), std::set<NodeId>{maximum});
    EXPECT_EQ(kernel.spaces.depends.at(kernel.last().root), (std::set<NodeId>{maximum, total}));
  }
}

TEST(IterationSpace, ARootThatIsReadBringsTheReductionsThatItReads) {
  const OneKernel kernel = one_kernel(R"(
    %x = input : f32[8,6]
    %d = sub(%x, amax(%x){axes=[1], keepdim})
    %e = exp(%d)
    %s = sum(%e){axes=[1]}
    outputs (%d, %e, %s)
  )");
  ASSERT_TRUE(kernel.verdict) << kernel.verdict.why;
  ASSERT_EQ(kernel.spaces.roots.size(), 4u);
  const NodeId maximum = kernel.space(0).root;
  for (size_t root = 1; root < 4; ++root) {
    EXPECT_EQ(kernel.spaces.depends.at(kernel.spaces.roots[root].root), std::set<NodeId>{maximum});
    EXPECT_EQ(kernel.space(root).dims, kernel.space(0).dims);
  }
}

TEST(IterationSpace, AReshapeBetweenPassesSplitsTheAtomsOfBoth) {
  const OneKernel kernel = one_kernel(R"(
    %x = input : f32[2,64,32,32]
    %g = reshape(%x){shape=[2,32,2048]}
    %n = sub(%g, sum(%g){axes=[2], keepdim})
    %y = neg(reshape(%n){shape=[2,64,32,32]})
    outputs (%y)
  )");
  ASSERT_TRUE(kernel.verdict) << kernel.verdict.why;
  AtomList channels = kernel.last().dims[1];
  ASSERT_EQ(channels.size(), 2u) << "64 channels are 32 groups of 2";
  EXPECT_EQ(channels[0], kernel.space(0).kept_atoms.back());
  EXPECT_EQ(channels[1], kernel.space(0).reduced_atoms.front());
}

// Honesty rule 1: x[:,None] - x[None,:] must not become a diagonal.
TEST(IterationSpace, AReductionReadAlongTwoDimensionsIsRefused) {
  const OneKernel kernel = one_kernel(std::string(kRowMaximum) + R"(
    %y = sub(reshape(%m){shape=[8,1]}, reshape(%m){shape=[1,8]})
    outputs (%y)
  )");
  EXPECT_EQ(kernel.verdict.rule, kRuleDiagonal);
  EXPECT_NE(kernel.verdict.why.find("along two dimensions at once"), std::string::npos);
  EXPECT_FALSE(kernel.verdict.remedy.empty());
}

TEST(IterationSpace, AReductionAndItsTransposeAreRefused) {
  EXPECT_EQ(rule_of(R"(
    %x = input : f32[4,4,6]
    %m = sum(%x){axes=[2]}
    %y = add(%m, permute(%m){order=[1,0]})
    outputs (%y)
  )"),
            kRuleDiagonal);
}

TEST(IterationSpace, AReductionReadOnlyTransposedIsFine) {
  const OneKernel kernel = one_kernel(R"(
    %x = input : f32[4,4,6]
    %m = sum(%x){axes=[2]}
    %y = neg(permute(%m){order=[1,0]})
    outputs (%y)
  )");
  ASSERT_TRUE(kernel.verdict) << kernel.verdict.why;
  EXPECT_EQ(kernel.last().dims[0][0], kernel.space(0).kept_atoms[1]);
  EXPECT_EQ(kernel.last().dims[1][0], kernel.space(0).kept_atoms[0]);
}

TEST(IterationSpace, ARowSumSubtractedAlongColumnsIsRefused) {
  // The sum over axis 1 lives on axis 0's atom and is read along axis 1.
  EXPECT_EQ(rule_of(std::string(kRowMaximum) + R"(
    %y = sub(%x, %m)
    %z = sub(%x, reshape(%m){shape=[8,1]})
    outputs (%y, %z)
  )"),
            kRuleDiagonal);
}

TEST(IterationSpace, LoadsMayBeReadAtAnyIndex) {
  for (const char* line :
       {"%y = sub(reshape(%v){shape=[8,1]}, reshape(%v){shape=[1,8]})",
        "%y = add(%x, permute(%x){order=[1,0]})", "%y = add(%x, flip(%x){axes=[0]})"}) {
    SCOPED_TRACE(line);
    const OneKernel kernel = one_kernel("%x = input : f32[8,8]\n%v = input : f32[8]\n" +
                                        std::string(line) + "\noutputs (%y)\n");
    ASSERT_TRUE(kernel.verdict) << kernel.verdict.why;
    ASSERT_EQ(kernel.last().kept_atoms.size(), 2u);
    EXPECT_NE(kernel.last().kept_atoms[0], kernel.last().kept_atoms[1]);
  }
}

TEST(IterationSpace, OneCountingSequenceServesBothSidesOfACausalMask) {
  const OneKernel kernel = one_kernel(R"(
    %x = input : f32[8,8]
    %n = iota{count=8} : i64
    %keep = ge(reshape(%n){shape=[8,1]}, reshape(%n){shape=[1,8]})
    %y = select(%keep, %x, -inf)
    outputs (%y)
  )");
  ASSERT_TRUE(kernel.verdict) << kernel.verdict.why;
  EXPECT_NE(kernel.last().dims[0], kernel.last().dims[1]);
}

TEST(IterationSpace, EqualPartsOfACatRefineIntoPartsAndPieces) {
  EXPECT_EQ(rule_of(std::string(kRowMaximum) + "%y = cat(%m, %m){dim=0}\noutputs (%y)\n"), 0);
}

TEST(IterationSpace, ReductionsReadAtMovedIndicesAreRefused) {
  for (const char* reader : {
           "%y = neg(slice(%m){dim=0, start=2, count=4})",
           "%y = neg(flip(%m){axes=[0]})",
           "%y = cat(%m, slice(%m){dim=0, count=2}){dim=0}",
           "%y = pad(%m){before=[1], shape=[10]}",
           "%y = index(%m, %i){axes=[0]}",
           "%y = gather(%m, %i){dim=0}",
       }) {
    SCOPED_TRACE(reader);
    EXPECT_EQ(
        rule_of(std::string(kRowMaximum) + "%i = input : i64[8]\n" + reader + "\noutputs (%y)\n"),
        kRuleOtherIndices);
  }
}

TEST(IterationSpace, ReadersMayMoveTheDimensionsAReductionDoesNotKeep) {
  const OneKernel kernel = one_kernel(std::string(kRowMaximum) + R"(
    %y = slice(sub(%x, reshape(%m){shape=[8,1]})){dim=1, start=1, count=4}
    %z = neg(%y)
    outputs (%z)
  )");
  ASSERT_TRUE(kernel.verdict) << kernel.verdict.why;
  EXPECT_EQ(kernel.last().dims[0], kernel.space(0).kept_atoms);
  EXPECT_NE(kernel.last().dims[1], kernel.space(0).reduced_atoms);
}

TEST(IterationSpace, GroupingsThatDoNotRefineOneAnotherAreRefused) {
  const std::string head = "%x = input : f32[24,8]\n%m = sum(%x){axes=[1]}\n";
  EXPECT_EQ(rule_of(head + "%y = neg(reshape(%m){shape=[4,6]})\noutputs (%y)\n"), 0);
  const OneKernel both = one_kernel(head + R"(
    %y = neg(reshape(%m){shape=[4,6]})
    %z = neg(reshape(%m){shape=[6,4]})
    outputs (%y, %z)
  )");
  EXPECT_EQ(both.verdict.rule, kRuleOtherIndices);
  EXPECT_NE(both.verdict.why.find("grouping"), std::string::npos);
}

TEST(IterationSpace, RefusedReductionsAreFineThroughMemory) {
  OneKernel kernel = one_kernel(std::string(kRowMaximum) + R"(
    %y = sub(reshape(%m){shape=[8,1]}, reshape(%m){shape=[1,8]})
    outputs (%y)
  )");
  const NodeId maximum(1), difference = kernel.graph.outputs[0].node;
  kernel.is_load[maximum.index()] = true;
  EXPECT_TRUE(find_spaces(kernel.graph, {difference}, {&kernel.is_load}).verdict);
}

TEST(IterationSpace, SymbolicExtentsSplitLikeOthers) {
  const OneKernel kernel = one_kernel(R"(
    %x = input : f32[s0,s1*64]
    %h = reshape(%x){shape=[s0,s1,64]}
    %y = reshape(sub(%h, amax(%h){axes=[2], keepdim})){shape=[s0*s1,64]}
    %z = neg(%y)
    outputs (%z)
  )");
  ASSERT_TRUE(kernel.verdict) << kernel.verdict.why;
  EXPECT_EQ(kernel.last().dims[0], kernel.space(0).kept_atoms);
  EXPECT_EQ(kernel.last().dims[1], kernel.space(0).reduced_atoms);
}

TEST(IterationSpace, RootsThatShareNothingShareLoopsOfEqualExtents) {
  const OneKernel alike = one_kernel(R"(
    %x = input : f32[8,6]
    %y = input : f32[8,6]
    %a = sum(%x){axes=[1]}
    %b = sum(%y){axes=[1]}
    outputs (%a, %b)
  )");
  EXPECT_EQ(alike.space(0).kept_atoms, alike.space(1).kept_atoms);
  EXPECT_EQ(alike.space(0).reduced_atoms, alike.space(1).reduced_atoms);
  const OneKernel crossed = one_kernel(R"(
    %x = input : f32[6,6]
    %y = input : f32[6,6]
    %a = sum(%x){axes=[1]}
    %b = sum(%y){axes=[0]}
    outputs (%a, %b)
  )");
  EXPECT_NE(crossed.space(0).reduced_atoms, crossed.space(1).reduced_atoms);
}

TEST(IterationSpace, RowAndColumnSumsOfOneTensorShareItsAtoms) {
  const OneKernel kernel = one_kernel(R"(
    %x = input : f32[8,6]
    %a = sum(%x){axes=[1]}
    %b = sum(%x){axes=[0]}
    outputs (%a, %b)
  )");
  ASSERT_TRUE(kernel.verdict);
  EXPECT_EQ(kernel.space(0).kept_atoms, kernel.space(1).reduced_atoms);
  EXPECT_EQ(kernel.space(0).reduced_atoms, kernel.space(1).kept_atoms);
}

}  // namespace
}  // namespace stitch
