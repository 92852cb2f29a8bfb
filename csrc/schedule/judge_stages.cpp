#include "schedule/judge_stages.h"

#include "schedule/measure_work.h"
#include "schedule/reduction_arrays.h"
#include "schedule/schedule_stage.h"

namespace stitch {

int count_statements(const StageSchedule& schedule) {
  int statements = 0;
  for (const auto& [root, values] : schedule.accesses.evaluated) {
    ++statements;
    for (const auto& [value, evaluations] : values)
      statements += static_cast<int>(evaluations.size());
  }
  return statements;
}

Verdict check_statements(const StageSchedule& schedule) {
  const int statements = count_statements(schedule);
  if (schedule.spaces.roots.size() < 2 || statements <= kMostStageStatements) return Verdict::yes();
  return too_long(statements, kMostStageStatements);
}

StageJudge judge_stages(const Graph& graph, const DeviceSpec& device, int worker_threads) {
  return [&graph, &device, worker_threads](const PlannedStage& stage) {
    StageScore score;
    if (stage.roots.size() > 1)
      score.verdict = check_pointers(stage.loads.size() + stage.stores.size());
    if (!score.verdict) return score;
    SymbolTable symbols = graph.symbols;
    const auto [schedule, verdict] = try_schedule(graph, stage, device, worker_threads, symbols);
    score.verdict = verdict;
    if (score.verdict) score.verdict = check_arrays(graph, schedule);
    if (score.verdict) score.verdict = check_statements(schedule);
    if (!score.verdict) return score;
    score.estimate = estimate_stage(measure_work(graph, stage, schedule), device, worker_threads);
    score.us = estimate_us(score.estimate, device);
    score.statements = count_statements(schedule);
    score.threads = schedule.threads;
    return score;
  };
}

}  // namespace stitch
