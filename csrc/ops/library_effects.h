// What a library call may do besides yielding its results, read off its name alone.
#pragma once

#include <string_view>

namespace stitch {

// The call must run even when nobody reads its results: it communicates, prints, asserts, writes an
// operand, or is no aten op, so that we know nothing about it.  See has_effects of ir/graph.h.
bool has_effects(std::string_view library_name);

// The call may write its operands: in-place and out variants, and what is neither aten's nor ours.
bool may_write_operands(std::string_view library_name);
// Calls that write some elements of their first operand: where the second says, those of the last.
bool writes_at_indices(std::string_view library_name);

// A matrix product that reads operands of any strides BLAS can express, and whose result is
// contiguous whatever these are.
bool is_blas_call(std::string_view library_name);

}  // namespace stitch
