// Which views are mere aliases: the same memory with other sizes, strides and offset.
#pragma once

#include <optional>

#include "ir/graph.h"

namespace stitch {

// Elements from the start of a view's operand to the start of the view, or nothing where the view
// moves elements (flip, a reshape that no strides express) or is a copy by intent (layout).
std::optional<Dim> view_offset(const Graph& graph, NodeId view);

// The value in whose memory `id` lies, or itself.
NodeId storage_base(const Graph& graph, NodeId id);

}  // namespace stitch
