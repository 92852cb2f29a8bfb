// What rewrites know of values: constants, which they find, compute and make, and ranges.
//
// A 16-bit float constant is the f32 that kernels compute with; only casts round it (ir/graph.h).
#pragma once

#include <limits>

#include "ir/builder.h"

namespace stitch {

struct Constant {
  DType dtype = DType::kF32;
  double number = 0;    // floating dtypes
  int64_t integer = 0;  // integers and bool

  bool is(double value) const;  // equal, and for zeros of equal sign
};

// The one value all elements of `id` have; it may be behind views.
std::optional<Constant> constant_of(const Graph& graph, NodeId id);

// A pointwise op on constants, exactly as eager computes it, or nothing: the op may round
// differently from device to device, or the result is undefined.
std::optional<Constant> evaluate(OpKind op, const std::vector<Constant>& operands, DType dtype);

// What changes nothing where a reduction combines it with others.
Constant identity_of(OpKind reduction, DType dtype);

inline NodeId expand_to(Builder& builder, NodeId x, const DimList& shape) {
  return builder[x].type.shape == shape ? x : builder.expand(x, shape);
}
inline NodeId make_constant(Builder& builder, const Constant& constant, const DimList& shape) {
  return expand_to(builder, builder.full(constant.dtype, constant.number, constant.integer), shape);
}

inline constexpr double kInfinity = std::numeric_limits<double>::infinity();

// Between which numbers the elements of a value lie, as far as the graph alone tells: constants,
// integers, and floats computed from these.  NaN is in every range.
struct ValueRange {
  double low, high;
};
// By node.
std::vector<ValueRange> find_ranges(const Graph& graph);
// The range as the dtype stores it: what it cannot hold is infinite.
ValueRange stored_as(DType dtype, ValueRange range);

}  // namespace stitch
