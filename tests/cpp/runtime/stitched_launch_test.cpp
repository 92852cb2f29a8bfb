// A planned kernel of two phases, from its graph to its results on the simulator: as one
// cooperative launch, and phase by phase where the device has no room for that.
#include <gtest/gtest.h>

#include <regex>

#include "cpp/jit/nvrtc_directories.h"
#include "cpp/plan/plan_graph.h"
#include "cpp/runtime/fake_frame.h"
#include "jit/compiler.h"
#include "ptxsim/simulated_driver.h"

namespace stitch {
namespace {

// A matrix over its largest element, whose rows are pieces, or which is read twice.
struct Scaled {
  const char* text;
  int64_t elements;
  bool is_flipped = false;  // the last element comes first
};
constexpr Scaled kReadTwice = {R"(
  %x = input : f32[37,1001]
  %y = div(%x, amax(abs(%x)))
  outputs (%y)
)",
                               37 * 1001};
// As many blocks as an H200 has multiprocessors, each as large as one holds.
constexpr Scaled kKept = {R"(
  %x = input : f32[132,8192]
  %y = div(%x, amax(amax(abs(%x)){axes=[1]}))
  outputs (%y)
)",
                          132 * 8192};

// More rows than are resident, each combined by itself before all are; none reads its own again.
constexpr Scaled kInTurns = {R"(
  %x = input : f32[613,1024]
  %y = div(flip(%x){axes=[0,1]}, amax(amax(abs(%x)){axes=[1]}))
  outputs (%y)
)",
                             613 * 1024, true};

struct Launches {
  std::vector<unsigned> cooperative, plain;  // their grids
  bool refuses = false;
};
Launches launches;
Driver simulator;  // that the counting one stands before

Driver counting_driver() {
  simulator = driver();
  Driver table = simulator;
  table.launch_kernel = [](const LaunchConfig* config, CudaHandle function, void** parameters,
                           void** extra) {
    constexpr CudaResult kTooLarge = 720;
    const bool meets = config->has(LaunchAttribute::kCooperative);
    if (meets && launches.refuses) return kTooLarge;
    (meets ? launches.cooperative : launches.plain).push_back(config->grid[0]);
    return simulator.launch_kernel(config, function, parameters, extra);
  };
  return table;
}

const std::vector<unsigned> kNone;

class StitchedLaunch : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override { plan(kReadTwice); }

  void plan(const Scaled& scaled) {
    STITCH_SKIP_WITHOUT_NVRTC();
    launches = Launches();
    elements = scaled.elements;
    is_flipped = scaled.is_flipped;
    planned = plan_graph(scaled.text, "h200");
    source = emit_planned(planned, 0);
    ASSERT_EQ(planned.plan.kernels[0].phases.size(), 2u) << source.text;
  }

  std::vector<float> run() {
    const ptxsim::SimulatedRun simulation(ptxsim::simulated_device(GetParam()));
    const Driver table = counting_driver();
    const ScopedDriver counting(table);
    const Binary ptx =
        compile_own_text({source.name, source.text}, ptxsim::arch_of(GetParam()), CudaOutput::kPtx);
    LoadedKernel kernel{load_function(ptx.bytes, source.name, 0)};
    kernel.resident_blocks = count_resident_blocks(kernel.entry, source.name, source.threads, 0);
    Program program = build_program(planned.graph, planned.plan, {source}, /*on_cuda=*/true);
    program.kernels = {kernel};
    FakeFrame frame(program);
    std::vector<float> x(elements);
    for (size_t i = 0; i < x.size(); ++i) x[i] = element(i);
    frame.set(0, x);
    stitch::run(program, frame, {});
    simulation.check();
    return frame.output(0);
  }
  static float element(size_t i) { return static_cast<float>(i % 1999) - 1500; }

  // The first element that is wrong; -1 for none.
  int64_t run_and_compare() {
    const std::vector<float> y = run();
    for (size_t i = 0; i < y.size(); ++i) {
      if (y[i] != element(is_flipped ? y.size() - 1 - i : i) / 1500) return static_cast<int64_t>(i);
    }
    return -1;
  }
  void run_and_check() { EXPECT_EQ(run_and_compare(), -1); }

  int64_t blocks(size_t phase) const { return planned.graph.symbols.hint(source.phases[phase]); }
  // Of a phase that takes turns: a multiprocessor of `two_sm` holds one block of kReadTwice.
  unsigned resident(size_t phase) const {
    const int64_t most = std::string(GetParam()) == "two_sm" ? 2 : INT64_MAX;
    return static_cast<unsigned>(std::min(blocks(phase), most));
  }

  int64_t elements = 0;
  bool is_flipped = false;
  Planned planned;
  KernelSource source;
};

