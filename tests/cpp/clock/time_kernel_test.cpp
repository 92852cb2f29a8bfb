// What must hold of any timing model: traffic is that of the plan, plain kernels are on the roof,
// and what is made slower takes longer for the reason that it was made slower by.
#include "clock/time_kernel.h"

#include "base/error.h"
#include "clock/clock_kernel.h"

namespace stitch::clock {
namespace {

constexpr int64_t kElements = 1 << 24;

const std::string kCopy = R"(extern "C" __global__ void copy(float4* y, const float4* x, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = x[i]; })";

Launch copy_launch() {
  return make_launch(kElements / 4 / 256, 256,
                     "16777216*f32,16777216*f32," + std::to_string(kElements / 4));
}

TEST(TimeKernel, ACopyMovesItsBytesAtTheRateOfMemory) {
  STITCH_SKIP_WITHOUT_NVRTC();
  for (const char* device : {"a100", "h100", "h200", "b200"}) {
    const ClockResult result = time_text(kCopy, copy_launch(), device);
    const double bytes = 2.0 * kElements * 4;
    EXPECT_NEAR(result.memory_bytes / bytes, 1, 0.02) << device;
    EXPECT_NEAR(result.us * device_spec(device).dram_bytes_per_us / bytes, 1, 0.1) << device;
    EXPECT_EQ(result.bound, "memory") << device;
    EXPECT_EQ(result.assumptions, std::vector<std::string>()) << device;
  }
}

// Where a counter is the same in all lanes, some generations branch on a uniform predicate.
TEST(TimeKernel, ACountedLoopEndsOnEachGeneration) {
  STITCH_SKIP_WITHOUT_NVRTC();
  const std::string text = R"(extern "C" __global__ void copy(float* y, const float* x) {
    #pragma unroll 1
    for (int b = 0; b < 100; ++b) y[b * 256 + threadIdx.x] = x[b * 256 + threadIdx.x]; })";
  for (const char* device : {"a100", "h100", "h200", "b200"}) {
    const ClockResult result = time_text(text, make_launch(1, 256, "25600*f32,25600*f32"), device);
    EXPECT_EQ(result.asked_bytes, 2.0 * 25600 * 4) << device;
    EXPECT_EQ(result.assumptions, std::vector<std::string>()) << device;
  }
}

TEST(TimeKernel, ARowSumReadsEachByteOnceAndSharedArgumentsOnce) {
  STITCH_SKIP_WITHOUT_NVRTC();
  const std::string text = R"(extern "C" __global__ void scale(float* y, const float* x,
      const float* gamma, int n) {
    float sum = 0;
    for (int i = threadIdx.x; i < n; i += 256) sum += x[blockIdx.x * n + i] * gamma[i];
    for (int k = 16; k; k /= 2) sum += __shfl_xor_sync(~0u, sum, k);
    __shared__ float kept[8];
    if (threadIdx.x % 32 == 0) kept[threadIdx.x / 32] = sum;
    __syncthreads();
    if (threadIdx.x == 0) {
      for (int k = 1; k < 8; ++k) sum += kept[k];
      y[blockIdx.x] = sum;
    } })";
  const ClockResult result =
      time_text(text, make_launch(8192, 256, "8192*f32,16777216*f32,2048*f32,2048"));
  EXPECT_NEAR(result.memory_bytes / (4.0 * kElements), 1, 0.02);
  EXPECT_GT(result.asked_bytes, 1.9 * 4 * kElements);
}

TEST(TimeKernel, StridesCostTheSectorsThatTheyTouch) {
  STITCH_SKIP_WITHOUT_NVRTC();
  const std::string text = R"(extern "C" __global__ void column(float* y, const float* x) {
    int i = blockIdx.x * 256 + threadIdx.x;
    y[i] = x[i * 8]; })";
  const ClockResult result = time_text(text, make_launch(8192, 256, "2097152*f32,16777216*f32"));
  EXPECT_NEAR(result.memory_bytes / (9.0 * 2097152 * 4), 1, 0.02);
}

