// An order in which things can run that wait for each other.
#pragma once

#include <set>
#include <vector>

#include "base/error.h"

namespace stitch {

// Each number comes after all that `waits` lists for it, of those that can come next the lowest.
inline std::vector<int> order_by_waits(const std::vector<std::vector<int>>& waits) {
  std::vector<std::vector<int>> followers(waits.size());
  std::vector<size_t> missing(waits.size());
  std::set<int> ready;
  for (size_t n = 0; n < waits.size(); ++n) {
    for (int first : waits[n]) followers[first].push_back(static_cast<int>(n));
    missing[n] = waits[n].size();
    if (missing[n] == 0) ready.insert(static_cast<int>(n));
  }
  std::vector<int> order;
  while (!ready.empty()) {
    order.push_back(ready.extract(ready.begin()).value());
    for (int follower : followers[order.back()])
      if (--missing[follower] == 0) ready.insert(follower);
  }
  STITCH_CHECK(order.size() == waits.size(), "what is to be ordered waits for itself");
  return order;
}

}  // namespace stitch
