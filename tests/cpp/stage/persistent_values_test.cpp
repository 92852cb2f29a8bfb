// Values in memory that threads keep on chip: which, where they live, and what they cost.
#include "stage/persistent_values.h"

#include "plan/plan_graph.h"

namespace stitch {
namespace {

// A tensor scaled by its largest element, of pieces that are rows.
std::string scaled(const std::string& type, const std::string& rest = "") {
  return "%x = input : " + type + "\n%parts = amax(abs(%x)){axes=[1]}\n%y = div(%x, amax(%parts))" +
         rest + "\noutputs (%y)\n";
}

int persistent_values(const Planned& planned) {
  int count = 0;
  for (const StageSchedule& schedule : planned.plan.schedules) {
    count += static_cast<int>(schedule.persistent.size());
  }
  return count;
}

// What the emitter and the launch rely on.
void check_groups(const Planned& planned) {
  for (const PlannedKernel& kernel : planned.plan.kernels) {
    int64_t blocks = 0;
    for (const std::vector<int>& group : kernel.kept) {
      const StageSchedule& first = planned.plan.schedules[group[0]];
      blocks += planned.graph.symbols.hint(first.grid);
      for (int s : group) {
        const StageSchedule& own = planned.plan.schedules[s];
        EXPECT_EQ(own.grid, first.grid);
        ASSERT_EQ(own.axes.size(), first.axes.size());
        for (size_t a = 0; a < own.axes.size(); ++a) {
          EXPECT_EQ(own.axes[a].digits, first.axes[a].digits);
        }
        for (const PersistentValue& value : own.persistent) {
          EXPECT_EQ(value.is_filled, s != group[0]);
        }
      }
    }
    for (int s : kernel.stages()) {
      const StageSchedule& own = planned.plan.schedules[s];
      if (kernel.kept.empty()) continue;
      const DeviceSpec& device = *own.device;
      EXPECT_GE(own.bounds.per_multiprocessor * device.multiprocessors, blocks) << "all resident";
      EXPECT_LE(own.bounds.per_multiprocessor * own.threads, device.threads_per_multiprocessor);
      EXPECT_LE(own.bounds.persistent_registers + kWorkingRegisters,
                count_registers(device, own.bounds, own.threads));
    }
  }
}

TEST(PersistentValues, ATensorThatIsReducedAndUsedAgainIsReadOnce) {
  const Planned planned = plan_graph(scaled("f32[256,16384]"), "h200");
  ASSERT_EQ(planned.plan.kernels.size(), 1u);
  EXPECT_EQ(planned.plan.kernels[0].kept, (std::vector<std::vector<int>>{{0, 1}}));
  check_groups(planned);
  EXPECT_EQ(persistent_values(planned), 2);
  const PersistentValue& value = planned.plan.schedules[1].persistent.at(0);
  EXPECT_EQ(value.value, planned.graph.inputs[0]);
  EXPECT_EQ(planned.plan.schedules[1].threads, 512) << "256 blocks, two on a multiprocessor";
  EXPECT_EQ(value.home.registers, 16384 / 512);
  constexpr int64_t kTensor = 256 * 16384 * 4, kParts = 2 * 256 * 4;
  EXPECT_EQ(bytes_of(planned), 2 * kTensor + kParts);
}

TEST(PersistentValues, ElementsOf16BitsShareRegisters) {
  const Planned planned = plan_graph(scaled("bf16[256,32768]"), "h200");
  check_groups(planned);
  ASSERT_EQ(persistent_values(planned), 2);
  EXPECT_EQ(planned.plan.schedules[0].persistent[0].home.registers,
            32768 / planned.plan.schedules[0].threads / 2);
}

TEST(PersistentValues, WhatDoesNotFitIsReadAgain) {
  for (const char* type : {"f32[256,262144]", "f32[8192,4096]"}) {
    const Planned planned = plan_graph(scaled(type), "h200");
    EXPECT_EQ(persistent_values(planned), 0) << type;
    EXPECT_TRUE(planned.plan.kernels.at(0).kept.empty());
    EXPECT_EQ(planned.plan.schedules[0].bounds.per_multiprocessor, 1);
  }
}

TEST(PersistentValues, OfWhatDoesNotFitAShareIsKept) {
  const Planned planned = plan_graph(scaled("f32[256,65536]"), "h200");
  check_groups(planned);
  ASSERT_EQ(persistent_values(planned), 2);
  const PersistentValue& value = planned.plan.schedules[1].persistent.at(0);
  const Home& home = value.home;
  EXPECT_EQ(home.in_registers + home.in_shared + home.in_memory, value.accesses);
  EXPECT_GT(home.in_memory, 0);
  EXPECT_EQ(to_string(home), "registers and shared memory in part");
  const DeviceSpec& device = *planned.plan.schedules[0].device;
  EXPECT_GE(planned.plan.schedules[0].bounds.per_multiprocessor * planned.plan.schedules[0].threads,
            512)
      << "what is read twice needs loads in flight";
  EXPECT_GT(home.shared_bytes, device.shared_bytes_per_block / 4);
  constexpr int64_t kTensor = 256 * 65536 * 4;
  const StageWork work =
      measure_work(planned.graph, planned.plan.stages[1], planned.plan.schedules[1]);
  EXPECT_EQ(work.dram_bytes, kTensor + 256 * 4) << "written, and the parts' maxima";
  EXPECT_GE(work.cache_bytes, kTensor * value.share_in_memory()) << "read last";
  EXPECT_LT(work.cache_bytes, kTensor * value.share_in_memory() * 1.1);
  EXPECT_EQ(bytes_of(planned), (2 + value.share_in_memory()) * kTensor + 2 * 256 * 4);
}

TEST(PersistentValues, WhatTheSecondCacheHoldsNeedNotBeKept) {
  EXPECT_EQ(persistent_values(plan_graph(scaled("f32[128,8192]"), "a100")), 0) << "4 MB";
}

TEST(PersistentValues, DevicesWithFewerRegistersKeepLess) {
  const Planned on_b200 = plan_graph(scaled("f32[256,16384]"), "b200");
  const Planned on_a100 = plan_graph(scaled("f32[256,16384]"), "a100");
  ASSERT_EQ(persistent_values(on_b200), 2);
  ASSERT_EQ(persistent_values(on_a100), 2);
  EXPECT_LT(on_a100.plan.schedules[0].threads, on_b200.plan.schedules[0].threads)
      << "three blocks, not two";
  const Planned more = plan_graph(scaled("f32[256,32768]"), "a100");
  ASSERT_EQ(persistent_values(more), 2);
  EXPECT_GT(more.plan.schedules[0].persistent.at(0).home.in_memory, 0);
  EXPECT_EQ(persistent_values(plan_graph(scaled("f32[256,16384]"), "cpu")), 0);
}

TEST(PersistentValues, ElementsAtOtherIndicesAreReadAgain) {
  // Shifted by one; as wide as a vector, so that only the indices differ.
  const Planned planned = plan_graph(R"(
    %x = input : f32[256,16384]
    %parts = amax(abs(%x)){axes=[1]}
    %y = div(flip(%x){axes=[1]}, amax(%parts))
    outputs (%y)
  )",
                                     "h200");
  EXPECT_EQ(persistent_values(planned), 0) << to_string(planned.plan, planned.graph);
}

// Whether a launch has a block for each row the kernel asks when it runs; a loop of unknown length
// has no array.
TEST(PersistentValues, RowsOfTheCallAreKeptAndColumnsReadAgain) {
  const Planned planned =
      plan_graph("symbols s0 = input(0) hint 256\n" + scaled("f32[s0,16384]"), "h200");
  check_groups(planned);
  EXPECT_EQ(persistent_values(planned), 2);
  const Planned columns =
      plan_graph("symbols s0 = input(0) hint 16384\n" + scaled("f32[256,s0]"), "h200");
  EXPECT_EQ(persistent_values(columns), 0);
}

TEST(PersistentValues, AStoredValueStaysToo) {
  const Planned planned = plan_graph(R"(
    %a = input : f32[256,8192]
    %b = input : f32[256,8192]
    %s = add(%a, %b)
    %y = div(%s, amax(amax(%s){axes=[1]}))
    outputs (%s, %y)
  )",
                                     "h200");
  check_groups(planned);
  ASSERT_EQ(persistent_values(planned), 2) << to_string(planned.plan, planned.graph);
  EXPECT_EQ(planned.plan.schedules[0].persistent[0].value, planned.graph.outputs[0].node);
  constexpr int64_t kTensor = 256 * 8192 * 4, kParts = 2 * 256 * 4;
  EXPECT_EQ(bytes_of(planned), 4 * kTensor + kParts);
}

