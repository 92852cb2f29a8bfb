// Stages and schedules of a kernel -> its predicted time.
#include <numeric>

#include "schedule/schedule_stage.h"

namespace stitch {

double last_cache_bytes(const DeviceSpec& device) {
  return static_cast<double>(device.l2_bytes) * (device.is_cuda ? 0.6 : 0.25);
}

std::vector<HeldValues> find_held_values(const Graph& graph, const PlannedStages& stages,
                                         const PlannedKernel& kernel, const DeviceSpec& device) {
  std::vector<HeldValues> held(kernel.stages().size());
  if (kernel.phases.size() == 1) return held;
  const double cache = last_cache_bytes(device);
  std::map<NodeId, size_t> touched;  // the last phase
  std::vector<double> passed;        // bytes, by phase
  size_t at = 0;
  for (const std::vector<int>& phase : kernel.phases) {
    std::set<NodeId> values;
    for (int s : phase) {
      values.insert(stages[s].loads.begin(), stages[s].loads.end());
      values.insert(stages[s].stores.begin(), stages[s].stores.end());
    }
    double all = 0;
    for (NodeId value : values) all += static_cast<double>(hint_bytes(graph, value));
    passed.push_back(all);
    for (int s : phase) {
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
  for (const std::vector<int>& phase : kernel.phases) {
    phases.emplace_back();
    StageEstimate first;
    for (int s : phase) {
      const StageEstimate& own = estimates[at++];
      const PlannedChain* chain = kernel.chain_of(s);
      if (chain && chain->first == s)
        first = own;
      else
        phases.back().add(chain ? run_in_turn(first, own) : own);
    }
  }
  return estimate_us(phases, device, kernel.finish);
}

std::vector<const StageSchedule*> list_pointers(const Schedules& schedules) {
  return map_to_vector(schedules, [](const StageSchedule& schedule) { return &schedule; });
}

double estimate_kernel_us(const Graph& graph, const PlannedStages& stages,
                          const PlannedKernel& kernel,
                          const std::vector<const StageSchedule*>& schedules, int worker_threads,
                          decltype(&measure_work) measure) {
  const DeviceSpec& device = *schedules[0]->device;
  const std::vector<int> numbers = kernel.stages();
  const std::vector<HeldValues> held = find_held_values(graph, stages, kernel, device);
  std::vector<StageEstimate> estimates;
  for (size_t i = 0; i < numbers.size(); ++i) {
    const StageWork work = measure(graph, stages[numbers[i]], *schedules[i], held[i]);
    estimates.push_back(estimate_stage(work, device, worker_threads));
  }
  return estimate_kernel_us(kernel, estimates, device);
}

}  // namespace stitch
