// Which units to fuse: FusionStitching 2020's fusion exploration (20.14-20.19).
//
// Units in, plans out: sets of disjoint patterns whose accumulated gain is the largest found.  Each
// unit gets its few best patterns from those of its consumers; a virtual producer of all units
// joins patterns without a link (kernel packing); a beam search puts plans together.  Pure: what a
// pattern saves is the caller's function, and the caller picks one of the plans by the latency
// evaluator (20.10).  Time grows linearly with units and edges as long as patterns are bounded.
#pragma once

#include <functional>
#include <optional>
#include <vector>

namespace stitch {

// Roots that kernels are built around, and library calls.  Acyclic.
struct UnitGraph {
  std::vector<std::vector<int>> consumers;  // of each unit
  // Library calls: in no pattern, but a pattern may not have one between two of its units.
  std::vector<bool> is_fixed;
  // Only units of one class are packed without a link, as those of one parallel dimension (20.2).
  std::vector<int> packing_class;
};

// Sorted ids -> what they save as one kernel, in us (20.20), or nothing where they cannot be one.
// Asked once for each set, of two units at least.  Also asked about sets with units left out in
// between, which are scored on the way to larger ones (20.16) and never end up in a plan.
using PatternGain = std::function<std::optional<double>(const std::vector<int>&)>;

// Sorted ids -> can one kernel hold them (20.17)?  For what takes longer to tell than the gain:
// asked only about sets that the gain alone would keep, not about parts of what fits: they fit too.
using PatternCheck = std::function<bool(const std::vector<int>&)>;

struct ExploreOptions {
  int beam = 3;        // partial plans
  int max_units = 64;  // in a pattern; without a bound a string of units takes quadratic time
};

struct FusionPlan {
  std::vector<std::vector<int>> patterns;  // disjoint, of two units at least, in an order to run
  double gain_us = 0;
};

// 20.19: up to `beam` plans, the best first.  There is always one, be it without patterns.
std::vector<FusionPlan> explore_patterns(const UnitGraph& graph, const PatternGain& gain,
                                         const ExploreOptions& options = {},
                                         const PatternCheck& fits = {});

// 20.16: `head` with every combination of one or none of each consumer's patterns, but with none of
// all.  Patterns of two consumers may share units, so that combinations may be equal.
std::vector<std::vector<int>> list_combinations(
    int head, const std::vector<std::vector<std::vector<int>>>& patterns_of_consumers);

// Inside: how units hang together, and plans that are made of their patterns.

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

inline constexpr int kNoPattern = -1;  // in place of a pattern's number

// A set of units that may be a kernel, sorted, and what it saves as one.
struct ScoredPattern {
  std::vector<int> units;
  double gain_us = 0;
};

// The beam search (20.19): up to `beam` plans, the best first, of disjoint patterns without cycles.
//
// A pattern's whole gain counts at its first unit, so that by accumulated gain alone a packing of
// many units beats the better patterns that each of them is still to begin, and nothing else is
// left in the beam.  A second search therefore subtracts what the units could have gained
// elsewhere; the best plans of both are kept.
std::vector<FusionPlan> search_plans(const Topology& topology,
                                     const std::vector<ScoredPattern>& patterns, int beam);

}  // namespace stitch
