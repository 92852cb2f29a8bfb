// run: one call of a Program.
//
// The only code of the project on the hot path: it allocates no strings and reads no settings.
#pragma once

#include <cstdint>
#include <vector>

#include "base/error.h"
#include "runtime/host.h"
#include "runtime/program.h"

namespace stitch {

// A kernel met an index outside of its tensor; the results of the call mean nothing.
struct OutOfRangeError : UserError {
  using UserError::UserError;
};
// What eager raises a RuntimeError for: the same in gather and scatter, an integer that is divided
// by zero, what the graph asserts and is not so, in the user's words.
struct FailedCallError : UserError {
  using UserError::UserError;
};

// Runs all steps.  Afterwards the frame holds the tensors of program.outputs; returns the values of
// the program's symbols, of which its integer outputs are made.  `integers`: the call's arguments
// at program.integer_positions.
std::vector<int64_t> run(const Program& program, Frame& frame,
                         const std::vector<int64_t>& integers);

}  // namespace stitch
