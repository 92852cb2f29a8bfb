#include "config/settings.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <set>

#include "base/error.h"

namespace stitch {
namespace {

// Sets variables for one test and restores what was there.
class SettingsTest : public testing::Test {
 protected:
  void SetUp() override {
    for (const SettingRow& row : settings_rows()) {
      if (!row.env.empty()) set(row.env, "");
    }
  }
  void TearDown() override {
    for (const auto& [name, value] : saved_) setenv(name.c_str(), value.c_str(), 1);
    for (const std::string& name : unset_) unsetenv(name.c_str());
  }
  void set(const std::string& name, const std::string& value) {
    if (touched_.insert(name).second) {
      const char* old = getenv(name.c_str());
      old ? saved_.push_back({name, old}) : unset_.push_back(name);
    }
    setenv(name.c_str(), value.c_str(), 1);
  }
  std::string error_of(const std::string& name, const SettingValue& value) {
    Settings settings;
    try {
      set_option(settings, name, value);
    } catch (const UserError& error) {
      return error.what();
    }
    return "";
  }

 private:
  std::set<std::string> touched_;
  std::vector<std::pair<std::string, std::string>> saved_;
  std::vector<std::string> unset_;
};

TEST_F(SettingsTest, EveryRowIsCompleteAndItsDefaultIsAllowed) {
  std::set<std::string> names, variables;
  for (const SettingRow& row : settings_rows()) {
    EXPECT_TRUE(names.insert(row.name).second) << row.name;
    EXPECT_TRUE(row.env.empty() || variables.insert(row.env).second) << row.env;
    EXPECT_EQ(row.member.index(), row.default_value.index()) << row.name;
    EXPECT_FALSE(row.doc.empty()) << row.name;
    EXPECT_EQ(error_of(row.name, row.default_value), "");
    EXPECT_EQ(get_option(Settings{}, row.name), row.default_value);
  }
}

TEST_F(SettingsTest, OptionsReachTheirMember) {
  Settings settings;
  set_option(settings, "target", "h200");
  set_option(settings, "strict", true);
  set_option(settings, "pool_bytes", int64_t{5});
  EXPECT_EQ(settings.target, "h200");
  EXPECT_TRUE(settings.strict);
  EXPECT_EQ(settings.pool_bytes, 5);
  EXPECT_EQ(get_option(settings, "target"), SettingValue("h200"));
}

TEST_F(SettingsTest, AnUnknownNameIsAnErrorWithTheNearestOne) {
  const std::string message = error_of("polcy", "auto");
  EXPECT_NE(message.find("unknown option 'polcy'; did you mean 'policy'?"), std::string::npos);
  EXPECT_NE(message.find("emulate_eager_casts"), std::string::npos) << message;
  EXPECT_THROW(get_option(Settings{}, "polcy"), UserError);
}

TEST_F(SettingsTest, AnUnknownValueIsAnErrorThatNamesTheAllowedOnes) {
  EXPECT_NE(error_of("policy", "astich").find("It can be auto, astitch"), std::string::npos);
  EXPECT_NE(error_of("target", "h2000").find("did you mean 'h200'?"), std::string::npos);
  EXPECT_NE(error_of("target", "sn_86-80").find("sm_*"), std::string::npos);
  EXPECT_NE(error_of("pool_bytes", int64_t{-1}).find("cannot be negative"), std::string::npos);
}

TEST_F(SettingsTest, EveryWordOfAListIsChecked) {
  Settings settings;
  for (const char* list : {"", "all", "plan,emit", "plan, emit"}) {
    set_option(settings, "dump", list);
    EXPECT_EQ(settings.dump, list);
  }
  EXPECT_NE(error_of("dump", "plan,emitted").find("did you mean 'emit'? It can be all, rewrite"),
            std::string::npos);
}

TEST_F(SettingsTest, AValueOfAnotherTypeIsAnError) {
  EXPECT_NE(error_of("strict", "yes").find("'strict' is 'yes'; its type is bool"),
            std::string::npos);
  EXPECT_NE(error_of("strict", int64_t{1}).find("type is bool"), std::string::npos);
  EXPECT_NE(error_of("target", true).find("type is string: auto, cpu"), std::string::npos);
  EXPECT_NE(error_of("pool_bytes", "big").find("type is int"), std::string::npos);
}

TEST_F(SettingsTest, TheEnvironmentOverridesDefaults) {
  set("TORCH_STITCH_STRICT", "1");
  set("TORCH_STITCH_POOL_BYTES", "123");
  set("TORCH_STITCH_CACHE_VERIFY", "all");
  set("TORCH_STITCH_CACHE", "/somewhere");
  const Settings settings = default_settings();
  EXPECT_TRUE(settings.strict);
  EXPECT_EQ(settings.pool_bytes, 123);
  EXPECT_EQ(settings.cache_verify, "all");
  EXPECT_EQ(settings.cache, "/somewhere");
}

TEST_F(SettingsTest, ABadVariableIsAnErrorThatNamesIt) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"TORCH_STITCH_STRICT", "maybe"},
      {"TORCH_STITCH_POOL_BYTES", "2GB"},
      {"TORCH_STITCH_POOL_BYTES", "-5"},
      {"TORCH_STITCH_CACHE_VERIFY", "some"}};
  for (const auto& [name, value] : cases) {
    set(name, value);
    try {
      default_settings();
      ADD_FAILURE() << name << "=" << value << " was accepted";
    } catch (const UserError& error) {
      EXPECT_NE(std::string(error.what()).find(name), std::string::npos) << error.what();
    }
    set(name, "");
  }
}

TEST_F(SettingsTest, TheCacheIsInTheUsersCacheDirectory) {
  set("XDG_CACHE_HOME", "/xdg");
  set("HOME", "/home/me");
  EXPECT_EQ(default_settings().cache, "/xdg/torch_stitch");
  set("XDG_CACHE_HOME", "relative");  // to be ignored, says the specification
  EXPECT_EQ(default_settings().cache, "/home/me/.cache/torch_stitch");
  set("HOME", "");
  EXPECT_EQ(default_settings().cache, "");
}

TEST_F(SettingsTest, TheCompilerIsOursThenTheUsersThenGcc) {
  set("CXX", "");
  EXPECT_EQ(default_settings().cxx, "g++");
  set("CXX", "clang++");
  EXPECT_EQ(default_settings().cxx, "clang++");
  set("TORCH_STITCH_CXX", "g++-12");
  EXPECT_EQ(default_settings().cxx, "g++-12");
}

TEST_F(SettingsTest, AnEmptyOptionMeansTheUsersPlaceAndCompiler) {
  set("XDG_CACHE_HOME", "/xdg");
  set("CXX", "clang++");
  Settings settings;
  set_option(settings, "cache", "");
  set_option(settings, "cxx", "");
  EXPECT_EQ(settings.cache, "/xdg/torch_stitch");
  EXPECT_EQ(settings.cxx, "clang++");
}

}  // namespace
}  // namespace stitch