TEST(PersistentValues, AllOfThreePhasesShareOneArray) {
  const Planned planned = plan_graph(R"(
    %x = input : f32[4,1048576]
    %p = reshape(%x){shape=[4,64,16384]}
    %m = amax(amax(%p){axes=[2]}){axes=[1], keepdim}
    %e = exp(sub(%x, %m))
    %t = sum(sum(reshape(%e){shape=[4,64,16384]}){axes=[2]}){axes=[1], keepdim}
    %y = div(%e, %t)
    outputs (%y)
  )",
                                     "h200");
  check_groups(planned);
  ASSERT_EQ(planned.plan.kernels.size(), 1u);
  EXPECT_EQ(planned.plan.kernels[0].phases.size(), 3u);
  EXPECT_EQ(persistent_values(planned), 3);
}

TEST(PersistentValues, OnlyPoliciesWithBarriersHaveThem) {
  const std::string text = scaled("f32[256,16384]");
  EXPECT_EQ(persistent_values(plan_graph(text, "h200", "astitch")), 2);
  EXPECT_EQ(persistent_values(plan_graph(text, "h200", "fusionstitching2020")), 0);
}

// Registers and shared memory hold 44 MB between them on 132 multiprocessors with two blocks each.
TEST(PersistentValues, WhatRegistersCannotHoldIsInSharedMemory) {
  const Planned planned = plan_graph(scaled("f32[256,32768]"), "h200");
  check_groups(planned);
  ASSERT_EQ(persistent_values(planned), 2) << to_string(planned.plan, planned.graph);
  const Home& home = planned.plan.schedules[0].persistent[0].home;
  EXPECT_GT(home.in_registers, 0);
  EXPECT_GT(home.in_shared, 0);
  EXPECT_EQ(to_string(home), "registers and shared memory");
  const int threads = planned.plan.schedules[0].threads;
  EXPECT_EQ(home.registers * 4 * threads + home.shared_bytes, 32768 * 4);
  for (const StageSchedule& own : planned.plan.schedules) {
    EXPECT_EQ(own.bounds.persistent_shared_bytes, home.shared_bytes) << "the first bytes of all";
    EXPECT_GE(own.shared_bytes, home.shared_bytes);
    EXPECT_LE(own.shared_bytes, count_shared_bytes(*own.device, own.bounds.per_multiprocessor));
  }
  constexpr int64_t kTensor = 256 * 32768 * 4, kParts = 2 * 256 * 4;
  EXPECT_EQ(bytes_of(planned), 2 * kTensor + kParts);
}

