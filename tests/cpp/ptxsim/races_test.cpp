#include "ptxsim/memory/races.h"

#include "memory_fixture.h"

namespace stitch::ptxsim {
namespace {

using Role = View::Role;
using Kind = FindingKind;

constexpr uint64_t kFlag = kBase + 8192;

// Warp 0 of block 0 stores data, then an edge, then another warp loads it.
struct Races : testing::Test {
  Launched launch{{view_of(Role::any)}, 3};
  const Addresses data = stepped(kBase);
  const Addresses tile = stepped(0);  // in shared memory
  Warp& writer = launch.warp(0, 0);
  Warp& neighbour = launch.warp(0, 1);
  Warp& foreign = launch.warp(1, 0);

  void expect_race(int writes_line = 1) {
    launch.expect_one(Kind::race, "wrote at line " + std::to_string(writes_line + 100));
  }
};

TEST_F(Races, OneThreadIsInOrder) {
  launch.store_shared(writer, 1, tile);
  launch.load_shared(writer, 2, tile);
  launch.store_shared(writer, 3, tile);
  launch.expect_none();
}

TEST_F(Races, ReportNamesBothParties) {
  launch.store_shared(writer, 1, stepped(128, 4), 1u << 5);
  launch.load_shared(neighbour, 2, stepped(148, 0), 1u << 3);
  launch.expect_one(Kind::race,
                    "kernel k line 102 (PTX 2), block (0, 0, 0), warp 1, lane 3 (thread (35, 0, "
                    "0)): reads shared[+148] (4 bytes), which block (0, 0, 0) thread 5 wrote at "
                    "line 101, with no barrier between");
  EXPECT_EQ(launch.findings.all[0].other_line, 1);
}

TEST_F(Races, ReadThenWriteNamesTheReader) {
  launch.load(neighbour, 1, data);
  launch.store(writer, 2, data);
  launch.expect_one(Kind::race, "writes arg 2[0] (4 bytes), which block (0, 0, 0) thread 32 read");
}

TEST_F(Races, BlockBarrierOrders) {
  launch.store_shared(writer, 1, tile);
  launch.order.block_barrier(0);
  launch.load_shared(neighbour, 2, tile);
  launch.order.block_barrier(0);
  launch.store_shared(launch.warp(0, 2), 3, tile);
  launch.expect_none();
  launch.load_shared(neighbour, 4, tile);
  expect_race(3);
}

TEST_F(Races, BarrierOfOneBlockDoesNotOrderAnother) {
  launch.store(writer, 1, data);
  launch.order.block_barrier(0);
  launch.order.block_barrier(1);
  launch.load(foreign, 2, data);
  launch.expect_one(Kind::race, "with no order between the blocks");
}

TEST_F(Races, LanesOfAWarpRaceWithoutWarpBarrier) {
  launch.store_shared(writer, 1, stepped(0));
  launch.order.warp_barrier(0, 0, kAllLanes);
  launch.load_shared(writer, 2, stepped(124, uint64_t(-4)));
  launch.expect_none();
  launch.store_shared(writer, 3, stepped(0));
  EXPECT_GT(launch.count(Kind::race), 0);
}

TEST_F(Races, PartialWarpBarrierOrdersItsLanesOnly) {
  launch.store_shared(writer, 1, stepped(0));
  launch.order.warp_barrier(0, 0, 0xff);
  launch.load_shared(writer, 2, stepped(28, uint64_t(-4)), 0xff);
  launch.expect_none();
  launch.load_shared(writer, 3, stepped(32, 0), 1);
  expect_race();
}

TEST_F(Races, WarpBarriersAddUp) {
  launch.store_shared(writer, 1, stepped(0), 1);
  launch.order.warp_barrier(0, 0, 0x3);
  launch.order.warp_barrier(0, 0, 0x6);
  launch.load_shared(writer, 2, stepped(0, 0), 1u << 2);
  launch.expect_none();
  launch.load_shared(writer, 3, stepped(0, 0), 1u << 3);
  expect_race();
}

TEST_F(Races, LanesThatStoreToOneAddressRace) {
  launch.store_shared(writer, 1, stepped(0, 0), 0x3);
  expect_race();
}

TEST_F(Races, NamedBarrierOrdersThoseThatMeet) {
  launch.store_shared(writer, 1, tile);
  launch.order.barrier(0, {kAllLanes, kAllLanes, 0, 0}, {kAllLanes, kAllLanes, 0, 0});
  launch.load_shared(neighbour, 2, tile);
  launch.expect_none();
  launch.load_shared(launch.warp(0, 2), 3, tile);
  expect_race();
}

TEST_F(Races, ArrivingWaitsForNobody) {
  launch.store_shared(writer, 1, tile);
  launch.store_shared(neighbour, 2, stepped(512));
  launch.order.barrier(0, {kAllLanes, kAllLanes, 0, 0}, {0, kAllLanes, 0, 0});
  launch.load_shared(neighbour, 3, tile);
  launch.expect_none();
  launch.load_shared(writer, 4, stepped(512));
  expect_race(2);
}

TEST_F(Races, ReleaseAndAcquireOrder) {
  launch.store(writer, 1, data, 1);
  launch.strong(writer, 2, Access::store, kFlag, Order::release);
  launch.strong(foreign, 3, Access::load, kFlag, Order::acquire);
  launch.load(foreign, 4, data, 1);
  launch.expect_none();
  launch.load(foreign, 5, stepped(kBase - 4), 2);
  expect_race();
}

TEST_F(Races, WhatFollowsAReleaseIsNotPublished) {
  launch.strong(writer, 2, Access::store, kFlag, Order::release);
  launch.store(writer, 1, data, 1);
  launch.strong(foreign, 3, Access::load, kFlag, Order::acquire);
  launch.load(foreign, 4, data, 1);
  expect_race();
}

TEST_F(Races, RelaxedAccessesDoNotOrder) {
  for (const bool is_released : {false, true}) {
    Launched other({view_of(Role::any)}, 2);
    other.store(other.warp(0, 0), 1, data, 1);
    other.strong(other.warp(0, 0), 2, Access::store, kFlag,
                 is_released ? Order::release : Order::relaxed);
    other.strong(other.warp(1, 0), 3, Access::load, kFlag,
                 is_released ? Order::relaxed : Order::acquire);
    other.load(other.warp(1, 0), 4, data, 1);
    other.expect_one(Kind::race, "wrote at line 101");
  }
}

TEST_F(Races, BlockScopeReachesTheBlockOnly) {
  launch.store(writer, 1, data, 1);
  launch.strong(writer, 2, Access::store, kFlag, Order::release, Scope::cta);
  launch.strong(neighbour, 3, Access::load, kFlag, Order::acquire, Scope::cta);
  launch.load(neighbour, 4, data, 1);
  launch.expect_none();
  launch.strong(foreign, 5, Access::load, kFlag, Order::acquire);
  EXPECT_EQ(launch.count(Kind::race), 1) << launch.text();  // at the flag itself
  launch.load(foreign, 6, data, 1);
  EXPECT_EQ(launch.count(Kind::race), 2) << launch.text();
}

TEST_F(Races, NarrowReaderOfAWideFlagOrdersInItsBlock) {
  launch.store(writer, 1, data, 1);
  launch.strong(writer, 2, Access::store, kFlag, Order::release);
  launch.strong(neighbour, 3, Access::load, kFlag, Order::acquire, Scope::cta);
  launch.load(neighbour, 4, data, 1);
  launch.expect_none();
}

TEST_F(Races, FencesBesideVolatileOrder) {
  launch.store(writer, 1, data, 1);
  launch.fence(0, 0, 1);
  launch.strong(writer, 2, Access::store, kFlag, Order::relaxed, Scope::sys);
  launch.strong(foreign, 3, Access::load, kFlag, Order::relaxed, Scope::sys);
  launch.fence(1, 0, 1);
  launch.load(foreign, 4, data, 1);
  launch.expect_none();
}

TEST_F(Races, BothFencesAreNeeded) {
  for (const bool has_first : {false, true}) {
    Launched other({view_of(Role::any)}, 2);
    other.store(other.warp(0, 0), 1, data, 1);
    if (has_first) other.fence(0, 0, 1);
    other.strong(other.warp(0, 0), 2, Access::store, kFlag, Order::relaxed);
    other.strong(other.warp(1, 0), 3, Access::load, kFlag, Order::relaxed);
    if (!has_first) other.fence(1, 0, 1);
    other.load(other.warp(1, 0), 4, data, 1);
    other.expect_one(Kind::race);
  }
}

TEST_F(Races, FenceOfBlockScopeDoesNotReachAnother) {
  launch.store(writer, 1, data, 1);
  launch.fence(0, 0, 1, Scope::cta);
  launch.strong(writer, 2, Access::store, kFlag, Order::relaxed);
  launch.strong(neighbour, 3, Access::load, kFlag, Order::relaxed);
  launch.fence(0, 1, 1, Scope::cta);
  launch.load(neighbour, 4, data, 1);
  launch.expect_none();
  launch.strong(foreign, 5, Access::load, kFlag, Order::relaxed);
  launch.fence(1, 0, 1);
  launch.load(foreign, 6, data, 1);
  expect_race();
}

TEST_F(Races, UpdatesContinueAReleaseSequence) {
  Warp& third = launch.warp(2, 0);
  launch.store(writer, 1, data, 1);
  launch.strong(writer, 2, Access::atomic, kFlag, Order::release);
  launch.strong(third, 3, Access::atomic, kFlag, Order::relaxed);
  launch.strong(foreign, 4, Access::load, kFlag, Order::acquire);
  launch.load(foreign, 5, data, 1);
  launch.expect_none();
  launch.strong(third, 6, Access::store, kFlag, Order::relaxed);  // ends the sequence
  Warp& late = launch.warp(1, 1);
  launch.strong(late, 7, Access::load, kFlag, Order::acquire);
  launch.load(late, 8, data, 1);
  expect_race();
}

TEST_F(Races, OrderPassesOnThroughBlockBarriers) {
  launch.store(neighbour, 1, data);
  launch.order.block_barrier(0);
  launch.strong(writer, 2, Access::store, kFlag, Order::release);
  launch.strong(foreign, 3, Access::load, kFlag, Order::acquire);
  launch.load(launch.warp(1, 1), 4, data);
  expect_race();  // nobody has told that warp
  launch.order.block_barrier(1);
  launch.load(launch.warp(1, 2), 5, data);
  EXPECT_EQ(launch.findings.all.size(), 1u) << launch.text();
}

TEST_F(Races, FencesOfAllThenOneTells) {
  launch.store(neighbour, 1, data);
  for (int warp = 0; warp < 4; ++warp) launch.fence(0, warp, kAllLanes);
  launch.order.block_barrier(0);
  launch.strong(writer, 2, Access::atomic, kFlag, Order::relaxed);
  launch.strong(foreign, 3, Access::atomic, kFlag, Order::relaxed);
  launch.order.block_barrier(1);
  launch.fence(1, 2, kAllLanes);
  launch.load(launch.warp(1, 2), 4, data);
  launch.expect_none();
  launch.load(launch.warp(1, 3), 5, data);
  expect_race();
}

// __syncthreads(); thread 0: fence, atomic, spin, fence; __syncthreads();
void grid_barrier(Launched& launch, int blocks, bool has_fence = true) {
  for (int i = 0; i < blocks; ++i) {
    launch.order.block_barrier(uint64_t(i));
    if (has_fence) launch.fence(i, 0, 1);
    launch.strong(launch.warp(i, 0), 50, Access::atomic, kFlag, Order::relaxed);
  }
  for (int i = 0; i < blocks; ++i) {
    for (int spin = 0; spin < 3; ++spin) {
      launch.strong(launch.warp(i, 0), 51, Access::load, kFlag, Order::relaxed, Scope::sys);
    }
    launch.fence(i, 0, 1);
    launch.order.block_barrier(uint64_t(i));
  }
}

TEST_F(Races, GridBarrierOrdersAllOfAllBlocks) {
  for (const bool has_fence : {true, false}) {
    Launched other({view_of(Role::any)}, 3);
    for (int round = 0; round < 3; ++round) {
      for (int i = 0; i < 3; ++i) {
        other.store(other.warp(i, 3), 1, stepped(kBase + uint64_t(i) * 128));
      }
      grid_barrier(other, 3, has_fence);
      for (int i = 0; i < 3; ++i) {
        other.load(other.warp(i, 2), 2, stepped(kBase + uint64_t((i + 1) % 3) * 128));
      }
      grid_barrier(other, 3, has_fence);
    }
    if (has_fence) {
      other.expect_none();
    } else {
      EXPECT_GT(other.count(Kind::race), 0);
    }
  }
}

TEST_F(Races, StrongAccessesDoNotRaceWithEachOther) {
  launch.strong(writer, 1, Access::store, kFlag, Order::relaxed);
  launch.strong(foreign, 2, Access::store, kFlag, Order::relaxed);
  launch.strong(neighbour, 3, Access::atomic, kFlag, Order::relaxed);
  launch.strong(foreign, 4, Access::load, kFlag, Order::relaxed);
  launch.strong(writer, 5, Access::store, kFlag, Order::relaxed);
  launch.expect_none();
  launch.load(launch.warp(2, 0), 6, stepped(kFlag), 1);
  launch.expect_one(Kind::race, "wrote at line 105");
}

TEST_F(Races, StrongAccessesRaceBeyondTheirScopeOrSize) {
  launch.strong(writer, 1, Access::atomic, kFlag, Order::relaxed, Scope::cta);
  launch.strong(neighbour, 2, Access::atomic, kFlag, Order::relaxed, Scope::cta);
  launch.expect_none();
  launch.strong(foreign, 3, Access::atomic, kFlag, Order::relaxed);
  launch.expect_one(Kind::race, "a scope or size that does not fit");
  launch.run(writer, 4, {.kind = Access::load, .order = Order::relaxed, .mask = 1, .bytes = 8},
             stepped(kFlag));
  EXPECT_EQ(launch.findings.all.size(), 2u);
}

TEST_F(Races, PlainAccessBesideAnAtomicIsARace) {
  launch.load(foreign, 1, stepped(kFlag), 1);
  launch.strong(writer, 2, Access::atomic, kFlag, Order::relaxed);
  launch.expect_one(Kind::race, "read at line 101");
}

TEST_F(Races, WhoSawTheLastUpdateMayReset) {
  for (int block = 0; block < 3; ++block) {
    launch.strong(launch.warp(block, 0), 1, Access::atomic, kFlag, Order::relaxed);
  }
  launch.store(launch.warp(2, 0), 2, stepped(kFlag), 1);
  launch.expect_none();
  launch.store(launch.warp(1, 0), 3, stepped(kFlag), 1);
  launch.expect_one(Kind::race);
}

TEST_F(Races, WhoWaitedForAFlagMayReadAndResetIt) {
  launch.strong(foreign, 1, Access::load, kFlag, Order::relaxed);
  launch.strong(writer, 2, Access::store, kFlag, Order::relaxed);
  launch.strong(neighbour, 3, Access::load, kFlag, Order::relaxed);
  launch.load(neighbour, 4, stepped(kFlag), 1);
  launch.expect_none();
  launch.strong(foreign, 5, Access::store, kFlag + 4, Order::relaxed);
  launch.store(neighbour, 6, stepped(kFlag), 1);  // the first reader has not come back
  launch.expect_one(Kind::race, "read at line 101");
}

TEST_F(Races, GranulesAreRefined) {
  const WarpAccess store{.kind = Access::store, .space = Space::shared, .bytes = 1};
  launch.run(writer, 1, store, stepped(0, 2));
  launch.run(neighbour, 2, store, stepped(1, 2));
  launch.expect_none();
  launch.order.block_barrier(0);
  launch.store_shared(writer, 3, stepped(0));
  launch.run(neighbour, 4, store, stepped(127, 0), 0);
  EXPECT_GT(launch.count(Kind::race), 0);
}

TEST_F(Races, RefiningKeepsWhatWasSeen) {
  launch.store(writer, 1, data);
  launch.load(neighbour, 2, stepped(kBase + 128));
  launch.load(writer, 3, stepped(kBase + 128));
  const WarpAccess half{.kind = Access::store, .mask = 1, .bytes = 2};
  launch.run(neighbour, 4, half, stepped(kBase + 6));
  launch.expect_one(Kind::race, "thread 1 wrote at line 101");
  launch.run(launch.warp(0, 2), 5, half, stepped(kBase + 130));
  EXPECT_EQ(launch.findings.all.size(), 3u) << launch.text();  // with each of two readers
}

TEST_F(Races, ManyReadersAreAllKept) {
  for (int missing = -1; missing < 4; ++missing) {
    Launched other({}, 1, 128);
    other.store_shared(other.warp(0, 0), 1, stepped(0, 0), 1);
    other.order.block_barrier(0);
    for (int warp = 0; warp < 4; ++warp) other.load_shared(other.warp(0, warp), 2, stepped(0, 0));
    std::vector<uint32_t> meet(4, kAllLanes);
    if (missing >= 0) meet[size_t(missing)] &= ~(1u << 17);
    other.order.barrier(0, meet, meet);
    const int writes = missing == 0 ? 1 : 0;
    other.store_shared(other.warp(0, writes), 3, stepped(0, 0), 1u << 5);
    if (missing < 0) {
      other.expect_none();
    } else {
      other.expect_one(Kind::race, "thread " + std::to_string(missing * 32 + 17) + " read");
    }
  }
}

TEST_F(Races, ManyBlocksReadOneValue) {
  Launched other({view_of(Role::any)}, 200, 64);
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < 200; ++i) other.load(other.warp(i, 0), 1, stepped(kBase, 0));
  }
  other.expect_none();
  other.store(other.warp(7, 1), 2, stepped(kBase), 1);
  EXPECT_EQ(other.count(Kind::race), 1);
}

