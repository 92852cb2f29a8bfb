// Between which numbers the elements of a value lie, as far as the graph alone tells: constants,
// integers, and floats computed from these.  NaN is in every range.
#pragma once

#include <limits>
#include <vector>

#include "ir/graph.h"

namespace stitch {

inline constexpr double kInfinity = std::numeric_limits<double>::infinity();

struct ValueRange {
  double low, high;
};

// By node.
std::vector<ValueRange> find_ranges(const Graph& graph);
// The range as the dtype stores it: what it cannot hold is infinite.
ValueRange stored_as(DType dtype, ValueRange range);

}  // namespace stitch
