// Golden files: what a stage printed when somebody last read it.
//
// A difference is a failure that shows the first line that differs.  STITCH_UPDATE_GOLDEN=1 writes
// the files instead; the diff of the repository is then what a reviewer reads.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "support/source_directory.h"

namespace stitch {

inline std::filesystem::path golden_directory() { return source_directory() / "tests/golden"; }

inline std::string read_golden(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

// "line 3\n  was  ...\n  is   ..." of the first line that differs.
inline std::string first_difference(const std::string& was, const std::string& is) {
  std::istringstream old_lines(was), new_lines(is);
  std::string old_line, new_line;
  for (int number = 1;; ++number) {
    const bool has_old = static_cast<bool>(std::getline(old_lines, old_line));
    const bool has_new = static_cast<bool>(std::getline(new_lines, new_line));
    if (!has_old && !has_new) return "no line differs";
    if (has_old && has_new && old_line == new_line) continue;
    return "line " + std::to_string(number) + "\n  was  " + (has_old ? old_line : "(end)") +
           "\n  is   " + (has_new ? new_line : "(end)");
  }
}

// `name` is relative to tests/golden: "plan/softmax.h200.txt".
inline void expect_golden(const std::string& name, const std::string& text) {
  const std::filesystem::path path = golden_directory() / name;
  if (std::getenv("STITCH_UPDATE_GOLDEN")) {
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path, std::ios::binary) << text;
    return;
  }
  ASSERT_TRUE(std::filesystem::exists(path))
      << name << " does not exist; STITCH_UPDATE_GOLDEN=1 writes it";
  const std::string expected = read_golden(path);
  EXPECT_TRUE(text == expected) << name << " differs at " << first_difference(expected, text)
                                << "\nSTITCH_UPDATE_GOLDEN=1 writes the new text";
}

}  // namespace stitch
