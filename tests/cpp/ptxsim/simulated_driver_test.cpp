#include "ptxsim/simulated_driver.h"

#include <gtest/gtest.h>

#include <numeric>

#include "ptxsim/run_kernel.h"

namespace stitch::ptxsim {
namespace {

// y[i] = x[i] + 1 of u32, one block; `scale(int)` in C++ is its other name.
constexpr const char* kAddOne = R"(.version 8.0
.target sm_90a
.address_size 64
.visible .entry _Z5scalePjPKj(.param .u64 y, .param .u64 x) .maxntid 64, 1, 1 {
  .reg .b32 %r<4>;
  .reg .b64 %rd<8>;
  .shared .align 4 .b8 held[256];
  ld.param.u64 %rd1, [y];
  ld.param.u64 %rd2, [x];
  mov.u64 %rd6, held;
  mov.u32 %r1, %tid.x;
  mul.wide.u32 %rd3, %r1, 4;
  add.s64 %rd4, %rd2, %rd3;
  ld.global.u32 %r2, [%rd4];
  add.s32 %r3, %r2, 1;
  add.s64 %rd5, %rd1, %rd3;
  st.global.u32 [%rd5], %r3;
  ret;
}
)";
constexpr const char* kName = "_Z5scalePjPKj";
using Access = PointerArgument::Access;

struct Arrays {
  std::vector<uint32_t> y = std::vector<uint32_t>(64), x = std::vector<uint32_t>(64);
  Arrays() { std::iota(x.begin(), x.end(), 0); }
};

PointerArgument describe(const char* name, Access access, std::vector<uint32_t>& array) {
  const auto size = static_cast<int64_t>(array.size());
  return {access, name, reinterpret_cast<CudaAddress>(array.data()), 4 * size, 4, {size}, {1}};
}

CudaResult launch(CudaHandle function, std::vector<uint32_t>& y, std::vector<uint32_t>& x,
                  unsigned threads = 64) {
  void* pointers[] = {y.data(), x.data()};
  void* parameters[] = {&pointers[0], &pointers[1]};
  const LaunchConfig config{{1, 1, 1}, {threads, 1, 1}, 0, nullptr, nullptr, 0};
  return driver().launch_kernel(&config, function, parameters, nullptr);
}

class SimulatedDriver : public testing::Test {
 protected:
  const SimulatedRun run{simulated_device("h200")};
  const CudaHandle function = load_function(kAddOne, kName, 0);
  Arrays arrays;
};

TEST_F(SimulatedDriver, LaunchesOnMemoryOfTheProcess) {
  driver().describe_arguments(
      {describe("y", Access::kStore, arrays.y), describe("x", Access::kLoad, arrays.x)});
  ASSERT_EQ(launch(function, arrays.y, arrays.x), 0);
  run.check();
  for (uint32_t i = 0; i < 64; ++i) ASSERT_EQ(arrays.y[i], i + 1);
}

TEST_F(SimulatedDriver, PointersToTheSameMemoryAreReadAndWritten) {
  driver().describe_arguments(
      {describe("y", Access::kStore, arrays.x), describe("x", Access::kLoad, arrays.x)});
  ASSERT_EQ(launch(function, arrays.x, arrays.x), 0);
  run.check();
  EXPECT_EQ(arrays.x[63], 64u);
}

TEST_F(SimulatedDriver, DefectsAreAnErrorAfterwards) {
  arrays.x.resize(63);
  driver().describe_arguments(
      {describe("y", Access::kStore, arrays.y), describe("x", Access::kLoad, arrays.x)});
  ASSERT_EQ(launch(function, arrays.y, arrays.x), 0);
  try {
    run.check();
    FAIL() << "no error";
  } catch (const InternalError& error) {
    EXPECT_NE(std::string(error.what()).find("out_of_bounds: "), std::string::npos) << error.what();
  }
  EXPECT_NO_THROW(SimulatedRun(simulated_device("h200")).check()) << "another call's";
}

// y holds the number of the thread that comes last.
constexpr const char* kLast = R"(.version 8.0
.target sm_90a
.address_size 64
.visible .entry last(.param .u64 y, .param .u64 x) .maxntid 64, 1, 1 {
  .reg .b32 %r<4>;
  .reg .b64 %rd<4>;
  ld.param.u64 %rd1, [y];
  mov.u32 %r1, %tid.x;
  atom.global.exch.b32 %r2, [%rd1], %r1;
  ret;
}
)";

TEST_F(SimulatedDriver, LaunchesGoThroughAsManyOrdersAsAreWanted) {
  const CudaHandle last = load_function(kLast, "last", 0);
  for (const int orders : {1, 5}) {
    set_orders(orders);
    const SimulatedRun checked(simulated_device("h200"));
    driver().describe_arguments(
        {describe("y", Access::kBoth, arrays.y), describe("x", Access::kLoad, arrays.x)});
    ASSERT_EQ(launch(last, arrays.y, arrays.x), 0);
    if (orders == 1) {
      EXPECT_NO_THROW(checked.check());
    } else {
      EXPECT_THROW(checked.check(), InternalError) << "two orders, two results";
    }
  }
}

