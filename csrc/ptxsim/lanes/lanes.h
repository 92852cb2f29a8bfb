// Lane operations: each lane by itself, 32 at a time.
//
// The source is compiled twice, for any x86-64 and for one with AVX2, FMA and F16C; the CPU decides
// at load.  Handlers read and write units of the warp's register file and nothing else.  All are
// bit-exact but the approximate instructions, which are rounded correctly from a wider format, or
// with `noise` err within the bound that the PTX ISA documents.
#pragma once

#include <cstdint>

#include "ptxsim/isa/module.h"

namespace stitch::ptxsim {

// The handler of a Flow::lanes row for these types and modifiers; null: they do not go together.
Handler find_handler(Opcode opcode, Type type, Type source_type, const Modifiers& modifiers);

// Approximate instructions err by up to their documented bound, drawn from `seed`, on this thread.
// 0: rounded correctly.
void set_approximation_noise(uint64_t seed);

}  // namespace stitch::ptxsim
