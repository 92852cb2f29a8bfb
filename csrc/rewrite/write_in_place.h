// A part of an input that is replaced where the input is:
//   mutate x <- slice_scatter(x, src)   becomes   mutate x <- write_slice(x, src),
// which stores the elements of src alone.  Slices of slices (x[a:b, i] = src) are one write.
//
// Side condition: nobody else reads x, but for the elements that src replaces (x[i] += ..), so that
// no read of the old contents can come too late; and neither x nor the new value is returned.
#pragma once

#include "ir/graph.h"

namespace stitch {

Graph write_in_place(const Graph& graph);

}  // namespace stitch
