#include "jit/kernel_cache.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <thread>

#include "base/error.h"
#include "base/log.h"

namespace stitch {
namespace {

namespace fs = std::filesystem;

CacheRequest request_for(const std::string& source) {
  return {"cuda", "sm_90a", "compiler 1", "-options", "prelude", source};
}

class KernelCacheTest : public testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/stitch_cache_XXXXXX";
    ASSERT_NE(mkdtemp(name), nullptr);
    root_ = name;
    settings_.cache = root_ / "cache";
    reset_cache_counters();
    set_warning_sink([this](const std::string& message) { warnings_.push_back(message); });
  }
  void TearDown() override {
    set_warning_sink(nullptr);
    fs::remove_all(root_);
  }
  // The "compiler" of these tests; deterministic, as the real ones are.
  Binary compile(const std::string& source) {
    ++compiles_;
    Binary binary;
    binary.bytes = "binary of " + source;
    binary.registers = 7;
    return binary;
  }
  Binary get(KernelCache& cache, const std::string& source) {
    return cache.get_or_compile(request_for(source), [&] { return compile(source); });
  }
  // What a new process would see.
  Binary get_fresh(const std::string& source) {
    KernelCache cache(settings_);
    return get(cache, source);
  }
  fs::path entry(const std::string& source) {
    return root_ / "cache" / (cache_key(request_for(source)) + ".kernel");
  }
  std::string read(const fs::path& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  void write(const fs::path& path, const std::string& bytes) {
    fs::remove_all(path);
    std::ofstream(path, std::ios::binary) << bytes;
    ASSERT_EQ(chmod(path.c_str(), 0600), 0);
  }
  // The right binary, by a compile, without an error; and the next process hits again.
  void expect_miss_then_hit(const std::string& what) {
    const int before = compiles_;
    EXPECT_EQ(get_fresh("a").bytes, "binary of a") << what;
    EXPECT_EQ(compiles_, before + 1) << what;
    EXPECT_EQ(get_fresh("a").bytes, "binary of a") << what;
    EXPECT_EQ(compiles_, before + 1) << what;
  }

  fs::path root_;
  Settings settings_;
  std::vector<std::string> warnings_;
  std::atomic<int> compiles_{0};
};

TEST_F(KernelCacheTest, CompilesOnceThenHitsMemoryThenDisk) {
  KernelCache cache(settings_);
  EXPECT_FALSE(get(cache, "a").from_cache);
  EXPECT_TRUE(get(cache, "a").from_cache);
  EXPECT_EQ(cache_counters().kernels.misses, 1);
  EXPECT_EQ(cache_counters().kernels.hits_memory, 1);
  reset_cache_counters();
  KernelCache next(settings_);
  const Binary binary = get(next, "a");
  EXPECT_TRUE(binary.from_cache);
  EXPECT_EQ(binary.bytes, "binary of a");
  EXPECT_EQ(binary.registers, 7);
  EXPECT_EQ(cache_counters().kernels.hits_disk, 1);
  EXPECT_EQ(cache_counters().kernels.compile_seconds, 0);
  EXPECT_EQ(compiles_, 1);
  EXPECT_TRUE(warnings_.empty());
}

TEST_F(KernelCacheTest, EntriesArePrivateFilesWithTheSourceInThem) {
  get_fresh("the source");
  struct stat info{};
  ASSERT_EQ(stat(entry("the source").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777, 0600u);
  EXPECT_NE(read(entry("the source")).find("the source"), std::string::npos);
}

TEST_F(KernelCacheTest, ADamagedEntryIsAMissAndIsReplaced) {
  get_fresh("a");
  const std::string good = read(entry("a"));
  for (size_t at = 0; at < good.size(); at += 7) {
    std::string damaged = good;
    damaged[at] = static_cast<char>(~damaged[at]);
    write(entry("a"), damaged);
    expect_miss_then_hit("byte " + std::to_string(at));
    write(entry("a"), good.substr(0, at));
    expect_miss_then_hit("size " + std::to_string(at));
  }
  EXPECT_TRUE(warnings_.empty());
}

TEST_F(KernelCacheTest, SwappedEntriesAreNotUsed) {
  get_fresh("a");
  get_fresh("b");
  const std::string a = read(entry("a"));
  write(entry("a"), read(entry("b")));
  write(entry("b"), a);
  expect_miss_then_hit("swapped");
  reset_cache_counters();
  EXPECT_EQ(get_fresh("b").bytes, "binary of b");
  EXPECT_EQ(cache_counters().kernels.refused, 1);
}

TEST_F(KernelCacheTest, PlantedThingsAreNotUsed) {
  get_fresh("a");
  const std::string good = read(entry("a"));
  write(root_ / "elsewhere", good);

  fs::remove(entry("a"));
  fs::create_symlink(root_ / "elsewhere", entry("a"));
  expect_miss_then_hit("symbolic link");
  EXPECT_EQ(read(root_ / "elsewhere"), good);

  fs::remove(entry("a"));
  fs::create_hard_link(root_ / "elsewhere", entry("a"));
  expect_miss_then_hit("hard link");

  fs::remove(entry("a"));
  ASSERT_EQ(mkfifo(entry("a").c_str(), 0600), 0);
  expect_miss_then_hit("FIFO");

  fs::remove(entry("a"));
  fs::create_directory(entry("a"));
  expect_miss_then_hit("directory");

  ASSERT_EQ(chmod(entry("a").c_str(), 0666), 0);
  expect_miss_then_hit("writable by others");

  fs::resize_file(entry("a"), kMaxEntryBytes + 1);
  expect_miss_then_hit("too large");
  EXPECT_TRUE(warnings_.empty());
}

TEST_F(KernelCacheTest, AHostileDirectoryLeavesTheMemoryCacheAndOneWarning) {
  fs::create_directory(settings_.cache);
  ASSERT_EQ(chmod(settings_.cache.c_str(), 0777), 0);
  KernelCache cache(settings_);
  EXPECT_EQ(get(cache, "a").bytes, "binary of a");
  EXPECT_TRUE(get(cache, "a").from_cache);
  EXPECT_EQ(get_fresh("a").bytes, "binary of a");
  EXPECT_TRUE(fs::is_empty(settings_.cache));
  ASSERT_EQ(warnings_.size(), 1u);
  EXPECT_NE(warnings_[0].find(settings_.cache), std::string::npos) << warnings_[0];
  EXPECT_NE(warnings_[0].find("TORCH_STITCH_CACHE"), std::string::npos) << warnings_[0];
}

TEST_F(KernelCacheTest, AnUnwritableDirectoryLeavesTheMemoryCacheAndOneWarning) {
  KernelCache cache(settings_);
  fs::remove_all(settings_.cache);  // the descriptor stays, every write fails; also for root
  for (const char* source : {"a", "b", "a"}) {
    EXPECT_EQ(get(cache, source).bytes, std::string("binary of ") + source);
  }
  EXPECT_EQ(compiles_, 2);
  ASSERT_EQ(warnings_.size(), 1u);
  EXPECT_NE(warnings_[0].find("in memory only"), std::string::npos) << warnings_[0];
}

TEST_F(KernelCacheTest, WithoutADirectoryThereIsOnlyMemory) {
  settings_.cache = "";
  KernelCache cache(settings_);
  get(cache, "a");
  EXPECT_TRUE(get(cache, "a").from_cache);
  EXPECT_FALSE(get_fresh("a").from_cache);
  EXPECT_TRUE(warnings_.empty());
}

TEST_F(KernelCacheTest, ThreadsThatWantTheSameKernelCompileOnce) {
  KernelCache cache(settings_);
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&] {
      for (int k = 0; k < 20; ++k) {
        const std::string source = "kernel " + std::to_string(k);
        EXPECT_EQ(get(cache, source).bytes, "binary of " + source);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(compiles_, 20);
  EXPECT_EQ(cache_counters().kernels.hits_memory, 7 * 20);
}

TEST_F(KernelCacheTest, ProcessesThatWantTheSameKernelsAllGetThem) {
  std::vector<pid_t> children;
  for (int p = 0; p < 4; ++p) {
    const pid_t child = fork();
    if (child == 0) {
      bool ok = true;
      for (int k = 0; k < 30; ++k) {
        const std::string source = "kernel " + std::to_string(k);
        ok = ok && get_fresh(source).bytes == "binary of " + source;
      }
      _exit(ok && warnings_.empty() ? 0 : 1);
    }
    children.push_back(child);
  }
  for (pid_t child : children) {
    int status = 1;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  }
  for (int k = 0; k < 30; ++k) {
    EXPECT_TRUE(get_fresh("kernel " + std::to_string(k)).from_cache);
  }
}

TEST_F(KernelCacheTest, AFailedCompileReachesTheCallerAndIsTriedAgain) {
  KernelCache cache(settings_);
  auto fail = [&]() -> Binary { throw InternalError("does not compile"); };
  EXPECT_THROW(cache.get_or_compile(request_for("a"), fail), InternalError);
  EXPECT_EQ(get(cache, "a").bytes, "binary of a");
}

TEST_F(KernelCacheTest, VerificationRecompilesHitsAndReplacesWhatDiffers) {
  {
    KernelCache cache(settings_);
    cache.get_or_compile(request_for("a"), [] {
      Binary wrong;
      wrong.bytes = "an older compiler's bug";
      return wrong;
    });
  }
  EXPECT_EQ(get_fresh("a").bytes, "an older compiler's bug");
  settings_.cache_verify = "all";
  KernelCache cache(settings_);
  EXPECT_EQ(get(cache, "a").bytes, "binary of a");
  EXPECT_EQ(cache_counters().kernels.mismatches, 1);
  EXPECT_EQ(warnings_.size(), 1u);
  reset_cache_counters();
  KernelCache next(settings_);
  EXPECT_TRUE(get(next, "a").from_cache);
  EXPECT_EQ(cache_counters().kernels.mismatches, 0);
  EXPECT_EQ(cache_counters().kernels.hits_disk, 1);
  EXPECT_EQ(compiles_, 2);
}

TEST_F(KernelCacheTest, TheDirectoryStaysNearItsCap) {
  settings_.cache_size_bytes = 20000;
  KernelCache cache(settings_);
  for (int k = 0; k < 100; ++k) get(cache, std::string(1000, 'x') + std::to_string(k));
  int64_t bytes = 0;
  for (const auto& file : fs::directory_iterator(settings_.cache)) bytes += file.file_size();
  EXPECT_GT(bytes, settings_.cache_size_bytes / 2);
  EXPECT_LT(bytes, settings_.cache_size_bytes * 5 / 4);
}

TEST_F(KernelCacheTest, TheProcessHasOneCachePerDirectoryAndSumsTheirCounters) {
  Settings settings;
  settings.cache = root_ / "one";
  KernelCache& one = process_cache(settings);
  EXPECT_EQ(&one, &process_cache(settings));
  settings.cache = root_ / "two";
  KernelCache& two = process_cache(settings);
  EXPECT_NE(&one, &two);
  reset_cache_counters();
  get(one, "a");
  get(two, "a");
  get(two, "a");
  EXPECT_EQ(cache_counters().kernels.misses, 2);
  EXPECT_EQ(cache_counters().kernels.hits_memory, 1);
  reset_cache_counters();
  EXPECT_EQ(cache_counters().kernels.misses, 0);
}

}  // namespace
}  // namespace stitch
