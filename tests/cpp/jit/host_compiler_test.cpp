#include "jit/host_compiler.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <thread>

#include "base/error.h"
#include "config/settings.h"
#include "jit/compiler.h"
#include "jit/kernel_cache.h"

namespace stitch {
namespace {

namespace fs = std::filesystem;
using Unary = float (*)(float);

// What is wrong with a compiler; empty: nothing.
std::string find_fault(const std::string& command) {
  try {
    find_host_compiler(command);
    return "";
  } catch (const UnsupportedError& error) {
    return error.what();
  }
}

#define STITCH_SKIP_WITHOUT_COMPILER()                                       \
  do {                                                                       \
    const std::string fault = find_fault(default_settings().cxx);            \
    if (!fault.empty() && getenv("STITCH_CI")) FAIL() << "in CI: " << fault; \
    if (!fault.empty()) GTEST_SKIP() << fault;                               \
  } while (false)

KernelText times(int factor) {
  const std::string name = "times" + std::to_string(factor);
  return {name, "extern \"C\" float " + name + "(float x) { return x * " + std::to_string(factor) +
                    ".0f; }"};
}

class HostCompilerTest : public testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/stitch_host_XXXXXX";
    ASSERT_NE(mkdtemp(name), nullptr);
    root_ = name;
    settings_ = default_settings();
    settings_.cache = root_ / "cache";
  }
  void TearDown() override { fs::remove_all(root_); }
  // A stand-in for a compiler.
  std::string script(const std::string& text) {
    const std::string path = root_ / "compiler";
    std::ofstream(path) << "#!/bin/sh\n" << text << "\n";
    EXPECT_EQ(chmod(path.c_str(), 0700), 0);
    return path;
  }
  fs::path root_;
  Settings settings_;
};

TEST_F(HostCompilerTest, OneObjectExportsEveryKernelOfAGraph) {
  STITCH_SKIP_WITHOUT_COMPILER();
  const Binary binary = compile_host({times(2), times(3), times(2)}, settings_);
  EXPECT_EQ(reinterpret_cast<Unary>(load_host_function(binary.bytes, "times2"))(5), 10);
  EXPECT_EQ(reinterpret_cast<Unary>(load_host_function(binary.bytes, "times3"))(5), 15);
  EXPECT_THROW(load_host_function(binary.bytes, "times4"), InternalError);
}

TEST_F(HostCompilerTest, EveryLibraryKeepsItsOwnCode) {
  STITCH_SKIP_WITHOUT_COMPILER();
  std::vector<Unary> functions;
  for (int factor : {2, 3, 4, 5}) {
    const KernelText kernel = {
        "f", "extern \"C\" float f(float x) { return x * " + std::to_string(factor) + ".0f; }"};
    const std::string bytes = compile_host({kernel}, settings_).bytes;
    functions.push_back(reinterpret_cast<Unary>(load_host_function(bytes, "f")));
  }
  for (int factor : {2, 3, 4, 5}) EXPECT_EQ(functions[factor - 2](7), 7 * factor);
}

TEST_F(HostCompilerTest, EqualBytesAreLoadedOnce) {
  STITCH_SKIP_WITHOUT_COMPILER();
  const std::string bytes = compile_host({times(6)}, settings_).bytes;
  EXPECT_EQ(load_host_function(bytes, "times6"), load_host_function(bytes, "times6"));
}

TEST_F(HostCompilerTest, TheCompilerIsDeterministicSoVerificationPasses) {
  STITCH_SKIP_WITHOUT_COMPILER();
  const std::string source = times(7).text;
  EXPECT_EQ(run_host_compiler(settings_.cxx, source).bytes,
            run_host_compiler(settings_.cxx, source).bytes);
}

