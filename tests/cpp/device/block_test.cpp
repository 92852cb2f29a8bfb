// The device half of block.cuh, run by one host thread per device thread.
//
// The words of CUDA that all_reduce uses are defined here: a barrier per block, and shuffles as an
// exchange through memory between two barriers of a warp.  The headers get a namespace of their
// own, since the other tests read them as host code.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <barrier>
#include <cmath>
#include <cstdint>
#include <thread>
#include <vector>

namespace {

struct Warp {
  std::barrier<> barrier{32};
  uint32_t values[32];
};

struct FakeBlock {
  explicit FakeBlock(int threads) : barrier(threads), warps(threads / 32) {}
  std::barrier<> barrier;
  std::vector<Warp> warps;
};

struct ThreadIndex {
  unsigned x = 0;
};
thread_local ThreadIndex threadIdx;
thread_local FakeBlock* fake_block = nullptr;
const ThreadIndex blockIdx;

void __syncthreads() { fake_block->barrier.arrive_and_wait(); }

uint32_t __shfl_xor_sync(unsigned, uint32_t value, int lane_mask) {
  Warp& warp = fake_block->warps[threadIdx.x / 32];
  warp.values[threadIdx.x % 32] = value;
  warp.barrier.arrive_and_wait();
  const uint32_t result = warp.values[(threadIdx.x % 32) ^ lane_mask];
  warp.barrier.arrive_and_wait();
  return result;
}

}  // namespace

#define __CUDACC_RTC__
#define __device__
#define __forceinline__ inline
#define stitch stitch_device
#include "device/stitch/prelude.cuh"
#undef STITCH_UNROLL  // a pragma that only NVRTC knows
#define STITCH_UNROLL
#include "device/stitch/block.cuh"

