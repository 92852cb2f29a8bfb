#include "base/files.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <thread>

#include "base/error.h"

namespace stitch {
namespace {

namespace fs = std::filesystem;
constexpr size_t kMaxBytes = 1 << 20;

class FilesTest : public testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/stitch_files_XXXXXX";
    ASSERT_NE(mkdtemp(name), nullptr);
    root_ = name;
    why_.clear();
  }
  void TearDown() override { fs::remove_all(root_); }

  std::optional<PrivateDirectory> open(const std::string& path) {
    return PrivateDirectory::open(path, why_);
  }
  PrivateDirectory cache() {
    auto directory = open(root_ / "cache");
    EXPECT_TRUE(directory) << why_;
    return std::move(*directory);
  }
  mode_t mode_of(const fs::path& path) {
    struct stat info{};
    EXPECT_EQ(stat(path.c_str(), &info), 0);
    return info.st_mode & 07777;
  }
  void set_age(const fs::path& path, int64_t seconds) {
    const timespec time = {::time(nullptr) - seconds, 0};
    const timespec times[] = {time, time};
    ASSERT_EQ(utimensat(AT_FDCWD, path.c_str(), times, 0), 0);
  }

  // Of the cache, temporary ones included.
  int64_t count_files() {
    std::error_code error;
    return std::ranges::count_if(fs::directory_iterator(root_ / "cache", error),
                                 [](const auto& entry) { return !entry.is_directory(); });
  }

  fs::path root_;
  std::string why_;
};

TEST_F(FilesTest, WhatIsWrittenIsReadBack) {
  const PrivateDirectory directory = cache();
  const std::string bytes("a\0b\xff", 4);
  EXPECT_EQ(directory.write_entry("entry", bytes), "");
  EXPECT_EQ(directory.read_entry("entry", kMaxBytes), bytes);
  EXPECT_EQ(directory.write_entry("entry", "other"), "");
  EXPECT_EQ(directory.read_entry("entry", kMaxBytes), "other");
  EXPECT_EQ(count_files(), 1);  // no temporary file is left
}

TEST_F(FilesTest, AbsentEntriesAreMissing) { EXPECT_FALSE(cache().read_entry("entry", kMaxBytes)); }

TEST_F(FilesTest, ModesArePrivateUnderAnyUmask) {
  for (mode_t mask : {mode_t{0}, mode_t{077}, mode_t{0777}}) {
    const mode_t saved = umask(mask);
    const fs::path path = root_ / ("deep" + std::to_string(mask)) / "cache";
    const auto directory = open(path);
    const std::string error = directory ? directory->write_entry("entry", "x") : why_;
    umask(saved);
    ASSERT_EQ(error, "");
    EXPECT_EQ(mode_of(path), 0700u);
    EXPECT_EQ(mode_of(path.parent_path()), 0700u);
    EXPECT_EQ(mode_of(path / "entry"), 0600u);
  }
}

TEST_F(FilesTest, ADirectoryOthersMayWriteToIsRefused) {
  fs::create_directory(root_ / "cache");
  for (mode_t mode : {0770, 0707, 0777, 01777}) {
    ASSERT_EQ(chmod((root_ / "cache").c_str(), mode), 0);
    EXPECT_FALSE(open(root_ / "cache")) << std::oct << mode;
    EXPECT_NE(why_.find("writable by others"), std::string::npos) << why_;
  }
  ASSERT_EQ(chmod((root_ / "cache").c_str(), 0755), 0);
  EXPECT_TRUE(open(root_ / "cache")) << why_;
}

TEST_F(FilesTest, AnAncestorOthersMayWriteToIsRefusedUnlessSticky) {
  fs::create_directories(root_ / "shared" / "mine");
  ASSERT_EQ(chmod((root_ / "shared").c_str(), 0777), 0);
  EXPECT_FALSE(open(root_ / "shared" / "mine"));
  EXPECT_NE(why_.find("writable by everyone"), std::string::npos) << why_;
  ASSERT_EQ(chmod((root_ / "shared").c_str(), 01777), 0);
  EXPECT_TRUE(open(root_ / "shared" / "mine")) << why_;
}