TEST_F(Races, NobodyTouchesACopyInFlight) {
  const Addresses shared = stepped(0, 16), from = stepped(kBase, 16);
  const WarpCopy copy{
      .mask = kAllLanes, .size = 16, .destinations = shared.data(), .sources = from.data()};
  for (const int toucher : {-1, 0, 1}) {
    Launched other({view_of(Role::any)}, 1);
    EXPECT_EQ(other.memory->start_copy(other.warp(0, 0), other.at(1), copy), kAllLanes);
    if (toucher >= 0) other.load_shared(other.warp(0, toucher), 2, stepped(32));
    for (int lane = 0; lane < kLanes; ++lane) {
      other.memory->finish_copy(other.warp(0, 0), {.destination = shared[size_t(lane)],
                                                   .source = from[size_t(lane)],
                                                   .bytes = 16,
                                                   .size = 16,
                                                   .lane = lane,
                                                   .group = 0,
                                                   .instruction = &other.at(1),
                                                   .done = true});
    }
    if (toucher >= 0) {
      other.expect_one(Kind::race, "while the cp.async of thread 2 at line 101 into it has not");
      continue;
    }
    other.load_shared(other.warp(0, 0), 3, stepped(0, 16));
    other.expect_none();
    other.load_shared(other.warp(0, 1), 4, stepped(0, 16));
    other.expect_one(Kind::race);
  }
}

