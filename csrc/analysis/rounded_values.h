// Which 16-bit values must be rounded wherever eager rounds them, though kernels keep them in f32.
//
// Where a result depends on equality (a comparison, the place of an extreme), and where an extreme
// is saved to be compared later, half an ulp is all or nothing: the gradient of amax is 0 / 0 where
// the element that was the largest equals nothing.  A difference from what was found among the
// values themselves (an extreme, a kept mean) is as sensitive: forward may have found it among
// rounded ones, which backward makes again.  So all that leads there has eager's bits, in every
// graph that evaluates it: up to what is read from memory, which is rounded.  And `3.14 / x` is one
// op to a user, and in eager a product with a rounded reciprocal.
#pragma once

#include <vector>

#include "ir/graph.h"

namespace stitch {

// By node.  Empty: none.
std::vector<bool> find_rounded(const Graph& graph);

}  // namespace stitch
