// Loads through tiles: which have one, over which axes, of which shape.
#include "stage/tiles.h"

#include "plan/plan_graph.h"

namespace stitch {
namespace {

StageSchedule schedule_tiles(const std::string& text, const char* target = "cpu") {
  return schedule_together(text, target).only();
}

constexpr const char* kNormedMiddle = R"(
  %x = input : f32[8,512,256]
  %t = permute(%x){order=[0,2,1]}
  %e = exp(%t)
  %y = div(%e, sum(%e){axes=[2], keepdim})
  outputs (%y)
)";

TEST(StageTiles, ATransposeHasTilesOfBothAxes) {
  const StageSchedule s = schedule_tiles(kNormedMiddle);
  ASSERT_EQ(s.tiles.size(), 1u);
  const TiledLoad& tile = s.tiles.front();
  EXPECT_TRUE(s.axes[tile.along].axis.extent.is(256));
  EXPECT_TRUE(s.axes[tile.across].axis.extent.is(512));
  EXPECT_FALSE(s.axes[tile.across].in_grid()) << "a reduced axis is in the tile as a whole";
  EXPECT_TRUE(s.axes[tile.along].in_grid());
  EXPECT_TRUE(s.axes[tile.along].tile().is(tile.rows));
  EXPECT_GT(tile.pitch, 512) << "rows begin in different sets of the cache";
  EXPECT_EQ(s.loops.back().axis, tile.across);
}

TEST(StageTiles, TheOtherAxesHaveOneIndexInABlock) {
  const StageSchedule s = schedule_tiles(kNormedMiddle);
  for (const MappedAxis& axis : s.axes) {
    if (axis.axis.extent.is(8)) {
      EXPECT_TRUE(axis.in_grid() && axis.tile().is(1));
    }
  }
}

TEST(StageTiles, BlocksDivideBothAxesWhereNothingReduces) {
  const StageSchedule s = schedule_tiles(R"(
    %x = input : f32[300,4099]
    %z = input : f32[4099,300]
    %y = add(permute(%x){order=[1,0]}, %z)
    outputs (%y)
  )");
  ASSERT_EQ(s.tiles.size(), 1u);
  const TiledLoad& tile = s.tiles.front();
  EXPECT_TRUE(s.axes[tile.along].axis.extent.is(4099));
  EXPECT_TRUE(s.axes[tile.along].in_grid());
  EXPECT_TRUE(s.axes[tile.across].in_grid());
}

TEST(StageTiles, EveryTransposedLoadHasItsOwn) {
  const StageSchedule s = schedule_tiles(R"(
    %x = input : f32[512,256]
    %z = input : bf16[512,256]
    %w = input : f32[256,512]
    %c = cast(permute(%z){order=[1,0]}) : f32
    %y = add(add(permute(%x){order=[1,0]}, %w), %c)
    outputs (%y)
  )");
  ASSERT_EQ(s.tiles.size(), 2u);
  EXPECT_NE(s.tiles[0].value, s.tiles[1].value);
  for (const TiledLoad& tile : s.tiles) EXPECT_EQ(find_tile(s, tile.value, tile.offset), &tile);
}

TEST(StageTiles, OneValueReadBothWaysHasOne) {
  const StageSchedule s = schedule_tiles(R"(
    %x = input : f32[512,512]
    %y = add(%x, permute(%x){order=[1,0]})
    outputs (%y)
  )");
  EXPECT_EQ(s.tiles.size(), 1u);
}

constexpr const char* kNeighbours = R"(
  %x = input : f32[512,4096]
  %t = permute(%x){order=[1,0]}
  %a = slice(%t){dim=0, start=0, count=2048, step=2}
  %b = slice(%t){dim=0, start=1, count=2048, step=2}
  %y = add(%a, %b)
  outputs (%y)
)";

TEST(StageTiles, OfAHostTakeEverySecondElement) {
  const StageSchedule s = schedule_tiles(kNeighbours);
  ASSERT_EQ(s.tiles.size(), 2u) << "the even ones and the odd ones";
  for (const TiledLoad& tile : s.tiles) {
    EXPECT_EQ(tile.step, 2);
    EXPECT_TRUE(s.axes[tile.along].axis.extent.is(2048));
  }
  EXPECT_TRUE(schedule_tiles(kNeighbours, "h200").tiles.empty()) << "vectors are read along";
}

TEST(StageTiles, NoneWhereTwoAxesWalkTheSameElements) {
  EXPECT_TRUE(schedule_tiles(R"(
    %x = input : f32[1000]
    %i = iota() {start=0, step=1} : i64[512]
    %j = iota() {start=0, step=1} : i64[64]
    %y = neg(index(%x, add(reshape(%i){shape=[512,1]}, %j)){axes=[0]})
    outputs (%y)
  )")
                  .tiles.empty());
}

