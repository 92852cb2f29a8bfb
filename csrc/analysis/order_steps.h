// The order of a plan's steps: the given one, or one with a lower peak of memory.
//
// A product yields the 4 MB of one weight's gradient, a convolution 1.5 MB of another's, and 6 MB
// beside it while it runs: the convolution comes first, before there are gradients to hold.
#pragma once

#include <set>
#include <vector>

#include "ir/graph.h"

namespace stitch {

// A kernel or a library call that has no place yet.
struct OpenStep {
  std::set<int> waits_for = {};  // steps
  std::set<NodeId> values = {};  // whose memory it accesses, of views and parts the whole
};

// The steps in an order in which each comes after all that it waits for, as near to the given one
// as may be; where that lowers the peak enough, next always what lets it grow least.
std::vector<int> order_steps(const Graph& graph, const std::vector<OpenStep>& steps);

}  // namespace stitch
