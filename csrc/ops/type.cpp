#include "ops/type.h"

#include <array>

#include "base/error.h"
#include "base/nearest.h"
#include "base/words.h"

namespace stitch {
namespace {

// In the order of DType.
constexpr std::array<DTypeInfo, 16> kTypes = {{
    {"bool", "boolean", "bool", 1, false, false},
    {"u8", "u8", "u8", 1, false, true},
    {"u16", "u16", "u16", 2, false, true},
    {"u32", "u32", "u32", 4, false, true},
    {"u64", "u64", "u64", 8, false, true},
    {"i8", "i8", "i8", 1, false, true},
    {"i16", "i16", "i16", 2, false, true},
    {"i32", "i32", "i32", 4, false, true},
    {"i64", "i64", "i64", 8, false, true},
    {"e4m3", "e4m3", "f32", 1, true, false},
    {"e5m2", "e5m2", "f32", 1, true, false},
    {"f16", "f16", "f32", 2, true, false},
    {"bf16", "bf16", "f32", 2, true, false},
    {"f32", "f32", "f32", 4, true, false},
    {"f64", "f64", "f64", 8, true, false},
    {"opaque", "opaque", "opaque", 0, false, false},
}};

std::string join(const std::vector<Dim>& dims) {
  return stitch::join(dims, ",", [](const Dim& dim) { return to_string(dim); });
}

}  // namespace

const DTypeInfo& info(DType dtype) { return kTypes[static_cast<size_t>(dtype)]; }

DType dtype_from_name(const std::string& name) {
  std::vector<std::string> names;
  for (size_t i = 0; i < kTypes.size(); ++i) {
    if (name == kTypes[i].name) return static_cast<DType>(i);
    names.push_back(kTypes[i].name);
  }
  throw UserError("unknown dtype '" + name + "'; did you mean '" + nearest_name(name, names) +
                  "'?");
}

std::vector<Dim> contiguous_strides(const std::vector<Dim>& shape) {
  std::vector<Dim> strides(shape.size());
  Dim stride = 1;
  for (size_t i = shape.size(); i-- > 0;) {
    strides[i] = stride;
    if (!shape[i].is(0)) stride = stride * shape[i];
  }
  return strides;
}

TensorType contiguous_type(DType dtype, std::vector<Dim> shape) {
  std::vector<Dim> strides = contiguous_strides(shape);
  return {dtype, std::move(shape), std::move(strides)};
}

Dim element_count(const std::vector<Dim>& shape) {
  Dim count = 1;
  for (const Dim& extent : shape) count = count * extent;
  return count;
}

// Strides are shown unless they are exactly the contiguous ones, so that text reads back exactly.
std::string to_string(const TensorType& type) {
  std::string text = std::string(info(type.dtype).name) + "[" + join(type.shape) + "]";
  if (type.strides != contiguous_strides(type.shape)) text += "(" + join(type.strides) + ")";
  return text;
}

}  // namespace stitch