TEST(StageTiles, NoneForWhatIsContiguousAlready) {
  for (const char* text : {
           "%x = input : f32[64,512]\n%y = neg(%x)\noutputs (%y)\n",
           "%x = input : f32[64,512]\n%y = sum(%x){axes=[0]}\noutputs (%y)\n",
           "%x = input : f32[512,3]\n%z = input : f32[3,512]\n"
           "%y = add(permute(%x){order=[1,0]}, %z)\noutputs (%y)\n",
       }) {
    EXPECT_TRUE(schedule_tiles(text).tiles.empty()) << text;
  }
}

TEST(StageTiles, NoneWhereAReducedAxisDoesNotFit) {
  const StageSchedule s = schedule_tiles(R"(
    %x = input : f32[100000,64]
    %z = input : f32[64,100000]
    %y = sum(mul(permute(%x){order=[1,0]}, %z)){axes=[1]}
    outputs (%y)
  )");
  EXPECT_TRUE(s.tiles.empty());
}

TEST(StageTiles, NoneWhereAsMuchIsContiguousWithoutThem) {
  const StageSchedule s = schedule_tiles(R"(
    symbols s0 = input(0) hint 512
    %x = input : f32[64,s0,256]
    %t = permute(%x){order=[0,2,1]}
    %d = sub(%t, sum(%t){axes=[2], keepdim})
    %e = add(sum(mul(%d, %d)){axes=[2], keepdim}, sum(%d){axes=[2], keepdim})
    %y = mul(%d, %e)
    outputs (%y)
  )");
  EXPECT_TRUE(s.tiles.empty()) << "of [16 columns, 64 batches]: the columns are contiguous anyhow";
  EXPECT_TRUE(s.axes[s.loops.back().axis].axis.extent.is(256));
}

TEST(StageTiles, NoneWhereBlocksWouldRepeatAReduction) {
  const StageSchedule s = schedule_tiles(R"(
    %x = input : f32[512,256]
    %z = input : f32[256,4096]
    %s = sum(%z){axes=[1], keepdim}
    %w = input : f32[256,512]
    %y = add(mul(permute(%x){order=[1,0]}, %s), %w)
    outputs (%y)
  )");
  EXPECT_TRUE(s.tiles.empty());
}

TEST(StageTiles, ABlockOfAGpuHasOneInSharedMemory) {
  const StageSchedule s = schedule_tiles(kNormedMiddle, "h200");
  ASSERT_EQ(s.tiles.size(), 1u);
  const TiledLoad& tile = s.tiles.front();
  const MappedAxis &along = s.axes[tile.along], &across = s.axes[tile.across];
  EXPECT_TRUE(across.axis.extent.is(512));
  EXPECT_EQ(across.thread_shift(), 0) << "lanes walk across";
  EXPECT_GT(along.threads(), 1);
  EXPECT_TRUE(along.in_grid() && along.tile().is(tile.rows));
  EXPECT_EQ(tile.vector, 4);
  EXPECT_EQ(tile.shared_offset % 16, 0);
  EXPECT_GE(tile.shared_offset, 4 * s.threads) << "reductions meet in shared memory too";
  EXPECT_EQ(s.shared_bytes, tile.shared_offset + tile.rows * tile.pitch * 4);
  EXPECT_LE(s.shared_bytes, 48 << 10);
  for (const MappedAxis& axis : s.axes) {
    if (axis.axis.extent.is(8)) {
      EXPECT_TRUE(axis.in_grid() && axis.tile().is(1) && axis.threads() == 1);
    }
  }
}

TEST(StageTiles, ReadVectorsOnlyWhereTheyAreAligned) {
  for (const auto& [extent, vector] : {std::pair{512, 8}, {516, 4}, {514, 2}, {511, 1}}) {
    const std::string n = std::to_string(extent);
    const StageSchedule s =
        schedule_tiles("%x = input : bf16[256," + n + "]\n%z = input : f32[" + n +
                           ",256]\n%y = add(cast(permute(%x){order=[1,0]}) : f32, "
                           "%z)\noutputs (%y)\n",
                       "h200");
    ASSERT_EQ(s.tiles.size(), 1u) << extent;
    EXPECT_EQ(s.tiles.front().vector, vector) << extent;
  }
}

TEST(StageTiles, FitBesideEachOtherInStaticSharedMemory) {
  std::string text, sum = "%w";
  for (int i = 0; i < 5; ++i) {
    const std::string n = std::to_string(i);
    text += "%x" + n + " = input : f64[256,512]\n";
    sum = "add(" + sum + ", permute(%x" + n + "){order=[1,0]})";
  }
  text += "%w = input : f64[512,256]\n%y = " + sum + "\noutputs (%y)\n";
  const StageSchedule s = schedule_tiles(text, "h200");
  EXPECT_EQ(s.tiles.size(), 5u);
  EXPECT_LE(s.shared_bytes, 48 << 10);
}

}  // namespace
}  // namespace stitch
