#include "ops/type.h"

#include <array>
#include <limits>

#include "base/error.h"
#include "base/words.h"

namespace stitch {

// In the order of DType; floats as IEEE 754, bfloat16 and OCP's 8 bits have them.
constexpr std::array<DTypeInfo, 16> kTypes = {{
    {"bool", "boolean", "bool", 1, false, false, false, 1, 0, 0},
    {"u8", "u8", "u8", 1, false, true, false, 8, 0, 0},
    {"u16", "u16", "u16", 2, false, true, false, 16, 0, 0},
    {"u32", "u32", "u32", 4, false, true, false, 32, 0, 0},
    {"u64", "u64", "u64", 8, false, true, false, 64, 0, 0},
    {"i8", "i8", "i8", 1, false, true, true, 7, 0, 0},
    {"i16", "i16", "i16", 2, false, true, true, 15, 0, 0},
    {"i32", "i32", "i32", 4, false, true, true, 31, 0, 0},
    {"i64", "i64", "i64", 8, false, true, true, 63, 0, 0},
    {"e4m3", "e4m3", "f32", 1, true, false, true, 4, 4, 448},
    {"e5m2", "e5m2", "f32", 1, true, false, true, 3, 5, 57344},
    {"f16", "f16", "f32", 2, true, false, true, 11, 5, 65504},
    {"bf16", "bf16", "f32", 2, true, false, true, 8, 8, 0x1.FEp127},
    {"f32", "f32", "f32", 4, true, false, true, 24, 8, std::numeric_limits<float>::max()},
    {"f64", "f64", "f64", 8, true, false, true, 53, 11, std::numeric_limits<double>::max()},
    {"opaque", "opaque", "opaque", 0, false, false, false, 0, 0, 0},
}};

const DTypeInfo& info(DType dtype) { return kTypes[static_cast<size_t>(dtype)]; }

DType dtype_from_name(const std::string& name) {
  const auto found = std::ranges::find(kTypes, name, &DTypeInfo::name);
  if (found != kTypes.end()) return static_cast<DType>(found - kTypes.begin());
  throw UserError("unknown dtype '" + name + "'; did you mean '" +
                  nearest_name(name, kTypes, &DTypeInfo::name) + "'?");
}

bool is_value_preserving(DType from, DType to) {
  if (from == to) return true;
  if (from == DType::kOpaque || to == DType::kOpaque || to == DType::kBool) return false;
  const DTypeInfo &narrow = info(from), &wide = info(to);
  if (narrow.is_signed && !wide.is_signed) return false;
  return narrow.digits <= wide.digits && narrow.exponent_bits <= wide.exponent_bits;
}

DimList contiguous_strides(const DimList& shape) {
  DimList strides(shape.size());
  Dim stride = 1;
  for (size_t i = shape.size(); i-- > 0;) {
    strides[i] = stride;
    if (!shape[i].is(0)) stride = stride * shape[i];
  }
  return strides;
}

DimList broadcast_shape(const DimList& a, const DimList& b) {
  const DimList& longer = a.size() >= b.size() ? a : b;
  const DimList& shorter = a.size() >= b.size() ? b : a;
  DimList shape = longer;
  const size_t lead = longer.size() - shorter.size();
  for (size_t i = 0; i < shorter.size(); ++i) {
    Dim& extent = shape[lead + i];
    if (shorter[i] == extent || shorter[i].is(1)) continue;
    if (!extent.is(1)) require_equal(shorter[i], extent, "broadcasting ", a, " with ", b);
    extent = shorter[i];
  }
  return shape;
}

void reject_size(const Dim& found, const Dim& expected, const std::string& what) {
  const std::string sizes =
      what + ": found size " + to_string(found) + ", expected " + to_string(expected);
  if ((found - expected).is_constant())
    throw UserError(sizes + "; extents must be equal, or 1 where they broadcast");
  throw UnsupportedError(sizes + ", and cannot prove them equal for all values of the symbols; " +
                         "mark the size as static, or leave the op to a library call");
}

std::string to_string(const DimList& dims) { return "[" + join(dims, ",") + "]"; }

// Strides are shown unless they are exactly the contiguous ones, so that text reads back exactly.
std::string to_string(const TensorType& type) {
  std::string text = info(type.dtype).name + to_string(type.shape);
  if (type.strides != contiguous_strides(type.shape)) text += "(" + join(type.strides, ",") + ")";
  return text;
}

}  // namespace stitch
