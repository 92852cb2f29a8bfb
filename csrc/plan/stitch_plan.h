// StitchPlan: which values share a stage, which stages share a kernel, what is materialised, and in
// which order things run.
//
// A *stage* is what one mapping serves.  A *root* is a value that a stage computes at every one of
// its indices: a value it stores, or a reduction that it consumes on chip.  Everything else between
// roots is evaluated where it is read.  A *materialised* value lives in memory: graph inputs,
// kernel stores and the operands and results of library calls.
#pragma once

#include "ir/graph.h"

namespace stitch {

// Bytes.  The slab is there for all of a call.  What is larger has memory of its own, for as long
// as it lives: steps of training let go of what they saved while they make such values.
inline constexpr int64_t kMostInSlab = 8 << 10;

struct PlannedStage {
  NodeList roots;   // topological order; every store is a root
  NodeList stores;  // roots that are written to memory
  NodeList loads;   // materialised values that are read
  NodeList nodes;   // all that is evaluated inside, roots included, topological order
};
using PlannedStages = std::vector<PlannedStage>;

// Two stages of one phase, of different mappings, that every block runs one after the other, a
// block barrier between: what a block of `then` reads of `first`, the same block has made
// (AStitch's regional scheme).  They stand beside each other in their phase.
struct PlannedChain {
  int first, then;     // indices of StitchPlan::stages
  NodeList in_shared;  // pass in shared memory and are nowhere else; others in global
};

using StageGroups = std::vector<std::vector<int>>;  // indices of StitchPlan::stages

// One launch.  Stages of one phase are independent, but for chains, and divide its blocks among
// them; a grid barrier stands between phases, so that a stage may read what an earlier phase stored
// (AStitch's global and independent schemes).
struct PlannedKernel {
  StageGroups phases;
  // The first phase, if any, that no barrier stands before: of the blocks the last to end goes on
  // alone, through this and what follows; -1: none.
  int finish = -1;
  // Stages of several phases, in order, that share a mapping, so that what they read alike stays in
  // registers across the barriers.  At most one of a phase.
  StageGroups persistent_groups = {};
  std::vector<PlannedChain> chains = {};  // a stage is in one at most

  std::vector<int> stages() const {  // of all phases, in order
    std::vector<int> all;
    for (const std::vector<int>& phase : phases) all.insert(all.end(), phase.begin(), phase.end());
    return all;
  }
  const PlannedChain* chain_of(int stage) const {  // nullptr: none
    for (const PlannedChain& chain : chains)
      if (chain.first == stage || chain.then == stage) return &chain;
    return nullptr;
  }
  int group_of(int stage) const {  // index of persistent_groups; -1: none
    for (int g = 0; g < std::ssize(persistent_groups); ++g)
      if (std::ranges::count(persistent_groups[g], stage)) return g;
    return -1;
  }
};

// A view whose elements are not moved: `node` is `base` with other sizes, strides and offset.
struct PlannedAlias {
  NodeId node, base;
  Dim offset;  // elements
};

struct PlanStep {
  int kernel = -1;
  NodeId call = {};  // invalid: the kernel
};

// An edge along which two kernels were not joined, and why.
struct Cut {
  NodeId from, to;
  Verdict reason;
};

struct StitchPlan {
  std::string policy;  // whose candidate it is
  PlannedStages stages;
  std::vector<PlannedKernel> kernels;
  std::vector<PlanStep> steps;
  std::vector<PlannedAlias> aliases = {};  // in order: a base comes before what aliases it
  // in_place[i]: the value of mutation i is stored straight into its input by its kernel; else it
  // is stored elsewhere and copied after the last step.
  std::vector<bool> in_place = {};
  // store -> load: what is stored may use the memory of what is read, where nobody else holds it.
  std::map<NodeId, NodeId> stored_over = {};
  std::vector<Cut> cuts = {};
};

inline auto stages_of(const StitchPlan& plan, const PlannedKernel& kernel) {
  return map_to_vector(kernel.stages(), [&](int s) { return &plan.stages[s]; });
}
// Values that no memory but a block's shared memory ever holds.
std::set<NodeId> find_shared_values(const StitchPlan& plan);
// What a kernel evaluates, in topological order.
NodeList nodes_of(const StitchPlan& plan, int kernel);

std::string to_string(const StitchPlan& plan, const Graph& graph);

}  // namespace stitch
