// Every kernel text kept for the H200 compiles for each generation, without a GPU.
#include "jit/nvrtc.h"

#include <set>

#include "jit/generated.h"
#include "jit/nvrtc_directories.h"
#include "support/golden.h"

namespace stitch {
namespace {

struct NamedText {
  std::string name, text;
  bool operator<(const NamedText& other) const { return text < other.text; }
};

// A file holds the kernels of one graph; each begins with its namespace.
std::set<NamedText> golden_kernels(const std::string& target) {
  const std::string opening = "namespace stitch {\n", kernel = "STITCH_KERNEL(";
  std::set<NamedText> kernels;
  for (const auto& entry : std::filesystem::directory_iterator(golden_directory() / "text")) {
    if (!entry.path().stem().string().ends_with("." + target)) continue;
    const std::string text = read_golden(entry.path());
    for (size_t at = text.find(opening); at != std::string::npos;) {
      const size_t next = text.find(opening, at + 1);
      const size_t name = text.find(kernel, at) + kernel.size();
      kernels.insert({text.substr(name, text.find(',', name) - name), text.substr(at, next - at)});
      at = next;
    }
  }
  return kernels;
}

class GoldenKernels : public testing::TestWithParam<const char*> {};

TEST_P(GoldenKernels, CompileWithoutSpills) {
  STITCH_SKIP_WITHOUT_NVRTC();
  const std::set<NamedText> kernels = golden_kernels("h200");
  ASSERT_FALSE(kernels.empty());
  for (const NamedText& kernel : kernels) {
    const std::string source = std::string(device_text()) + kernel.text;
    const Binary binary = run_nvrtc(kernel.name, source, GetParam());
    ASSERT_FALSE(binary.bytes.empty()) << kernel.name << "\n" << binary.log;
    EXPECT_EQ(binary.spill_bytes, 0) << kernel.name;
    EXPECT_EQ(binary.stack_bytes, 0) << kernel.name << " indexes an array dynamically";
    EXPECT_GT(binary.registers, 0) << kernel.name;
  }
}

INSTANTIATE_TEST_SUITE_P(Architectures, GoldenKernels,
                         testing::Values("sm_80", "sm_86", "sm_89", "sm_90a", "sm_100a", "sm_103a",
                                         "sm_120a"));

}  // namespace
}  // namespace stitch
