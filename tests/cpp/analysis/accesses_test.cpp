// What kernels read and write, walked back through every kind of view and reader.
#include "analysis/accesses.h"

#include "analysis/one_kernel.h"

namespace stitch {
namespace {

using Offsets = std::vector<std::string>;

// Reads of the inputs %x : `type`, %i : i64[8] by one line that makes %y.
OneKernel reading(const std::string& type, const std::string& line) {
  const std::string text =
      "%x = input : " + type + "\n%i = input : i64[8]\n" + line + "\noutputs (%y)\n";
  OneKernel kernel = one_kernel(text);
  EXPECT_TRUE(kernel.verdict) << kernel.verdict.why;
  return kernel;
}

Offsets reads_of_x(const std::string& type, const std::string& line) {
  return reads(reading(type, line), 0);
}

TEST(Accesses, ViewsOnlyMoveOffsets) {
  EXPECT_EQ(reads_of_x("f32[8,6]", "%y = neg(%x)"), Offsets{"i*6 + j"});
  EXPECT_EQ(reads_of_x("f32[8,6](1,8)", "%y = neg(layout(%x){strides=[6,1]})"), Offsets{"i + j*8"});
  EXPECT_EQ(reads_of_x("f32[8,6]", "%y = neg(permute(%x){order=[1,0]})"), Offsets{"i + j*6"});
  EXPECT_EQ(reads_of_x("f32[8,10]", "%y = neg(slice(%x){dim=1, start=2, step=3, count=2})"),
            Offsets{"i*10 + j*3 + 2"});
  EXPECT_EQ(reads_of_x("f32[8]", "%y = neg(flip(%x){axes=[0]})"), Offsets{"i*-1 + 7"});
  EXPECT_EQ(reads_of_x("f32[6]", "%y = neg(expand(%x){shape=[8,6]})"), Offsets{"j"});
  EXPECT_EQ(reads_of_x("f32[8,1]", "%y = add(%x, expand(%x){shape=[8,6]})"), Offsets{"i"})
      << "both operands are the same element, read once";
}

TEST(Accesses, RegularReshapesCostNoArithmetic) {
  const OneKernel kernel = reading("f32[8,30]", "%y = neg(reshape(%x){shape=[2,4,5,6]})");
  EXPECT_EQ(reads(kernel, 0), Offsets{"i*120 + j*30 + k*6 + l"});
  EXPECT_EQ(reads_of_x("f32[s0,s1*4]", "%y = neg(reshape(%x){shape=[s0*s1,4]})"),
            Offsets{"i*s1*4 + j*4 + k"});
}

TEST(Accesses, MisalignedReshapesDivide) {
  EXPECT_EQ(reads_of_x("f32[4,6](1,4)", "%y = neg(reshape(%x){shape=[6,4]})"),
            Offsets{"[i*4 + j]%6*4 + [i*4 + j]/6"});
}

TEST(Accesses, CatReadsEachPartBehindItsGuard) {
  const OneKernel kernel = one_kernel(R"(
    %a = input : f32[3,4]
    %b = input : f32[5,4]
    %y = cat(%a, %b){dim=0}
    outputs (%y)
  )");
  EXPECT_EQ(reads(kernel, 0), Offsets{"i*4 + j?"});
  EXPECT_EQ(reads(kernel, 1), Offsets{"i*4 + j + -12?"});
}

TEST(Accesses, PadGuardsOnlyWhatItExtends) {
  EXPECT_EQ(reads_of_x("f32[4,6]", "%y = pad(%x){before=[0,1], shape=[4,8]}"),
            Offsets{"i*6 + j + -1?"});
  EXPECT_EQ(reads_of_x("f32[4,6]", "%y = pad(%x){before=[0,0], shape=[4,6]}"), Offsets{"i*6 + j"});
  EXPECT_EQ(reads_of_x("f32[4]", "%y = pad(%x){before=[-1], shape=[2]}"), Offsets{"i + 1?"});
}

TEST(Accesses, DigitsOfOneNumberAreJoined) {
  // Rows shifted by one, as relative attention writes it: [6,8] of one more column than kept.
  EXPECT_EQ(reads_of_x("f32[6,8]",
                       "%a = slice(reshape(%x){shape=[8,6]}){dim=0, start=1, count=7}\n"
                       "%y = neg(reshape(%a){shape=[6,7]})"),
            Offsets{"i*7 + j + 6"});
}

TEST(Accesses, IndicesThatAreCountedAreViews) {
  const auto by = [](const std::string& index) {
    return reads_of_x("f32[100,16]", "%n = iota() {start=0, step=1} : i64[8]\n%m = " + index +
                                         "\n%y = index(%x, %m){axes=[0]}");
  };
  EXPECT_EQ(by("add(%n, 92)"), Offsets{"i*16 + j + 1472"});
  EXPECT_EQ(by("reshape(add(%n, %n)){shape=[4,2]}"), Offsets{"i*64 + j*32 + k"});
  EXPECT_EQ(by("add(%n, 93)"), Offsets{"j + v*16"}) << "the last is checked";
  EXPECT_EQ(by("sub(%n, 1)"), Offsets{"j + v*16"}) << "the first counts from the end";
  EXPECT_EQ(by("cast(add(%n, 60)) : i8[8]"), Offsets{"j + v*16"}) << "it might have wrapped";
  EXPECT_EQ(by("mul(%n, %i)"), Offsets{"j + v*16"});
}

TEST(Accesses, GathersReadByData) {
  const OneKernel rows = reading("f32[100,16]", "%y = index(%x, %i){axes=[0]}");
  EXPECT_EQ(reads(rows, 0), Offsets{"j + v*16"});
  EXPECT_EQ(reads(rows, 1), Offsets{"i"});
  const OneKernel columns = reading("f32[4,16]", "%y = index(%x, %i){axes=[1]}");
  EXPECT_EQ(reads(columns, 0), Offsets{"i*16 + v"});
  EXPECT_EQ(reads(columns, 1), Offsets{"j"});
  const OneKernel picked = reading("f32[100]", "%y = gather(%x, %i){dim=0}");
  EXPECT_EQ(reads(picked, 0), Offsets{"v"});
}

TEST(Accesses, IndexedDimensionsThatAreApartComeFirst) {
  const OneKernel kernel = reading("f32[5,6,7]", "%y = index(%x, %i, %i){axes=[0,2]}");
  EXPECT_EQ(reads(kernel, 0), Offsets{"j*7 + v*43"}) << "one index value serves both dimensions";
}

TEST(Accesses, SliceScatterGuardsTheSliceAndItsStep) {
  const OneKernel kernel = one_kernel(R"(
    %x = input : f32[8]
    %s = input : f32[3]
    %y = slice_scatter(%x, %s){dim=0, start=1, step=2}
    outputs (%y)
  )");
  EXPECT_EQ(reads(kernel, 0), Offsets{"i"});
  EXPECT_EQ(reads(kernel, 1), Offsets{"[i + -1]/2?"});
}

TEST(Accesses, SliceScatterTakesItsStartFromMemory) {
  const OneKernel kernel = one_kernel(R"(
    %x = input : f32[8,6]
    %s = input : f32[1,6]
    %at = input : i64[1,1]
    %y = slice_scatter(%x, %s, %at){dim=0}
    outputs (%y)
  )");
  EXPECT_EQ(reads(kernel, 0), Offsets{"i*6 + j"});
  EXPECT_EQ(reads(kernel, 1), Offsets{"j"});
  EXPECT_EQ(reads(kernel, 2), Offsets{"0"});
}

TEST(Accesses, SegmentsReadTheirSourceInTheOrderGiven) {
  const OneKernel kernel = one_kernel(R"(
    %x = input : f32[4,6]
    %s = input : f32[9,6]
    %order = input : i64[9]
    %offsets = input : i64[5]
    %y = segment_sum(%x, %s, %order, %offsets){dim=0}
    outputs (%y)
  )");
  EXPECT_EQ(reads(kernel, 0), Offsets{"i*6 + j"});
  EXPECT_EQ(reads(kernel, 1), Offsets{"j + v*6"});
  EXPECT_EQ(reads(kernel, 2), Offsets{"v"});
  EXPECT_EQ(reads(kernel, 3), (Offsets{"i", "i + 1"}));
}

TEST(Accesses, AScatterStoresWhereItsIndexSays) {
  const OneKernel kernel = one_kernel(R"(
    %s = input : f32[2,9,6]
    %i = input : i64[2,9,1]
    %x = expand(full{number=0} : f32[]){shape=[2,4,6]}
    %y = scatter_sum(%x, %s, %i){dim=1}
    outputs (%y)
  )");
  EXPECT_EQ(reads(kernel, 0), Offsets{"i*54 + j*6 + k"});
  EXPECT_EQ(reads(kernel, 1), Offsets{"i*9 + j"});
  const Access& store = kernel.accesses.list.back();
  EXPECT_TRUE(store.is_store);
  EXPECT_EQ(kernel.spaces.roots.front().reduced, (std::vector<bool>{false, true, false}));
}

TEST(Accesses, AWriterStoresThePartItReplaces) {
  const OneKernel kernel = one_kernel(R"(
    %x = input : f32[8,6]
    %s = input : f32[1,3]
    %at = input : i64[1,1]
    %y = write_slice(%x, %s, %at){ints=[0], dims=[0,1,1,2]}
    outputs (%y)
  )");
  EXPECT_EQ(reads(kernel, 0), Offsets{}) << "what stays is not touched";
  EXPECT_EQ(reads(kernel, 1), Offsets{"i"});
  const Access& store = kernel.accesses.list.back();
  ASSERT_TRUE(store.is_store);
  EXPECT_EQ(show(kernel, store.offset), "i*2 + v*6 + 1");
}

TEST(Accesses, StoresUseTheStridesOfTheResult) {
  const OneKernel kernel = reading("f32[8,6]", "%y = layout(neg(%x)){strides=[1,8]}");
  const Access& store = kernel.accesses.list.back();
  ASSERT_TRUE(store.is_store);
  EXPECT_EQ(show(kernel, store.offset), "i + j*8");
}

TEST(Accesses, ValuesReadAtSeveralIndicesAreKnown) {
  const OneKernel kernel = reading("f32[8]", R"(
    %e = exp(%x)
    %y = sub(slice(%e){dim=0, start=1, count=7}, slice(%e){dim=0, count=7})
  )");
  EXPECT_EQ(reads(kernel, 0), (Offsets{"i + 1", "i"}));
  const NodeId root = kernel.accesses.list.front().root;
  EXPECT_EQ(evaluations_of(kernel.accesses, root, kernel.graph.inputs[0]).size(), 2u);
}

std::vector<std::string> axes_of(const std::string& text) {
  const OneKernel kernel = one_kernel(text);
  EXPECT_TRUE(kernel.verdict) << kernel.verdict.why;
  std::vector<std::string> extents;
  for (const Axis& axis : find_axes(kernel.spaces, kernel.accesses)) {
    extents.push_back(to_string(axis.extent));
  }
  return extents;
}

TEST(Axes, DimensionsThatAllAccessesWalkTogetherAreOne) {
  EXPECT_EQ(axes_of("%x = input : f32[8,6,4]\n%y = neg(%x)\noutputs (%y)\n"), Offsets{"192"});
  EXPECT_EQ(axes_of("%x = input : f32[s0,s1,4]\n%y = neg(%x)\noutputs (%y)\n"),
            Offsets{to_string(Dim::symbol(0) * Dim::symbol(1) * Dim(4))});
}

TEST(Axes, ABroadcastOperandKeepsItsDimensionsApart) {
  EXPECT_EQ(axes_of("%x = input : f32[8,6,4]\n%b = input : f32[4]\n%y = add(%x, %b)\n"
                    "outputs (%y)\n"),
            (Offsets{"48", "4"}));
  EXPECT_EQ(axes_of("%x = input : f32[8,6,4]\n%b = input : f32[6,1]\n%y = add(%x, %b)\n"
                    "outputs (%y)\n"),
            (Offsets{"8", "6", "4"}));
}

TEST(Axes, StridesThatDoNotNestAreApart) {
  EXPECT_EQ(axes_of("%x = input : f32[8,6](1,8)\n%y = layout(neg(%x)){strides=[6,1]}\n"
                    "outputs (%y)\n"),
            (Offsets{"8", "6"}));
}

TEST(Axes, ReducedAndKeptDimensionsNeverJoin) {
  EXPECT_EQ(axes_of("%x = input : f32[2,3,8]\n%y = sum(%x){axes=[2]}\noutputs (%y)\n"),
            (Offsets{"6", "8"}));
  EXPECT_EQ(axes_of("%x = input : f32[2,3,8]\n%y = sum(%x){axes=[1,2]}\noutputs (%y)\n"),
            (Offsets{"2", "24"}));
}

TEST(Axes, TheFlatIndexOfAnArgReductionIsAUseOfItsAtoms) {
  EXPECT_EQ(axes_of("%x = input : f32[4,5,6]\n%y = argmax(%x){axes=[1,2]}\noutputs (%y)\n"),
            (Offsets{"4", "30"}));
  // In memory order 5 and 6 nest; in the flat index over axes 0 and 2 they cannot.
  EXPECT_EQ(axes_of("%x = input : f32[4,5,6]\n%y = argmax(%x){axes=[0,2]}\noutputs (%y)\n"),
            (Offsets{"4", "5", "6"}));
  // A mapping that lies the other way round in memory keeps its logical order.
  EXPECT_EQ(axes_of("%x = input : f32[4,6](1,4)\n%y = argmax(%x){axes=[0,1]}\noutputs (%y)\n"),
            (Offsets{"4", "6"}));
}

}  // namespace
}  // namespace stitch
