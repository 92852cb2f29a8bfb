// Kernels that may begin while the launch before them ends: in the code that runs, not only in the
// text, nothing is read or written before the wait.  Loads of what is const and restrict are the
// compiler's to move, past an `asm volatile` too.
#include <gtest/gtest.h>

#include "clock/sass/program.h"
#include "compile.h"
#include "cost/device_spec.h"
#include "cpp/jit/nvrtc_directories.h"
#include "jit/generated.h"
#include "support/golden_graphs.h"
#include "support/read_graph.h"

namespace stitch {
namespace {

std::vector<std::string> texts_of(const GoldenGraph& graph, const char* target, bool early) {
  Settings settings;
  settings.dependent_launch = early;
  const std::string text = show_stage({read_graph(graph.text), settings, target, false, 1}, "emit");
  const std::string opening = "namespace stitch {\n";
  std::vector<std::string> texts;
  for (size_t at = text.find(opening); at != std::string::npos;) {
    const size_t next = text.find(opening, at + 1);
    texts.push_back(text.substr(at, next - at));
    at = next;
  }
  return texts;
}

bool is_global(std::string_view name) {
  return name == "LDG" || name == "STG" || name == "ATOMG" || name == "REDG" || name == "LDGSTS";
}

class DependentLaunch : public testing::TestWithParam<const char*> {};

TEST_P(DependentLaunch, NothingIsReadOrWrittenBeforeTheWait) {
  STITCH_SKIP_WITHOUT_NVRTC();
  int kernels = 0, admitting = 0;
  for (const GoldenGraph& graph : kGoldenGraphs) {
    for (const std::string& text : texts_of(graph, GetParam(), true)) {
      const Binary binary =
          run_nvrtc("kernel", std::string(device_text()) + text, device_spec(GetParam()).arch);
      ASSERT_FALSE(binary.bytes.empty()) << binary.log;
      const clock::Cubin cubin = clock::read_cubin(binary.bytes);
      ASSERT_EQ(cubin.kernels.size(), 1u);
      int accesses = 0, waits = 0, admits = 0;
      for (const clock::Instruction& instruction : decode(cubin, cubin.kernels[0]).code) {
        const std::string_view name = instruction.row->name;
        waits += name == "ACQBULK";
        admits += name == "PREEXIT";
        accesses += is_global(name);
        EXPECT_TRUE(waits == 1 || (accesses == 0 && admits == 0)) << name << " in " << text;
      }
      EXPECT_GT(accesses, 0) << text;
      ++kernels;
      admitting += admits > 0;
    }
  }
  EXPECT_GE(kernels, 15);
  EXPECT_GE(admitting, 10);
}

INSTANTIATE_TEST_SUITE_P(Devices, DependentLaunch, testing::Values("h200", "b200"));

TEST(DependentLaunchText, TheNextLaunchIsAdmittedBehindTheLastLoad) {
  constexpr GoldenGraph kGraph{"add", R"(
  %x = input : f32[1048576]
  %y = add(%x, %x)
  outputs (%y)
)"};
  const std::string text = texts_of(kGraph, "h200", true).at(0);
  const size_t wait = text.find("wait_for_earlier_launch();"), load = text.rfind("p0 + ");
  EXPECT_LT(wait, load) << text;
  EXPECT_LT(load, text.find("admit_next_launch();")) << text;
}

TEST(DependentLaunchText, OtherTargetsAndKernelsThatDoNotAskForItHaveNone) {
  for (const GoldenGraph& graph : kGoldenGraphs) {
    for (const char* target : {"a100", "cpu"})
      EXPECT_EQ(texts_of(graph, target, true), texts_of(graph, target, false));
    for (const std::string& text : texts_of(graph, "h200", false))
      EXPECT_EQ(text.find("_launch()"), std::string::npos);
  }
}

}  // namespace
}  // namespace stitch
