// Mappings of axes to the grid, threads, loops and vectors, for both kinds of target.
#include "stage/map_axes.h"

#include <bit>

#include "plan/plan_graph.h"

namespace stitch {
namespace {

std::string pointwise(const std::string& type) {
  return "%x = input : " + type + "\n%y = neg(%x)\noutputs (%y)\n";
}

std::string row_softmax(const std::string& type) {
  return "%x = input : " + type +
         "\n%e = exp(sub(%x, amax(%x){axes=[1], keepdim}))\n"
         "%y = div(%e, sum(%e){axes=[1], keepdim})\noutputs (%y)\n";
}

StageSchedule schedule(const std::string& text, const char* target = "h200") {
  return schedule_together(text, target).only();
}

const MappedAxis& last_axis(const StageSchedule& schedule) { return schedule.axes.back(); }

// What the emitter relies on, for shapes small and large, prime and symbolic.
// An accumulator of m16n8: each lane has two neighbours in each of two rows.
TEST(MappedAxis, AFragmentOfTensorCoresIsDigits) {
  MappedAxis rows{.axis = {.extent = 64}}, columns{.axis = {.extent = 8}};
  rows.set(Level::kSerial, 2);
  rows.set(Level::kGrid, 4);
  rows.set_threads(8, 2);
  columns.set_threads(4, 0);
  columns.set(Level::kVector, 2);
  EXPECT_EQ(to_string(rows), "64 = lane 8 from bit 2, serial 2, grid 4");
  EXPECT_EQ(to_string(columns), "8 = vector 2, lane 4");
  EXPECT_EQ(rows.thread_bits(), 0b11100u);
  EXPECT_EQ(columns.thread_bits(), 0b11u);
  EXPECT_EQ(rows.tile(), Dim(16));
  EXPECT_EQ(columns.tile(), Dim(8));
}

TEST(MappedAxis, ThreadsBeyondAWarpAreWarps) {
  MappedAxis axis{.axis = {.extent = 4096}};
  axis.set(Level::kVector, 4);
  axis.set_threads(256, 0);
  axis.set(Level::kSerial, kOpen);
  EXPECT_EQ(to_string(axis), "4096 = vector 4, lane 32, warp 8 from bit 5, serial ?");
  EXPECT_EQ(axis.step(), 1024);
  EXPECT_EQ(axis.static_trips(), std::nullopt);
  axis.set_threads(16, 3);
  EXPECT_EQ(to_string(axis), "4096 = vector 4, lane 4 from bit 3, warp 4 from bit 5, serial ?");
  axis.set_threads(1, 0);
  axis.set(Level::kSerial, 1);
  EXPECT_EQ(to_string(axis), "4096 = vector 4");
  EXPECT_EQ(axis.trips(), Dim(1));
}

// Blocks of a cluster have neighbouring tiles.
TEST(MappedAxis, ClustersLieBetweenBlocksAndTheGrid) {
  MappedAxis axis{.axis = {.extent = 4096}};
  axis.set(Level::kGrid, 8);
  axis.set(Level::kCluster, 4);
  axis.set_threads(128, 0);
  EXPECT_EQ(axis.tile(), Dim(128));
  EXPECT_EQ(axis.extent_below(Level::kGrid), Dim(512));
}

class MappingRules : public testing::TestWithParam<std::string> {};

TEST_P(MappingRules, HoldOnCuda) {
  const StageSchedule s = schedule(GetParam());
  int64_t product = 1;
  unsigned used_bits = 0;
  for (const MappedAxis& axis : s.axes) {
    EXPECT_TRUE(std::has_single_bit(static_cast<unsigned>(axis.threads())));
    EXPECT_TRUE(std::has_single_bit(static_cast<unsigned>(axis.vector())));
    EXPECT_TRUE(is_divisible(axis.axis.extent, axis.vector())) << "vectors divide the extent";
    product *= axis.threads();
    const unsigned bits = axis.thread_bits();
    EXPECT_EQ(bits & used_bits, 0u) << "axes own bits of the thread index of their own";
    used_bits |= bits;
    if (axis.in_grid()) {
      EXPECT_EQ(axis.tile(), axis.trips() * Dim(axis.step()));
      EXPECT_EQ(axis.is_exact, divide_exact(axis.axis.extent, axis.tile()).has_value());
    }
    if (!axis.axis.extent.is_constant() || axis.trips().is(kOpen)) continue;
    const Dim covered = axis.count(Level::kGrid) * axis.trips() * Dim(axis.step());
    EXPECT_GE(covered.value(), axis.axis.extent.value());
    EXPECT_EQ(axis.is_exact, covered == axis.axis.extent);
  }
  EXPECT_TRUE(std::has_single_bit(static_cast<unsigned>(s.threads)));
  EXPECT_GE(s.threads, 32);
  EXPECT_LE(s.threads, 1024);
  EXPECT_LE(product, s.threads);
  EXPECT_LE(s.shared_bytes, s.device->shared_bytes_per_block);
  if (!s.grid.is_constant()) return;
  EXPECT_LT(s.grid.value(), int64_t{1} << 31) << "no launch takes more";
}

TEST_P(MappingRules, HoldOnTheHost) {
  const StageSchedule s = schedule(GetParam(), "cpu");
  EXPECT_EQ(s.threads, 1);
  EXPECT_EQ(s.shared_bytes, 0);
  for (const MappedAxis& axis : s.axes) {
    EXPECT_EQ(axis.threads(), 1);
    EXPECT_EQ(axis.vector(), 1) << "the compiler vectorises host loops";
    EXPECT_TRUE(axis.is_exact);
    if (!axis.axis.extent.is_constant()) continue;
    EXPECT_GE((axis.count(Level::kGrid) * axis.tile()).value(), axis.axis.extent.value());
    EXPECT_LT(((axis.count(Level::kGrid) - Dim(1)) * axis.tile()).value(),
              axis.axis.extent.value());
  }
}

TEST_P(MappingRules, NoReducedAxisIsCutIntoBlocks) {
  for (const char* target : {"cpu", "h200"}) {
    const StageSchedule s = schedule(GetParam(), target);
    for (const MappedAxis& axis : s.axes) {
      for (const RootSpace& space : s.spaces.roots) {
        const bool is_reduced = role_of(space, axis.axis) == Role::kReduced;
        EXPECT_FALSE(is_reduced && axis.in_grid()) << target;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes, MappingRules,
                         testing::Values(pointwise("f32[1]"), pointwise("f32[7]"),
                                         pointwise("f16[8192,3072]"), pointwise("f32[1000003]"),
                                         pointwise("bf16[s0,s1]"), pointwise("i64[31,33]"),
                                         row_softmax("f32[4096,1024]"),
                                         row_softmax("bf16[3,50257]"), row_softmax("f32[s0,1000]"),
                                         row_softmax("f32[1000,s1]"), row_softmax("f16[s0,s1*8]"),
                                         row_softmax("f32[100000,3]"), row_softmax("f64[2,131]"),
                                         column_sum("f32[16384,768]"), column_sum("f32[17,3]"),
                                         column_sum("f16[s0,s1]"), column_sum("f32[1000003,1]")));

INSTANTIATE_TEST_SUITE_P(
    HugeShapes, MappingRules,
    testing::Values(pointwise("bf16[1073741827]"), pointwise("i8[2147483649]"),
                    pointwise("i8[4294967301]"), pointwise("u8[1099511627776]"),
                    pointwise("i8[3,65537,65539,5]"), row_softmax("f32[8589934592,1024]"),
                    row_softmax("bf16[6442450947,300]"), row_softmax("f32[3,4294967301]"),
                    column_sum("f32[3,17179869189]"), column_sum("f32[4294967301,5]")));

TEST(MapAxesCuda, ExtentsBeyondThirtyBitsKeepTheirThreads) {
  for (const char* type : {"bf16[1073741823]", "bf16[1073741827]", "i8[2147483649]",
                           "i8[4294967301]", "i8[1099511627777]"}) {
    const StageSchedule s = schedule(pointwise(type));
    EXPECT_EQ(last_axis(s).threads(), 256) << type;
    EXPECT_EQ(s.threads, 256) << type;
  }
  EXPECT_EQ(last_axis(schedule(row_softmax("f32[3,4294967301]"))).threads(), 1024);
}

TEST(MapAxesCuda, OneThreadMovesSixteenBytes) {
  EXPECT_EQ(last_axis(schedule(pointwise("f32[4096,4096]"))).vector(), 4);
  EXPECT_EQ(last_axis(schedule(pointwise("bf16[4096,4096]"))).vector(), 8);
  EXPECT_EQ(last_axis(schedule(pointwise("i64[4096,4096]"))).vector(), 2);
  EXPECT_EQ(last_axis(schedule(pointwise("u8[4096,4096]"))).vector(), 8);
  EXPECT_EQ(last_axis(schedule(pointwise("f32[4096,4094]"))).vector(), 4) << "one axis of 16769024";
}

TEST(MapAxesCuda, TheWidthDividesTheContiguousExtent) {
  EXPECT_EQ(last_axis(schedule(row_softmax("f32[64,1022]"))).vector(), 2);
  EXPECT_EQ(last_axis(schedule(row_softmax("f32[64,1021]"))).vector(), 1);
  EXPECT_EQ(last_axis(schedule(row_softmax("f32[64,s1]"))).vector(), 1);
  EXPECT_EQ(last_axis(schedule(row_softmax("f32[64,s1*4]"))).vector(), 4);
}

TEST(MapAxesCuda, ThePartsOfAMixedKernelFollowTheHeaviestAccess) {
  const StageSchedule s = schedule(R"(
    %x = input : bf16[4096,1024]
    %w = input : f32[1024]
    %y = mul(%x, cast(%w) : bf16)
    outputs (%y)
  )");
  EXPECT_EQ(last_axis(s).vector(), 8);
}

TEST(MapAxesCuda, ShortRowsArePackedIntoABlock) {
  const StageSchedule s = schedule(row_softmax("f32[65536,64]"));
  EXPECT_EQ(s.threads, 256);
  EXPECT_EQ(s.axes[0].threads(), 16) << "16 lanes of 4 elements a row";
  EXPECT_EQ(s.grid, Dim(4096));
}

TEST(MapAxesCuda, FewRowsAreNotPackedAtTheCostOfIdleMultiprocessors) {
  const StageSchedule s = schedule(row_softmax("f32[132,64]"));
  EXPECT_EQ(s.axes[0].threads(), 2) << "one warp holds two rows of 16 lanes";
}

TEST(MapAxesCuda, LongRowsTakeAWholeBlock) {
  const StageSchedule s = schedule(row_softmax("f32[512,65536]"));
  EXPECT_EQ(s.threads, 512) << "two blocks are resident, and wait at barriers in turn";
  EXPECT_EQ(s.axes[0].threads(), 1);
  EXPECT_EQ(s.grid, Dim(512));
  EXPECT_EQ(s.axes[1].trips(), Dim(32));
  EXPECT_EQ(schedule(row_softmax("f32[512,32768]")).threads, 1024) << "in registers";
  EXPECT_EQ(schedule(row_softmax("f32[132,65536]")).threads, 1024) << "no block has a neighbour";
}

TEST(MapAxesCuda, RaggedRowsAreMarked) {
  EXPECT_TRUE(last_axis(schedule(row_softmax("f32[64,1024]"))).is_exact);
  const StageSchedule prime = schedule(row_softmax("f32[64,50257]"));
  EXPECT_FALSE(last_axis(prime).is_exact);
  const StageSchedule dynamic = schedule(row_softmax("f32[64,s1]"));
  EXPECT_TRUE(last_axis(dynamic).trips().is(kOpen));
  EXPECT_FALSE(last_axis(dynamic).is_exact);
}

TEST(MapAxesCuda, ColumnSumsKeepLanesOnColumns) {
  const StageSchedule s = schedule(column_sum("f32[2048,65536]"));
  EXPECT_EQ(s.axes[1].threads(), 32);
  EXPECT_EQ(s.axes[1].thread_shift(), 0);
  EXPECT_TRUE(s.axes[1].in_grid());
  EXPECT_EQ(s.axes[0].threads(), 16) << "warps share the rows";
}

TEST(MapAxesCuda, FewColumnsHaveFewerLanesOfWideAccesses) {
  for (const auto& [type, lanes, vector] :
       {std::tuple("f32[2048,1024]", 8, 4), std::tuple("f16[2048,1024]", 4, 8),
        std::tuple("f32[2048,1023]", 32, 1)}) {
    const StageSchedule s = schedule(column_sum(type));
    EXPECT_EQ(s.axes[1].threads(), lanes) << type;
    EXPECT_EQ(s.axes[1].vector(), vector) << type;
    EXPECT_EQ(s.axes[0].threads() * s.axes[1].threads(), 512) << type;
  }
}

// A bias gradient beside a small update: no root runs over both axes, so both use all threads.
TEST(MapAxesCuda, AxesThatNoRootJoinsShareThreads) {
  const Planned planned = schedule_together(R"(
    %x = input : f32[4096,1024]
    %v = input : f32[256]
    %rows = sum(%x){axes=[1]}
    %w = neg(%v)
    outputs (%rows, %w)
  )",
                                            "h200");
  const StageSchedule& s = planned.only();
  const auto groups = find_axis_groups(s, find_axis_facts(planned.graph, s));
  ASSERT_EQ(groups.size(), 2u);
  EXPECT_EQ(groups[0].size(), 2u) << "the most work comes first";
  const MappedAxis& side = s.axes[groups[1][0]];
  EXPECT_FALSE(side.in_grid());
  EXPECT_EQ(side.thread_shift(), 0);
  EXPECT_GT(side.threads(), 1);
  EXPECT_LE(side.threads(), s.threads);
  for (const RootSpace& space : s.spaces.roots) EXPECT_NE(owned_thread_bits(s, space), 0u);
}

TEST(MapAxesCuda, BlocksOfASymbolicExtentAreASymbol) {
  const Planned planned = schedule_together(pointwise("f32[s0]"), "h200");
  const StageSchedule& s = planned.only();
  EXPECT_FALSE(s.grid.is_constant());
  const int64_t tile = s.axes[0].tile().value();
  for (int64_t length : {int64_t{1}, tile - 1, tile, tile + 1}) {
    EXPECT_EQ(evaluate(s.grid, planned.graph.symbols.evaluate({length})),
              (length + tile - 1) / tile);
  }
}

// Pieces of rows and what they come to: in one block, but in no loop together.
TEST(MapAxesCuda, ResultsOfPiecesAreCombinedByTheThreadsOfTheRest) {
  const StageSchedule s = schedule(R"(
    %x = input : f32[4,64,16384]
    %parts = input : f32[4,64]
    %sums = sum(exp(sub(%x, reshape(amax(%parts){axes=[1]}){shape=[4,1,1]}))){axes=[2]}
    outputs (%sums)
  )");
  const MappedAxis *row = nullptr, *pieces = nullptr;
  for (const MappedAxis& axis : s.axes) {
    if (axis.axis.extent.is(16384)) row = &axis;
    if (axis.axis.extent.is(64) && !axis.in_grid()) pieces = &axis;
  }
  ASSERT_TRUE(row && pieces) << "the pieces of the sums are blocks, those of the maxima are not";
  EXPECT_EQ(row->threads(), s.threads) << "none is lost to the small reduction";
  EXPECT_EQ(pieces->threads(), 64);
  EXPECT_EQ(s.grid, Dim(4 * 64));
}

// [rows, pieces, elements of a thread, threads, vector]: maxima of threads' pieces, then of rows.
TEST(MapAxesCuda, AThreadHasThePiecesOfRowsToItselfThatAreReducedAgain) {
  const auto rows_of = [](const std::string& type) {
    return schedule("%x = input : " + type + R"(
      %own = amax(%x){axes=[2,4]}
      %all = amax(%own){axes=[1,2]}
      %below = exp(sub(%own, reshape(%all){shape=[)" +
                    type.substr(4, type.find(',') - 4) + R"(,1,1]}))
      %sum = sum(%below){axes=[1,2]}
      outputs (%sum)
    )");
  };
  const StageSchedule many = rows_of("f32[8192,8,4,128,8]");
  EXPECT_EQ(many.axes[2].threads(), 1) << "else each piece would end at a barrier";
  EXPECT_EQ(many.axes[3].threads(), 128);
  EXPECT_EQ(many.threads, 256) << "of two pieces";
  EXPECT_EQ(rows_of("f32[384,8,4,128,8]").threads, 512) << "small blocks would leave some idle";
}

TEST(MapAxesCuda, ColumnsKeepWideAccessesWhereBlocksAreFew) {
  const StageSchedule s = schedule(column_sum("f32[16384,2048]"));
  EXPECT_EQ(last_axis(s).vector(), 4);
  EXPECT_EQ(last_axis(s).threads(), 8) << "32 columns a block";
  EXPECT_EQ(s.grid, Dim(64));
  EXPECT_EQ(s.axes[0].threads() * 8, s.threads) << "the other lanes take rows";
}

TEST(MapAxesHost, BlocksAreCutForTheWorkers) {
  EXPECT_EQ(schedule(pointwise("f32[1000]"), "cpu").grid, Dim(1)) << "too small to share";
  EXPECT_EQ(schedule(row_softmax("f32[4096,1024]"), "cpu").grid, Dim(4 * kTestWorkers));
}

TEST(MapAxesHost, TilesOfTheContiguousAxisKeepVectorsWhole) {
  const StageSchedule s = schedule(pointwise("f32[1000003]"), "cpu");
  EXPECT_GT(s.grid.value(), 1);
  EXPECT_EQ(s.axes[0].tile().value() % 64, 0);
}

int64_t strips_of(const std::string& type, const std::string& op) {
  const std::string text =
      "%x = input : " + type + "\n%y = " + op + "(%x){axes=[1]}\noutputs (%y)\n";
  return last_axis(schedule(text, "cpu")).count(Level::kStrip).value();
}

// Chunks of a scatter are blocks: two that combine into one row are not.
TEST(MapAxesHost, PositionsOfAScatterAreNotDividedAmongBlocks) {
  const auto scatter = [](const std::string& width) {
    const std::string one = width.empty() ? "" : ",1";
    return schedule("%s = input : f32[4,100000" + width + "]\n%i = input : i64[4,100000" + one +
                        "]\n%x = expand(full{number=0} : f32[]){shape=[4,50" + width + "]}\n" +
                        "%y = scatter_sum(%x, %s, %i){dim=1}\noutputs (%y)\n",
                    "cpu");
  };
  const StageSchedule single = scatter(""), wide = scatter(",64");
  for (const StageSchedule* s : {&single, &wide}) {
    EXPECT_EQ(s->axes[0].tile(), Dim(1));
    EXPECT_FALSE(s->axes[1].in_grid());
  }
  EXPECT_EQ(single.axes[1].count(Level::kStrip), Dim(4)) << "rows of neighbours may be the same";
  EXPECT_FALSE(wide.axes[1].has(Level::kStrip));
}

TEST(MapAxesHost, AShortAxisThatNoLoadMovesAlongIsWrittenOutInsideWhatComputes) {
  const auto is_unrolled = [](const std::string& rows, const std::string& value) {
    const std::string columns = value == "%x" ? "" : rows + ",";
    return schedule("%x = input : f32[100000]\n%t = input : f32[" + columns + "100000]\n" +
                        "%y = add(" + value + ", %t)\n%z = expand(%y){shape=[" + rows +
                        ",100000]}\n%c = cat(%z, %z){dim=1}\noutputs (%c)\n",
                    "cpu")
        .axes[0]
        .is_unrolled;
  };
  EXPECT_TRUE(is_unrolled("4", "%x")) << "each column is added once";
  EXPECT_FALSE(is_unrolled("40", "%x")) << "loops of more trips stay loops";
  EXPECT_FALSE(is_unrolled("4", "mul(%x, 2)")) << "each row has terms of its own";
}

TEST(MapAxesHost, SumsAddStripsOfOneLength) {
  EXPECT_EQ(strips_of("f32[64,100000]", "sum"), 4);
  EXPECT_EQ(strips_of("f32[64,1002]", "sum"), 2) << "strips divide the extent";
  EXPECT_EQ(strips_of("f32[64,1001]", "sum"), 1);
  EXPECT_EQ(strips_of("f32[64,8]", "sum"), 2) << "and leave whole vectors of f64";
  EXPECT_EQ(strips_of("f32[64,100000]", "amax"), 1) << "a maximum has no rounding error";
  EXPECT_EQ(strips_of("bf16[64,100000]", "sum"), 1) << "f32 is exact enough for 16 bits";
}

// A lane is an element of a vector of 64 bytes, of the narrowest that the row is read from.
TEST(MapAxesHost, StripsOfASpanAreOneVectorEach) {
  const auto span_of = [](const std::string& type, const std::string& more = "") {
    const std::string text = "%x = input : " + type + "\n" + more + "%y = sum(" +
                             (more.empty() ? "%x" : "%z") + "){axes=[1]}\noutputs (%y)\n";
    const MappedAxis axis = last_axis(schedule(text, "cpu"));
    return axis.has(Level::kSpan) ? axis.extent_below(Level::kSpan).value() : 0;
  };
  EXPECT_EQ(span_of("f32[8192,2048]"), 4 * 16);
  EXPECT_EQ(span_of("f32[64,144]"), 3 * 16) << "spans divide the extent";
  EXPECT_EQ(span_of("f32[64,784]"), 0) << "more terms than 4 are not added in f32";
  EXPECT_EQ(span_of("f64[64,784]"), 7 * 16);
  EXPECT_EQ(span_of("f32[65536,64]"), 0) << "one span is the whole";
  EXPECT_EQ(span_of("bf16[64,2048]", "%z = cast(%x) : f32[64,2048]\n"), 4 * 32);
}

TEST(MapAxesHost, EachAxisThatIsInnermostForItsSumsHasStrips) {
  const StageSchedule s = schedule(R"(
    %x = input : f32[512,2048]
    %y = sum(%x){axes=[1]}
    %r = reshape(%y) : f32[512,1]
    %e = expand(%r) : f32[512,64]
    %z = exp(%e)
    outputs (%z)
  )",
                                   "cpu");
  const auto strips = [](const MappedAxis& axis) { return axis.count(Level::kStrip); };
  EXPECT_EQ(std::ranges::count(s.axes, Dim(4), strips), 1);
}

TEST(MapAxesHost, StripsAreNotCutIntoChunksToo) {
  const StageSchedule s = schedule(R"(
    %x = input : f32[8,12]
    %y = sum(%x){axes=[1]}
    %m = amin(%y){axes=[0]}
    %v = sum(slice(%x){dim=1, count=6}){axes=[0]}
    outputs (%m, %v)
  )",
                                   "cpu");
  EXPECT_TRUE(std::ranges::none_of(s.axes, [](const MappedAxis& axis) {
    return axis.has(Level::kStrip) && axis.has(Level::kChunk);
  }));
}

TEST(MapAxesHost, SumsOfColumnsAddChunksOfRows) {
  const auto rows = [](const std::string& type) {
    return to_string(schedule(column_sum(type), "cpu").axes[0]);
  };
  EXPECT_EQ(rows("f32[16384,64]"), "16384 = serial 4, chunk ?");
  EXPECT_EQ(rows("f32[4,64]"), "4 = serial 4") << "one chunk is the sum";
}

TEST(MapAxesHost, AccumulatorsOfColumnsStayInTheFirstCache) {
  const StageSchedule s = schedule(column_sum("f32[16384,65536]"), "cpu");
  EXPECT_LE(s.axes[1].tile().value(), 16384);
  EXPECT_TRUE(check_arrays(read_graph(column_sum("f32[16384,65536]")), s));
}

// Small at their hints, so that nothing else would divide them among blocks.
TEST(HostMapping, AKeptAxisOfUnknownExtentInsideAReducedOneIsInTheGrid) {
  const Planned planned = plan_graph(R"(
    symbols s0 = input(0) hint 4, s1 = input(1) hint 8, s2 = input(2) hint 5
    arguments 4 tensors [3] integers [0,1,2]
    %x = input : f32[s0,s1,s2]
    %y = sum(%x){axes=[0,2]}
    outputs (%y)
  )",
                                     "cpu");
  ASSERT_EQ(planned.plan.schedules.size(), 1u);
  EXPECT_TRUE(planned.only().axes[1].in_grid());
  EXPECT_TRUE(check_arrays(planned.graph, planned.only()).ok);
}

}  // namespace
}  // namespace stitch
