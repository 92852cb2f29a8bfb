#include "schedule/measure_work.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <map>
#include <memory>
#include <set>

#include "schedule/build_loops.h"
#include "schedule/map_axes.h"
#include "schedule/place_values.h"
#include "schedule/reduction_arrays.h"
#include "schedule/schedule_kernel.h"
#include "schedule/schedule_stage.h"
#include "schedule/stage_tiles.h"

namespace stitch {
namespace {

double hint(const Graph& graph, const Dim& dim) {
  return static_cast<double>(std::max<int64_t>(0, graph.symbols.hint(dim)));
}

double blocks_along(const Graph& graph, const MappedAxis& mapped) {
  if (!mapped.in_grid) return 1;
  const double tile = std::max(1.0, hint(graph, mapped.tile));
  return std::max(1.0, std::ceil(hint(graph, mapped.axis.extent) / tile));
}

// Not the schedule's grid: its symbols may be of a candidate, unknown to the graph's table.
double count_planned_blocks(const Graph& graph, const StageSchedule& schedule) {
  double blocks = 1;
  for (const MappedAxis& mapped : schedule.axes) blocks *= blocks_along(graph, mapped);
  return blocks;
}

// Bytes that pass between two uses of a value in the leaves of `blocks`: one iteration of the loops
// they share, over all buffers of the kernel, in every block that runs at the time.
double reuse_distance(const Graph& graph, const PlannedStage& stage, const StageSchedule& schedule,
                      const std::vector<int>& blocks) {
  const int shared = common_block(schedule, blocks);
  double elements = schedule.threads;
  bool below = false;
  for (int block : block_path(schedule, blocks.front())) {
    if (below) {
      const LoopSpec& spec = schedule.loops[schedule.blocks[block].loop];
      const MappedAxis& mapped = schedule.axes[spec.axis];
      if (spec.level == LoopSpec::Level::kVector) elements *= mapped.vector;
      const bool is_strip = spec.level == LoopSpec::Level::kStrip;
      if (is_strip || spec.level == LoopSpec::Level::kSerial)
        elements *= hint(graph, mapped.serial);
    }
    below |= block == shared;
  }
  double running = 1;
  if (schedule.device->is_cuda) {
    const int resident =
        std::max(1, schedule.device->threads_per_multiprocessor / schedule.threads);
    running = std::min<double>(count_planned_blocks(graph, schedule),
                               schedule.device->multiprocessors * resident);
  }
  constexpr double kElementBytes = 4;
  return elements * running * kElementBytes *
         static_cast<double>(stage.loads.size() + stage.stores.size());
}

// Loads of the first pass come from memory; later ones do unless the cache still holds them.
void add_memory(const Graph& graph, const PlannedStage& stage, const StageSchedule& schedule,
                StageWork& work) {
  // Of the last-level cache that a block can count on: a core's share, 0.6 of a GPU's L2.
  const double cache =
      static_cast<double>(schedule.device->l2_bytes) * (schedule.device->is_cuda ? 0.6 : 0.25);
  std::map<NodeId, std::vector<int>> passes;
  for (const LeafUse& leaf : find_leaf_uses(graph, find_loads(graph, stage), schedule)) {
    for (NodeId load : leaf.loads) passes[load].push_back(leaf.block);
  }
  for (const auto& [load, blocks] : passes) {
    if (find_buffer(schedule, load)) continue;
    const double bytes = static_cast<double>(accessed_elements(graph, schedule, load)) *
                         info(graph[load].type.dtype).bytes;
    const double again = bytes * static_cast<double>(blocks.size() - 1);
    const bool cached =
        blocks.size() > 1 && reuse_distance(graph, stage, schedule, blocks) <= cache;
    work.dram_bytes += bytes + (cached ? 0 : again);
    work.cache_bytes += cached ? again : 0;
  }
  for (NodeId store : stage.stores) {
    if (find_buffer(schedule, store)) continue;
    work.dram_bytes += static_cast<double>(hint_bytes(graph, stored_part(graph, store)));
  }
}

// Elements a node is evaluated at: loop-invariant ones are evaluated once, those of segments once
// for each position.
double count_elements(const Graph& graph, const StageSchedule& schedule,
                      const Evaluation& evaluation) {
  const auto& [index, is_guarded, in_segment] = evaluation;
  std::vector<VarId> leaves;
  for (const IndexExpr& dim : index) schedule.accesses.vars.collect(dim, leaves);
  std::sort(leaves.begin(), leaves.end());
  leaves.erase(std::unique(leaves.begin(), leaves.end()), leaves.end());
  double count = 1;
  for (VarId var : leaves) {
    const IndexVar& leaf = schedule.accesses.vars[var];
    const bool counts = leaf.kind == IndexVar::Kind::kAtom || in_segment;
    if (counts) count *= hint(graph, leaf.extent);
  }
  return count;
}

// A loop in which elements are combined one after another is not vectorised; nor is what shares it.
constexpr double kLanes = 8;  // f32 of an AVX2 vector
bool combines_singly(const Graph& graph, const StageSchedule& schedule) {
  if (schedule.device->is_cuda) return false;
  int last = static_cast<int>(schedule.loops.size()) - 1;
  while (last >= 0 && is_written_out(schedule, last)) --last;
  if (last < 0) return false;
  return std::any_of(
      schedule.spaces.roots.begin(), schedule.spaces.roots.end(), [&](const RootSpace& space) {
        return combines_at_indices(info(graph[space.root])) && reduces_loop(schedule, space, last);
      });
}

// A root that lacks an axis of the grid or of the threads is computed once per block or thread;
// what `lanes` of a vector would compute at once, one after another.
void add_root(const Graph& graph, const PlannedStage& stage, const StageSchedule& schedule,
              const RootSpace& space, double lanes, StageWork& work) {
  double iterations = 1, block_copies = 1;
  for (const MappedAxis& mapped : schedule.axes) {
    if (role_of(space, mapped.axis) == Role::kAbsent) {
      block_copies *= blocks_along(graph, mapped);
    } else {
      iterations *= hint(graph, mapped.axis.extent);
    }
  }
  const int thread_copies = schedule.threads >> std::popcount(owned_thread_bits(schedule, space));
  const double copies = block_copies * thread_copies;
  for (const auto& [node, evaluations] : schedule.accesses.evaluated.at(space.root)) {
    double elements = 0, in_segments = 0;
    for (const Evaluation& evaluation : evaluations) {
      (evaluation.in_segment ? in_segments : elements) +=
          count_elements(graph, schedule, evaluation);
    }
    const double count = (std::min(iterations, elements) + in_segments) * copies;
    const CostClass cost = info(graph[node]).cost;
    const double weight = cost == CostClass::kFree ? 0 : cost == CostClass::kHeavy ? 8 : 1;
    const bool is_load = std::count(stage.loads.begin(), stage.loads.end(), node) > 0;
    (cost >= CostClass::kSpecial ? work.specials : work.operations) +=
        count * weight * (is_load ? 1 : lanes);
    if (is_load) {
      work.cache_bytes += count / copies * (block_copies - 1) * info(graph[node].type.dtype).bytes;
    }
  }
  work.operations += iterations * copies;
}

}  // namespace

StageWork measure_work(const Graph& graph, const PlannedStage& stage,
                       const StageSchedule& schedule) {
  StageWork work;
  work.threads = schedule.threads;
  add_memory(graph, stage, schedule, work);
  work.blocks = count_planned_blocks(graph, schedule);
  const double lanes = combines_singly(graph, schedule) ? kLanes : 1;
  for (const RootSpace& space : schedule.spaces.roots)
    add_root(graph, stage, schedule, space, lanes, work);
  return work;
}

namespace {

constexpr int kLanesOfWarp = 32;
constexpr int64_t kSectorBytes = 32;
// The L1 cache, four times as fast as L2, holds the sectors that a block's other warps need [A].
constexpr double kShareOfLoads = 0.25;

// Sectors that one access of a warp moves, over those that its bytes would fill.
double count_sectors(const Graph& graph, const StageSchedule& schedule, const Access& access) {
  const IndexVars& vars = schedule.accesses.vars;
  const int vector = find_vector_axis(schedule, vars, access.offset);
  const int64_t width = vector < 0 ? 1 : schedule.axes[vector].vector;
  const int64_t bytes = width * info(graph[access.value].type.dtype).bytes;
  std::set<int64_t> places, sectors;
  for (int lane = 0; lane < kLanesOfWarp; ++lane) {
    int64_t place = 0;
    for (size_t a = 0; a < schedule.axes.size(); ++a) {
      const MappedAxis& mapped = schedule.axes[a];
      const Dim step = axis_coefficient(schedule, vars, access.offset, static_cast<int>(a));
      const int64_t index = (lane >> mapped.thread_shift) & (mapped.threads - 1);
      place += index * mapped.vector * graph.symbols.hint(step) * (bytes / width);
    }
    if (!places.insert(place).second) continue;
    for (int64_t at = place; at < place + bytes; at += bytes / width)
      sectors.insert((at - (at % kSectorBytes + kSectorBytes) % kSectorBytes) / kSectorBytes);
  }
  const auto moved = static_cast<double>(sectors.size() * kSectorBytes);
  return moved / static_cast<double>(static_cast<int64_t>(places.size()) * bytes);
}

}  // namespace

StageWork measure_traffic(const Graph& graph, const PlannedStage& stage,
                          const StageSchedule& schedule) {
  StageWork work = measure_work(graph, stage, schedule);
  std::set<std::pair<NodeId, IndexExpr>> met;
  for (const Access& access : schedule.accesses.list) {
    const bool is_on_chip = find_buffer(schedule, access.value) ||
                            find_tile(schedule, access.value, access.offset) != nullptr;
    if (is_on_chip || !walks_atoms_alone(schedule.accesses.vars, access.offset)) continue;
    if (!met.insert({access.value, access.offset}).second) continue;
    work.cache_bytes += (count_sectors(graph, schedule, access) - 1) *
                        accessed_bytes(graph, schedule, access) *
                        (access.is_store ? 1 : kShareOfLoads);
  }
  return work;
}

double estimate_kernel_us(const Graph& graph, const std::vector<PlannedStage>& stages,
                          const PlannedKernel& kernel,
                          const std::vector<const StageSchedule*>& schedules, int worker_threads,
                          decltype(&measure_work) measure) {
  const DeviceSpec& device = *schedules[0]->device;
  std::vector<PhaseTime> phases;
  size_t at = 0;
  for (const std::vector<int>& phase : kernel.phases) {
    phases.emplace_back();
    StageEstimate first;
    for (int s : phase) {
      const StageWork work = measure(graph, stages[s], *schedules[at++]);
      const StageEstimate own = estimate_stage(work, device, worker_threads);
      const PlannedChain* chain = kernel.chain_of(s);
      if (chain && chain->first == s) {
        first = own;
      } else {
        phases.back().add(chain ? run_in_turn(first, own) : own);
      }
    }
  }
  return estimate_us(phases, device, kernel.finish, schedules[0]->threads);
}

std::vector<Remedy> find_remedies(const Graph& graph, const std::vector<PlannedStage>& stages,
                                  const PlannedKernel& kernel, const DeviceSpec& device,
                                  int worker_threads) {
  std::vector<Remedy> remedies;
  std::set<std::string> known;
  auto add = [&](const BlockBounds& bounds, const std::vector<std::vector<int>>& groups) {
    PlannedKernel changed = kernel;
    changed.persistent_groups = groups;
    SymbolTable symbols = graph.symbols;
    const std::vector<StageSchedule> schedules = schedule_kernel(
        graph, gather_stages(changed, stages), device, worker_threads, symbols, bounds);
    if (schedules.empty()) return;
    std::string text;
    std::vector<const StageSchedule*> pointers;
    for (const StageSchedule& schedule : schedules) {
      text += to_string(schedule, graph);
      pointers.push_back(&schedule);
    }
    if (!known.insert(text).second) return;
    const double us = estimate_kernel_us(graph, stages, changed, pointers, worker_threads);
    remedies.push_back({bounds, groups, us});
  };
  std::vector<std::vector<std::vector<int>>> choices = {kernel.persistent_groups};
  if (!choices[0].empty()) choices.emplace_back();
  for (const auto& groups : choices) {
    for (int most : {kMostThreads, kMostThreads / 2, kMostThreads / 4}) {
      for (bool splits : {true, false}) add({.most = most, .splits_homes = splits}, groups);
    }
  }
  remedies.erase(remedies.begin());  // what it has
  std::stable_sort(remedies.begin(), remedies.end(),
                   [](const Remedy& a, const Remedy& b) { return a.us < b.us; });
  return remedies;
}

int count_statements(const StageSchedule& schedule) {
  int statements = 0;
  for (const auto& [root, values] : schedule.accesses.evaluated) {
    statements += static_cast<int>(values.size()) + 1;
  }
  return statements;
}

Verdict check_statements(const StageSchedule& schedule) {
  const int statements = count_statements(schedule);
  if (schedule.spaces.roots.size() < 2 || statements <= kMostStageStatements) return Verdict::yes();
  return too_long(statements, kMostStageStatements);
}

Verdict check_arguments(const PlannedStage& stage) {
  const size_t pointers = stage.loads.size() + stage.stores.size();
  if (stage.roots.size() < 2 || pointers <= kMostPointers) return Verdict::yes();
  return Verdict::no(kRuleManyArguments, "the kernel would have " + std::to_string(pointers) +
                                             " tensors; a launch takes " +
                                             std::to_string(kMostPointers));
}

StageScore score_stage(const Graph& graph, const PlannedStage& stage, const DeviceSpec& device,
                       int worker_threads) {
  StageScore score;
  score.verdict = check_arguments(stage);
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
}

StageJudge judge_stages(const Graph& graph, const DeviceSpec& device, int worker_threads) {
  return [&graph, &device, worker_threads](const PlannedStage& stage) {
    return score_stage(graph, stage, device, worker_threads);
  };
}

namespace {

class KernelPredictor {
 public:
  KernelPredictor(const Graph& graph, const std::vector<PlannedStage>& stages, PlannedKernel kernel,
                  const DeviceSpec& device, int worker_threads)
      : graph_(graph),
        stages_(stages),
        kernel_(std::move(kernel)),
        worker_threads_(worker_threads),
        symbols_(graph.symbols),
        scheduler_(graph, gather_stages(kernel_, stages).stages, device, worker_threads, symbols_) {
  }

