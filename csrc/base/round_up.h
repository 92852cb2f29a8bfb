// Quotients and multiples, the next ones above.
#pragma once

#include <cstdint>

namespace stitch {

constexpr int64_t divide_up(int64_t value, int64_t unit) { return (value + unit - 1) / unit; }
constexpr int64_t round_up(int64_t value, int64_t unit) { return (value + unit - 1) / unit * unit; }

}  // namespace stitch
