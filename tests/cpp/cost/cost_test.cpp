#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "base/error.h"
#include "config/settings.h"
#include "cost/estimate_kernel.h"

namespace stitch {
namespace {

TEST(DeviceSpec, EveryRowIsFoundByItsName) {
  for (const DeviceSpec& device : all_devices()) {
    EXPECT_EQ(&device_spec(device.name), &device);
    EXPECT_EQ(device.is_cuda, device.arch.starts_with("sm_")) << device.name;
    EXPECT_GT(device.dram_bytes_per_us, 0) << device.name;
    EXPECT_GE(device.l2_bytes_per_us, device.dram_bytes_per_us) << device.name;
    EXPECT_GE(device.shared_bytes_per_multiprocessor, device.shared_bytes_per_block);
  }
  EXPECT_EQ(device_spec("h200").arch, "sm_90a");
}

TEST(DeviceSpec, EverySettingOfATargetIsARow) {
  const std::vector<SettingRow>& rows = settings_rows();
  const auto target = std::ranges::find(rows, "target", &SettingRow::name);
  for (const DeviceSpec& device : all_devices())
    EXPECT_EQ(std::ranges::count(target->allowed, device.name), 1) << device.name;
  EXPECT_EQ(target->allowed.size(), all_devices().size() + 2) << "auto and sm_*";
}

DeviceAttributes attributes_of(const std::string& name) { return device_spec(name); }

TEST(DerivedDevice, AGpuIsTheRowThatItAgreesWith) {
  for (const DeviceSpec& device : all_devices()) {
    if (!device.is_cuda) continue;
    EXPECT_EQ(&find_device(device), &device) << device.name;
  }
  DeviceAttributes b200 = attributes_of("b200");
  b200.clock_khz = 1965000, b200.memory_bus_bits = 7680;  // as newer drivers say
  EXPECT_EQ(find_device(b200).name, "b200");
  for (const char* name : {"h100", "h200"}) {  // as many multiprocessors
    DeviceAttributes hopper = attributes_of(name);
    hopper.memory_clock_khz = 0;
    EXPECT_EQ(find_device(hopper).name, name) << "by its L2";
  }
}

TEST(DerivedDevice, HasTheRatesOfItsAttributes) {
  const std::map<std::string, std::pair<const char*, double>> peaks = {
      // GB/s, datasheets
      {"l4", {"sm_89", 300}},         {"a10", {"sm_86", 600}},   {"rtx4090", {"sm_89", 1008}},
      {"rtx5090", {"sm_120a", 1792}}, {"h20", {"sm_90a", 4000}}, {"b300", {"sm_103a", 8000}}};
  for (const auto& [name, expected] : peaks) {
    const DeviceSpec& device = device_spec(name);
    EXPECT_EQ(device.arch, expected.first);
    EXPECT_NEAR(device.dram_bytes_per_us / 0.9e3 / expected.second, 1, 0.01) << name;
    EXPECT_NE(device.derived.find("; assumed: latencies"), std::string::npos) << device.derived;
  }
  EXPECT_NEAR(device_spec("l4").flops_per_us, 30.3e6, 0.1e6);  // datasheet
  EXPECT_NEAR(device_spec("rtx4090").flops_per_us, 82.6e6, 0.1e6);
}

TEST(DerivedDevice, IsNearTheRowWhereOneWasMeasured) {
  for (const char* name : {"a100", "h100", "b200"}) {
    const DeviceSpec& row = device_spec(name);
    DeviceAttributes other = row;
    other.multiprocessors -= 1;
    const DeviceSpec& derived = find_device(other);
    EXPECT_TRUE(row.derived.empty());
    EXPECT_EQ(derived.arch, row.arch);
    EXPECT_NEAR(derived.dram_bytes_per_us / row.dram_bytes_per_us, 1, 0.03) << name;
    EXPECT_NEAR(derived.l2_bytes_per_us / row.l2_bytes_per_us, 1, 0.02) << name;
    EXPECT_NEAR(derived.special_per_us / row.special_per_us, 1, 0.02) << name;
    EXPECT_NEAR(derived.flops_per_us / row.flops_per_us, 1, 0.02) << name;
  }
}

TEST(DerivedDevice, ItsNameIsAllThatFindsIt) {
  DeviceAttributes a10g = attributes_of("a10");
  a10g.multiprocessors = 80;
  const DeviceSpec& device = find_device(a10g);
  EXPECT_EQ(device.name, "sm_86-80-1695000-6251000-384-6291456-101376-102400-65536-1536-16");
  EXPECT_EQ(&device_spec(device.name), &device);
  a10g.l2_bytes *= 2;
  EXPECT_NE(find_device(a10g).name, device.name) << "whatever differs";
  for (const std::string& wrong :
       {device.name + "-1", device.name + " ", device.name.substr(0, 40),
        "sm_75" + device.name.substr(5), std::string("sm_"), std::string()})
    EXPECT_THROW(device_spec(wrong), UserError) << wrong;
}

TEST(DerivedDevice, ArchitecturesThatNobodyKnowsArePlain) {
  for (const auto& [capability, arch] : std::map<int, std::string>{
           {80, "sm_80"}, {87, "sm_87"}, {107, "sm_107a"}, {121, "sm_121a"}, {130, "sm_130"}}) {
    DeviceAttributes gpu = attributes_of("b200");
    gpu.capability = capability, gpu.multiprocessors = 20;
    EXPECT_EQ(find_device(gpu).arch, arch);
  }
}

TEST(DerivedDevice, BelowCapability80ThereIsNone) {
  EXPECT_THROW(find_device({.capability = 75, .multiprocessors = 40}), UserError);
}

TEST(DeviceSpec, AnUnknownNameListsTheKnownOnes) {
  try {
    device_spec("h2O");
    FAIL() << "nothing was thrown";
  } catch (const UserError& error) {
    const std::string message = error.what();
    for (const char* part : {"'h2O'", "h200", "cpu"}) {
      EXPECT_NE(message.find(part), std::string::npos) << message;
    }
  }
}

// A kernel of one stage, its launch included.
double estimate_us(const StageEstimate& stage, const DeviceSpec& device) {
  return device.launch_us + stage.us;
}

class Estimates : public testing::TestWithParam<const char*> {
 protected:
  const DeviceSpec& device = device_spec(GetParam());
  double us(const StageWork& work, int workers = 4) const {
    return estimate_us(estimate_stage(work, device, workers), device);
  }
  // Enough blocks and threads to use the whole device.
  StageWork full() const { return {1e8, 0, 0, 0, 3e4, device.is_cuda ? 256 : 1}; }
};

TEST_P(Estimates, GrowWithEveryKindOfWork) {
  for (double StageWork::* term : {&StageWork::dram_bytes, &StageWork::cache_bytes,
                                   &StageWork::operations, &StageWork::specials}) {
    StageWork work = full();
    double before = us(work);
    for (double amount : {1e7, 1e9, 1e11}) {
      work.*term += amount;
      EXPECT_GE(us(work), before);
      before = us(work);
    }
    EXPECT_GT(before, us(full())) << "1e11 of anything is not free";
  }
}

TEST_P(Estimates, AreNeverBelowALaunch) {
  StageWork nothing;
  nothing.threads = full().threads;
  EXPECT_GE(us(nothing), device.launch_us);
}

TEST_P(Estimates, MemoryAndArithmeticOverlap) {
  StageWork both = full();
  const double memory_us = us(both);
  both.operations = 1;
  EXPECT_DOUBLE_EQ(us(both), memory_us);
}

TEST_P(Estimates, TooFewBlocksTakeLonger) {
  StageWork narrow = full();
  narrow.blocks = 1;
  EXPECT_GT(us(narrow), 2 * us(full()));
}

TEST_P(Estimates, CachedBytesAreCheaperThanDram) {
  StageWork dram = full(), cache = full();
  dram.dram_bytes += 1e8;
  cache.cache_bytes += 1e8;
  EXPECT_LT(us(cache), us(dram));
}

INSTANTIATE_TEST_SUITE_P(Devices, Estimates,
                         testing::Values("cpu", "a100", "h200", "b200", "l4", "rtx5090"),
                         [](const auto& instance) { return std::string(instance.param); });

TEST(EstimateHost, MoreWorkersAreFasterWhenThereAreBlocksForThem) {
  const DeviceSpec& cpu = device_spec("cpu");
  StageWork work{1e8, 0, 0, 0, 64, 1};
  EXPECT_LT(estimate_us(estimate_stage(work, cpu, 8), cpu),
            estimate_us(estimate_stage(work, cpu, 2), cpu));
  work.blocks = 9;  // the ninth block makes a second wave of eight workers
  EXPECT_GT(estimate_us(estimate_stage(work, cpu, 8), cpu),
            1.5 * (estimate_us(estimate_stage({1e8, 0, 0, 0, 8, 1}, cpu, 8), cpu) - 1));
}

TEST(EstimateCuda, TheHopperCopyRateIsTheMeasuredOne) {
  const DeviceSpec& h200 = device_spec("h200");
  const StageWork copy{4.07e9, 0, 0, 0, 132 * 8 * 1000, 256};
  EXPECT_NEAR(estimate_us(estimate_stage(copy, h200, 1), h200), 1000 + h200.launch_us, 1);
}

TEST(EstimateCuda, BlocksStartOneAfterTheOther) {
  const DeviceSpec& h200 = device_spec("h200");
  const StageWork many{4.07e6, 0, 0, 0, 46875, 128};
  EXPECT_NEAR(estimate_stage(many, h200, 1).us, 28.5, 0.1);  // measured, of empty blocks
}

// 20.10: L = waves * L_warp.
TEST(EstimateCuda, AChainOfOneWarpDecidesWhereFewHideIt) {
  const DeviceSpec& h200 = device_spec("h200");
  StageWork work{1e6, 0, 0, 0, 132, 256};
  const double throughput_us = estimate_stage(work, h200, 1).us;
  work.cycles = 1000;
  EXPECT_NEAR(estimate_stage(work, h200, 1).us, throughput_us, 0.01) << "hidden by eight blocks";
  work.cycles = 1e5;
  const double latency_us = (1e5 - h200.latencies.memory) / h200.cycles_per_us;
  EXPECT_NEAR(estimate_stage(work, h200, 1).us, latency_us, 0.1);
  work.blocks = 132 * 8;
  EXPECT_NEAR(estimate_stage(work, h200, 1).us, latency_us, 1) << "one wave of eight blocks each";
  work.blocks += 1;
  EXPECT_NEAR(estimate_stage(work, h200, 1).us, 2 * latency_us, 1);
}

TEST(EstimateCuda, OneResidentBlockHidesNothingOfTheNext) {
  const DeviceSpec& h200 = device_spec("h200");
  StageWork work{4.07e8, 0, 0, 0, 8192, 1024};
  const double memory_us = estimate_stage(work, h200, 1).us;
  work.cycles = 2000;
  const double two_us = estimate_stage(work, h200, 1).us;
  work.registers = 64;  // one block at once, in twice as many waves
  const double one_us = estimate_stage(work, h200, 1).us;
  const double chains_us = (std::ceil(8192 / 132.0) * 2000 - h200.latencies.memory) / 1980;
  const double later = 1 - 132.0 / 8192;  // blocks that others come before
  EXPECT_NEAR(one_us, memory_us + later * chains_us, 1e-6);
  EXPECT_LT(two_us, memory_us + chains_us / 4);
}

TEST(EstimateCuda, RegistersAndSharedMemoryLimitAWave) {
  const DeviceSpec& h200 = device_spec("h200");
  StageWork work{0, 0, 0, 0, 132 * 8, 256};
  work.cycles = 1e5;
  const double one_wave_us = estimate_stage(work, h200, 1).us;
  StageWork registers = work, shared = work;
  registers.registers = 128;  // two blocks at once
  shared.shared_bytes = 100 << 10;
  for (const StageWork& limited : {registers, shared})
    EXPECT_NEAR(estimate_stage(limited, h200, 1).us, 4 * one_wave_us, 1.1);
}

TEST(EstimateCuda, AccessesOfScatteredLanesTakeLonger) {
  const DeviceSpec& h200 = device_spec("h200");
  StageWork work{4.07e6, 0, 0, 0, 132 * 8, 256};
  const double us = estimate_stage(work, h200, 1).us;
  work.lines = 4.07e6 / 128;
  EXPECT_DOUBLE_EQ(estimate_stage(work, h200, 1).us, us) << "contiguous ones cost nothing";
  work.lines = 4.07e6 / 4;
  EXPECT_GT(estimate_stage(work, h200, 1).us, 2 * us);
}

TEST(EstimateCuda, TwoAccessesInFlightAreWorthTwiceTheThreads) {
  const DeviceSpec& h200 = device_spec("h200");
  StageWork narrow{1e6, 0, 0, 0, 132, 128}, wide{1e6, 0, 0, 0, 132, 256};
  narrow.in_flight = 2;
  EXPECT_DOUBLE_EQ(estimate_stage(narrow, h200, 1).us, estimate_stage(wide, h200, 1).us);
  narrow.busy = 0.5;
  EXPECT_GT(estimate_stage(narrow, h200, 1).us, estimate_stage(wide, h200, 1).us);
}

// Stages beside each other share the device: until it is full, the longest decides.
TEST(PhaseTime, IsThatOfTheLongestStageUntilTheDeviceIsFull) {
  PhaseTime phase;
  EXPECT_EQ(phase.us(), 0);
  phase.add({8, 0.25});
  phase.add({4, 0.5});
  EXPECT_DOUBLE_EQ(phase.us(), 8) << "what is left holds both";
  phase.add({6, 1});
  EXPECT_DOUBLE_EQ(phase.us(), 8 * 0.25 + 4 * 0.5 + 6) << "each waits for the others' share";
}

TEST(PhaseTime, OneStageTakesAsLongAsByItself) {
  const DeviceSpec& h200 = device_spec("h200");
  for (double blocks : {1.0, 100.0, 1e5}) {
    const StageEstimate stage = estimate_stage({1e7, 0, 0, 0, blocks, 256}, h200, 1);
    PhaseTime phase;
    phase.add(stage);
    EXPECT_DOUBLE_EQ(estimate_us({phase}, h200), estimate_us(stage, h200)) << blocks;
  }
}

TEST(RunInTurn, AddsTimesAndTheLeastThatEachTakes) {
  const StageEstimate first = {8, 0.25, 10, 2}, then = {4, 0.5, 20, 3};
  const StageEstimate both = run_in_turn(first, then);
  EXPECT_DOUBLE_EQ(both.us, 12);
  EXPECT_DOUBLE_EQ(both.us * both.share, 8 * 0.25 + 4 * 0.5);
  EXPECT_DOUBLE_EQ(both.blocks, 10) << "those of the first run both";
  EXPECT_DOUBLE_EQ(both.least_us, 5);
  EXPECT_DOUBLE_EQ(run_in_turn({0, 0.25, 10}, {0, 0.5, 20}).share, 0.25);
}

TEST(PhaseTime, PhasesFollowEachOtherAfterABarrier) {
  const DeviceSpec& h200 = device_spec("h200");
  PhaseTime one, other{Join::kGrid};
  one.add({5, 1});
  other.add({7, 0.5});
  EXPECT_DOUBLE_EQ(estimate_us({one, other}, h200), h200.launch_us + 5 + h200.barrier_us + 7);
  const double apart =
      estimate_us(StageEstimate{5, 1}, h200) + estimate_us(StageEstimate{7, 0.5}, h200);
  EXPECT_LT(estimate_us({one, other}, h200), apart);
  other.join = Join::kLaunch;
  EXPECT_DOUBLE_EQ(estimate_us({one, other}, h200), apart);
}

TEST(StageEstimate, OneBlockAloneTakesAsLongAsWhereItIsTheOnlyOne) {
  const DeviceSpec& h200 = device_spec("h200");
  StageWork work{.dram_bytes = 4e4, .blocks = 1, .threads = 128, .in_flight = 4, .cycles = 3000};
  const StageEstimate one = estimate_stage(work, h200, 1);
  const double first_us = h200.latencies.memory / h200.cycles_per_us;
  EXPECT_NEAR(one.alone_us, one.us - first_us, 1e-9) << "its first access is last_block_us";
  work.blocks = 10;
  work.dram_bytes *= 10;
  EXPECT_GT(estimate_stage(work, h200, 1).alone_us, 9 * one.us) << "they follow each other";
}

// A sum of one block's partial results is quicker by itself; that of a hundred is not.
TEST(PhaseTime, TheLastBlockEndsWhatIsLittleSoonerThanABarrier) {
  const DeviceSpec& h200 = device_spec("h200");
  PhaseTime rows, total{Join::kGrid}, columns{Join::kGrid};
  rows.add(estimate_stage({1e7, 0, 0, 0, 1000, 256}, h200, 1));
  total.add(estimate_stage({4000, 0, 0, 0, 1, 256}, h200, 1));
  columns.add(estimate_stage({4e5, 0, 0, 0, 100, 256}, h200, 1));
  const auto alone = [](PhaseTime phase) {
    phase.join = Join::kLastBlock;
    return phase;
  };
  EXPECT_LT(estimate_us({rows, alone(total)}, h200), estimate_us({rows, total}, h200));
  EXPECT_GT(estimate_us({rows, alone(columns)}, h200), estimate_us({rows, columns}, h200));
  EXPECT_DOUBLE_EQ(estimate_us({rows, columns, alone(total)}, h200),
                   estimate_us({rows, columns}, h200) + h200.last_block_us + total.alone_us);
  EXPECT_DOUBLE_EQ(estimate_us({rows, alone(total), alone(total)}, h200),
                   estimate_us({rows, alone(total)}, h200) + total.alone_us);
}

TEST(DeviceSpec, BlocksMeetOnGpusOnly) {
  for (const DeviceSpec& device : all_devices()) {
    EXPECT_EQ(device.barrier_us > 0, device.is_cuda) << device.name;
    EXPECT_LT(device.barrier_us, device.launch_us) << device.name << ": else nothing is stitched";
  }
}

}  // namespace
}  // namespace stitch
