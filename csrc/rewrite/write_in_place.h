// A part of an input that is replaced where the input is:
//   mutate x <- slice_scatter(x, src)   becomes   mutate x <- write_slice(x, src),
// which stores the elements of src alone.  Slices of slices (x[a:b, i] = src) are one write; parts
// that do not meet, one after the other (keys and values of one cache), are
//   mutate x <- join(write_slice(x, a), write_slice(x, b)).
//
// Side condition: nobody else reads x, but for the elements that src replaces (x[i] += ..), so that
// no read of the old contents can come too late; and neither x nor the new value is returned.
//
// Parts of a value that only outputs and library calls read, some of them reductions or made from
// such, are written where they belong, each by a mapping of its own:
//   cat(a, softmax(b))   becomes   join(write_slice(m, a), write_slice(m, softmax(b))),
// where m stands for the memory of the result and is never evaluated.  Evaluated at the indices of
// the cat, a reduction's operand would be read again.
#pragma once

#include "ir/graph.h"

namespace stitch {

Graph write_in_place(const Graph& graph);
// The last of all: other passes would take the layout of m for a copy that nobody needs.
Graph write_joined_parts(const Graph& graph);

}  // namespace stitch
