#include "config/settings.h"

#include <cstdlib>

#include "base/error.h"
#include "base/lists.h"
#include "base/words.h"

namespace stitch {
namespace {

std::string to_text(const SettingValue& value) {
  if (const bool* flag = std::get_if<bool>(&value)) return *flag ? "true" : "false";
  if (const int64_t* number = std::get_if<int64_t>(&value)) return std::to_string(*number);
  return std::get<std::string>(value);
}

const SettingRow& find_row(const std::string& name) {
  const std::vector<SettingRow>& rows = settings_rows();
  if (const SettingRow* found = find_by(rows, name, &SettingRow::name)) return *found;
  throw UserError("unknown option '" + name + "'; did you mean '" +
                  nearest_name(name, rows, &SettingRow::name) + "'? Options are " +
                  join(rows, ", ", &SettingRow::name));
}

void check_allowed(const SettingRow& row, const SettingValue& value) {
  if (const int64_t* number = std::get_if<int64_t>(&value); number && *number < 0)
    throw UserError("option '" + row.name + "' is " + to_text(value) + "; it cannot be negative");
  if (row.allowed.empty()) return;
  const std::string text = to_text(value);
  const bool is_list = to_text(row.default_value).empty();
  for (const std::string& word : is_list ? split_words(text) : std::vector{text}) {
    const std::string family = word.substr(0, word.find('_') + 1) + "*";  // "sm_*"
    if (std::ranges::find_first_of(row.allowed, std::vector{word, family}) != row.allowed.end())
      continue;
    throw UserError("option '" + row.name + "' is '" + text + "'; did you mean '" +
                    nearest_name(word, row.allowed) + "'? It can be " + join(row.allowed, ", "));
  }
}

template <class T>
void store(T& member, const SettingRow& row, const SettingValue& value) {
  if (std::is_same_v<T, std::string> && std::holds_alternative<bool>(value) &&
      !row.allowed.empty() && row.allowed.front() == "false") {
    return store(member, row, SettingValue(to_text(value)));  // one word more than a bool has
  }
  const T* typed = std::get_if<T>(&value);
  if (!typed)
    throw UserError("option '" + row.name + "' is '" + to_text(value) + "'; its type is " +
                    row.type() + (row.allowed.empty() ? "" : ": " + join(row.allowed, ", ")));
  check_allowed(row, value);
  member = *typed;
}

SettingValue parse_value(const SettingRow& row, const std::string& text) {
  if (row.type() == "string") return text;
  if (row.type() == "bool") {
    if (text == "1" || text == "true" || text == "on") return true;
    if (text == "0" || text == "false" || text == "off" || text.empty()) return false;
    throw UserError(row.env + " is '" + text + "'; it can be 1, true, on, 0, false, off");
  }
  if (const auto number = to_number(text)) return *number;
  throw UserError(row.env + " is '" + text + "'; it must be an integer");
}

// An unset variable and an empty one are the same thing.
std::string read_environment(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

std::string default_cache_directory() {
  const std::string cache_home = read_environment("XDG_CACHE_HOME");
  if (!cache_home.empty() && cache_home[0] == '/') return cache_home + "/torch_stitch";
  const std::string home = read_environment("HOME");
  return !home.empty() && home[0] == '/' ? home + "/.cache/torch_stitch" : "";
}

// Empty values that stand for a place or a command of this user.
void resolve(Settings& settings) {
  if (settings.cache.empty()) settings.cache = default_cache_directory();
  if (settings.cxx.empty()) settings.cxx = read_environment("CXX");
  if (settings.cxx.empty()) settings.cxx = "g++";
}

}  // namespace

const std::vector<SettingRow>& settings_rows() {
  static const std::vector<SettingRow> rows = {
#define STITCH_SETTING(name, env, type, default_value, plans, allowed, doc) \
  {#name, env, &Settings::name, type(default_value), plans, split_words(allowed), doc},
#include "config/settings.def"
#undef STITCH_SETTING
  };
  return rows;
}

void set_option(Settings& settings, const std::string& name, const SettingValue& value) {
  const SettingRow& row = find_row(name);
  std::visit([&](auto member) { store(settings.*member, row, value); }, row.member);
  resolve(settings);
}

SettingValue get_option(const Settings& settings, const std::string& name) {
  const auto read = [&](auto member) -> SettingValue { return settings.*member; };
  return std::visit(read, find_row(name).member);
}

Settings default_settings() {
  Settings settings;
  for (const SettingRow& row : settings_rows()) {
    const std::string text = row.env.empty() ? "" : read_environment(row.env.c_str());
    const ErrorContext context("while reading the environment variable " + row.env);
    if (!text.empty()) set_option(settings, row.name, parse_value(row, text));
  }
  resolve(settings);
  return settings;
}

}  // namespace stitch