TEST_F(HostCompilerTest, ASecondProcessReadsTheObjectFromDisk) {
  STITCH_SKIP_WITHOUT_COMPILER();
  EXPECT_FALSE(compile_host({times(8)}, settings_).from_cache);
  settings_.cache_size_bytes -= 1;  // another cache object over the same directory
  reset_cache_counters();
  EXPECT_TRUE(compile_host({times(8)}, settings_).from_cache);
  EXPECT_EQ(cache_counters().kernels.hits_disk, 1);
  EXPECT_EQ(cache_counters().kernels.misses, 0);
}

TEST_F(HostCompilerTest, FeaturesOfTheMachineAndWordsOfTheCommandAreInTheKey) {
  STITCH_SKIP_WITHOUT_COMPILER();
  const std::string plain = settings_.cxx, other = plain + " -DANOTHER_FEATURE";
  EXPECT_EQ(find_host_compiler(plain).version, find_host_compiler(other).version);
  EXPECT_NE(find_host_compiler(plain).features, find_host_compiler(other).features);
  compile_host({times(9)}, settings_);
  settings_.cxx = plain + " -g0";  // the same macros
  EXPECT_EQ(find_host_compiler(plain).features, find_host_compiler(settings_.cxx).features);
  EXPECT_FALSE(compile_host({times(9)}, settings_).from_cache);
}

TEST_F(HostCompilerTest, ArithmeticIsStrictIeee) {
  STITCH_SKIP_WITHOUT_COMPILER();
  const KernelText kernel = {"strict",
                             "extern \"C\" void strict(const float* x, float* y) {\n"
                             "  y[0] = x[0] * x[1] + x[2];\n"          // not contracted
                             "  y[1] = (x[3] + x[4]) - x[4];\n"        // not reassociated
                             "  y[2] = x[5] + 0.0f;\n"                 // -0 + 0 is +0
                             "  y[3] = x[6] != x[6] ? 1.0f : 0.0f;\n"  // NaN exists
                             "}"};
  using Function = void (*)(const float*, float*);
  const std::string bytes = compile_host({kernel}, settings_).bytes;
  const float a = 1 + 0x1p-12f;
  const float x[] = {a, a, -(1 + 0x1p-11f), 1, 0x1p24f, -0.0f, __builtin_nanf("")};
  float y[4];
  reinterpret_cast<Function>(load_host_function(bytes, "strict"))(x, y);
  EXPECT_EQ(y[0], 0);  // with a fused multiply-add 2^-24
  EXPECT_EQ(y[1], 0);
  EXPECT_FALSE(std::signbit(y[2]));
  EXPECT_EQ(y[3], 1);
}

TEST_F(HostCompilerTest, KernelsThatDoNotCompileAreAnErrorWithLogAndSource) {
  STITCH_SKIP_WITHOUT_COMPILER();
  try {
    compile_host({{"broken", "extern \"C\" int broken() { return nothing; }"}}, settings_);
    FAIL() << "nothing was thrown";
  } catch (const InternalError& error) {
    const std::string message = error.what();
    EXPECT_NE(message.find("'nothing' was not declared"), std::string::npos) << message;
    const size_t path = message.find(settings_.cache);
    ASSERT_NE(path, std::string::npos) << message;
    EXPECT_TRUE(fs::exists(message.substr(path, message.find(',', path) - path))) << message;
  }
}

TEST_F(HostCompilerTest, TheKernelsAtFaultAreNamedAndTheirSourcesKept) {
  STITCH_SKIP_WITHOUT_COMPILER();
  const KernelText first = {"first", "int first() { return nothing; }"};
  const KernelText second = {"second", "int second() { return nowhere; }"};
  try {
    compile_host({times(2), first, times(3), times(4), second}, settings_);
    FAIL() << "nothing was thrown";
  } catch (const NotCompiledError& error) {
    EXPECT_EQ(error.kernels, (std::vector<std::string>{"first", "second"}));
  }
  EXPECT_TRUE(fs::exists(settings_.cache + "/failed-first.cpp"));
  EXPECT_TRUE(fs::exists(settings_.cache + "/failed-second.cpp"));
  EXPECT_FALSE(fs::exists(settings_.cache + "/failed-times2.cpp"));
}

