#include "runtime/pool.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <random>
#include <thread>

namespace stitch {
namespace {

constexpr int64_t kMiB = int64_t{1} << 20;

TEST(Pool, BlocksAreAlignedAndComeBack) {
  HostPool pool(64 * kMiB);
  for (const int64_t bytes : {int64_t{1}, int64_t{100}, int64_t{1000}, kMiB, 2 * kMiB, 5 * kMiB}) {
    PoolBlock* block = pool.allocate(bytes);
    void* const address = block->data;
    EXPECT_EQ(reinterpret_cast<uintptr_t>(address) % (bytes < 2 * kMiB ? 64 : 2 * kMiB), 0u);
    std::memset(address, 1, bytes);
    pool.release(block);
    block = pool.allocate(bytes);
    EXPECT_EQ(block->data, address) << bytes << " bytes were not reused";
    pool.release(block);
  }
  EXPECT_EQ(pool.statistics().reused_blocks, 6);
}

TEST(Pool, SizesNearEachOtherShareAClass) {
  HostPool pool(64 * kMiB);
  PoolBlock* block = pool.allocate(1000000);
  void* const address = block->data;
  pool.release(block);
  block = pool.allocate(1000400);
  EXPECT_EQ(block->data, address);
  pool.release(block);
  block = pool.allocate(1300000);
  EXPECT_NE(block->data, address);
  pool.release(block);
}

TEST(Pool, WhatIsKeptIsBoundedAndTheOldestGoesFirst) {
  HostPool pool(8 * kMiB);
  std::vector<PoolBlock*> blocks;
  for (int i = 0; i < 4; ++i) blocks.push_back(pool.allocate((2 + 2 * i) * kMiB));
  EXPECT_EQ(pool.statistics().used_bytes, 20 * kMiB);
  for (PoolBlock* block : blocks) {
    pool.release(block);
    EXPECT_LE(pool.statistics().cached_bytes, 8 * kMiB);
  }
  EXPECT_EQ(pool.statistics().cached_bytes, 8 * kMiB) << "the last block alone";
  EXPECT_EQ(pool.statistics().used_bytes, 0);
  pool.release(pool.allocate(8 * kMiB));
  EXPECT_EQ(pool.statistics().reused_blocks, 1);
  pool.set_limit(kMiB);
  EXPECT_EQ(pool.statistics().cached_bytes, 0);
}

TEST(Pool, ReleasesWhatItKeeps) {
  HostPool pool(64 * kMiB);
  PoolBlock* kept = pool.allocate(kMiB);
  pool.release(pool.allocate(4 * kMiB));
  pool.release_cached();
  EXPECT_EQ(pool.statistics().cached_bytes, 0);
  std::memset(kept->data, 0, kMiB);
  pool.release(kept);
}

TEST(Pool, ThreadsNeverShareABlock) {
  HostPool pool(kMiB);
  std::vector<std::thread> threads;
  std::atomic<int> clashes{0};
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&pool, &clashes, t] {
      std::mt19937 random(t);
      std::vector<std::pair<PoolBlock*, int64_t>> held;
      for (int i = 0; i < 3000; ++i) {
        const int64_t bytes = 64 + random() % 50000;
        held.push_back({pool.allocate(bytes), bytes});
        std::memset(held.back().first->data, t, bytes);
        if (held.size() < 8) continue;
        std::swap(held[random() % 8], held.back());
        const auto* bytes_of = static_cast<const unsigned char*>(held.back().first->data);
        clashes += bytes_of[0] != t || bytes_of[held.back().second - 1] != t;
        pool.release(held.back().first);
        held.pop_back();
      }
      for (const auto& [block, size] : held) pool.release(block);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(clashes, 0);
  EXPECT_EQ(pool.statistics().used_bytes, 0);
  EXPECT_LE(pool.statistics().cached_bytes, kMiB);
}

}  // namespace
}  // namespace stitch
