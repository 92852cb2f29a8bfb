// Where tests look for NVRTC: $STITCH_TEST_NVRTC_DIR, else the wheels of this repository's .venv.
#pragma once

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <string>
#include <vector>

#include "jit/nvrtc.h"
#include "support/source_directory.h"

namespace stitch {

inline std::vector<std::string> nvrtc_test_directories() {
  namespace fs = std::filesystem;
  std::vector<std::string> directories;
  if (const char* given = getenv("STITCH_TEST_NVRTC_DIR")) directories.push_back(given);
  std::error_code error;
  for (const auto& python : fs::directory_iterator(source_directory() / ".venv/lib", error)) {
    const fs::path wheels = python.path() / "site-packages" / "nvidia";
    for (const auto& wheel : fs::directory_iterator(wheels, error)) {
      directories.push_back(wheel.path() / "lib");
    }
  }
  return directories;
}

}  // namespace stitch

#define STITCH_SKIP_WITHOUT_NVRTC()                                                 \
  do {                                                                              \
    ::stitch::set_nvrtc_directories(::stitch::nvrtc_test_directories());            \
    const ::stitch::Verdict verdict = ::stitch::nvrtc_available();                  \
    if (!verdict && getenv("STITCH_CI")) FAIL() << "in CI: " << verdict.why;        \
    if (!verdict)                                                                   \
      GTEST_SKIP() << verdict.why << "; " << verdict.remedy                         \
                   << ", or set STITCH_TEST_NVRTC_DIR to the folder that holds it"; \
  } while (false)
