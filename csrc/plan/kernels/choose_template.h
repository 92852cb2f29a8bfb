// The mappings that a kernel could have, enumerated, and the best of them by the latency evaluator
// (FusionStitching 2020, 20.7 to 20.10).
#pragma once

#include "plan/kernels/schedule_kernel.h"

namespace stitch {

// One way to schedule a kernel.
struct KernelChoice {
  BlockBounds bounds = {};
  std::vector<Template> templates = {};  // by stage, in order; none: all derived
  StageGroups kept = {};
  double us = 0;            // predicted
  bool is_present = false;  // what the kernel is already
};

// What a kernel is, and what else it could be, the fastest last.
struct KernelChoices {
  KernelChoice present = {};
  std::vector<KernelChoice> others = {};
};

// The best template of a launch size for a stage, by what the model sees of the stage as it is
// derived: equal layers of one model are enumerated once.
struct StageOption {
  Template chosen;
  StageEstimate estimate;
};
using TemplateMemo = std::map<std::string, StageOption>;

// Plans of graphs of so many values are compared by the best mappings of their kernels, those of
// larger ones by the derived mappings.
inline bool is_enumerated(const Graph& graph) { return graph.size() <= 512; }

// Launch sizes, each with the best level for every stage: thread, warp, block or derived.  Dropped
// are those whose arrays, registers or shared memory do not fit.
struct KernelChooser {
  // All that is referred to outlives it.
  const Graph& graph;
  const Stages& stages;
  PlannedKernel kernel;
  Target target;
  TemplateMemo& memo;
  std::vector<int> numbers = kernel.stages();
  KernelScheduler scheduler{graph, stages, target};
  std::vector<HeldValues> held = find_held_values(graph, stages, kernel, target.device);

  // The kernel's schedules as chosen.
  KernelSchedules schedule(const KernelChoice& choice) {
    PlannedKernel chosen = kernel;
    chosen.kept = choice.kept;
    chosen.templates = choice.templates;
    return scheduler.schedule(chosen, choice.bounds);
  }
  double predict_us(const KernelSchedules& schedules) const {
    return estimate_us(measure(schedules));
  }
  // By templates where those are predicted to gain more than the model can tell, else as derived,
  // as is what stays on chip across barriers or passes along chains, and all of the host's.
  KernelChoice choose();
  // As derived; then, unless no mapping can take less than this share of that time, one for each
  // launch size.
  std::vector<KernelChoice> list_templates(double share);
  // Those that fit and differ, with times.
  std::vector<KernelChoice> evaluate(std::vector<KernelChoice> choices);
  // Of these groups, which may be none; nothing where they keep nothing on chip, or where a chain
  // has no schedule.
  std::optional<double> predict_us(const StageGroups& groups);
  // What the kernel could have instead: the same with more registers; smaller blocks, whose
  // threads have more of them; homes that are not split; nothing kept at barriers; templates.
  KernelChoices find_others();

 private:
  // Not where what stays on chip across barriers or passes along chains decides the mapping.
  bool has_templates() const {
    return target.device.is_cuda && kernel.kept.empty() && !kernel.has_chains();
  }
  StageOption find_option(int position, int block_threads);
  std::vector<StageWork> measure(const KernelSchedules& schedules) const;
  double estimate_us(const std::vector<StageWork>& works) const;
  double estimate_us(const std::vector<StageEstimate>& estimates) const {
    return estimate_kernel_us(kernel, estimates, target.device);
  }
};

}  // namespace stitch