std::string softmax_of(const std::string& type) {
  return "%x = input : " + type + R"(
    %m = amax(%x){axes=[1], keepdim}
    %e = exp(sub(%x, %m))
    %y = div(%e, sum(%e){axes=[1], keepdim})
    outputs (%y)
  )";
}

// The homes of a stage of its own; empty where it keeps nothing in them.
std::string homes_of(const std::string& text, const std::string& target) {
  const Planned planned = schedule_together(text, target);
  std::string homes;
  for (const PersistentValue& value : planned.only().persistent) {
    EXPECT_TRUE(value.is_of_stage);
    homes += (homes.empty() ? "" : ", ") + to_string(value.home);
  }
  EXPECT_LE(planned.only().shared_bytes, planned.only().device->shared_bytes_per_block);
  return homes;
}

TEST(KeepLoads, OfRowsTooLongForArraysInRegisters) {
  EXPECT_EQ(homes_of(softmax_of("f32[512,32768]"), "h200"), "") << "arrays of place_values.h";
  EXPECT_EQ(homes_of(softmax_of("f32[512,49152]"), "h200"), "shared memory");
  EXPECT_EQ(homes_of(softmax_of("f32[512,65536]"), "h200"), "registers and shared memory");
  EXPECT_EQ(homes_of(softmax_of("f32[512,131072]"), "h200"), "shared memory in part");
  EXPECT_EQ(homes_of(softmax_of("f32[512,49152]"), "a100"), "registers and shared memory");
  EXPECT_EQ(homes_of(softmax_of("f32[512,65536]"), "b200"), "registers and shared memory");
  EXPECT_EQ(homes_of(softmax_of("f32[512,49152]"), "cpu"), "");
}

