// StitchPlan: which values share a stage, which stages share a kernel, how each stage runs and why
// so, what is materialised, and in which order things run.
#pragma once

#include "stage/schedule.h"

namespace stitch {

// Bytes.  The slab is there for all of a call.  What is larger has memory of its own, for as long
// as it lives: steps of training let go of what they saved while they make such values.
inline constexpr int64_t kMostInSlab = 8 << 10;

// Two stages of one phase, of different mappings, that every block runs one after the other, a
// block barrier between: what a block of `then` reads of `first`, the same block has made
// (AStitch's regional scheme).  They stand beside each other in their phase.
struct PlannedChain {
  int first, then;     // indices of StitchPlan::stages
  NodeList in_shared;  // pass in shared memory and are nowhere else; others in global
};

using StageGroups = std::vector<std::vector<int>>;  // indices of StitchPlan::stages

// Why a kernel's stages have the schedules that they have.
enum class Choice { kDerived, kTemplates, kKept, kChained, kSpilled, kClock };
inline const char* to_string(Choice choice) {
  return std::array{"as derived from the lengths of the axes",
                    "templates are predicted to be faster than what is derived",
                    "one mapping keeps values on chip across barriers",
                    "blocks of one stage make what those of the next read",
                    "what was chosen first spills",
                    "of what spills least the clock calls it fastest"}[static_cast<size_t>(choice)];
}

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
  std::vector<Template> templates = {};   // by stage, in order; empty: all derived
  Choice choice = Choice::kDerived;
  double us = 0;  // predicted, with the launch; of library copies nothing

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

struct PlanStep {
  int kernel = -1;
  NodeId call = {};  // invalid: the kernel
};

struct StitchPlan {
  std::string policy;  // whose candidate it is
  Stages stages;
  std::vector<PlannedKernel> kernels;
  std::vector<PlanStep> steps;
  Schedules schedules = {};         // by stage
  std::vector<Alias> aliases = {};  // in order: a base comes before what aliases it
  // in_place[i]: the value of mutation i is stored straight into its input by its kernel; else it
  // is stored elsewhere and copied after the last step.
  std::vector<bool> in_place = {};
  // store -> load: what is stored may use the memory of what is read, where nobody else holds it.
  std::map<NodeId, NodeId> stored_over = {};
  std::vector<Cut> cuts = {};
};

// Names the kernel's stages anew.
void renumber(PlannedKernel& kernel, const std::function<int(int)>& number);

inline auto stages_of(const StitchPlan& plan, const PlannedKernel& kernel) {
  return map_to_vector(kernel.stages(), [&](int s) { return &plan.stages[s]; });
}

// A fault inside single kernels, with the ops that they hold.  The caller may import these as
// library calls and compile again: the rest stays stitched.
struct KernelError : InternalError {
  KernelError(const Error& cause, const Graph& graph, const StitchPlan& plan,
              const std::vector<size_t>& kernels);
  std::vector<int> ops;  // of these kernels: Origin::position of each, ascending
};

// Calls work(k) for each planned kernel; what it throws becomes a KernelError.
template <class Work>
void for_each_kernel(const Graph& graph, const StitchPlan& plan, const Work& work) {
  for (size_t k = 0; k < plan.kernels.size(); ++k) {
    try {
      work(k);
    } catch (const Error& error) {
      throw KernelError(error, graph, plan, {k});
    }
  }
}

// Values that no memory but a block's shared memory ever holds.
std::set<NodeId> find_shared_values(const StitchPlan& plan);
// What a kernel evaluates, in topological order.
NodeList nodes_of(const StitchPlan& plan, int kernel);

std::string to_string(const StitchPlan& plan, const Graph& graph);

}  // namespace stitch
