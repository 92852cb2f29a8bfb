// On CPUs convolutions of images run with channels last, where their library need not reorder.
#pragma once

#include "ir/graph.h"

namespace stitch {

// A convolution of a value [batch, channels, height, width] takes and yields it with channels last,
// and so does a pooling of what comes from one through pointwise values; copies restore the strides
// on both sides, which remove_copies drops where a kernel stands between.  A convolution stays
// whose result is seen outside, through views, as it is.  Values are equal but for the order in
// which the library adds.
Graph order_convolutions(const Graph& graph);

}  // namespace stitch
