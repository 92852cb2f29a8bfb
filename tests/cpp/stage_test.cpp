#include "compilation.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <mutex>
#include <thread>

#include "base/error.h"
#include "base/log.h"
#include "base/words.h"

namespace stitch {
namespace {

namespace fs = std::filesystem;

TEST(Stop, NoStageBeginsOnceTheProcessEnds) {
  auto run = [] {
    StageLog log;
    bool has_run = false;
    run_stage("before", log, [&] { has_run = true; });
    if (!has_run) _exit(1);
    is_stopping = true;
    try {
      run_stage("after", log, [] {});
    } catch (const StoppedError&) {
      _exit(log.times.size() == 1 ? 7 : 2);
    }
    _exit(3);
  };
  EXPECT_EXIT(run(), testing::ExitedWithCode(7), "");
}

class StageTest : public testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/stitch_stage_XXXXXX";
    ASSERT_NE(mkdtemp(name), nullptr);
    log_.subject = "graph3";
    log_.dump_dir = std::string(name) + "/dump";
  }
  void TearDown() override { fs::remove_all(fs::path(log_.dump_dir).parent_path()); }
  StageLog log_;
};

TEST_F(StageTest, IsTimed) {
  run_stage("cook", log_, [] { std::this_thread::sleep_for(std::chrono::milliseconds(2)); });
  run_stage("eat", log_, [] {});
  ASSERT_EQ(log_.times.size(), 2u);
  EXPECT_EQ(log_.times[1].name, "eat");
  EXPECT_EQ(log_.times[0].name, "cook");
  EXPECT_GE(log_.times[0].us, 2000);
  EXPECT_FALSE(fs::exists(log_.dump_dir));
}

TEST_F(StageTest, ErrorsNameTheStage) {
  try {
    run_stage("cook", log_, [] { throw UserError("no onions"); });
    FAIL() << "nothing was thrown";
  } catch (const UserError& error) {
    EXPECT_STREQ(error.what(), "no onions\n  while running stage cook");
  }
}

TEST_F(StageTest, OnlyNamedStagesAreDumped) {
  log_.dump = "plan, cook";
  for (const std::string stage : {"boil", "cook", "plan"}) {
    run_stage(stage, log_, [] {});
    write_dump(log_, stage, [&] { return "soup: " + stage; });
  }
  EXPECT_FALSE(fs::exists(log_.dump_dir + "/graph3.1.boil.txt"));
  std::ifstream file(log_.dump_dir + "/graph3.2.cook.txt");
  std::string text;
  std::getline(file, text);
  EXPECT_EQ(text, "soup: cook");
  EXPECT_TRUE(fs::exists(log_.dump_dir + "/graph3.3.plan.txt"));
}

TEST(WarnOnce, ReportsEachKeyOnce) {
  std::vector<std::string> messages;
  std::mutex mutex;
  set_warning_sink([&](const std::string& message) {
    {
      std::lock_guard lock(mutex);
      messages.push_back(message);
    }
    warn_once("stage_test inner", "a sink may warn itself");
  });
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) threads.emplace_back([] { warn_once("stage_test a", "first"); });
  for (std::thread& thread : threads) thread.join();
  EXPECT_FALSE(warn_once("stage_test a", "second"));
  EXPECT_EQ(messages, (std::vector<std::string>{"first", "a sink may warn itself"}));
  set_warning_sink(nullptr);
  EXPECT_TRUE(warn_once("stage_test b", "nobody listens"));
}

TEST(NearestName, IsTheOneWithTheFewestEdits) {
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3);
  EXPECT_EQ(edit_distance("", "abc"), 3);
  EXPECT_EQ(nearest_name("polcy", {"target", "policy", "pool_bytes"}), "policy");
  EXPECT_EQ(nearest_name("x", {}), "");
}

}  // namespace
}  // namespace stitch
