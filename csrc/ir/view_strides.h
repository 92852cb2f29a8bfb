// Strides of views, as eager's TensorImpl computes them.  Symbolic extents count as larger than 1.
#pragma once

#include <optional>
#include <vector>

#include "ops/type.h"

namespace stitch {

// The strides with which `new_shape` reads the elements of a tensor in row-major order without
// moving them, or nothing where that takes a copy.  Dimensions of extent 1 hold nothing up.
std::optional<std::vector<Dim>> view_strides(const std::vector<Dim>& shape,
                                             const std::vector<Dim>& strides,
                                             const std::vector<Dim>& new_shape);

// Broadcast dimensions get stride 0.  `new_shape` must be one that `shape` broadcasts to.
std::vector<Dim> expand_strides(const std::vector<Dim>& shape, const std::vector<Dim>& strides,
                                const std::vector<Dim>& new_shape);

}  // namespace stitch
