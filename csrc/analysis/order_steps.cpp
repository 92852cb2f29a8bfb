#include "analysis/order_steps.h"

#include <algorithm>
#include <compare>
#include <limits>

#include "base/error.h"

namespace stitch {
namespace {

// The peak has to fall by this share: another order finds less of what it reads in caches.
constexpr double kWorthwhile = 0.03;
// Steps that are ready and may be next.
constexpr int kMostCompared = 256;

struct Order {
  std::vector<int> steps = {};
  int64_t peak_bytes = 0;
};

struct Choice {
  int64_t peak_bytes, grown_bytes;
  int step;
  friend auto operator<=>(const Choice&, const Choice&) = default;
};

// Tracing's names for what the caller holds as long as the call runs.
bool is_held(const Node& input) {
  return input.name.starts_with("primals_") || input.name.starts_with("arg");
}

Order find_order(const Graph& graph, const std::vector<OpenStep>& steps, bool by_memory) {
  std::vector<int> uses(graph.size()), waits;  // uses: 0 for what outlives all steps
  std::vector<bool> is_there(graph.size());
  std::vector<std::vector<int>> followers(steps.size());
  std::set<int> ready;
  for (int s = 0; s < static_cast<int>(steps.size()); ++s) {
    for (NodeId value : steps[s].values) ++uses[value.index()];
    for (int before : steps[s].waits_for) followers[before].push_back(s);
    waits.push_back(static_cast<int>(steps[s].waits_for.size()));
    if (waits[s] == 0) ready.insert(s);
  }
  for (NodeId id : graph.inputs) is_there[id.index()] = true;
  for (NodeId id : graph.inputs)
    if (is_held(graph[id])) uses[id.index()] = 0;
  for (NodeId id : find_kept(graph)) uses[id.index()] = 0;

  Order order;
  int64_t live_bytes = 0;
  while (!ready.empty()) {
    Choice best{std::numeric_limits<int64_t>::max()};
    int left = by_memory ? kMostCompared : 1;
    for (auto at = ready.begin(); at != ready.end() && left-- > 0; ++at) {
      int64_t made = 0, freed = 0;
      for (NodeId value : steps[*at].values) {
        if (!is_there[value.index()]) made += hint_bytes(graph, value);
        if (uses[value.index()] == 1) freed += hint_bytes(graph, value);
      }
      best = std::min(best, {std::max(live_bytes + made, order.peak_bytes), made - freed, *at});
    }
    order.peak_bytes = best.peak_bytes;
    live_bytes += best.grown_bytes;
    order.steps.push_back(best.step);
    ready.erase(best.step);
    for (NodeId value : steps[best.step].values) {
      is_there[value.index()] = true;
      if (uses[value.index()] > 0) --uses[value.index()];
    }
    for (int follower : followers[best.step])
      if (--waits[follower] == 0) ready.insert(follower);
  }
  STITCH_CHECK(order.steps.size() == steps.size(), "stitched kernels wait for each other");
  return order;
}

}  // namespace

std::vector<int> order_steps(const Graph& graph, const std::vector<OpenStep>& steps) {
  const Order given = find_order(graph, steps, false), low = find_order(graph, steps, true);
  const bool pays = low.peak_bytes < (1 - kWorthwhile) * given.peak_bytes;
  return pays ? low.steps : given.steps;
}

}  // namespace stitch
