#include "jit/compiler.h"

#include <gtest/gtest.h>
#include <locale.h>

#include <thread>

#include "base/error.h"
#include "jit/kernel_cache.h"
#include "jit/nvrtc.h"
#include "nvrtc_directories.h"

namespace stitch {
namespace {

constexpr const char* kArchitectures[] = {"sm_80",   "sm_86",   "sm_89",  "sm_90a",
                                          "sm_100a", "sm_103a", "sm_120a"};

constexpr std::string_view kScale = R"(
extern "C" __global__ void scale(const float* in, float* out, int count) {
  __shared__ float tile[256];
  int i = blockIdx.x * 256 + threadIdx.x;
  if (i < count) tile[threadIdx.x] = in[i] * 2.22e-16f;
  __syncthreads();
  if (i < count) out[i] = tile[threadIdx.x ^ 1];
})";

// Memory only: each test compiles for itself.
Settings memory_settings() {
  Settings settings;
  settings.cache = "off";
  settings.dump_dir = testing::TempDir() + "stitch_nvrtc_test";
  return settings;
}

TEST(Nvrtc, CompilesForEveryArchitectureWithoutAGpu) {
  STITCH_SKIP_WITHOUT_NVRTC();
  for (const char* arch : kArchitectures) {
    const Binary binary = run_nvrtc("scale", kScale, arch);
    ASSERT_FALSE(binary.bytes.empty()) << arch << binary.log;
    EXPECT_EQ(binary.bytes.substr(0, 4),
              "\x7f"
              "ELF")
        << arch;
    EXPECT_NE(binary.bytes.find("scale"), std::string::npos) << arch;
    EXPECT_GT(binary.registers, 0) << arch << binary.log;
    EXPECT_LT(binary.registers, 64) << arch;
    EXPECT_EQ(binary.spill_bytes, 0) << arch;
    EXPECT_GE(binary.shared_bytes, 1024) << arch;
  }
}

TEST(Nvrtc, IsDeterministic) {
  STITCH_SKIP_WITHOUT_NVRTC();
  EXPECT_EQ(run_nvrtc("scale", kScale, "sm_90a").bytes, run_nvrtc("scale", kScale, "sm_90a").bytes);
}

TEST(Nvrtc, CompilesOnSeveralThreads) {
  STITCH_SKIP_WITHOUT_NVRTC();
  const std::string expected = run_nvrtc("scale", kScale, "sm_80").bytes;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] { EXPECT_EQ(run_nvrtc("scale", kScale, "sm_80").bytes, expected); });
  }
  for (std::thread& thread : threads) thread.join();
}

// Under a locale with a decimal comma NVRTC has read 2.22e-16 as 2.
TEST(Nvrtc, TheThreadsLocaleDoesNotMatterAndIsKept) {
  STITCH_SKIP_WITHOUT_NVRTC();
  const std::string expected = run_nvrtc("scale", kScale, "sm_90a").bytes;
  locale_t comma = nullptr;
  for (const char* name : {"fr_FR.UTF-8", "de_DE.UTF-8", "de_DE", "fr_FR"}) {
    if (!comma) comma = newlocale(LC_ALL_MASK, name, nullptr);
  }
  if (!comma) GTEST_SKIP() << "no locale with a decimal comma is installed here";
  const locale_t before = uselocale(comma);
  EXPECT_EQ(run_nvrtc("scale", kScale, "sm_90a").bytes, expected);
  EXPECT_STREQ(localeconv()->decimal_point, ",");
  uselocale(before);
  freelocale(comma);
}

TEST(Nvrtc, AKernelThatDoesNotCompileIsAnErrorWithLogAndSource) {
  STITCH_SKIP_WITHOUT_NVRTC();
  try {
    compile_cuda({"broken", "this is not C++"}, "sm_90a", memory_settings());
    FAIL() << "nothing was thrown";
  } catch (const InternalError& error) {
    const std::string message = error.what();
    EXPECT_NE(message.find("failed-broken.cu"), std::string::npos) << message;
    EXPECT_NE(message.find("error"), std::string::npos) << message;
    EXPECT_NE(message.find("while compiling kernel broken for sm_90a"), std::string::npos);
  }
  EXPECT_TRUE(std::filesystem::exists(memory_settings().dump_dir + "/failed-broken.cu"));
  std::filesystem::remove_all(memory_settings().dump_dir);
}

TEST(Nvrtc, AnArchitectureItDoesNotKnowIsUnsupported) {
  STITCH_SKIP_WITHOUT_NVRTC();
  try {
    compile_cuda({"scale", std::string(kScale)}, "sm_999z", memory_settings());
    FAIL() << "nothing was thrown";
  } catch (const UnsupportedError& error) {
    EXPECT_NE(std::string(error.what()).find("cannot compile for sm_999z"), std::string::npos);
  }
}

TEST(Nvrtc, TheSameKernelIsCompiledOnceForEachArchitecture) {
  STITCH_SKIP_WITHOUT_NVRTC();
  const KernelText kernel = {"scale", std::string(kScale) + "// twice"};
  EXPECT_FALSE(compile_cuda(kernel, "sm_90a", memory_settings()).from_cache);
  EXPECT_TRUE(compile_cuda(kernel, "sm_90a", memory_settings()).from_cache);
  EXPECT_FALSE(compile_cuda(kernel, "sm_80", memory_settings()).from_cache);
}

TEST(PtxasLog, IsReadForTheLargestFunctionAndAllSpills) {
  Binary binary;
  read_ptxas_log(
      "ptxas info    : 0 bytes gmem\n"
      "ptxas info    : Function properties for s_1\n"
      "    48 bytes stack frame, 20 bytes spill stores, 28 bytes spill loads\n"
      "ptxas info    : Used 255 registers, used 1 barriers, 400 bytes smem\n"
      "    8 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n"
      "ptxas info    : Used 32 registers, used 0 barriers\n",
      binary);
  EXPECT_EQ(binary.registers, 255);
  EXPECT_EQ(binary.spill_bytes, 48);
  EXPECT_EQ(binary.stack_bytes, 48);
  EXPECT_EQ(binary.shared_bytes, 400);
  read_ptxas_log("", binary);
  EXPECT_EQ(binary.registers, -1);
  EXPECT_EQ(binary.spill_bytes, 0);
}

}  // namespace
}  // namespace stitch
