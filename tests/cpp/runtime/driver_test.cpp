#include "runtime/driver.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>

#include "cpp/runtime/fake_frame.h"
#include "runtime/error_flags.h"
#include "support/own_node.h"

namespace stitch {
namespace {

// A device whose kernels are host functions with the host calling convention.
struct FakeDevice {
  std::vector<std::string> log;
  std::vector<int32_t> failing;  // what the flags hold after the launches
  bool is_late = false;          // they are set when somebody waits
  int32_t* late = nullptr;
  CudaResult launch_result = 0;
  int capturing = 0;
  int phases = 1;  // of the kernels; with more, their arguments name some
  CudaResult cooperative_result = 0;
  int can_meet = 1, multiprocessors = 3, blocks_per_multiprocessor = 2;
  std::vector<PointerArgument> described;
  CudaHandle context = reinterpret_cast<CudaHandle>(1);
};
FakeDevice device;
constexpr int kBlocks = 2;  // of 32 elements each, in every kernel here

CudaResult launch_on_host(unsigned grid, void** parameters) {
  if (device.launch_result) return device.launch_result;
  void* pointers[] = {*static_cast<void**>(parameters[0]), *static_cast<void**>(parameters[1])};
  auto* sizes = static_cast<int64_t*>(parameters[2]);
  int first = 0, end = 1, next = 3;
  if (device.phases > 1) {
    first = *static_cast<int32_t*>(parameters[3]), end = *static_cast<int32_t*>(parameters[4]);
    auto* barrier = *static_cast<uint32_t**>(parameters[5]);
    device.log.push_back("phases " + std::to_string(first) + " to " + std::to_string(end) +
                         " barrier " + std::to_string(*barrier));
    next = 6;
  }
  for (int phase = first; phase < end; ++phase) {
    void* from = phase == 0 ? pointers[0] : pointers[1];
    void* passed[] = {from, pointers[1]};
    FakePlan::add_one(passed, sizes, 0, device.phases > 1 ? kBlocks : grid, nullptr);
  }
  auto* flag = *static_cast<int32_t**>(parameters[next]);
  if (flag && device.is_late) device.late = flag;
  if (flag && !device.failing.empty()) {
    *flag = device.failing.front();
    device.failing.erase(device.failing.begin());
  }
  return 0;
}

CudaResult fake_launch(const LaunchConfig* config, CudaHandle, void** parameters, void**) {
  const bool meets = config->has(LaunchAttribute::kCooperative);
  if (meets && device.cooperative_result) return device.cooperative_result;
  const bool is_early = config->has(LaunchAttribute::kMayBeginEarly);
  device.log.push_back(std::string(meets      ? "cooperative"
                                   : is_early ? "early"
                                              : "launch") +
                       " grid " + std::to_string(config->grid[0]) + " block " +
                       std::to_string(config->block[0]) + " shared " +
                       std::to_string(config->shared_bytes) + " stream " +
                       std::to_string(reinterpret_cast<uintptr_t>(config->stream)));
  return launch_on_host(config->grid[0], parameters);
}

CudaResult fake_load(CudaHandle* module, const void*) {
  device.log.push_back("load");
  *module = reinterpret_cast<CudaHandle>(device.log.size());
  return 0;
}

const Driver& fake_driver() {
  static const Driver table = [] {
    Driver driver{};
    driver.device_get = [](int* handle, int ordinal) { return *handle = ordinal, 0; };
    driver.primary_context_retain = [](CudaHandle* context, int) {
      return *context = reinterpret_cast<CudaHandle>(9), 0;
    };
    driver.context_get_current = [](CudaHandle* context) { return *context = device.context, 0; };
    driver.context_set_current = [](CudaHandle context) { return device.context = context, 0; };
    driver.module_load_data = &fake_load;
    driver.module_get_function = [](CudaHandle* function, CudaHandle module, const char*) {
      return *function = module, 0;
    };
    driver.function_set_attribute = [](CudaHandle, int, int value) {
      device.log.push_back("shared " + std::to_string(value));
      return 0;
    };
    driver.launch_kernel = &fake_launch;
    driver.describe_arguments = [](std::vector<PointerArgument> arguments) {
      device.described = std::move(arguments);
    };
    driver.context_get_device = [](int* handle) { return *handle = 0, 0; };
    driver.device_attribute = [](int* value, int attribute, int) {
      return *value = attribute == 95 ? device.can_meet : device.multiprocessors, 0;
    };
    driver.max_blocks_per_multiprocessor = [](int* blocks, CudaHandle, int, size_t) {
      return *blocks = device.blocks_per_multiprocessor, 0;
    };
    driver.host_allocate = [](void** memory, size_t bytes, unsigned flags) {
      device.log.push_back("allocate " + std::to_string(bytes) + " bytes, flags " +
                           std::to_string(flags));
      return *memory = std::malloc(bytes), 0;
    };
    driver.host_device_address = [](CudaAddress* address, void* memory, unsigned) {
      return *address = reinterpret_cast<CudaAddress>(memory), 0;
    };
    driver.context_synchronize = [] {
      device.log.push_back("wait for all");
      if (device.late) *device.late = 1;
      return 0;
    };
    driver.stream_synchronize = [](CudaHandle) { return device.log.push_back("wait"), 0; };
    driver.stream_is_capturing = [](CudaHandle, int* status) {
      return *status = device.capturing, 0;
    };
    driver.error_string = [](CudaResult, const char** text) { return *text = "no luck", 0; };
    return driver;
  }();
  return table;
}

class DriverTest : public testing::Test {
 protected:
  void SetUp() override { device = FakeDevice(); }
  ScopedDriver stand_in{fake_driver()};
};

FakePlan make_plan(int kernels, bool may_fail) {
  FakePlan plan;
  NodeId x = plan.add_input(floats({64}));
  for (int i = 0; i < kernels; ++i) {
    x = plan.add_kernel(x, kBlocks, 32);
    Node& node = own(plan.graph.nodes[x.index()]);
    node.op = OpKind::k_gather;
    node.inputs.push_back(node.inputs[0]);
    node.ints = {0};
    node.origin = {"aten.gather.default", "m.py:" + std::to_string(i)};
  }
  for (KernelSource& source : plan.sources) {
    source.threads = 32;
    source.shared_bytes = 128;
    source.may_fail = may_fail;
  }
  plan.returns(x);
  return plan;
}

// What a run throws of this kind; "no error" for nothing.
template <typename Error>
std::string error_of(const Program& program) {
  FakeFrame frame(program);
  frame.set(0, std::vector<float>(64, 1));
  try {
    run(program, frame, {});
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST_F(DriverTest, LaunchesWithTheStreamOfTheFrame) {
  const Program program = make_plan(2, false).build(true);
  FakeFrame frame(program);
  frame.set(0, std::vector<float>(64, 1));
  run(program, frame, {});
  const std::string launch = "launch grid 2 block 32 shared 128 stream 7";
  EXPECT_EQ(device.log, (std::vector<std::string>{launch, launch})) << "and waits for nothing";
  EXPECT_EQ(frame.output(0), std::vector<float>(64, 3));
}

int count_waits() {
  return static_cast<int>(std::ranges::count_if(
      device.log, [](const std::string& line) { return line.starts_with("wait"); }));
}

// As compile() loads it.
Program load(const FakePlan& plan, bool waits = false) {
  Program program = plan.build(true);
  program.flags = ErrorFlags::make(program, waits);
  return program;
}

TEST_F(DriverTest, NobodyWaitsForAFlagAndItNamesTheLaunchThatFailed) {
  const Program program = load(make_plan(3, true));
  EXPECT_EQ(device.log, std::vector<std::string>{"allocate 12 bytes, flags 3"});
  EXPECT_EQ(error_of<OutOfRangeError>(program), "no error");
  device.failing = {0, 1, 0};
  EXPECT_EQ(error_of<FailedCallError>(program),
            "index out of range in aten.gather.default at m.py:1");
  EXPECT_EQ(error_of<FailedCallError>(program), "no error") << "it is said once";
  EXPECT_EQ(count_waits(), 0);
}

TEST_F(DriverTest, WhatFailsAfterACallIsSaidByTheNextOne) {
  const Program program = load(make_plan(1, true));
  device.is_late = true;
  EXPECT_EQ(error_of<FailedCallError>(program), "no error");
  *device.late = 1;
  EXPECT_EQ(error_of<FailedCallError>(program),
            "index out of range in aten.gather.default at m.py:0");
}

TEST_F(DriverTest, WhoWaitsForTheDeviceHearsOfAllPrograms) {
  const Program first = load(make_plan(1, true)), second = load(make_plan(1, true));
  EXPECT_NO_THROW(check_flags());
  device.is_late = true;
  EXPECT_EQ(error_of<FailedCallError>(second), "no error");
  EXPECT_THROW(check_flags(), FailedCallError);
  device.late = nullptr;
  EXPECT_NO_THROW(check_flags());
  EXPECT_EQ(error_of<FailedCallError>(first), "no error");
}

TEST_F(DriverTest, ProgramsThatCannotFailHaveNoFlags) {
  EXPECT_EQ(load(make_plan(2, false)).flags, nullptr);
  EXPECT_TRUE(device.log.empty());
}

TEST_F(DriverTest, CallsThatAreToWaitDoSoOnce) {
  const Program program = load(make_plan(3, true), true);
  device.failing = {0, 0, 1};
  EXPECT_EQ(error_of<FailedCallError>(program),
            "index out of range in aten.gather.default at m.py:2");
  EXPECT_EQ(count_waits(), 1);
}

TEST_F(DriverTest, NothingWaitsDuringACapture) {
  device.capturing = 1;
  const Program program = load(make_plan(1, true), true);
  EXPECT_EQ(error_of<OutOfRangeError>(program), "no error");
  EXPECT_EQ(count_waits(), 0);
}

TEST_F(DriverTest, AFailedLaunchNamesKernelAndSizes) {
  device.launch_result = 2;
  const Program program = make_plan(1, false).build(true);
  EXPECT_EQ(error_of<FailedCallError>(program),
            "cuLaunchKernelEx of relu_0 (grid 2, block 32, 128 bytes of shared memory): "
            "no luck (2)");
}

// One kernel, x + the number of its phases.
FakePlan make_phases(std::vector<Dim> phases, int resident_blocks) {
  FakePlan plan = make_plan(1, false);
  device.phases = static_cast<int>(phases.size());
  plan.sources[0].phases = std::move(phases);
  plan.kernels[0].resident_blocks = resident_blocks;
  return plan;
}

std::vector<std::string> run_phases(const FakePlan& plan) {
  const Program program = plan.build(true);
  FakeFrame frame(program);
  frame.set(0, std::vector<float>(64, 1));
  run(program, frame, {});
  EXPECT_EQ(frame.output(0), std::vector<float>(64, 1.0f + device.phases));
  return device.log;
}

TEST_F(DriverTest, PhasesAreOneLaunchOfBlocksThatAreAllResident) {
  const std::string both = "phases 0 to 2 barrier 0";
  EXPECT_EQ(run_phases(make_phases({6, 2}, 6)),
            (std::vector<std::string>{"cooperative grid 6 block 32 shared 128 stream 7", both}));
  device = FakeDevice();
  EXPECT_EQ(run_phases(make_phases({3, 5}, 6)),
            (std::vector<std::string>{"cooperative grid 5 block 32 shared 128 stream 7", both}))
      << "as many as the largest phase has";
}

const std::vector<std::string> kSplit = {
    "launch grid 100 block 32 shared 128 stream 7", "phases 0 to 1 barrier 0",
    "launch grid 1 block 32 shared 128 stream 7",   "phases 1 to 2 barrier 0",
    "launch grid 7 block 32 shared 128 stream 7",   "phases 2 to 3 barrier 0"};

TEST_F(DriverTest, AKernelThatWaitsForTheLaunchBeforeItMayBeginEarly) {
  FakePlan plan = make_plan(3, false);
  plan.sources[1].is_dependent = true;
  const Program program = plan.build(true);
  FakeFrame frame(program);
  frame.set(0, std::vector<float>(64, 1));
  run(program, frame, {});
  const std::string usual = "launch grid 2 block 32 shared 128 stream 7";
  const std::string early = "early grid 2 block 32 shared 128 stream 7";
  EXPECT_EQ(device.log, (std::vector<std::string>{usual, early, usual}));
  EXPECT_EQ(frame.output(0), std::vector<float>(64, 4));
}

TEST_F(DriverTest, PhasesBeginEarlyWhereTheyAreLaunchesOfTheirOwn) {
  FakePlan plan = make_phases({6, 2}, 6);
  plan.sources[0].is_dependent = true;
  EXPECT_TRUE(run_phases(plan)[0].starts_with("cooperative grid 6"));
  device = FakeDevice();
  plan = make_phases({6, 2}, 0);
  plan.sources[0].is_dependent = true;
  const std::vector<std::string> log = run_phases(plan);
  EXPECT_TRUE(log[0].starts_with("early grid 6") && log[2].starts_with("early grid 2"));
}

TEST_F(DriverTest, WhereBlocksCannotMeetEachPhaseIsALaunch) {
  EXPECT_EQ(run_phases(make_phases({100, 0, 7}, 0)), kSplit) << "no grid is empty";
  device = FakeDevice();
  EXPECT_EQ(run_phases(make_phases({100, 0, 7}, 6)), kSplit) << "not all are resident";
}

TEST_F(DriverTest, BlocksThatTakeTurnsAreAsManyAsAreResident) {
  FakePlan plan = make_phases({4, 100}, 6);
  plan.sources[0].in_turns = {1};
  EXPECT_EQ(run_phases(plan)[0], "cooperative grid 6 block 32 shared 128 stream 7");
  device = FakeDevice();
  plan = make_phases({100, 7}, 6);
  plan.sources[0].in_turns = {0};
  EXPECT_EQ(run_phases(plan)[0], "launch grid 6 block 32 shared 128 stream 7");
  EXPECT_EQ(device.log[2], "launch grid 7 block 32 shared 128 stream 7") << "has one for each";
  device = FakeDevice();
  plan = make_phases({100, 0, 7}, 0);
  plan.sources[0].in_turns = {0};
  EXPECT_EQ(run_phases(plan), kSplit) << "nobody knows how many are resident";
}

TEST_F(DriverTest, ARefusedCooperativeLaunchIsRunByPhases) {
  for (const CudaResult refusal : {720, 801}) {  // too large; not supported
    device = FakeDevice();
    const FakePlan plan = make_phases({100, 0, 7}, 100);
    device.cooperative_result = refusal;
    EXPECT_EQ(run_phases(plan), kSplit);
  }
}

TEST_F(DriverTest, OtherErrorsOfACooperativeLaunchAreErrors) {
  const Program program = make_phases({6, 7}, 7).build(true);
  device.cooperative_result = 2;
  FakeFrame frame(program);
  frame.set(0, std::vector<float>(64, 1));
  try {
    run(program, frame, {});
    FAIL() << "no error";
  } catch (const FailedCallError& error) {
    EXPECT_STREQ(error.what(),
                 "cuLaunchKernelEx of relu_0 (grid 7, block 32, 128 bytes of shared memory): "
                 "no luck (2)");
  }
  EXPECT_TRUE(device.log.empty()) << "nothing ran";
}

TEST_F(DriverTest, PackedStagesOfOnePhaseNeedNoCooperation) {
  EXPECT_EQ(run_phases(make_phases({kBlocks}, 0)),
            std::vector<std::string>{"launch grid 2 block 32 shared 128 stream 7"});
}

TEST_F(DriverTest, PhasesWithoutBlocksAreNotLaunched) {
  const FakePlan plan = make_phases({0, 0}, 6);
  Program program = plan.build(true);
  FakeFrame frame(program);
  frame.set(0, {});
  run(program, frame, {});
  EXPECT_TRUE(device.log.empty());
}

TEST_F(DriverTest, AFlagFollowsTheBarrier) {
  FakePlan plan = make_plan(1, true);
  device.phases = 2;
  plan.sources[0].phases = {3, 5};
  plan.kernels[0].resident_blocks = 6;
  device.failing = {1};
  EXPECT_NE(error_of<FailedCallError>(load(plan)), "no error");
}

// What the whole kernel writes first and then reads, a part of it may find written.
TEST_F(DriverTest, PartsOfAKernelMayReadWhatItStores) {
  using Access = PointerArgument::Access;
  run_phases(make_phases({3, 5}, 6));
  ASSERT_EQ(device.described.size(), 3u);
  EXPECT_EQ(device.described[0].access, Access::kLoad);
  EXPECT_EQ(device.described[1].access, Access::kStore);
  EXPECT_EQ(device.described[2].name, "barrier");
  EXPECT_EQ(device.described[2].access, Access::kBoth);
  run_phases(make_phases({3, 5}, 0));
  EXPECT_EQ(device.described[0].access, Access::kLoad);
  EXPECT_EQ(device.described[1].access, Access::kBoth);
}

TEST_F(DriverTest, ResidentBlocksAreThoseOfAllMultiprocessors) {
  EXPECT_EQ(count_resident_blocks(nullptr, "k", 32, 128), 6);
  device.can_meet = 0;
  EXPECT_EQ(count_resident_blocks(nullptr, "k", 32, 128), 0) << "no cooperative launch";
}

TEST_F(DriverTest, EqualCubinsAreLoadedOnceAndLargeSharedMemoryIsAskedFor) {
  const CudaHandle first = load_function("cubin of this test", "a", 1000);
  EXPECT_EQ(load_function("cubin of this test", "b", 100000), first);
  EXPECT_NE(load_function("another cubin of this test", "a", 0), first);
  EXPECT_EQ(device.log, (std::vector<std::string>{"load", "shared 100000", "load"}));
}

TEST_F(DriverTest, AThreadWithoutContextGetsTheDevices) {
  device.context = nullptr;
  ensure_context(0);
  EXPECT_EQ(device.context, reinterpret_cast<CudaHandle>(9));
  EXPECT_NO_THROW(driver());
}

TEST_F(DriverTest, WhatItRefusesToSayIsAssumedAndToldOf) {
  Driver refusing = fake_driver();
  refusing.device_attribute = [](int* value, int attribute, int) {
    if (attribute == 36) return 1;  // the clock of memory
    return *value = attribute == 75 ? 12 : attribute == 76 ? 1 : 48, 0;
  };
  const ScopedDriver other(refusing);
  const DeviceAttributes found = read_device(0);
  EXPECT_EQ(found.capability, 121);
  EXPECT_EQ(found.multiprocessors, 48);
  EXPECT_EQ(found.memory_clock_khz, 0);
  const DeviceSpec& device = find_device(found);
  EXPECT_EQ(device.arch, "sm_121a");
  EXPECT_NEAR(device.dram_bytes_per_us, device_spec("rtx5090").dram_bytes_per_us * 48 / 170, 1);
  EXPECT_TRUE(device.derived.ends_with("and what its driver does not say of the rtx5090"));
}

TEST(Driver, ItsAbsenceIsExplained) {
  try {
    driver();
  } catch (const UnsupportedError& error) {
    const std::string text = error.what();
    EXPECT_TRUE(text.starts_with("no CUDA device: ")) << text;
    EXPECT_NE(text.find("; "), text.npos) << text << " names no remedy";
    return;
  }
  GTEST_SKIP() << "this machine has a driver";
}

}  // namespace
}  // namespace stitch
