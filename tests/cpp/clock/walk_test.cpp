// The integer half of a warp: addresses, trips and predicates as the source says them.
#include <gtest/gtest.h>

#include "base/error.h"
#include "clock/clock_kernel.h"

namespace stitch::clock {
namespace {

struct Walked {
  Trace trace;
  uint64_t sectors = 0;  // over all accesses
  int unknown = 0;
  uint64_t requested_bytes = 0;
};

Walked walk_text(const std::string& text, const Launch& launch, std::vector<int64_t> blocks = {0}) {
  const Cubin cubin = read_cubin(cubin_of(text));
  const Program program = decode(cubin, find_kernel(cubin, ""));
  const Sample all = {std::move(blocks), 1, 1, UINT64_MAX};
  Walked walked{walk(program, launch, all)};
  for (const SectorRun& run : walked.trace.runs) walked.sectors += run.count;
  for (const Access& access : walked.trace.accesses) walked.unknown += access.unknown;
  for (const BlockTrace& block : walked.trace.blocks)
    walked.requested_bytes += block.requested_bytes;
  return walked;
}

// Which sectors of the first argument one warp stores to, as offsets from its start.
std::vector<uint64_t> stored_sectors(const std::string& text, const std::string& arguments,
                                     int64_t block = 0, int64_t blocks = 100) {
  const Walked walked = walk_text(text, make_launch(blocks, 32, arguments), {block});
  std::vector<uint64_t> sectors;
  for (const SectorRun& run : walked.trace.runs) {
    for (uint32_t k = 0; k < run.count; ++k)
      sectors.push_back(run.first + k - (uint64_t{1} << (kArgumentBits - 5)));
  }
  return sectors;
}

std::string store_at(const std::string& index, const std::string& parameters = "int n") {
  return "extern \"C\" __global__ void put(char* y, " + parameters +
         ") { long long t = threadIdx.x, b = blockIdx.x; y[" + index + "] = 1; }";
}

// Lane 0 alone stores, so that a sector is the index that the expression gives.
std::string first_lane_at(const std::string& index, const std::string& parameters) {
  return "extern \"C\" __global__ void put(char* y, " + parameters +
         ") { long long b = blockIdx.x; if (threadIdx.x == 0) y[(" + index + ") * 32] = 1; }";
}

TEST(Walk, FindsTheSectorsOfAnAddress) {
  STITCH_SKIP_WITHOUT_NVRTC();
  EXPECT_EQ(stored_sectors(store_at("t * 32 + b"), "1048576*i8,0", 5), [] {
    std::vector<uint64_t> all(32);
    for (size_t i = 0; i < all.size(); ++i) all[i] = i;
    return all;
  }());
  EXPECT_EQ(stored_sectors(store_at("t + b * 64"), "1048576*i8,0", 3), (std::vector<uint64_t>{6}));
  EXPECT_EQ(stored_sectors(store_at("(t % 2) * 320 + 64"), "1048576*i8,0"),
            (std::vector<uint64_t>{2, 12}));
}

// What ptxas makes of each of these is another handful of opcodes.
TEST(Walk, ComputesIntegersAsTheLanguageSays) {
  STITCH_SKIP_WITHOUT_NVRTC();
  struct Case {
    const char *expression, *parameters, *arguments;
    uint64_t expected;
  };
  const std::vector<Case> cases = {
      {"b * n", "int n", "123", 7 * 123},
      {"(b * 1000003) % n", "int n", "977", 7 * 1000003 % 977},
      {"(b + 4000) / n", "unsigned n", "7", 4007 / 7},
      {"(b + n) / m", "long long n, long long m", "9000000,1031", 9000007 / 1031},
      {"(b + n) / 12", "int n", "1000", 1007 / 12},
      {"(n - b) / 5", "int n", "1000", 993 / 5},
      {"min(n, (int)b * 200)", "int n", "1300", 1300},
      {"max(n, (int)b * 200)", "int n", "1300", 1400},
      {"max(n - (int)b, 500)", "int n", "1300", 1293},
      {"abs(n) + b", "int n", "-90", 97},
      {"(n >> 3) & 255", "int n", "12345", (12345 >> 3) & 255},
      {"((unsigned)n >> b) ^ 3", "int n", "123456", (123456u >> 7) ^ 3},
      {"(b << 4) | n", "int n", "5", 7 << 4 | 5},
      {"n < 3 ? b : b * 2", "int n", "3", 14},
      {"n < 4000000000ll && n > 5 ? b + 1 : 0", "long long n", "3000000000", 8},
      {"__popc(n) + b", "int n", "255", 15},
      {"(unsigned char)(n >> 8) + b", "int n", "74565", (74565 >> 8 & 255) + 7},
      {"(signed char)n + 200", "int n", "250", 194},
      {"__umulhi(n, 1 << 20)", "unsigned n", "4000000", (4000000ull << 20) >> 32},
      {"n * n / 1000000", "long long n", "3000001", 3000001ull * 3000001 / 1000000},
      {"gridDim.x + blockDim.x", "int n", "0", 132},
  };
  for (const Case& test : cases) {
    const auto found = stored_sectors(first_lane_at(test.expression, test.parameters),
                                      "1073741824*i8," + std::string(test.arguments), 7);
    EXPECT_EQ(found, std::vector<uint64_t>{test.expected}) << test.expression;
  }
}

TEST(Walk, FollowsLoopsAndLanesThatPart) {
  STITCH_SKIP_WITHOUT_NVRTC();
  const std::string loop = R"(extern "C" __global__ void add(float* y, const float* x, int n) {
    float sum = 0;
    #pragma unroll 1
    for (int i = threadIdx.x; i < n; i += 32) sum += x[i];
    y[threadIdx.x] = sum; })";
  const Walked some = walk_text(loop, make_launch(1, 32, "32*f32,1000*f32,1000"));
  EXPECT_EQ(some.sectors, 4u + 125u);  // 31 trips and a part of one
  EXPECT_EQ(some.requested_bytes, 4u * (32 + 1000));
  EXPECT_EQ(some.trace.assumptions, std::vector<std::string>());
  const std::string parting = R"(extern "C" __global__ void part(float* y, int n) {
    int i = threadIdx.x;
    if (i % 3 == 0) y[i] = 1; else if (i < n) y[100 + i] = 2;
    __syncwarp();
    y[200 + i] = 3; })";
  const Walked parted = walk_text(parting, make_launch(1, 32, "300*f32,16"));
  EXPECT_EQ(parted.requested_bytes, 4u * (11 + 10 + 32));
}

