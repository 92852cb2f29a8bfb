#include "plan/pattern_pool.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <utility>

#include "base/error.h"

namespace stitch {
namespace {

// Depth first through producers, from one sink after the other.
void find_order(Topology& topology) {
  const size_t units = topology.consumers.size();
  std::vector<size_t> next_producer(units, 0);
  std::vector<bool> is_begun(units, false);
  topology.position.assign(units, -1);
  std::vector<int> stack;
  auto begin = [&](int unit) {
    STITCH_CHECK(!is_begun[unit], "unit " << unit << " waits for itself");
    is_begun[unit] = true;
    stack.push_back(unit);
  };
  for (size_t sink = 0; sink < units; ++sink) {
    if (topology.consumers[sink].empty()) begin(static_cast<int>(sink));
    while (!stack.empty()) {
      const int unit = stack.back();
      if (next_producer[unit] < topology.producers[unit].size()) {
        const int producer = topology.producers[unit][next_producer[unit]++];
        if (topology.position[producer] < 0) begin(producer);
        continue;
      }
      topology.position[unit] = static_cast<int>(topology.order.size());
      topology.order.push_back(unit);
      stack.pop_back();
    }
  }
  STITCH_CHECK(topology.order.size() == units, units - topology.order.size()
                                                   << " units wait for each other");
}

void find_depths(Topology& topology) {
  topology.depth.assign(topology.order.size(), 0);
  topology.height.assign(topology.order.size(), 0);
  for (int unit : topology.order)
    for (int producer : topology.producers[unit])
      topology.depth[unit] = std::max(topology.depth[unit], topology.depth[producer] + 1);
  for (auto unit = topology.order.rbegin(); unit != topology.order.rend(); ++unit)
    for (int consumer : topology.consumers[*unit])
      topology.height[*unit] = std::max(topology.height[*unit], topology.height[consumer] + 1);
}

}  // namespace

Topology find_topology(const UnitGraph& graph) {
  const size_t units = graph.consumers.size();
  STITCH_CHECK(graph.is_fixed.size() == units, graph.is_fixed.size() << " of " << units);
  STITCH_CHECK(graph.packing_class.size() == units, graph.packing_class.size() << " of " << units);
  Topology topology{graph};
  topology.producers.resize(units);
  for (size_t unit = 0; unit < units; ++unit) {
    std::vector<int>& consumers = topology.consumers[unit];
    std::ranges::sort(consumers);
    consumers.erase(std::unique(consumers.begin(), consumers.end()), consumers.end());
    for (int consumer : consumers) {
      STITCH_CHECK(consumer >= 0 && consumer < static_cast<int>(units), "no unit " << consumer);
      topology.producers[consumer].push_back(static_cast<int>(unit));
    }
  }
  find_order(topology);
  find_depths(topology);
  return topology;
}

// Follows edges down from the set and up from it by turns until one side is exhausted, as either
// side has all detours: below a unit that is read everywhere there is much, above it little.
Detour DetourSearch::find(const std::vector<int>& units) {
  members_.assign(units);
  first_ = last_ = {topology_.position[units[0]], topology_.depth[units[0]]};
  for (int unit : units) {
    const int position = topology_.position[unit], depth = topology_.depth[unit];
    first_ = {std::min(first_.position, position), std::min(first_.depth, depth)};
    last_ = {std::max(last_.position, position), std::max(last_.depth, depth)};
  }
  meets_call_ = false;
  const int extent = last_.position - first_.position + 1;
  if (extent == static_cast<int>(units.size())) return Detour::kNone;
  for (Side* side : {&below_, &above_}) {
    side->seen.assign(units);
    side->units = units;
    side->next_unit = side->next_edge = 0;
  }
  while (true) {
    if (!step(below_, above_)) return classify(below_, units.size(), true);
    if (!step(above_, below_)) return classify(above_, units.size(), false);
    if (meets_call_) return Detour::kLibraryCall;
  }
}

// Follows one edge; false when there is none left.  What lies between two members does so in every
// topological order, and in depth.
bool DetourSearch::step(Side& side, const Side& other) {
  if (side.next_unit == side.units.size()) return false;
  const std::vector<int>& nexts = (*side.neighbours)[side.units[side.next_unit]];
  if (side.next_edge == nexts.size()) {
    ++side.next_unit;
    side.next_edge = 0;
    return true;
  }
  const int next = nexts[side.next_edge++];
  if (side.seen.has(next)) return true;
  const int position = topology_.position[next], depth = topology_.depth[next];
  if (position < first_.position || position > last_.position) return true;
  if (depth <= first_.depth || depth >= last_.depth) return true;
  side.seen.insert(next);
  side.units.push_back(next);
  meets_call_ |= topology_.is_fixed[next] && other.seen.has(next);
  return true;
}

// From the side's far end, so that what a unit leads to is known before the unit is looked at.
Detour DetourSearch::classify(Side& side, size_t members, bool is_below) {
  const auto beside = std::span(side.units).subspan(members);
  const int sign = is_below ? -1 : 1;
  std::ranges::sort(beside, {}, [&](int unit) { return sign * topology_.position[unit]; });
  on_detour_.clear();
  Detour detour = Detour::kNone;
  for (int unit : beside) {
    const auto leads_back = [&](int next) { return members_.has(next) || on_detour_.has(next); };
    if (std::ranges::none_of((*side.neighbours)[unit], leads_back)) continue;
    if (topology_.is_fixed[unit]) return Detour::kLibraryCall;
    detour = Detour::kUnits;
    on_detour_.insert(unit);
  }
  return detour;
}

int PatternPool::intern(std::vector<int> units) {
  if (static_cast<int>(units.size()) > options_.max_units) return kNoPattern;
  const auto [entry, is_unseen] = ids_.try_emplace(std::move(units), kNoPattern);
  if (!is_unseen) return entry->second;
  Pattern pattern{&entry->first};
  if (pattern.units->size() > 1) {
    const Detour detour = detours_.find(*pattern.units);
    if (detour == Detour::kLibraryCall) return kNoPattern;  // no larger set is free of it either
    const std::optional<double> gain_us = gain_(*pattern.units);
    if (!gain_us) return kNoPattern;
    STITCH_CHECK(std::isfinite(*gain_us), "the gain of a pattern is " << *gain_us << " us");
    pattern.gain_us = *gain_us;
    pattern.is_closed = detour == Detour::kNone;
  }
  patterns_.push_back(pattern);
  return entry->second = static_cast<int>(patterns_.size()) - 1;
}

// Of equal gains the smaller pattern: it leaves more to others.
bool PatternPool::is_better(int a, int b) const {
  const Pattern &x = patterns_[a], &y = patterns_[b];
  if (x.gain_us != y.gain_us) return x.gain_us > y.gain_us;
  if (x.units->size() != y.units->size()) return x.units->size() < y.units->size();
  return *x.units < *y.units;
}

bool PatternPool::fits(int id, const std::vector<int>& fitting) {
  const Pattern& pattern = patterns_[id];
  if (pattern.fits) return *pattern.fits;
  if (!is_assuming_) return ask(id, fitting);
  assumed_.push_back(id);
  return true;
}

// A part of what one mapping serves is served by it too: what the rest made is read from memory.
bool PatternPool::ask(int id, const std::vector<int>& fitting) {
  Pattern& pattern = patterns_[id];
  const bool is_part = std::ranges::any_of(
      fitting, [&](int other) { return std::ranges::includes(units(other), *pattern.units); });
  const bool is_one = pattern.units->size() == 1;
  pattern.fits = is_one || is_part || !check_ || check_(*pattern.units);
  return *pattern.fits;
}

bool PatternPool::settle() {
  is_assuming_ = false;
  std::ranges::sort(assumed_, [&](int a, int b) {
    return std::pair(units(a).size(), a) > std::pair(units(b).size(), b);
  });
  assumed_.erase(std::unique(assumed_.begin(), assumed_.end()), assumed_.end());
  std::vector<int> asked;
  for (int id : std::exchange(assumed_, {})) {
    if (!ask(id, asked)) return false;
    asked.push_back(id);
  }
  return true;
}

std::vector<int> PatternPool::keep_best(std::vector<int> ids) {
  std::ranges::sort(ids, [&](int a, int b) { return is_better(a, b); });
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  std::vector<int> kept;
  bool has_closed = false;
  for (int id : ids) {
    const bool is_closed = patterns_[id].is_closed, is_full = kept.size() == kTop;
    if (is_full && has_closed) break;
    if ((is_full && !is_closed) || !fits(id, kept)) continue;
    if (is_full) kept.pop_back();
    kept.push_back(id);
    has_closed |= is_closed;
  }
  return kept;
}

std::vector<int> PatternPool::keep_best_closed(std::vector<int> ids) {
  std::erase_if(ids, [&](int id) { return !patterns_[id].is_closed; });
  return keep_best(std::move(ids));
}

}  // namespace stitch
