#include "jit/compiler.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <thread>

#include "base/error.h"
#include "cpp/jit/nvrtc_directories.h"
#include "jit/kernel_cache.h"

namespace {
bool hides_processors = false;
}

// What std::thread::hardware_concurrency() asks; it may not know, and says 0.
extern "C" __attribute__((visibility("default"))) int get_nprocs() noexcept {
  return hides_processors ? 0 : static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN));
}

namespace stitch {
namespace {

KernelSource kernel(const std::string& name, const std::string& body) {
  KernelSource source;
  source.name = name;
  source.text = "extern \"C\" __global__ void " + name + "(float* x) { " + body + " }";
  return source;
}

TEST(CompileKernels, EveryCudaKernelThatFailsIsNamed) {
  STITCH_SKIP_WITHOUT_NVRTC();
  Settings settings = default_settings();
  settings.cache = "off";
  settings.dump_dir = testing::TempDir();
  const std::vector<KernelSource> sources = {
      kernel("first", "nothing;"), kernel("good", "x[0] = 1;"), kernel("second", "nowhere;"),
      kernel("first", "nothing;")};
  try {
    compile_kernels(sources, "sm_80", settings, true);
    FAIL() << "nothing was thrown";
  } catch (const NotCompiledError& error) {
    EXPECT_EQ(error.kernels, (std::vector<std::string>{"first", "second"}));
    EXPECT_NE(std::string(error.what()).find("\"nowhere\" is undefined"), std::string::npos)
        << error.what();
  }
  EXPECT_EQ(compile_kernels({sources[1]}, "sm_80", settings, true).size(), 1u);
  const std::vector<Binary> tried = try_kernels(sources, "sm_80", settings);
  ASSERT_EQ(tried.size(), 4u);
  for (size_t i = 0; i < tried.size(); ++i) EXPECT_EQ(tried[i].bytes.empty(), i != 1) << i;
}

TEST(CompileKernels, AllAreCompiledWhereTheNumberOfProcessorsIsNotKnown) {
  STITCH_SKIP_WITHOUT_NVRTC();
  Settings settings = default_settings();
  settings.cache = "off";
  hides_processors = true;
  const unsigned known = std::thread::hardware_concurrency();
  const std::vector<Binary> binaries = compile_kernels(
      {kernel("one", "x[0] = 1;"), kernel("two", "x[0] = 2;")}, "sm_80", settings, true);
  hides_processors = false;
  ASSERT_EQ(known, 0u);
  for (const Binary& binary : binaries) EXPECT_FALSE(binary.bytes.empty());
}

// What workers share outlives them: an error reaches the caller when the last of them has ended.
TEST(CompileKernels, AnErrorOfOneWorkerWaitsForWhatTheOthersBegan) {
  STITCH_SKIP_WITHOUT_NVRTC();
  Settings settings = default_settings();
  settings.cache = "off";
  std::string slow;  // for NVRTC, beside an empty one
  for (int i = 0; i < 40; ++i) {
    const std::string n = std::to_string(i);
    slow += "x[" + n + "] = sinf(x[" + n + " + 1]);\n";
  }
  std::vector<KernelSource> sources = {kernel("quick", "x[0] = 3;"), kernel("slow", slow)};
  for (int i = 0; i < 20; ++i) sources.push_back(kernel("later" + std::to_string(i), "x[1] = 3;"));
  reset_cache_counters();
  std::thread ending([] {
    while (cache_counters().kernels.misses < 2) std::this_thread::yield();
    is_stopping = true;  // the next that a worker takes is an error
  });
  EXPECT_THROW(compile_kernels(sources, "sm_80", settings, true), StoppedError);
  const double seconds = cache_counters().kernels.compile_seconds;
  const int64_t begun = cache_counters().kernels.misses;
  ending.join();
  is_stopping = false;
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  EXPECT_EQ(cache_counters().kernels.compile_seconds, seconds) << "a worker went on";
  EXPECT_LT(begun, 22) << "nobody was stopped";
}

// Launch bounds are part of the text and not of what a name's hash covers.
TEST(CompileKernels, KernelsOfOneNameAndTwoTextsAreTwo) {
  STITCH_SKIP_WITHOUT_NVRTC();
  Settings settings = default_settings();
  settings.cache = "off";
  KernelSource bounded = kernel("same", "x[threadIdx.x] = x[0] * 2;");
  bounded.text.replace(bounded.text.find("void"), 4, "void __launch_bounds__(64)");
  const std::vector<KernelSource> sources = {bounded, kernel("same", "x[threadIdx.x] = x[0] * 2;"),
                                             bounded};
  const std::vector<Binary> binaries = compile_kernels(sources, "sm_80", settings, true);
  EXPECT_NE(binaries[0].bytes, binaries[1].bytes);
  EXPECT_EQ(binaries[0].bytes, binaries[2].bytes);
}

}  // namespace
}  // namespace stitch
