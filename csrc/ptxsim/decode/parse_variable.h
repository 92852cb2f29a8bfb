// Declarations of PTX variables and parameters: type, extents, alignment, initial bytes.
#pragma once

#include <vector>

#include "ptxsim/decode/lex_ptx.h"
#include "ptxsim/decode/parse_ptx.h"

namespace stitch::ptxsim {

// An immediate: integers wrap to 64 bits.
struct PtxNumber {
  Type type;  // u64, f32 or f64
  uint64_t bits;
};
PtxNumber read_number(Lexer& lexer);

// What the variables of a space may have: what a GPU has, or of memory what one would not exceed.
uint64_t most_bytes(Space space);
// Consumes `.shared` and the like; none if something else stands there.
Space take_variable_space(Lexer& lexer);
// What follows the space, up to the semicolon.
std::vector<PtxVariable> read_declarations(Lexer& lexer, Space space, bool is_extern);
// What follows the `.param` of a function's parameter.
PtxVariable read_parameter(Lexer& lexer);

}  // namespace stitch::ptxsim