TEST_F(HostCompilerTest, ACompilerThatTakesNothingIsNoFaultOfAKernel) {
  STITCH_SKIP_WITHOUT_COMPILER();
  settings_.cxx =
      script("case \"$*\" in *kernels.so*) exit 1; esac; exec " + settings_.cxx + " \"$@\"");
  try {
    compile_host({times(2)}, settings_);
    FAIL() << "nothing was thrown";
  } catch (const NotCompiledError&) {
    FAIL() << "a kernel is blamed";
  } catch (const InternalError& error) {
    EXPECT_NE(std::string(error.what()).find("an empty file"), std::string::npos) << error.what();
  }
}

TEST_F(HostCompilerTest, WithoutACompilerTheMessageSaysWhatToInstall) {
  settings_.cxx = "no-such-compiler-exists";
  const std::string fault = find_fault(settings_.cxx);
  EXPECT_NE(fault.find("no-such-compiler-exists"), std::string::npos) << fault;
  EXPECT_NE(fault.find("install g++"), std::string::npos) << fault;
  EXPECT_THROW(compile_host({times(2)}, settings_), UnsupportedError);
  EXPECT_NE(find_fault(""), "");
}

TEST_F(HostCompilerTest, ACompilerThatFailsOrWritesNothingIsNotBelieved) {
  EXPECT_NE(find_fault(script("exit 3")), "");
  const Binary binary = run_host_compiler(script("echo all fine"), "int x;");
  EXPECT_TRUE(binary.bytes.empty());
  EXPECT_EQ(binary.log, "all fine\n");
}

TEST_F(HostCompilerTest, BytesThatAreNoSharedObjectAreAnError) {
  EXPECT_THROW(load_host_function("not an ELF file", "f"), InternalError);
  EXPECT_THROW(load_host_function("not an ELF file", "f"), InternalError);
}

TEST_F(HostCompilerTest, ThreadsMayCompileAndLoadAtOnce) {
  STITCH_SKIP_WITHOUT_COMPILER();
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      const int factor = 20 + t % 2;
      const std::string bytes = compile_host({times(factor)}, settings_).bytes;
      void* const function = load_host_function(bytes, times(factor).name);
      EXPECT_EQ(reinterpret_cast<Unary>(function)(2), 2 * factor);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(RunCommand, PassesWordsUnchangedAndCollectsBothOutputs) {
  const CommandResult result =
      run_command({"/bin/sh", "-c", "echo \"$1\"; echo error >&2", "sh", "a b;$HOME"}, 10);
  EXPECT_TRUE(result.ok);
  EXPECT_EQ(result.output, "a b;$HOME\nerror\n");
}

TEST(RunCommand, FailuresAreReported) {
  EXPECT_FALSE(run_command({"/bin/sh", "-c", "exit 1"}, 10).ok);
  EXPECT_FALSE(run_command({"/bin/sh", "-c", "kill -9 $$"}, 10).ok);
  const CommandResult absent = run_command({"/no/such/program"}, 10);
  EXPECT_FALSE(absent.ok);
  EXPECT_NE(absent.output.find("cannot be started"), std::string::npos);
}

TEST(RunCommand, WhatTakesTooLongIsKilledWithItsChildren) {
  const auto start = std::chrono::steady_clock::now();
  const CommandResult result = run_command({"/bin/sh", "-c", "echo begun; sleep 60; true"}, 1);
  EXPECT_FALSE(result.ok);
  EXPECT_EQ(result.output, "begun\n\nkilled after 1 s");
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(20));
}

TEST(RunCommand, NothingIsWaitedForWhenTheProcessEnds) {
  auto end_soon = [] {
    std::thread ending([] {
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
      is_stopping = true;
    });
    try {
      run_command({"/bin/sh", "-c", "sleep 60; true"}, 60);
    } catch (const StoppedError&) {
      _exit(7);
    }
    _exit(1);
  };
  EXPECT_EXIT(end_soon(), testing::ExitedWithCode(7), "");
}

}  // namespace
}  // namespace stitch
