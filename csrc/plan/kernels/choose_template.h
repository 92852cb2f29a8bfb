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
  KernelScheduler scheduler{graph, gather_stages(kernel, stages).stages, target};
  std::vector<HeldValues> held = find_held_values(graph, stages, kernel, target.device);

  // The kernel's schedules as chosen, in order.
  Schedules schedule(const KernelChoice& choice) {
    return scheduler.schedule(gather(choice), choice.bounds);
  }
  // By templates where those are predicted to gain more than the model can tell, else as derived,
  // as is what stays on chip across barriers or passes along chains, and all of the host's.
  // `derived`: the kernel's schedules without templates, in order.
  KernelChoice choose(const std::vector<const StageSchedule*>& derived);
  KernelChoice choose() { return choose(list_pointers(scheduler.schedule_apart())); }
  // One choice for each launch size, whatever it gains; those that fit and differ, with times.
  std::vector<KernelChoice> list_templates();
  std::vector<KernelChoice> evaluate(std::vector<KernelChoice> choices);
  // Of these groups, which may be none; nothing where they keep nothing on chip.
  std::optional<double> predict_us(const StageGroups& groups);
  // Of a kernel that has these schedules: the same with more registers; smaller blocks, whose
  // threads have more of them; homes that are not split; nothing kept at barriers; templates.
  KernelChoices find_others(const std::vector<const StageSchedule*>& has);

 private:
  KernelStages gather(const KernelChoice& choice) const;
  // Not where what stays on chip across barriers or passes along chains decides the mapping.
  bool has_templates() const {
    return target.device.is_cuda && kernel.kept.empty() && !kernel.has_chains();
  }
  StageOption find_option(int position, int block_threads);
  std::vector<StageWork> measure(const std::vector<const StageSchedule*>& schedules) const;
  double estimate_us(const std::vector<StageEstimate>& estimates) const {
    return estimate_kernel_us(kernel, estimates, target.device);
  }
};

}  // namespace stitch
