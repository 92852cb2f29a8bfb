// StitchPlan: which values share a stage, which stages share a kernel, how each stage runs and why
// so, what is materialised, and in which order things run.
#pragma once

#include "cost/estimate_kernel.h"
#include "stage/schedule.h"

namespace stitch {

// Bytes.  The slab is there for all of a call.  What is larger has memory of its own, for as long
// as it lives: steps of training let go of what they saved while they make such values.
inline constexpr int64_t kMostInSlab = 8 << 10;

// Stages that the same blocks run one after the other, a block barrier between.  Most blocks run
// one; several are a chain: what a block of a later one reads of an earlier one, the same block has
// made (AStitch's regional scheme).
struct PlannedBlocks {
  std::vector<int> stages;  // indices of StitchPlan::stages
  NodeList in_shared = {};  // pass in shared memory and are nowhere else; others in global

  bool is_chain() const { return stages.size() > 1; }
};

// Stages that are independent, but for chains: their blocks divide the grid among them.
struct PlannedPhase {
  Join join = Join::kLaunch;
  std::vector<PlannedBlocks> blocks = {};

  auto stages() const {
    return blocks | std::views::transform(&PlannedBlocks::stages) | std::views::join;
  }
};

using StageGroups = std::vector<std::vector<int>>;  // indices of StitchPlan::stages

// As many stages of one phase and one text are one function, which a table gives its tensors; fewer
// name theirs one by one.
inline constexpr int kFewestRecords = 4;
inline int count_texts(int equal) { return equal < kFewestRecords ? equal : 1; }

// Why a kernel's stages have the schedules that they have.
enum class Choice { kDerived, kTemplates, kKept, kChained, kSpilled, kClock };
inline const char* to_string(Choice choice) {
  return std::array{"as derived from the lengths of the axes",
                    "templates are predicted to be faster than what is derived",
                    "one mapping keeps values on chip across barriers",
                    "blocks of one stage make what those of the next read",
                    "what was chosen first spills",
                    "the clock calls it fastest"}[static_cast<size_t>(choice)];
}

// One launch: phases, of blocks, of stages, each of which may read what an earlier phase or an
// earlier stage of its blocks has stored (AStitch's global, independent and regional schemes).
struct PlannedKernel {
  std::vector<PlannedPhase> phases;
  // Stages of several phases, in order, that share a mapping, so that what they read alike stays on
  // chip across the barriers.  At most one of a phase, and none of a chain.
  StageGroups kept = {};
  std::vector<Template> templates = {};  // by stage, in order; empty: all derived
  Choice choice = Choice::kDerived;
  // Predicted, with the launch; copies of what is not stored in place count while plans are
  // compared.
  double us = 0;

  auto blocks() const {  // of all phases, in order
    return phases | std::views::transform(&PlannedPhase::blocks) | std::views::join;
  }
  std::vector<int> stages() const {  // of all blocks, in order
    std::vector<int> all;
    for (const PlannedBlocks& own : blocks())
      all.insert(all.end(), own.stages.begin(), own.stages.end());
    return all;
  }
  bool has_chains() const { return std::ranges::any_of(blocks(), &PlannedBlocks::is_chain); }
  int group_of(int stage) const {  // index of `kept`; -1: none
    for (int g = 0; g < std::ssize(kept); ++g)
      if (std::ranges::count(kept[g], stage)) return g;
    return -1;
  }
};

struct PlanStep {
  int kernel = -1;
  NodeId call = {};  // invalid: the kernel
};

// How stages become kernels.
struct StitchRule {
  bool barriers = true;  // dependent stages may share a kernel
  bool packs = true;     // independent ones may
  bool by_cost = true;   // where the model predicts no more time; else wherever limits allow
};

struct StitchPlan {
  std::string policy;  // whose candidate it is
  StitchRule rule = {};
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

  double us() const {  // of all kernels
    return std::accumulate(kernels.begin(), kernels.end(), 0.0,
                           [](double us, const PlannedKernel& kernel) { return us + kernel.us; });
  }
};

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