namespace stitch_test {

using namespace stitch_device;

// Runs body(tid) on every thread of a block.
template <class Body>
void run_block(int threads, Body body) {
  FakeBlock block(threads);
  std::vector<std::thread> running;
  for (int t = 0; t < threads; ++t) {
    running.emplace_back([&block, &body, t] {
      threadIdx.x = static_cast<unsigned>(t);
      fake_block = &block;
      body(t);
    });
  }
  for (std::thread& thread : running) thread.join();
}

i64 value_of(int thread) { return (i64(1) << (thread % 50)) + thread * 1000003; }

template <unsigned kMask, int kThreads>
void expect_group_sums() {
  std::vector<i64> shared(kThreads), sums(kThreads), again(kThreads), best(kThreads);
  std::vector<Indexed<f64>> indexed(kThreads);
  run_block(kThreads, [&](int t) {
    sums[t] = all_reduce<Sum, kMask, kThreads>(value_of(t), shared.data());
    // The buffer is used again at once, by the same call and by one of another type.
    again[t] = all_reduce<Max, kMask, kThreads>(value_of(t), shared.data());
    const Indexed<f64> candidate{static_cast<f64>((t * 37) % 19), t};
    best[t] = all_reduce<ArgMin, kMask, kThreads>(candidate, indexed.data()).index;
  });
  for (int t = 0; t < kThreads; ++t) {
    i64 sum = 0, largest = INT64_MIN, first = -1;
    for (int other = 0; other < kThreads; ++other) {
      if ((t ^ other) & ~kMask) continue;
      sum += value_of(other);
      largest = std::max(largest, value_of(other));
      if (first < 0 || (other * 37) % 19 < (first * 37) % 19) first = other;
    }
    ASSERT_EQ(sums[t], sum) << "mask " << kMask << " thread " << t;
    ASSERT_EQ(again[t], largest) << "mask " << kMask << " thread " << t;
    ASSERT_EQ(best[t], first) << "mask " << kMask << " thread " << t;
  }
}

TEST(DeviceBlock, EveryThreadGetsItsGroupsResult) {
  expect_group_sums<0, 32>();
  expect_group_sums<0x1f, 32>();
  expect_group_sums<0x0a, 32>();
  expect_group_sums<0x20, 64>();
  expect_group_sums<0x3f, 64>();
  expect_group_sums<0x2a, 64>();
  expect_group_sums<0x07, 64>();
  expect_group_sums<0x7f, 128>();
  expect_group_sums<0x60, 128>();
  expect_group_sums<0x5f, 128>();
  expect_group_sums<0x38, 128>();
}

template <unsigned kMask, int kThreads, int kN, int kSlots = 1>
void expect_sums_of_each() {
  std::vector<i64> shared(kSlots * kThreads);
  std::vector<std::array<i64, kN>> each(kThreads), alone(kThreads);
  run_block(kThreads, [&](int t) {
    for (int n = 0; n < kN; ++n) each[t][n] = value_of(t) + n * (t + 7);
    for (int n = 0; n < kN; ++n)
      alone[t][n] = all_reduce<Sum, kMask, kThreads>(each[t][n], shared.data());
    all_reduce_each<Sum, kMask, kThreads, kN, kSlots>(each[t].data(), shared.data());
  });
  for (int t = 0; t < kThreads; ++t)
    ASSERT_EQ(each[t], alone[t]) << "mask " << kMask << " thread " << t << " of " << kN;
}

TEST(DeviceBlock, ManyValuesAreCombinedAsEachAlone) {
  expect_sums_of_each<0x1f, 32, 8>();
  expect_sums_of_each<0x0a, 32, 4>();  // as many as lanes can hold apart
  expect_sums_of_each<0x08, 32, 5>();  // more, and an odd one
  expect_sums_of_each<0x3f, 64, 2>();
  expect_sums_of_each<0x7f, 128, 32>();
  expect_sums_of_each<0x78, 128, 4>();  // columns: lanes and warps, but for the lowest three bits
  expect_sums_of_each<0x60, 128, 3>();  // no lanes
  expect_sums_of_each<0x00, 64, 4>();
}

TEST(DeviceBlock, WholeWarpsShareOutWhatTheyCombine) {
  expect_sums_of_each<0xe0, 256, 24, 8>();  // as many values as warps, three times
  expect_sums_of_each<0xe0, 256, 11, 4>();  // two warps combine the same; an odd rest
  expect_sums_of_each<0xa0, 256, 4, 4>();   // two groups of four warps
  expect_sums_of_each<0x20, 128, 2, 2>();
  expect_sums_of_each<0x60, 128, 1, 4>();  // fewer than there are slots
}

TEST(DeviceBlock, WholeWarpsExchangeOneValueEach) {
  constexpr int kThreads = 128;
  std::vector<f32> shared(kThreads, -1.0f), sums(kThreads);
  run_block(kThreads, [&](int t) {
    sums[t] = all_reduce<Sum, 0x7fu, kThreads>(static_cast<f32>(t), shared.data());
  });
  for (f32 sum : sums) EXPECT_EQ(sum, 127 * 64);
  for (int i = 4; i < kThreads; ++i) EXPECT_EQ(shared[i], -1.0f) << "only 4 slots are needed";
}

TEST(DeviceBlock, RoundingIsTheSameForAllThreadsAndRuns) {
  constexpr int kThreads = 128;
  std::vector<f32> first(kThreads), second(kThreads);
  for (auto* sums : {&first, &second}) {
    std::vector<f32> shared(kThreads);
    run_block(kThreads, [&](int t) {
      (*sums)[t] = all_reduce<Sum, 0x7fu, kThreads>(std::sin(static_cast<f32>(t)), shared.data());
    });
  }
  for (int t = 0; t < kThreads; ++t) {
    EXPECT_EQ(first[t], first[0]);
    EXPECT_EQ(first[t], second[t]);
  }
}

TEST(DeviceBlock, ShufflesNarrowTypes) {
  bool flags[64];
  int results[64];
  run_block(64, [&](int t) { results[t] = all_reduce<Any, 0x3fu, 64>(t == 41, flags); });
  for (int result : results) EXPECT_EQ(result, 1);
}

}  // namespace stitch_test