TEST_P(StitchedLaunch, IsOneOfBlocksThatAreAllResident) {
  run_and_check();
  EXPECT_EQ(launches.cooperative, std::vector{std::max(resident(0), resident(1))});
  EXPECT_EQ(launches.plain, kNone);
}

TEST_P(StitchedLaunch, IsOneAPhaseWhereCooperationIsRefused) {
  launches.refuses = true;
  run_and_check();
  EXPECT_TRUE(launches.cooperative.empty());
  EXPECT_EQ(launches.plain, (std::vector{resident(0), resident(1)}));
}

TEST_P(StitchedLaunch, HasNoMoreBlocksThanAreResidentWhereTheyTakeTurns) {
  plan(kInTurns);
  if (IsSkipped()) return;
  ASSERT_EQ(source.in_turns, (std::vector<size_t>{0, 1})) << source.text;
  run_and_check();
  ASSERT_EQ(launches.cooperative.size(), 1u);
  EXPECT_LT(launches.cooperative[0], 613u);
  EXPECT_EQ(launches.plain, kNone);
}

class LaunchOfKeptValues : public StitchedLaunch {
 protected:
  void SetUp() override {
    plan(kKept);
    if (IsSkipped()) return;
    ASSERT_EQ(planned.plan.kernels[0].kept.size(), 1u);
  }
  bool has_room() const { return std::string(GetParam()) == "h200"; }
};

TEST_P(LaunchOfKeptValues, IsRightWhetherOrNotAllBlocksAreResident) {
  run_and_check();
  EXPECT_EQ(launches.cooperative, has_room() ? std::vector{132u} : kNone);
  EXPECT_EQ(launches.plain, has_room() ? kNone : std::vector(2, 132u));
}

TEST_P(LaunchOfKeptValues, IsRightAPhaseAtATime) {
  launches.refuses = true;
  run_and_check();
  EXPECT_EQ(launches.plain, (std::vector<unsigned>{132u, 132u}));
}

// What is read again is read wrong: that shows where it happens.
TEST_P(LaunchOfKeptValues, ReadsTwiceOnlyWherePhasesAreLaunches) {
  const std::regex again(R"(if \(!has_k0\) (k0\[[^=]*) = [^;]*;)");
  const std::string damaged = std::regex_replace(source.text, again, "if (!has_k0) $1 = {};");
  ASSERT_NE(damaged, source.text);
  source.text = damaged;
  EXPECT_EQ(run_and_compare() == -1, has_room());
  launches.refuses = true;
  EXPECT_NE(run_and_compare(), -1);
}

constexpr Scaled kTotal = {R"(
  %x = input : f32[331,1001]
  %y = amax(amax(abs(%x)){axes=[1]}){axes=[0]}
  outputs (%y)
)",
                           331 * 1001};

// Nobody waits for the last block, so more may be launched than are resident.
TEST_P(StitchedLaunch, OfWhichTheLastBlockEndsAloneNeedsNoCooperation) {
  plan(kTotal);
  ASSERT_TRUE(source.finishes) << source.text;
  EXPECT_EQ(run(), std::vector<float>{1500});
  EXPECT_TRUE(launches.cooperative.empty());
  EXPECT_EQ(launches.plain, std::vector<unsigned>{static_cast<unsigned>(blocks(0))});
  EXPECT_GT(blocks(0), 2);
}

// Phases before it that meet at a barrier are launches of their own where cooperation is refused.
TEST_P(StitchedLaunch, EndsWithTheLastBlockOfItsLastPhase) {
  const Scaled rows = {R"(
    %x = input : f32[331,1001]
    %m = amax(amax(abs(%x)){axes=[1]})
    %y = amax(amax(div(%x, %m)){axes=[1]}){axes=[0]}
    outputs (%y)
  )",
                       331 * 1001};
  elements = rows.elements;
  planned = plan_graph(rows.text, "h200");
  source = emit_planned(planned, 0);
  ASSERT_TRUE(source.finishes) << source.text;
  ASSERT_GE(source.phases.size(), 2u) << source.text;
  const std::vector<float> largest = {498.f / 1500};
  EXPECT_EQ(run(), largest);
  EXPECT_EQ(launches.cooperative.size(), std::string(GetParam()) == "h200" ? 1u : 0u);
  launches = {{}, {}, true};
  EXPECT_EQ(run(), largest);
  EXPECT_EQ(launches.plain.size(), source.phases.size());
}

INSTANTIATE_TEST_SUITE_P(Devices, LaunchOfKeptValues, testing::Values("h200", "two_sm"),
                         [](const auto& instance) { return std::string(instance.param); });
INSTANTIATE_TEST_SUITE_P(Devices, StitchedLaunch, testing::Values("h200", "two_sm"),
                         [](const auto& instance) { return std::string(instance.param); });

}  // namespace
}  // namespace stitch
