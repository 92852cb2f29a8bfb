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

}  // namespace stitch
