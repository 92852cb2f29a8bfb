// A plan's kernels compiled, and scheduled otherwise where their code says so.
//
// Launch bounds are assumed, then checked against the compiled kernel (AStitch A.14): one that
// spills becomes the first of its other choices that does not.  With `clock=choose` the best few
// choices of every kernel are compiled, and the clock decides.
#pragma once

#include <functional>
#include <vector>

#include "compilation.h"
#include "schedule/choose_template.h"

namespace stitch {

// A kernel of the plan as one of its choices, what its code says, and what else it could be.
struct Trial {
  size_t kernel = 0;
  KernelChoice choice = {};
  int spilled_bytes = 0;
  double us = 0;                          // by the clock; 0: it is not asked
  std::vector<KernelChoice> others = {};  // the fastest last
};

// Each kernel becomes its first choice that does not spill, else what spills least, but nothing
// that is predicted at more than twice its own time; of equal ones what the clock calls faster,
// else the first.  `compile` says of a few trials of all kernels what they spill, and how long they
// take if the clock is asked: of every kernel in the first round.
void try_choices(std::vector<Trial>& kernels,
                 const std::function<void(std::vector<Trial>&)>& compile);

// The binaries of c.sources; none where nothing is to be compiled.  Errors: as compile().
std::vector<Binary> settle_kernels(Compilation& c);

}  // namespace stitch
