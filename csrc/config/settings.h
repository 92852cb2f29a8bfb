// Settings of one compilation, generated from the rows of settings.def.
//
// Values come from the row's default, then its environment variable (read here and nowhere else),
// then the user's options.  UserError names what was found, what is allowed and the nearest name.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <variant>
#include <vector>

namespace stitch {

struct Settings {
#define STITCH_SETTING(name, env, type, default_value, plans, allowed, doc) \
  type name = default_value;
#include "config/settings.def"
#undef STITCH_SETTING
};

using SettingValue = std::variant<bool, int64_t, std::string>;

struct SettingRow {
  std::string name, env;
  std::variant<bool Settings::*, int64_t Settings::*, std::string Settings::*> member;
  SettingValue default_value;
  bool plans = false;                // whether plans depend on it
  std::vector<std::string> allowed;  // of a string, or of each word of a list; empty: any
  std::string doc;

  std::string type() const { return std::array{"bool", "int", "string"}[member.index()]; }
};

const std::vector<SettingRow>& settings_rows();

// Defaults overlaid by the environment; `cache` and `cxx` are resolved to a path and a command.
// `cache` stays empty if the user has no cache directory: memory only.
Settings default_settings();

void set_option(Settings& settings, const std::string& name, const SettingValue& value);
SettingValue get_option(const Settings& settings, const std::string& name);

// Whether kernels run on the simulator of csrc/ptxsim.
inline bool is_simulated(const Settings& settings) { return settings.simulate != "false"; }
inline bool asks_clock(const Settings& settings) { return settings.clock != "false"; }

}  // namespace stitch
