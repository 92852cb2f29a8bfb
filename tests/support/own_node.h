// Graphs share nodes, which never change; tests make some that nothing builds.
#pragma once

#include "ir/graph.h"

namespace stitch {

// A copy that no other graph shares, to be changed.
inline Node& own(SharedNode& shared) {
  const auto copy = std::make_shared<Node>(*shared);
  static_cast<std::shared_ptr<const Node>&>(shared) = copy;
  return *copy;
}

}  // namespace stitch
