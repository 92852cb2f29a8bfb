// A matrix operand that is copied anyway is copied in the order its source is contiguous.
#pragma once

#include "ir/graph.h"

namespace stitch {

// reshape(x) with x's last two dimensions kept and the last but one contiguous (a transposed key
// whose batch and head dimensions do not merge) becomes the transpose of a reshape of x transposed:
// the copy is then contiguous on both sides, and BLAS takes the transposed strides.
Graph order_blas_copies(const Graph& graph);

}  // namespace stitch