TEST(KeepLoads, SavesTheOtherPasses) {
  constexpr int64_t kTensor = 512 * 49152 * 4;
  EXPECT_EQ(bytes_of(schedule_together(softmax_of("f32[512,49152]"), "h200")), 2 * kTensor);
  const Planned in_part = schedule_together(softmax_of("f32[512,131072]"), "h200");
  const double share = in_part.only().persistent.at(0).share_in_memory();
  EXPECT_LT(share, 0.75);
  EXPECT_EQ(bytes_of(in_part), (2 + 2 * share) * 512 * 131072 * 4)
      << "two more passes over the rest";
}

TEST(KeepLoads, PlacesOneValueAtATime) {
  auto sum = [](const std::string& cols) {
    return "%a = input : f32[512," + cols + "]\n%b = input : f32[512," + cols + R"(]
      %s = add(%a, %b)
      %y = div(%s, amax(%s){axes=[1], keepdim})
      outputs (%y)
    )";
  };
  EXPECT_EQ(homes_of(sum("32768"), "h200"), "") << "their sum is in an array";
  EXPECT_EQ(homes_of(sum("49152"), "h200"), "shared memory") << "the second is read again";
  constexpr int64_t kTensor = 512 * 49152 * 4;
  EXPECT_EQ(bytes_of(schedule_together(sum("49152"), "h200")), 4 * kTensor);
}

TEST(KeepLoads, OnlyAtOneOffsetKnownBeforeTheLaunch) {
  EXPECT_EQ(homes_of("symbols s0 = input(0) hint 49152\n" + softmax_of("f32[512,s0]"), "h200"), "");
  EXPECT_EQ(homes_of(R"(
    %x = input : f32[512,49152]
    %m = amax(%x){axes=[1], keepdim}
    %y = sub(flip(%x){axes=[1]}, %m)
    outputs (%y)
  )",
                     "h200"),
            "");
}

TEST(KeepLoads, LeavesEnoughThreadsResident) {
  const Planned planned = schedule_together(softmax_of("f32[512,49152]"), "h200");
  const StageSchedule& own = planned.only();
  EXPECT_GE(own.device->shared_bytes_per_multiprocessor / own.shared_bytes * own.threads, 512);
}

TEST(CountSharedBytes, SharesTheMultiprocessorsAmongItsBlocks) {
  EXPECT_EQ(count_shared_bytes(device_spec("h200"), 1), 232448);
  EXPECT_EQ(count_shared_bytes(device_spec("h200"), 2), 233472 / 2 - 1024);
  EXPECT_EQ(count_shared_bytes(device_spec("a100"), 1), 166912);
}

TEST(CountRegisters, SharesTheMultiprocessorsAmongItsBlocks) {
  const DeviceSpec& h200 = device_spec("h200");
  EXPECT_EQ(count_registers(h200, {.per_multiprocessor = 1}, 1024), 64);
  EXPECT_EQ(count_registers(h200, {.per_multiprocessor = 2}, 1024), 32);
  EXPECT_EQ(count_registers(h200, {.per_multiprocessor = 3}, 512), 40) << "they come in eights";
  EXPECT_EQ(count_registers(h200, {.per_multiprocessor = 1}, 128), 64) << "others come beside it";
  EXPECT_EQ(count_registers(h200, {.resident_threads = 512}, 128), 128);
  EXPECT_EQ(count_registers(h200, {.resident_threads = 0}, 128), 255);
}

}  // namespace
}  // namespace stitch
