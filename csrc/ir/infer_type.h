// The type of a node from its op, its attributes and the types of its operands.
//
// What the operands do not determine is read from `node.type`, the declared type: the dtype where
// the op's rule is kExplicit, the shape of reshape, expand and pad, the extent of a slice or iota,
// the strides of a layout, everything of an input or library result.  The builder takes the answer
// as the node's type; the verifier compares.
#pragma once

#include <vector>

#include "ir/graph.h"

namespace stitch {

// UserError for what is wrong, UnsupportedError for what symbols leave open.
TensorType infer_type(const Node& node, const std::vector<const TensorType*>& operands);

}  // namespace stitch
