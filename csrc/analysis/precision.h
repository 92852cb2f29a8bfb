// How exact kernels compute each value.
#pragma once

#include "ir/graph.h"

namespace stitch {

// 16-bit values, in f32 inside of kernels, that are rounded where eager does.
//
// Where a result depends on equality (a comparison, the place of an extreme), and where an extreme
// is saved to be compared later, half an ulp is all or nothing: the gradient of amax is 0 / 0 where
// the element that was the largest equals nothing.  A difference from what was found among the
// values themselves (an extreme, a kept mean) is as sensitive: forward may have found it among
// rounded ones, which backward makes again.  So all that leads there has eager's bits, in every
// graph that evaluates it: up to what is read from memory, which is rounded.  And `3.14 / x` is one
// op to a user, and in eager a product with a rounded reciprocal.
std::set<NodeId> find_rounded(const Graph& graph);

// On a GPU: what is rounded to 16 bits needs to be no more exact, and what a decision depends on is
// computed in one way wherever it is computed.
struct Precision {
  // By node: a relative error of 2^-16 disappears when the value, or what it is a factor of, is
  // rounded to 16 bits.
  std::vector<bool> is_short;
  // By node: a comparison, an extreme or a step depends on it: no choice of loops may change it.
  std::vector<bool> is_decisive;
  // By node: an exponential of what lies below the maximum of its row, so that what is below 2^-126
  // vanishes beside e^0, and divides nothing.
  std::vector<bool> may_vanish;
};

// What a GPU's kernels call for an op where is_short.
struct GpuForms {
  OpKind op = OpKind::k_input;
  bool has_short = false;           // its function's name and _short
  bool takes_factor = false;        // f_short(x, c) is f(x * c), by no more instructions
  const char* plus_one_short = "";  // 1 + f(x), which would cancel where f tends to -1; "": none
  const char* vanishing = "";       // where may_vanish
};
const GpuForms& gpu_forms(OpKind op);

Precision find_precision(const Graph& graph, const std::set<NodeId>& rounded);

}  // namespace stitch
