// How the operations of a warp's integer half go over its lanes.
#pragma once

#include "clock/walk/warp.h"

namespace stitch::clock {

// One 32-bit result of three sources; `make` sees no lane that is not known.
template <class Make>
void map_lanes(const Prepared& step, uint32_t mask, Make make) {
  Value result;
  result.known = step.a->known & step.b->known & step.c->known;
  if (result.known & mask)
    for (int i = 0; i < kLanes; ++i)
      result.lanes[i] = make(step.a->lanes[i], step.b->lanes[i], step.c->lanes[i], i);
  if (step.d) store(*step.d, result, mask);
}

inline uint64_t field(const Prepared& step, int first, int bits) {
  return step.instruction->field(first, bits);
}
inline Truth read_p(const Prepared& step) { return read_truth(step.p, step.negates_p); }

// Arithmetic, bits and comparisons; false where the opcode is none of them.
bool evaluate_integer(const Prepared& step, uint32_t mask);

}  // namespace stitch::clock
