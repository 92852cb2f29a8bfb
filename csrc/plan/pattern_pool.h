// Inside of explore_patterns.h: the sets of units that are considered, what is between their units,
// and plans made of them (search_plans.cpp).
#pragma once

#include <map>
#include <vector>

#include "base/marks.h"
#include "plan/explore_patterns.h"

namespace stitch {

inline constexpr int kNoPattern = -1;
inline constexpr size_t kTop = 3;    // patterns kept for a unit, and for a group of its consumers
inline constexpr size_t kGroup = 2;  // consumers whose patterns are combined exhaustively

// Consumers are sorted here, as producers are: nothing depends on the order that edges came in.
struct Topology : UnitGraph {
  std::vector<std::vector<int>> producers = {};
  // Producers before consumers, each as close to its first reader as may be: the units of a pattern
  // then stand close together, and what is searched between them is little.
  std::vector<int> order = {}, position = {};
  std::vector<int> depth = {}, height = {};  // edges of the longest way from a source, to a sink
};

// InternalError for a cycle or lists that do not fit each other.
Topology find_topology(const UnitGraph& graph);

// What lies between two units of a set without being of it (20.17).
enum class Detour { kNone, kUnits, kLibraryCall };

class DetourSearch {
 public:
  explicit DetourSearch(const Topology& topology) : topology_(topology) {}
  Detour find(const std::vector<int>& units);  // two at least

 private:
  struct Place {
    int position = 0, depth = 0;
  };
  struct Side {
    const std::vector<std::vector<int>>* neighbours;
    Marks seen;
    std::vector<int> units = {};  // the set, then those outside in the order seen
    size_t next_unit = 0, next_edge = 0;
  };

  bool step(Side& side, const Side& other);
  Detour classify(Side& side, size_t members, bool is_below);

  const Topology& topology_;
  Marks members_ = Marks(topology_.order.size()), on_detour_ = members_;
  Side below_{&topology_.consumers, members_}, above_{&topology_.producers, members_};
  Place first_, last_;
  bool meets_call_ = false;
};

struct Pattern {
  const std::vector<int>* units;  // sorted; owned by the pool
  double gain_us = 0;
  bool is_closed = true;          // no detour
  std::optional<bool> fits = {};  // nothing: not asked yet
};

// Every set that was ever considered, with the caller's word on it.
class PatternPool {
 public:
  PatternPool(const Topology& topology, const PatternGain& gain, const PatternCheck& check,
              const ExploreOptions& options)
      : detours_(topology), gain_(gain), check_(check), options_(options) {}

  const Pattern& operator[](int id) const { return patterns_[id]; }
  const std::vector<int>& units(int id) const { return *patterns_[id].units; }

  // The id of a sorted set that is a pattern or may become one, else kNoPattern.  One unit gains 0.
  int intern(std::vector<int> units);

  // The best of these that fit one kernel, kTop at most, best first.  The best closed one has a
  // place in any case: what the others lack may never come.
  std::vector<int> keep_best(std::vector<int> ids);
  std::vector<int> keep_best_closed(std::vector<int> ids);

  // Until `settle`, what was not asked yet is taken to fit.  Then it is asked, the largest first,
  // as the others are parts of it mostly; false: some do not fit, and what was kept is void.
  void assume_all_fit() { is_assuming_ = true; }
  bool settle();

 private:
  bool is_better(int a, int b) const;
  bool fits(int id, const std::vector<int>& fitting);  // others that do
  bool ask(int id, const std::vector<int>& fitting);

  DetourSearch detours_;
  const PatternGain& gain_;
  const PatternCheck& check_;
  const ExploreOptions& options_;
  std::map<std::vector<int>, int> ids_;  // by units
  std::vector<Pattern> patterns_;
  bool is_assuming_ = false;
  std::vector<int> assumed_;
};

// The beam search (20.19): up to `beam` plans of disjoint patterns, no two of which wait for each
// other, the best first; `patterns`: ids in the pool, in any order.
//
// A pattern's whole gain counts at its first unit, so that by accumulated gain alone a packing of
// many units beats the better patterns that each of them is still to begin, and nothing else is
// left in the beam.  A second search therefore subtracts what the units could have gained
// elsewhere; the best plans of both are kept.
std::vector<FusionPlan> search_plans(const Topology& topology, const PatternPool& pool,
                                     std::vector<int> patterns, int beam);

}  // namespace stitch
