// A CUDA text, walked or timed for an h200.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/words.h"
#include "clock/time_kernel.h"
#include "cost/device_spec.h"
#include "jit/nvrtc_directories.h"

namespace stitch::clock {

inline Launch make_launch(int64_t grid, int64_t block, const std::string& arguments) {
  Launch launch;
  launch.grid[0] = grid;
  launch.block[0] = block;
  for (const std::string& word : split_words(arguments))
    launch.arguments.push_back(parse_argument(word));
  return launch;
}

inline std::string cubin_of(const std::string& text, const std::string& arch = "sm_90a") {
  const Binary binary = run_nvrtc("kernel", text, arch);
  EXPECT_FALSE(binary.bytes.empty()) << binary.log;
  return binary.bytes;
}

// A text with one kernel.
inline ClockResult time_text(const std::string& text, const Launch& launch,
                             const std::string& device = "h200") {
  const DeviceSpec& spec = device_spec(device);
  return time_kernel(cubin_of(text, spec.arch), "", launch, spec);
}

}  // namespace stitch::clock