TEST_F(FilesTest, ADirectoryOfAnotherUserIsRefused) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can give a directory away";
  fs::create_directories(root_ / "theirs" / "cache");
  ASSERT_EQ(chown((root_ / "theirs" / "cache").c_str(), 12345, 12345), 0);
  EXPECT_FALSE(open(root_ / "theirs" / "cache"));
  EXPECT_NE(why_.find("another user"), std::string::npos) << why_;
  ASSERT_EQ(chown((root_ / "theirs").c_str(), 12345, 12345), 0);
  EXPECT_FALSE(open(root_ / "theirs" / "new"));
  EXPECT_NE(why_.find("another user"), std::string::npos) << why_;
}

TEST_F(FilesTest, ASymbolicLinkInPlaceOfTheDirectoryIsRefused) {
  fs::create_directory(root_ / "target");
  fs::create_directory_symlink(root_ / "target", root_ / "cache");
  EXPECT_FALSE(open(root_ / "cache"));
  EXPECT_FALSE(open((root_ / "cache").string() + "/"));
  fs::create_directory_symlink(root_ / "nowhere", root_ / "dangling");
  EXPECT_FALSE(open(root_ / "dangling"));
  EXPECT_FALSE(open(root_ / "dangling" / "cache"));
  EXPECT_FALSE(fs::exists(root_ / "nowhere"));
}

TEST_F(FilesTest, AnAncestorMayBeALinkToASafePlace) {
  fs::create_directory(root_ / "disk2");
  fs::create_directory_symlink(root_ / "disk2", root_ / "home");
  const auto directory = open(root_ / "home" / "cache");
  ASSERT_TRUE(directory) << why_;
  EXPECT_EQ(directory->path(), fs::canonical(root_) / "disk2" / "cache");
}

TEST_F(FilesTest, PathsThatAreNoDirectoriesAreRefused) {
  std::ofstream(root_ / "file") << "x";
  const std::vector<std::string> paths = {
      "", "/", root_ / "file", root_ / "file/cache", root_ / "new/../../cache", root_ / ".."};
  for (const std::string& path : paths) {
    why_.clear();
    EXPECT_FALSE(open(path)) << path;
    EXPECT_FALSE(why_.empty()) << path;
  }
}

TEST_F(FilesTest, OnlyRegularSingleOwnedFilesOfTheRightSizeAreRead) {
  const PrivateDirectory directory = cache();
  const fs::path path = root_ / "cache";
  std::ofstream(root_ / "secret") << "secret";
  fs::create_symlink(root_ / "secret", path / "link");
  fs::create_hard_link(root_ / "secret", path / "hard");
  fs::create_directory(path / "directory");
  ASSERT_EQ(mkfifo((path / "fifo").c_str(), 0600), 0);
  ASSERT_EQ(directory.write_entry("large", std::string(100, 'x')), "");
  ASSERT_EQ(directory.write_entry("open", "x"), "");
  ASSERT_EQ(chmod((path / "open").c_str(), 0666), 0);
  for (const char* name : {"link", "hard", "directory", "fifo", "open"}) {
    EXPECT_EQ(directory.read_entry(name, kMaxBytes), "") << name;
  }
  EXPECT_EQ(directory.read_entry("large", 99), "");
  EXPECT_NE(directory.read_entry("large", 100).value_or(""), "");
}

TEST_F(FilesTest, ADeviceNodeIsRefused) {
  const PrivateDirectory directory = cache();
  if (mknod((root_ / "cache" / "zero").c_str(), S_IFCHR | 0600, makedev(1, 5)) != 0) {
    GTEST_SKIP() << "device nodes cannot be made here";
  }
  EXPECT_EQ(directory.read_entry("zero", kMaxBytes), "");
}

TEST_F(FilesTest, WritingReplacesALinkAndNotItsTarget) {
  const PrivateDirectory directory = cache();
  std::ofstream(root_ / "target") << "untouched";
  fs::create_symlink(root_ / "target", root_ / "cache" / "entry");
  EXPECT_EQ(directory.write_entry("entry", "mine"), "");
  EXPECT_EQ(directory.read_entry("entry", kMaxBytes), "mine");
  std::string text;
  std::ifstream(root_ / "target") >> text;
  EXPECT_EQ(text, "untouched");
}

