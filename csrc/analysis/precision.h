// How exact a kernel of a GPU computes each value: what is rounded to 16 bits needs no more, and
// what a decision depends on is computed in one way wherever it is computed.
#pragma once

#include <vector>

#include "ir/graph.h"

namespace stitch {

struct Precision {
  // By node: a relative error of 2^-16 disappears when the value, or what it is a factor of, is
  // rounded to 16 bits.
  std::vector<bool> is_short;
  // By node: a comparison, an extreme or a step function depends on the value, so that no choice of
  // a kernel's loops may change it.
  std::vector<bool> is_decisive;
};

// What a GPU's kernels call for an op where is_short, and for 1 + f(x) where f tends to -1: such a
// sum would cancel.  "" where the op has no function of its own.
struct GpuForms {
  OpKind op = OpKind::k_input;
  bool has_short = false;  // its function's name and _short
  const char *plus_one = "", *plus_one_short = "";
};
const GpuForms& gpu_forms(OpKind op);

// rounded: as find_rounded has it.
Precision find_precision(const Graph& graph, const std::vector<bool>& rounded);

}  // namespace stitch
