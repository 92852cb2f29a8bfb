// A planned kernel of two phases, from its graph to its results on the simulator: as one
// cooperative launch, and phase by phase where the device has no room for that.
#include <gtest/gtest.h>

#include "cpp/jit/nvrtc_directories.h"
#include "cpp/plan/plan_graph.h"
#include "cpp/runtime/fake_frame.h"
#include "jit/compiler.h"
#include "ptxsim/simulated_driver.h"

namespace stitch {
namespace {

constexpr int kRows = 37, kColumns = 1001;
constexpr const char* kScaled = R"(
  %x = input : f32[37,1001]
  %y = div(%x, amax(abs(%x)))
  outputs (%y)
)";

struct Launches {
  std::vector<unsigned> cooperative, plain;  // their grids
  bool refuses = false;
};
Launches launches;
Driver simulator;  // that the counting one stands before

Driver counting_driver() {
  simulator = driver();
  Driver table = simulator;
  table.launch_kernel = [](CudaHandle function, unsigned x, unsigned y, unsigned z,
                           unsigned block_x, unsigned block_y, unsigned block_z,
                           unsigned shared_bytes, CudaHandle stream, void** parameters,
                           void** extra) {
    launches.plain.push_back(x);
    return simulator.launch_kernel(function, x, y, z, block_x, block_y, block_z, shared_bytes,
                                   stream, parameters, extra);
  };
  table.launch_cooperative_kernel = [](CudaHandle function, unsigned x, unsigned y, unsigned z,
                                       unsigned block_x, unsigned block_y, unsigned block_z,
                                       unsigned shared_bytes, CudaHandle stream,
                                       void** parameters) {
    constexpr CudaResult kTooLarge = 720;
    if (launches.refuses) return kTooLarge;
    launches.cooperative.push_back(x);
    return simulator.launch_cooperative_kernel(function, x, y, z, block_x, block_y, block_z,
                                               shared_bytes, stream, parameters);
  };
  return table;
}

class StitchedLaunch : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    STITCH_SKIP_WITHOUT_NVRTC();
    launches = Launches();
    planned = plan_graph(kScaled, "h200");
    source = emit_planned(planned, 0);
    ASSERT_EQ(source.phases.size(), 2u) << source.text;
  }

  void run_and_check() {
    const ptxsim::SimulatedRun simulation(ptxsim::simulated_device(GetParam(), true));
    const Driver table = counting_driver();
    const ScopedDriver counting(table);
    const Binary ptx =
        compile_ptx({source.name, source.text}, ptxsim::arch_of(GetParam()), default_settings());
    LoadedKernel kernel{source.name, load_function(ptx.bytes, source.name, 0), source.threads};
    kernel.resident_blocks = count_resident_blocks(kernel.entry, source.name, source.threads, 0);
    const Program program =
        build_program(planned.graph, planned.plan, {source}, {kernel}, /*on_cuda=*/true);
    FakeFrame frame(program);
    std::vector<float> x(kRows * kColumns);
    for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i % 1999) - 1500;
    frame.set(0, x);
    run(program, frame, {});
    simulation.check();
    const std::vector<float> y = frame.output(0);
    for (size_t i = 0; i < x.size(); ++i) ASSERT_EQ(y[i], x[i] / 1500) << i;
  }

  int64_t blocks(size_t phase) const { return planned.graph.symbols.hint(source.phases[phase]); }

  Planned planned;
  KernelSource source;
};

TEST_P(StitchedLaunch, IsOneOfBlocksThatAreAllResident) {
  run_and_check();
  EXPECT_TRUE(launches.plain.empty());
  ASSERT_EQ(launches.cooperative.size(), 1u);
  const bool has_room = std::string(GetParam()) == "h200";
  const unsigned largest = static_cast<unsigned>(std::max(blocks(0), blocks(1)));
  EXPECT_EQ(launches.cooperative[0], has_room ? largest : 2u) << "one of 1024 threads each";
  EXPECT_GT(largest, 2u) << "blocks take turns there";
}

TEST_P(StitchedLaunch, IsOneAPhaseWhereCooperationIsRefused) {
  launches.refuses = true;
  run_and_check();
  EXPECT_TRUE(launches.cooperative.empty());
  EXPECT_EQ(launches.plain, (std::vector<unsigned>{static_cast<unsigned>(blocks(0)),
                                                   static_cast<unsigned>(blocks(1))}));
}

INSTANTIATE_TEST_SUITE_P(Devices, StitchedLaunch, testing::Values("h200", "two_sm"),
                         [](const auto& instance) { return std::string(instance.param); });

}  // namespace
}  // namespace stitch