  std::optional<double> predict_us(const std::vector<std::vector<int>>& groups) {
    kernel_.persistent_groups = groups;
    const std::vector<StageSchedule> schedules =
        groups.empty() ? scheduler_.schedule_apart()
                       : scheduler_.schedule_together(gather_stages(kernel_, stages_).groups);
    if (schedules.empty()) return std::nullopt;
    std::vector<const StageSchedule*> pointers;
    for (const StageSchedule& schedule : schedules) pointers.push_back(&schedule);
    return estimate_kernel_us(graph_, stages_, kernel_, pointers, worker_threads_);
  }

 private:
  const Graph& graph_;
  const std::vector<PlannedStage>& stages_;
  PlannedKernel kernel_;
  int worker_threads_;
  SymbolTable symbols_;
  KernelScheduler scheduler_;
};

}  // namespace

KernelJudge judge_kernels(const Graph& graph, const DeviceSpec& device, int worker_threads) {
  return [&graph, &device, worker_threads](const std::vector<PlannedStage>& stages,
                                           const PlannedKernel& kernel) -> GroupsJudge {
    auto predictor =
        std::make_shared<KernelPredictor>(graph, stages, kernel, device, worker_threads);
    return [predictor](const std::vector<std::vector<int>>& groups) {
      return predictor->predict_us(groups);
    };
  };
}

}  // namespace stitch
