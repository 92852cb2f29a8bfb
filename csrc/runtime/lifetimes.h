// Lifetimes of a Program's buffers, read off its steps; the last two passes of build_program.
//
// An alias lives in its base: a use of one is a use of the other.
#pragma once

#include <vector>

#include "runtime/program.h"

namespace stitch {

// Positions in Program::steps of the first and last use; what is returned lives past the last step.
struct Lifetime {
  int first = -1;  // -1: never used
  int last = -1;
};

std::vector<Lifetime> find_lifetimes(const Program& program);

// Gives each kSlab buffer a slot, such that lifetimes within one slot never overlap; slots are
// chosen by the sizes of the example inputs.
void assign_slots(Program& program);

// Puts a ReleaseStep behind the last use of each tensor that the program does not return.
void insert_releases(Program& program);

}  // namespace stitch
