#include "plan/kernels/schedule_kernel.h"

#include <numeric>

namespace stitch {

std::vector<HeldValues> find_held_values(const Graph& graph, const Stages& stages,
                                         const PlannedKernel& kernel, const DeviceSpec& device) {
  std::vector<HeldValues> held(kernel.stages().size());
  if (kernel.phases.size() == 1) return held;
  const double cache = last_cache_bytes(device);
  std::map<NodeId, size_t> touched;  // the last phase
  std::vector<double> passed;        // bytes, by phase
  size_t at = 0;
  for (const PlannedPhase& phase : kernel.phases) {
    std::set<NodeId> values;
    for (int s : phase.stages()) {
      values.insert(stages[s].loads.begin(), stages[s].loads.end());
      values.insert(stages[s].stores.begin(), stages[s].stores.end());
    }
    double all = 0;
    for (NodeId value : values) all += static_cast<double>(hint_bytes(graph, value));
    passed.push_back(all);
    for (int s : phase.stages()) {
      for (NodeId load : stages[s].loads) {
        const auto known = touched.find(load);
        if (known == touched.end()) continue;
        const auto first = passed.begin() + static_cast<int64_t>(known->second);
        if (std::accumulate(first, passed.end(), 0.0) <= cache) held[at].insert(load);
      }
      ++at;
    }
    for (NodeId value : values) touched[value] = passed.size() - 1;
  }
  return held;
}

double estimate_kernel_us(const PlannedKernel& kernel, const std::vector<StageEstimate>& estimates,
                          const DeviceSpec& device) {
  std::vector<PhaseTime> phases;
  size_t at = 0;
  for (const PlannedPhase& phase : kernel.phases) {
    phases.push_back({phase.join});
    for (const PlannedBlocks& blocks : phase.blocks) {
      StageEstimate all = estimates[at++];
      for (size_t i = 1; i < blocks.stages.size(); ++i) all = run_in_turn(all, estimates[at++]);
      phases.back().add(all);
    }
  }
  return estimate_us(phases, device);
}

}  // namespace stitch
