// The mappings that a kernel could have, enumerated, and the best of them by the latency evaluator
// (FusionStitching 2020, 20.7 to 20.10).
#pragma once

#include "schedule/schedule_kernel.h"

namespace stitch {

// One way to schedule a kernel.
struct KernelChoice {
  BlockBounds bounds = {};
  std::vector<Template> templates = {};  // by stage, in order; none: all derived
  StageGroups persistent_groups = {};
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

// Those of a kernel's stages, in order, of all that a plan has.
std::vector<const StageSchedule*> pick_schedules(const Schedules& all, const PlannedKernel& kernel);

// Launch sizes, each with the best level for every stage: thread, warp, block or derived.  Dropped
// are those whose arrays, registers or shared memory do not fit.
struct KernelChooser {
  // All that is referred to outlives it.
  const Graph& graph;
  const PlannedStages& stages;
  PlannedKernel kernel;
  const DeviceSpec& device;
  int worker_threads;
  TemplateMemo& memo;
  SymbolTable own_symbols = graph.symbols;
  KernelScheduler scheduler{graph, gather_stages(kernel, stages).stages, device, worker_threads,
                            own_symbols};
  std::vector<HeldValues> held = find_held_values(graph, stages, kernel, device);

  // The kernel's schedules as chosen, among those of all stages of its plan.
  void schedule(const KernelChoice& choice, SymbolTable& symbols, Schedules& all) const;
  // `derived`: the kernel's schedules without templates, in order.  Nothing unless some template is
  // predicted to gain more than the model can tell; nothing for what stays on chip across barriers
  // or passes along chains, whose mapping follows from that, nor on the host.
  std::optional<KernelChoice> choose(const std::vector<const StageSchedule*>& derived);
  // One choice for each launch size, whatever it gains; those that fit and differ, with times.
  std::vector<KernelChoice> list_templates();
  std::vector<KernelChoice> evaluate(std::vector<KernelChoice> choices);
  // Predicted time of these groups, if they keep anything; without groups of the best choice, in
  // graphs of up to kMostEnumerated values.
  std::optional<double> predict_us(const StageGroups& groups);
  // Of a kernel that has these schedules: the same with more registers; smaller blocks, whose
  // threads have more of them; homes that are not split; nothing kept at barriers; templates.
  KernelChoices find_others(const std::vector<const StageSchedule*>& has);

 private:
  KernelStages gather(const KernelChoice& choice) const;
  bool has_templates() const {
    return device.is_cuda && kernel.persistent_groups.empty() && kernel.chains.empty();
  }
  StageOption find_option(int position, int block_threads);
};

// The judge of kernels as the planner calls it; `graph` and `device` outlive it.
KernelJudge judge_kernels(const Graph& graph, const DeviceSpec& device, int worker_threads);

}  // namespace stitch
