#include "ptxsim/memory/memory.h"

#include "memory_fixture.h"
#include "ptxsim/memory/views.h"

namespace stitch::ptxsim {
namespace {

using Role = View::Role;
using Kind = FindingKind;

TEST(Memory, AllowsTheLastElementAndNotTheNext) {
  Launched launch({view_of(Role::any, 64)});
  EXPECT_EQ(launch.load(launch.warp(0, 0), 1, stepped(kBase)), kAllLanes);
  EXPECT_EQ(launch.load(launch.warp(0, 1), 2, stepped(kBase + 128)), kAllLanes);
  launch.expect_none();
  EXPECT_EQ(launch.load(launch.warp(0, 1), 3, stepped(kBase + 132)), 0x7fffffffu);
  launch.expect_one(Kind::out_of_bounds, "0 bytes past arg 2 (float32 [64])");
  EXPECT_EQ(launch.findings.all[0].line, 103);
  EXPECT_EQ(launch.findings.all[0].thread[0], 63u);
  EXPECT_NE(launch.text().find("kernel k line 103 (PTX 3), block (0, 0, 0), warp 1, lane 31 "
                               "(thread (63, 0, 0)): reads 4 bytes at "),
            std::string::npos)
      << launch.text();
}

TEST(Memory, NamesTheNearestViewAndTheIndex) {
  View matrix = view_of(Role::any, 6400);
  matrix.sizes = {64, 100};
  const std::vector<View> views = {matrix, view_of(Role::any, 16, kBase + (1 << 20))};
  EXPECT_EQ(locate(views, kBase + (3 * 100 + 17) * 4), "arg 2[3, 17]");
  EXPECT_EQ(locate(views, kBase + 6400 * 4 + 12), "12 bytes past arg 2 (float32 [64, 100])");
  EXPECT_EQ(locate(views, kBase - 8), "8 bytes before arg 2 (float32 [64, 100])");
}

TEST(Memory, NamesElementsOfStridedViews) {
  View view = view_of(Role::any, 64);
  view.sizes = {3, 4};
  view.strides = {1, 8};  // transposed, rows padded
  const std::vector<View> views = {view};
  EXPECT_EQ(locate(views, kBase + (2 + 3 * 8) * 4), "arg 2[2, 3]");
  EXPECT_EQ(locate(views, kBase + 5 * 4), "arg 2 + 20 bytes (between elements)");
}

TEST(Memory, VectorThatEndsOutsideIsOutOfBounds) {
  Launched launch({view_of(Role::any, 63)});
  EXPECT_EQ(launch.run(launch.warp(0, 0), 1, {.mask = 0xffff, .bytes = 16, .elements = 4},
                       stepped(kBase, 16)),
            0x7fffu);
  launch.expect_one(Kind::out_of_bounds, "arg 2[60], of which the last 4 are past the end");
}

TEST(Memory, FreedMemoryIsOutOfBounds) {
  Launched launch({view_of(Role::freed)});
  EXPECT_EQ(launch.load(launch.warp(0, 0), 1, stepped(kBase)), 0u);
  launch.expect_one(Kind::out_of_bounds, "arg 2[0] of arg 2 (float32 [4096]), which is freed");
}

TEST(Memory, EveryPlaceCountsAndFewAreKept) {
  Launched launch({view_of(Role::any, 1)});
  for (int line = 1; line < 90; ++line) launch.load(launch.warp(0, 0), line, stepped(kBase + 4));
  EXPECT_EQ(launch.findings.all.size(), 89u);
  EXPECT_EQ(launch.findings.count, 89u * 32);
}

TEST(Memory, AccessesAreNaturallyAligned) {
  Launched launch({view_of(Role::any)});
  EXPECT_EQ(launch.run(launch.warp(0, 0), 1, {.bytes = 16, .elements = 4}, stepped(kBase, 16)),
            kAllLanes);
  launch.expect_none();
  EXPECT_EQ(launch.run(launch.warp(0, 0), 2, {.mask = 1, .bytes = 16, .elements = 4},
                       stepped(kBase + 8, 16)),
            0u);
  launch.expect_one(Kind::misaligned, "whose address is 8 past a multiple of 16");
}

TEST(Memory, SharedHasItsBounds) {
  Launched launch({}, 1, 128, 128);
  EXPECT_EQ(launch.store_shared(launch.warp(0, 0), 1, stepped(0)), kAllLanes);
  launch.expect_none();
  EXPECT_EQ(launch.store_shared(launch.warp(0, 0), 2, stepped(124), 2), 0u);
  launch.expect_one(Kind::out_of_bounds, "shared[+128], of which there are 128 bytes");
}

TEST(Memory, ConstantAndParameterAreReadOnly) {
  Launched launch({});
  WarpAccess access{.space = Space::const_, .mask = 0xffff};
  EXPECT_EQ(launch.run(launch.warp(0, 0), 1, access, stepped(0)), 0xffffu);
  access.space = Space::param;
  access.mask = 0xff;
  EXPECT_EQ(launch.run(launch.warp(0, 0), 1, access, stepped(0)), 0xffu);
  launch.expect_none();
  access.mask = 1 << 8;
  EXPECT_EQ(launch.run(launch.warp(0, 0), 2, access, stepped(0)), 0u);
  EXPECT_EQ(launch.count(Kind::out_of_bounds), 1);
  access.kind = Access::store;
  EXPECT_EQ(launch.run(launch.warp(0, 0), 3, access, stepped(0)), 0u);
  EXPECT_EQ(launch.count(Kind::read_only), 1);
}

TEST(Memory, LocalBytesAreCheckedPerLane) {
  Launched launch({});
  Warp& warp = launch.warp(0, 0);
  warp.local.resize(kLanes * 16);
  warp.local_valid.resize(kLanes * 16);
  const WarpAccess store{.kind = Access::store, .space = Space::local, .mask = 0xff};
  const WarpAccess load{.kind = Access::load, .space = Space::local, .mask = 0xff};
  EXPECT_EQ(launch.run(warp, 1, store, stepped(12, 0)), 0xffu);
  EXPECT_EQ(launch.run(warp, 2, load, stepped(12, 0)), 0xffu);
  launch.expect_none();
  launch.run(warp, 3, {.kind = Access::load, .space = Space::local, .mask = 0x100}, stepped(12, 0));
  EXPECT_EQ(launch.count(Kind::uninitialized), 1);
  const uint32_t known = 0x7f;
  launch.run(warp, 4, store, stepped(12, 0), &known);
  launch.run(warp, 5, load, stepped(12, 0));
  EXPECT_EQ(launch.count(Kind::uninitialized), 2);
  EXPECT_EQ(launch.run(warp, 6, load, stepped(16, 0)), 0u);
  EXPECT_EQ(launch.count(Kind::out_of_bounds), 1);
}

TEST(Memory, InputsAreNotWritten) {
  Launched launch({view_of(Role::input)});
  EXPECT_EQ(launch.load(launch.warp(0, 0), 1, stepped(kBase)), kAllLanes);
  launch.expect_none();
  EXPECT_EQ(launch.store(launch.warp(0, 0), 2, stepped(kBase)), 0u);
  launch.expect_one(Kind::read_only, "writes arg 2[0], which is an input");
}

TEST(Memory, OverlappingViewsMayBeWrittenWhereOneAllows) {
  Launched launch({view_of(Role::input, 64), view_of(Role::any, 32, kBase + 128)});
  EXPECT_EQ(launch.store(launch.warp(0, 0), 1, stepped(kBase + 128)), kAllLanes);
  launch.expect_none();
  EXPECT_EQ(launch.store(launch.warp(0, 0), 2, stepped(kBase + 64)), 0xffff0000u);
  EXPECT_EQ(launch.count(Kind::read_only), 1) << launch.text();
}

TEST(Memory, NonCoherentReadsAndStoresExcludeEachOther) {
  for (const bool store_first : {false, true}) {
    Launched launch({view_of(Role::any)}, 1);
    const WarpAccess nc{.kind = Access::load, .non_coherent = true, .mask = kAllLanes};
    if (store_first) launch.store(launch.warp(0, 0), 1, stepped(kBase));
    launch.run(launch.warp(0, 0), 2, nc, stepped(kBase + (store_first ? 0 : 256)));
    if (!store_first) launch.store(launch.warp(0, 0), 3, stepped(kBase));
    EXPECT_EQ(launch.findings.all.size(), store_first ? 1u : 0u);
    launch.order.block_barrier(0);
    launch.store(launch.warp(0, 1), 4, stepped(kBase + (store_first ? 0 : 256)));
    EXPECT_EQ(launch.count(Kind::read_only), store_first ? 2 : 1) << launch.text();
    EXPECT_EQ(launch.count(Kind::race), 0) << launch.text();
  }
}

TEST(Memory, SharedStartsUninitialisedInEachBlock) {
  Launched launch({}, 2);
  launch.store_shared(launch.warp(0, 0), 1, stepped(0));
  launch.load_shared(launch.warp(0, 0), 2, stepped(0));
  launch.expect_none();
  launch.load_shared(launch.warp(1, 0), 3, stepped(0));
  launch.expect_one(Kind::uninitialized, "reads shared[+0], which nothing has written");
  launch.order.block_barrier(0);
  launch.load_shared(launch.warp(0, 0), 4, stepped(4));
  EXPECT_EQ(launch.findings.all.size(), 2u);
  EXPECT_NE(launch.text().find("lane 31 (thread (31, 0, 0)): reads shared[+128]"),
            std::string::npos);
}

TEST(Memory, UndefinedValuesStayUndefinedInSharedAndAreReportedInGlobal) {
  Launched launch({view_of(Role::any)});
  const std::array<uint32_t, 2> known = {kAllLanes, kAllLanes & ~8u};
  WarpAccess access{.kind = Access::store, .space = Space::shared, .bytes = 8, .elements = 2};
  launch.run(launch.warp(0, 0), 1, access, stepped(0, 8), known.data());
  launch.load_shared(launch.warp(0, 0), 2, stepped(0, 8));
  launch.expect_none();
  launch.run(launch.warp(0, 0), 3, {.space = Space::shared, .bytes = 8}, stepped(0, 8));
  launch.expect_one(Kind::uninitialized, "shared[+28]");
  access.space = Space::global;
  launch.run(launch.warp(0, 0), 4, access, stepped(kBase, 8), known.data());
  EXPECT_EQ(launch.findings.all.size(), 2u);
  EXPECT_NE(launch.text().find("writes arg 2[7] with a register"), std::string::npos);
}

// NVRTC 13 stores {2, nothing} and then the second element, where that depends on a condition.
TEST(Memory, UndefinedElementsOfOutputsAreReportedWhereNothingReplacesThem) {
  const std::array<uint32_t, 2> known = {kAllLanes, 0};
  const std::array<uint32_t, 1> most = {kAllLanes & ~8u};
  Launched launch({view_of(Role::output, 64)});
  WarpAccess access{.kind = Access::store, .space = Space::global, .bytes = 8, .elements = 2};
  launch.run(launch.warp(0, 0), 1, access, stepped(kBase, 8), known.data());
  access.bytes = 4;
  access.elements = 1;
  launch.run(launch.warp(0, 0), 2, access, stepped(kBase + 4, 8), most.data());
  launch.expect_none();
  launch.memory->check_written();
  launch.expect_one(Kind::uninitialized, "writes arg 2[7] with a register");
}

TEST(Memory, ScratchAndOutputsStartUninitialised) {
  for (const Role role : {Role::scratch, Role::output}) {
    Launched launch({view_of(role)});
    launch.store(launch.warp(0, 0), 1, stepped(kBase));
    launch.load(launch.warp(0, 0), 2, stepped(kBase));
    launch.expect_none();
    launch.load(launch.warp(0, 0), 3, stepped(kBase + 128));
    launch.expect_one(Kind::uninitialized, "reads arg 2[32], which nothing has written");
  }
}

TEST(Memory, OutputsAreWrittenOnceAndWhole) {
  Launched launch({view_of(Role::output, 64)});
  launch.store(launch.warp(0, 0), 1, stepped(kBase));
  launch.memory->check_written();
  launch.expect_one(Kind::unwritten,
                    "32 of 64 elements of arg 2 (float32 [64]) were never written, the first is "
                    "arg 2[32]");
  launch.store(launch.warp(0, 0), 2, stepped(kBase + 128));
  launch.memory->check_written();
  EXPECT_EQ(launch.findings.all.size(), 1u);
  launch.store(launch.warp(0, 0), 3, stepped(kBase + 128));
  EXPECT_EQ(launch.findings.all.size(), 2u);
  EXPECT_NE(launch.text().find("writes for a second time arg 2[32], which block (0, 0, 0) thread 0 "
                               "wrote at line 102"),
            std::string::npos)
      << launch.text();
}

TEST(Memory, AtomicsMayUpdateAnOutputAgain) {
  Launched launch({view_of(Role::output, 32)});
  launch.store(launch.warp(0, 0), 1, stepped(kBase));
  const WarpAccess atomic{.kind = Access::atomic, .order = Order::relaxed};
  launch.run(launch.warp(0, 0), 2, atomic, stepped(kBase));
  launch.run(launch.warp(0, 0), 3, atomic, stepped(kBase));
  launch.memory->check_written();
  launch.expect_none();
}

TEST(Memory, ElementsOfAStridedOutputDecide) {
  View view = view_of(Role::output, 60);
  view.sizes = {4, 12};
  view.strides = {16, 1};
  Launched launch({view});
  for (uint64_t row = 0; row < 4; ++row) {
    launch.store(launch.warp(0, 0), 1, stepped(kBase + row * 64), 0xfff);
  }
  launch.memory->check_written();
  launch.expect_none();
  Launched other({view});
  for (uint64_t row = 0; row < 4; ++row) {
    other.store(other.warp(0, 0), 1, stepped(kBase + row * 64), row == 2 ? 0x7ffu : 0xfffu);
  }
  other.memory->check_written();
  other.expect_one(Kind::unwritten, "1 of 48 elements");
  EXPECT_NE(other.text().find("arg 2[2, 11]"), std::string::npos);
}

}  // namespace
}  // namespace stitch::ptxsim
