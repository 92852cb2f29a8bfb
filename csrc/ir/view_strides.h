// Strides of views, as eager's TensorImpl computes them, and which views are mere aliases: the same
// memory with other sizes, strides and offset.  Symbolic extents count as larger than 1.
#pragma once

#include <optional>
#include <vector>

#include "ir/graph.h"

namespace stitch {

// The strides with which `new_shape` reads the elements of a tensor in row-major order without
// moving them, or nothing where that takes a copy.  Dimensions of extent 1 hold nothing up.
std::optional<std::vector<Dim>> view_strides(const std::vector<Dim>& shape,
                                             const std::vector<Dim>& strides,
                                             const std::vector<Dim>& new_shape);

// Broadcast dimensions get stride 0.  `new_shape` must be one that `shape` broadcasts to.
std::vector<Dim> expand_strides(const std::vector<Dim>& shape, const std::vector<Dim>& strides,
                                const std::vector<Dim>& new_shape);

// Elements from the start of a view's operand to the start of the view, or nothing where the view
// moves elements (flip, a reshape that no strides express) or is a copy by intent (layout).
std::optional<Dim> view_offset(const Graph& graph, NodeId view);

// The value in whose memory `id` lies, or itself.
NodeId storage_base(const Graph& graph, NodeId id);

}  // namespace stitch
