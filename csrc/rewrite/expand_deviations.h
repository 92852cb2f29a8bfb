// Expands sum_sq_dev(x) into its two passes, in the dtype of the result:
//   mean = sum(x) / n;  d = x - mean;  sum(d * d)
// Two passes lose no digits to cancellation, unlike sum(x*x) - n*mean*mean.
#pragma once

#include "ir/graph.h"

namespace stitch {

Graph expand_deviations(const Graph& graph);

}  // namespace stitch
