#include "base/fork_mutex.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "base/log.h"
#include "runtime/pool.h"

namespace stitch {
namespace {

constexpr int kForks = 200;
constexpr unsigned kChildLimit_s = 10;

// Forks while `work` runs on other threads; each child must get through `work` too.
void expect_children_to_finish(const std::function<void()>& work) {
  std::atomic<bool> is_over = false;
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([&] {
      while (!is_over) work();
    });
  }
  int stuck = 0;
  for (int i = 0; i < kForks && stuck == 0; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      alarm(kChildLimit_s);  // a child that waits for ever dies of it
      work();
      _exit(0);
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    stuck += !WIFEXITED(status) || WEXITSTATUS(status) != 0;
  }
  is_over = true;
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(stuck, 0);
}

TEST(ForkMutex, AChildThatIsForkedWhileThreadsLockItCanLockIt) {
  ForkMutex mutex;
  int64_t first = 0, second = 0;
  expect_children_to_finish([&] {
    std::lock_guard lock(mutex);
    if (first != second) _exit(1);  // what it guards is never seen halfway
    ++first;
    std::this_thread::yield();
    ++second;
  });
}

TEST(ForkMutex, AMutexThatIsGoneIsNotLockedByAFork) {
  {
    const ForkMutex gone;
  }
  const pid_t child = fork();
  if (child == 0) _exit(0);
  int status = 1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

TEST(ForkMutex, ThePoolAndWarningsGoOnInAForkedChild) {
  HostPool pool(1 << 20);
  expect_children_to_finish([&] {
    pool.release(pool.allocate(4096));
    warn_once("fork mutex test", "");
  });
}

}  // namespace
}  // namespace stitch