TEST(TimeKernel, BankConflictsTakeTheSharedPipe) {
  STITCH_SKIP_WITHOUT_NVRTC();
  const auto text = [](const char* stride) {
    return std::string("#define STRIDE ") + stride + R"(
extern "C" __global__ void bank(float* y, int n) {
  __shared__ volatile float kept[32 * 33];
  for (int k = threadIdx.x; k < 32 * 33; k += 32) kept[k] = k;
  float sum = 0;
  for (int k = 0; k < 64; ++k) sum += kept[threadIdx.x * STRIDE];
  y[blockIdx.x * 32 + threadIdx.x] = sum; })";
  };
  const Launch launch = make_launch(132 * 64, 32, "270336*f32,0");
  const ClockResult even = time_text(text("33"), launch), odd = time_text(text("32"), launch);
  EXPECT_EQ(odd.bound, "shared pipe");
  EXPECT_GT(odd.us, 4 * even.us);
}

TEST(TimeKernel, NamesWhatBounds) {
  STITCH_SKIP_WITHOUT_NVRTC();
  const auto text = [](const char* body) {
    return std::string(R"(extern "C" __global__ void work(float* y, float a) {
  float x = a + threadIdx.x;
  #pragma unroll 64
  for (int k = 0; k < 256; ++k) )") +
           body + "\n  y[blockIdx.x * blockDim.x + threadIdx.x] = x; }";
  };
  const Launch full = make_launch(1056, 1024, "1081344*f32,0.5");
  EXPECT_EQ(time_text(text("x = fmaf(x, a, 0.25f);"), full).bound, "issue");
  EXPECT_EQ(time_text(text("x = __cosf(x);"), full).bound, "special");
  EXPECT_EQ(time_text(text("x = fmaxf(fminf(x, a * k), a - k);"), full).uses.front().what, "alu");
  const Launch few = make_launch(20, 32, "640*f32,0.5");
  EXPECT_EQ(time_text(text("x = fmaf(x, a, 0.25f);"), few).bound, "too few blocks");
}

TEST(TimeKernel, AChainWaitsForWhatItLoads) {
  STITCH_SKIP_WITHOUT_NVRTC();
  const std::string text = R"(extern "C" __global__ void chain(float* y, const float* x, int n) {
    float sum = 0;
    #pragma unroll 1
    for (int k = 0; k < n; ++k) { sum += x[k * 32]; __syncthreads(); }
    if (sum == 1.5f) y[0] = sum; })";
  const ClockResult short_one = time_text(text, make_launch(1, 32, "1*f32,1048576*f32,100"));
  const ClockResult long_one = time_text(text, make_launch(1, 32, "1*f32,1048576*f32,1100"));
  const double cycles = (long_one.us - short_one.us) * device_spec("h200").cycles_per_us / 1000;
  EXPECT_GT(cycles, 684);  // the latency of memory
  EXPECT_LT(cycles, 730);
}

TEST(TimeKernel, CountsResidentBlocksAsTheDriverDoes) {
  STITCH_SKIP_WITHOUT_NVRTC();
  Launch launch = copy_launch();
  EXPECT_EQ(time_text(kCopy, launch).occupancy.blocks, 8);
  launch.shared_bytes = 100 << 10;
  const ClockResult result = time_text(kCopy, launch);
  EXPECT_EQ(result.occupancy.blocks, 2);
  EXPECT_EQ(result.occupancy.limit, "shared memory");
  launch.shared_bytes = 300 << 10;
  EXPECT_THROW(time_text(kCopy, launch), UserError);
  EXPECT_THROW(time_text(kCopy, make_launch(1, 2048, "4*f32,4*f32,1")), UserError);
  EXPECT_THROW(time_text(kCopy, make_launch(int64_t{1} << 31, 32, "4*f32,4*f32,1")), UserError);
}

TEST(TimeKernel, TakesGridsOfOneBlockAndOfTheMost) {
  STITCH_SKIP_WITHOUT_NVRTC();
  const ClockResult one = time_text(kCopy, make_launch(1, 32, "128*f32,128*f32,32"));
  EXPECT_GT(one.us, 0.3);
  EXPECT_LT(one.us, 3);
  const ClockResult most = time_text(kCopy, make_launch(INT32_MAX, 32, ""));
  EXPECT_GT(most.us, 1e6);  // 2^31 blocks start at 0.6 ns each
  EXPECT_EQ(most.assumptions.size(), 1u);
}

const std::string kMeeting = R"(
  __syncthreads();
  if (threadIdx.x == 0) {
    __threadfence();
    atomicAdd(count, 1);
    while (*(volatile unsigned*)count < gridDim.x) {}
  }
  __syncthreads();
)";