TEST(Walk, LanesThatPartedGoOnTogetherBehindABarrierOfTheWarp) {
  STITCH_SKIP_WITHOUT_NVRTC();
  const Walked walked = walk_text(R"(
    extern "C" __global__ void meet(float* y, unsigned* count, int n) {
      __syncthreads();
      if (threadIdx.x == 0) {
        atomicAdd(count, 1);
        while (*(volatile unsigned*)count < gridDim.x) {}
      }
      __syncthreads();
      for (int i = 0; i < n; ++i) y[i * 64 + threadIdx.x] = i;
    })",
                                  make_launch(2, 64, "64000*f32,1*i32,1000"));
  const auto steps = [&](size_t w) {
    return walked.trace.warps[w].end - walked.trace.warps[w].first;
  };
  EXPECT_GT(steps(1), 1000u);
  EXPECT_LT(steps(0), steps(1) + 100) << "lane 0 polls, and does not run the loop by itself";
}

TEST(Walk, SaysWhatItAssumesOfData) {
  STITCH_SKIP_WITHOUT_NVRTC();
  const std::string gather = R"(extern "C" __global__ void gather(float* y, const float* x,
      const int* at) { y[threadIdx.x] = x[at[threadIdx.x]]; })";
  const Walked unknown = walk_text(gather, make_launch(1, 32, "32*f32,1000*f32,32*f32"));
  EXPECT_EQ(unknown.unknown, 32);
  ASSERT_EQ(unknown.trace.assumptions.size(), 1u);
  EXPECT_NE(unknown.trace.assumptions[0].find("addresses that depend on data"), std::string::npos);
  const Walked given = walk_text(gather, make_launch(1, 32, "32*f32,1000*f32,32*i32<1000"));
  EXPECT_EQ(given.unknown, 0);
  EXPECT_GT(given.sectors, 4u + 4u + 16u);  // spread over the argument
  const std::string loop = R"(extern "C" __global__ void halve(float* y) {
    float x = y[threadIdx.x];
    #pragma unroll 1
    while (x > 1) { ((volatile float*)y)[threadIdx.x] = x; x *= 0.5f; } })";
  Launch launch = make_launch(1, 32, "32*f32");
  launch.trips = 5;
  const Walked looped = walk_text(loop, launch);
  EXPECT_EQ(looped.requested_bytes, 128u * (1 + 5));
  EXPECT_EQ(looped.trace.assumptions.back(), "loops whose end depends on data run 5 trips");
}

TEST(Walk, TheLastBlockAloneDoesWhatTheLastBlockDoes) {
  STITCH_SKIP_WITHOUT_NVRTC();
  const std::string text = R"(extern "C" __global__ void last(float* y, unsigned* count) {
    y[blockIdx.x * 32 + threadIdx.x] = 1;
    int is_last = 0;
    if (threadIdx.x == 0) is_last = atomicAdd(count, 1) == gridDim.x - 1;
    if (__syncthreads_or(is_last)) y[10000 + threadIdx.x] = 2; })";
  const Launch launch = make_launch(50, 32, "20000*f32,1*i32");
  EXPECT_EQ(walk_text(text, launch, {0, 1, 48}).requested_bytes, 3u * (128 + 4));
  EXPECT_EQ(walk_text(text, launch, {0, 1, 49}).requested_bytes, 3u * (128 + 4) + 128);
}

TEST(Walk, RefusesWhatItCannotFollow) {
  STITCH_SKIP_WITHOUT_NVRTC();
  const std::string copy = R"(extern "C" __global__ void copy(float* y, const float* x) {
    y[threadIdx.x] = x[threadIdx.x]; })";
  EXPECT_THROW(walk_text(copy, make_launch(1, 32, "32*f32")), UserError);
  const std::string endless = R"(extern "C" __global__ void endless(int* y, int n) {
    #pragma unroll 1
    for (int i = 1; i != n; i += 2) y[i & 7] = i; })";
  EXPECT_THROW(walk_text(endless, make_launch(1, 32, "8*i32,0")), UserError);
  const std::string table = R"(extern "C" __global__ void choose(float* y, int n) {
    switch (n) {
      case 0: y[3] = sinf(y[4]); break;
      case 1: y[5] = y[6] / 3; break;
      case 2: y[7] = expf(y[8]); break;
      case 3: y[9] = logf(y[1]); break;
      case 4: y[2] = y[0]; y[11] = y[12]; break;
      case 5: __syncthreads(); y[13] = y[14]; break;
    } })";
  EXPECT_THROW(walk_text(table, make_launch(1, 32, "32*f32,1")), UnsupportedError);
}

}  // namespace
}  // namespace stitch::clock
