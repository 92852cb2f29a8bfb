// The cache when the system fails under it: full disks, no descriptors, killed and forked
// processes.
#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <functional>
#include <future>

#include "base/log.h"
#include "jit/kernel_cache.h"

namespace stitch {
namespace {

namespace fs = std::filesystem;

CacheRequest request_for(int kernel) {
  return {"host", "arch", "compiler", "options", "prelude", "kernel " + std::to_string(kernel)};
}

// Large enough that a put takes several system calls' time.
std::string bytes_of(int kernel) { return std::string(200000, static_cast<char>('a' + kernel)); }

class CacheFaultsTest : public testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/stitch_faults_XXXXXX";
    ASSERT_NE(mkdtemp(name), nullptr);
    settings_.cache = std::string(name) + "/cache";
    reset_cache_counters();
    warnings_ = 0;
    set_warning_sink([](const std::string&) { ++warnings_; });
  }
  void TearDown() override {
    set_warning_sink(nullptr);
    fs::remove_all(fs::path(settings_.cache).parent_path());
  }
  static bool is_right(KernelCache& cache, int kernel) {
    const Binary binary = cache.get_or_compile(request_for(kernel), [&] {
      Binary fresh;
      fresh.bytes = bytes_of(kernel);
      return fresh;
    });
    return binary.bytes == bytes_of(kernel);
  }
  // Exit status of `action` in a child process; -1 if it died.
  static int run_in_child(const std::function<int()>& action) {
    const pid_t child = fork();
    if (child == 0) _exit(action());
    int status = 0;
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }
  Settings settings_;
  static inline int warnings_ = 0;
};

TEST_F(CacheFaultsTest, AFileThatCannotGrowIsOnlyAWarning) {
  const int status = run_in_child([&] {
    signal(SIGXFSZ, SIG_IGN);
    const rlimit limit = {1000, 1000};
    setrlimit(RLIMIT_FSIZE, &limit);
    KernelCache cache(settings_);
    const bool ok = is_right(cache, 1) && is_right(cache, 2) && is_right(cache, 1);
    return ok && warnings_ == 1 ? 0 : 1;
  });
  EXPECT_EQ(status, 0);
  EXPECT_TRUE(fs::is_empty(settings_.cache));  // no half-written temporary file either
}

TEST_F(CacheFaultsTest, NoFreeDescriptorIsOnlyAWarning) {
  KernelCache cache(settings_);
  ASSERT_TRUE(is_right(cache, 1));
  const int status = run_in_child([this] {
    KernelCache opened(settings_);
    const rlimit limit = {3, 3};
    setrlimit(RLIMIT_NOFILE, &limit);
    const bool ok = is_right(opened, 1) && is_right(opened, 2);
    KernelCache unopened(settings_);
    return ok && is_right(unopened, 1) && warnings_ == 2 ? 0 : 1;
  });
  EXPECT_EQ(status, 0);
  reset_cache_counters();
  KernelCache next(settings_);
  EXPECT_TRUE(is_right(next, 1));
  EXPECT_EQ(cache_counters().kernels.hits_disk, 1);
}

TEST_F(CacheFaultsTest, AProcessKilledWhileItWritesLeavesWholeEntriesOrNone) {
  for (int round = 0; round < 25; ++round) {
    const pid_t child = fork();
    if (child == 0) {
      for (int kernel = 0;; kernel = (kernel + 1) % 20) {
        KernelCache cache(settings_);
        is_right(cache, kernel);
        if (kernel == 19) cache.clear();
      }
    }
    usleep(2000 + 700 * round);
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
    KernelCache cache(settings_);
    for (int kernel = 0; kernel < 20; ++kernel) ASSERT_TRUE(is_right(cache, kernel));
    ASSERT_EQ(cache_counters().kernels.refused, 0);
  }
  EXPECT_EQ(warnings_, 0);
}

// A lock held by another thread at the fork would never be released in the child.
TEST_F(CacheFaultsTest, AForkedChildCompilesWhatItsParentIsCompiling) {
  Settings settings;
  settings.cache = settings_.cache;
  std::promise<void> begun, finish;
  auto parent = std::async(std::launch::async, [&] {
    process_cache(settings).get_or_compile(request_for(1), [&] {
      begun.set_value();
      finish.get_future().wait();
      return Binary{};
    });
  });
  begun.get_future().wait();
  const int status = run_in_child([&] {
    alarm(20);
    return is_right(process_cache(settings), 1) ? 0 : 1;
  });
  finish.set_value();
  parent.get();
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace stitch