const std::string kMeet = R"(extern "C" __global__ void meet(float* y, unsigned* count) {
  y[blockIdx.x * 32 + threadIdx.x] = 1;
  )" + kMeeting + R"(
  y[100000 + blockIdx.x * 32 + threadIdx.x] = 2; })";

TEST(TimeKernel, AGridBarrierCostsItsTimeAndNeedsAResidentGrid) {
  STITCH_SKIP_WITHOUT_NVRTC();
  const ClockResult result = time_text(kMeet, make_launch(132, 32, "200000*f32,1*i32"));
  EXPECT_TRUE(result.run.waits_for_grid);
  EXPECT_GT(result.us, device_spec("h200").barrier_us);
  EXPECT_THROW(time_text(kMeet, make_launch(132 * 32 + 1, 32, "400000*f32,1*i32")), UserError);
}

// Every block reads its share of x, meets the others and reads that of the block `apart` from it:
// in the same order, or last to first.
const std::string kTwice = R"(extern "C" __global__ void
twice(const float4* x, float* y, unsigned* count, int n, int apart, int is_backward) {
  float sum = 0;
  const int step = gridDim.x * 256, trips = n / step;
  for (int k = 0; k < trips; ++k) sum += x[k * step + blockIdx.x * 256 + threadIdx.x].x;
  )" + kMeeting + R"(
  const int other = (blockIdx.x + apart) % gridDim.x;
  for (int k = 0; k < trips; ++k)
    sum += x[(is_backward ? trips - 1 - k : k) * step + other * 256 + threadIdx.x].y;
  y[blockIdx.x * 256 + threadIdx.x] = sum; })";

TEST(TimeKernel, ALaterPhaseFindsInTheSecondCacheWhatWasReadLast) {
  STITCH_SKIP_WITHOUT_NVRTC();
  constexpr int64_t kBlocks = 132 * 4, kTrips = 62;  // 528 blocks, 134 MB
  const auto memory_of = [&](int64_t trips, const std::string& how) {
    const int64_t elements = trips * kBlocks * 256;
    const std::string x = std::to_string(4 * elements) + "*f32,";
    const std::string y = std::to_string(kBlocks * 256) + "*f32,1*i32,";
    const Launch launch = make_launch(kBlocks, 256, x + y + std::to_string(elements) + how);
    return time_text(kTwice, launch).memory_bytes / (16.0 * static_cast<double>(elements));
  };
  const double held = 0.93 * (60 << 20) / (16.0 * kTrips * kBlocks * 256);
  for (const std::string apart : {",0", ",17"}) {
    EXPECT_NEAR(memory_of(kTrips, apart + ",0"), 2, 0.03) << apart;
    const double backward = memory_of(kTrips, apart + ",1");
    EXPECT_GT(backward, 2 - held - 0.01) << apart;
    EXPECT_LT(backward, 2 - 0.65 * held) << apart << ": warps run ahead of others";
    EXPECT_NEAR(memory_of(kTrips / 4, apart + ",0"), 1, 0.03) << apart;
    EXPECT_NEAR(memory_of(kTrips / 4, apart + ",1"), 1, 0.03) << apart;
  }
}

TEST(TimeKernel, WhatTheLastBlockDoesCountsOnce) {
  STITCH_SKIP_WITHOUT_NVRTC();
  const std::string text = R"(extern "C" __global__ void last(float* y, float* z, unsigned* count) {
    y[blockIdx.x * 256 + threadIdx.x] = 1;
    int is_last = 0;
    if (threadIdx.x == 0) is_last = atomicAdd(count, 1) == gridDim.x - 1;
    if (__syncthreads_or(is_last))
      for (int i = threadIdx.x; i < 262144; i += 256) z[i] = 2; })";
  const ClockResult result =
      time_text(text, make_launch(20000, 256, "5120000*f32,262144*f32,1*i32"));
  EXPECT_NEAR(result.memory_bytes / (4.0 * (5120000 + 262144)), 1, 0.02);
}

TEST(TimeKernel, IsTheSameForTheSameBytes) {
  STITCH_SKIP_WITHOUT_NVRTC();
  const std::string cubin = cubin_of(kCopy);
  const auto print = [&] {
    return print_json(time_kernel(cubin, "copy", copy_launch(), device_spec("h200")));
  };
  EXPECT_EQ(print(), print());
}

}  // namespace
}  // namespace stitch::clock