TEST_F(Races, SourceOfACopyInFlightStays) {
  const Addresses to = stepped(0, 16), from = stepped(kBase, 16);
  std::array<uint32_t, kLanes> bytes;
  bytes.fill(12);
  for (const bool waits : {false, true}) {
    Launched other({view_of(Role::any)}, 1);
    Warp& warp = other.warp(0, 0);
    const WarpCopy copy{.mask = 2,
                        .size = 16,
                        .destinations = to.data(),
                        .sources = from.data(),
                        .bytes = bytes.data()};
    EXPECT_EQ(other.memory->start_copy(warp, other.at(1), copy), 2u);
    if (waits) {
      other.memory->finish_copy(warp, {.destination = 16,
                                       .source = from[1],
                                       .bytes = 12,
                                       .size = 16,
                                       .lane = 1,
                                       .group = 0,
                                       .instruction = &other.at(1),
                                       .done = true});
    }
    other.store(warp, 2, stepped(kBase + 28, 0), 2);  // not copied
    other.expect_none();
    other.store(warp, 3, stepped(kBase + 24, 0), 2);
    if (waits) {
      other.expect_none();
    } else {
      other.expect_one(Kind::race, "read at line 101");
    }
  }
}

}  // namespace
}  // namespace stitch::ptxsim
