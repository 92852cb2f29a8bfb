// Launch: how a kernel is started, as a command line can say it.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace stitch::clock {

constexpr int kLanes = 32;  // of a warp

// A pointer with memory behind it, or a number.
struct Argument {
  bool is_pointer = false;
  int64_t bytes = 0;  // behind the pointer; 0: a null pointer
  int element_bytes = 4;
  uint64_t below = 0;  // integers lie in memory, spread over [0, below); 0: it is not known
  uint64_t bits = 0;   // of a number
  // An address of this process: of the integers that lie in memory before the launch, or of a
  // number's or struct's bytes; 0: nothing is there.
  uint64_t data = 0;
};

struct Launch {
  std::array<int64_t, 3> grid = {1, 1, 1}, block = {32, 1, 1};
  int64_t shared_bytes = 0;  // dynamic
  std::vector<Argument> arguments;
  int trips = 8;  // of a loop whose end depends on data

  int64_t blocks() const { return grid[0] * grid[1] * grid[2]; }
  int64_t threads() const { return block[0] * block[1] * block[2]; }
};

// "1048576*f32", "2048*i64<30522" (integers below 30522), "null", "4096", "0.5".  UserError else.
Argument parse_argument(const std::string& word);

}  // namespace stitch::clock