TEST_F(SimulatedDriver, ARunInsideAnotherLeavesTheOuterOneAsItWas) {
  arrays.x.resize(63);
  const auto describe_both = [&] {
    driver().describe_arguments(
        {describe("y", Access::kStore, arrays.y), describe("x", Access::kLoad, arrays.x)});
  };
  const auto accusation = [&] {
    try {
      run.check();
    } catch (const InternalError& error) {
      return std::string(error.what());
    }
    return std::string("none");
  };
  describe_both();
  ASSERT_EQ(launch(function, arrays.y, arrays.x), 0);
  const std::string before = accusation();
  EXPECT_NE(before, "none");
  {
    const SimulatedRun inner(simulated_device("two_sm"));
    int multiprocessors = 0;
    EXPECT_EQ(driver().device_attribute(&multiprocessors, 16, 0), 0);
    EXPECT_EQ(multiprocessors, 2);
    EXPECT_NO_THROW(inner.check()) << "accused of what the outer one did";
    for (int launches = 0; launches < 2; ++launches) {
      describe_both();
      ASSERT_EQ(launch(function, arrays.y, arrays.x), 0);
    }
    EXPECT_THROW(inner.check(), InternalError);
  }
  int multiprocessors = 0;
  EXPECT_EQ(driver().device_attribute(&multiprocessors, 16, 0), 0);
  EXPECT_EQ(multiprocessors, 132);
  EXPECT_EQ(accusation(), before);
}

TEST_F(SimulatedDriver, TheDeviceAnswersAsADriver) {
  int value = 0;
  EXPECT_EQ(driver().max_blocks_per_multiprocessor(&value, function, 64, 0), 0);
  EXPECT_EQ(value, 32) << "2048 threads";
  EXPECT_EQ(driver().max_blocks_per_multiprocessor(&value, function, 64, 100 << 10), 0);
  EXPECT_EQ(value, 2) << "228 KB of shared memory";
  EXPECT_EQ(driver().device_attribute(&value, 16, 0), 0);  // multiprocessors
  EXPECT_EQ(value, 132);
}

TEST_F(SimulatedDriver, RefusalsHaveWords) {
  EXPECT_THROW(load_function(kAddOne, "other", 0), FailedCallError);
  EXPECT_THROW(load_function("no PTX", "other", 0), FailedCallError);
  EXPECT_NE(launch(function, arrays.y, arrays.x, 2048), 0);
  const char* text = "";
  driver().error_string(1, &text);
  EXPECT_STRNE(text, "");
}

TEST(SimulatedDevice, IsAGpuOfTheTableOrHasTwoMultiprocessors) {
  EXPECT_EQ(machine_of("two_sm").multiprocessors, 2);
  EXPECT_EQ(machine_of("a100").multiprocessors, 108);
  EXPECT_EQ(arch_of("two_sm"), "sm_90a");
  EXPECT_THROW(machine_of("cpu"), UserError);
  EXPECT_THROW(machine_of("h2000"), UserError);
}

TEST(SimulatedMachines, DescribeThemselvesAsADriverDoes) {
  constexpr const char* kDerived =
      "sm_86-80-1710000-6251000-384-6291456-101376-102400-65536-1536-16";
  std::vector<std::string> names = {kDerived};
  for (const DeviceSpec& device : all_devices())
    if (device.is_cuda) names.push_back(device.name);
  for (const std::string& name : names) {
    const SimulatedRun run(simulated_device(name));
    EXPECT_EQ(find_device(read_device(0)).name, name);
  }
  EXPECT_EQ(machine_of("l4").blocks_per_multiprocessor, 24);
}

TEST(RunKernel, FindsKernelsByTheirPlainName) {
  Arrays arrays;
  KernelRun run;
  run.ptx = kAddOne;
  run.kernel = "scale";
  run.block = {64, 1, 1};
  for (auto* array : {&arrays.y, &arrays.x}) {
    run.arguments.push_back(
        View{"", reinterpret_cast<uint64_t>(array->data()), 256, 4, View::Role::any, {64}, {1}});
  }
  run.inputs = {1};
  run.outputs = {0};
  EXPECT_EQ(run_kernel(run).findings.count, 0u);
  EXPECT_EQ(arrays.y[63], 64u);
  run.kernel = "scales";
  EXPECT_THROW(run_kernel(run), UserError);
}

TEST(RunKernel, KnowsPtx) {
  EXPECT_TRUE(is_ptx("  // by hand\n/* .entry */ .version 8.0\n"));
  EXPECT_FALSE(is_ptx("// .version 8.0\n__global__ void k() {}"));
  EXPECT_FALSE(is_ptx(""));
  EXPECT_FALSE(is_ptx("/* .version"));
}

}  // namespace
}  // namespace stitch::ptxsim