TEST_F(FilesTest, ADirectorySwappedAfterTheCheckIsNotFollowed) {
  const PrivateDirectory directory = cache();
  fs::rename(root_ / "cache", root_ / "moved");
  fs::create_directory(root_ / "victim");
  fs::create_directory_symlink(root_ / "victim", root_ / "cache");
  EXPECT_EQ(directory.write_entry("entry", "x"), "");
  EXPECT_TRUE(fs::is_empty(root_ / "victim"));
  EXPECT_TRUE(fs::exists(root_ / "moved" / "entry"));
}

TEST_F(FilesTest, BadEntriesAreSetAsideWhateverTheyAre) {
  const PrivateDirectory directory = cache();
  ASSERT_EQ(mkfifo((root_ / "cache" / "entry").c_str(), 0600), 0);
  directory.set_aside("entry");
  EXPECT_FALSE(directory.read_entry("entry", kMaxBytes));
  EXPECT_EQ(directory.write_entry("entry", "x"), "");
  EXPECT_NE(directory.read_entry("entry", kMaxBytes).value_or(""), "");
}

TEST_F(FilesTest, FailuresToWriteAreValuesAndLeaveNothing) {
  const PrivateDirectory directory = cache();
  fs::create_directory(root_ / "cache" / "entry");
  EXPECT_NE(directory.write_entry("entry", "x"), "");
  EXPECT_EQ(count_files(), 0);
  fs::remove_all(root_ / "cache");
  EXPECT_NE(directory.write_entry("entry", "x"), "");
  EXPECT_FALSE(directory.read_entry("entry", kMaxBytes));
  directory.set_aside("entry");
  directory.evict(0, 0);
  EXPECT_EQ(count_files(), 0);
}

TEST_F(FilesTest, NamesCannotLeaveTheDirectory) {
  const PrivateDirectory directory = cache();
  for (const std::string name : {"", ".", "..", "../x", "a/b", ".hidden"}) {
    EXPECT_THROW(directory.read_entry(name, kMaxBytes), InternalError) << name;
    EXPECT_THROW(directory.write_entry(name, "x"), InternalError) << name;
  }
}

TEST_F(FilesTest, EvictionRemovesTheLeastRecentlyUsed) {
  const PrivateDirectory directory = cache();
  for (int i = 0; i < 5; ++i) {
    const std::string name = "entry" + std::to_string(i);
    ASSERT_EQ(directory.write_entry(name, std::string(100, 'x')), "");
    set_age(root_ / "cache" / name, 7200 * (i + 1));
  }
  // A hit makes the oldest the most recent.
  EXPECT_NE(directory.read_entry("entry4", kMaxBytes).value_or(""), "");
  directory.evict(300, 100);
  EXPECT_NE(directory.read_entry("entry4", kMaxBytes).value_or(""), "");
  EXPECT_NE(directory.read_entry("entry0", kMaxBytes).value_or(""), "");
  EXPECT_NE(directory.read_entry("entry1", kMaxBytes).value_or(""), "");
  EXPECT_EQ(count_files(), 3);
  directory.evict(300, 1);
  EXPECT_EQ(count_files(), 1);
}

TEST_F(FilesTest, TemporaryFilesGoAfterADayAndNotBefore) {
  const PrivateDirectory directory = cache();
  for (const char* name : {".tmp-1-a-0", ".tmp-2-b-0"}) {
    std::ofstream(root_ / "cache" / name) << "half";
  }
  set_age(root_ / "cache" / ".tmp-1-a-0", 25 * 3600);
  set_age(root_ / "cache" / ".tmp-2-b-0", 23 * 3600);
  directory.evict(1 << 20, 100);
  EXPECT_FALSE(fs::exists(root_ / "cache" / ".tmp-1-a-0"));
  EXPECT_TRUE(fs::exists(root_ / "cache" / ".tmp-2-b-0"));
}

TEST_F(FilesTest, ConcurrentWritersLeaveOneWholeEntry) {
  const PrivateDirectory directory = cache();
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      const std::string bytes(5000, static_cast<char>('a' + t));
      for (int i = 0; i < 50; ++i) {
        EXPECT_EQ(directory.write_entry("entry", bytes), "");
        const std::string read = directory.read_entry("entry", kMaxBytes).value();
        ASSERT_FALSE(read.empty());
        EXPECT_EQ(read, std::string(5000, read[0]));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(count_files(), 1);
}

}  // namespace
}  // namespace stitch
