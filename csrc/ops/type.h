// Element types and tensor types: the vocabulary of shapes that every room shares.
#pragma once

#include "base/words.h"
#include "ops/dim.h"

namespace stitch {

enum class DType : uint8_t {
  kBool,
  kU8,
  kU16,
  kU32,
  kU64,
  kI8,
  kI16,
  kI32,
  kI64,
  kE4M3,  // torch's float8_e4m3fn: 4 bits of exponent, 3 of significand, no infinities
  kE5M2,
  kF16,
  kBF16,
  kF32,
  kF64,
  kOpaque
};

struct DTypeInfo {
  const char* name;           // in graph text and reports: "f32"
  const char* device_name;    // storage type in kernels: "f32", "bf16", "boolean"
  const char* register_name;  // type of a value in a kernel's registers: narrow floats live as f32
  int bytes;
  bool is_float, is_integer;  // bool is neither
  bool is_signed;
  int digits;         // bits that hold an integer's magnitude, or a float's significand
  int exponent_bits;  // of a float
  double largest;     // of a float
};

const DTypeInfo& info(DType dtype);
DType dtype_from_name(const std::string& name);  // UserError for an unknown name
// Integers and bool.
inline bool is_integral(DType dtype) { return dtype == DType::kBool || info(dtype).is_integer; }
// Every value of `from` is a value of `to`.
bool is_value_preserving(DType from, DType to);

// Extents and strides of one value; strides in elements.  kOpaque marks what no kernel touches
// (complex, quantised, sparse): such values only pass between library calls.
struct TensorType {
  DType dtype = DType::kF32;
  DimList shape = {}, strides = {};

  int rank() const { return static_cast<int>(shape.size()); }
  friend bool operator==(const TensorType&, const TensorType&) = default;
};

DimList contiguous_strides(const DimList& shape);
inline TensorType contiguous_type(DType dtype, DimList shape) {
  DimList strides = contiguous_strides(shape);
  return {dtype, std::move(shape), std::move(strides)};
}
// With extent 1 along these axes.
inline DimList with_ones(DimList shape, const std::vector<int64_t>& axes) {
  for (const int64_t axis : axes) shape[axis] = 1;
  return shape;
}
inline Dim element_count(const DimList& shape) {
  Dim count = 1;
  for (const Dim& extent : shape) count = count * extent;
  return count;
}
// The shape to which both broadcast: right aligned, extents equal or 1.
DimList broadcast_shape(const DimList& a, const DimList& b);
inline bool broadcasts_to(const DimList& shape, const DimList& target) {
  const auto fits = [](const Dim& own, const Dim& wanted) { return own.is(1) || own == wanted; };
  return shape.size() <= target.size() &&
         std::equal(shape.rbegin(), shape.rend(), target.rbegin(), fits);
}
// UserError when two constants differ.  Symbolic extents are equal when they are the same
// polynomial; others may be when the program runs, which nothing assumes: UnsupportedError.
// `what` is put together (concat) where they differ.
[[noreturn]] void reject_size(const Dim& found, const Dim& expected, const std::string& what);
template <class... Parts>
void require_equal(const Dim& found, const Dim& expected, const Parts&... what) {
  if (found != expected) reject_size(found, expected, concat(what...));
}

std::string to_string(const DimList& dims);     // "[8,s0]"
std::string to_string(const TensorType& type);  // "f32[8,s0]" and, when not contiguous, "(s0,1)"

}  // namespace stitch
