// Where the arrays of a host kernel live.
//
// In: the body of a kernel that a thread of unknown stack runs.  Out: the same body, whose arrays
// take at most kMostStackBytes of the stack together, the smallest first; the others are places in
// the thread's scratch (KernelSource::shared_bytes), named `scratch` in the text.
#pragma once

#include "codegen/kernel_body.h"

namespace stitch {

// Python's smallest thread has 32 KB.
inline constexpr int64_t kMostStackBytes = 8 << 10;

// Returns the bytes of scratch.
int64_t place_arrays(KernelBody& body);

}  // namespace stitch
