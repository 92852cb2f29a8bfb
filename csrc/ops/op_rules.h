// Rules that types follow, for any op: element types of results, broadcasting, exact conversions.
//
// Symbolic extents are equal when they are the same polynomial.  Two different ones may still turn
// out equal when the program runs; nothing here assumes it: UnsupportedError.
#pragma once

#include <string>
#include <vector>

#include "ops/op.h"

namespace stitch {

// The element type of a result; `declared` counts where the op's rule is kExplicit.
// UserError when the operands disagree.
DType result_dtype(const OpInfo& op, const std::vector<DType>& operands, DType declared);

// The shape to which both broadcast: right aligned, extents equal or 1.
std::vector<Dim> broadcast_shape(const std::vector<Dim>& a, const std::vector<Dim>& b);
bool broadcasts_to(const std::vector<Dim>& shape, const std::vector<Dim>& target);

// UserError when two constants differ, UnsupportedError when it depends on symbols.
void require_equal(const Dim& found, const Dim& expected, const std::string& what);

// Every value of `from` is a value of `to`.
bool is_value_preserving(DType from, DType to);
bool is_integral(DType dtype);  // integers and bool
// Is it a quotient or remainder of integers?  Eager's CPU kernels raise where its divisor is zero.
bool divides_integers(const OpInfo& op, DType result);
// It is evaluated for what it reports, also where nobody reads its result.
bool is_assertion(const OpInfo& op);

}  // namespace stitch
