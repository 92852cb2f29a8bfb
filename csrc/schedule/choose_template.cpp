#include "schedule/choose_template.h"

#include <limits>

#include "base/archive.h"
#include "plan/find_roots.h"
#include "schedule/reduction_arrays.h"

namespace stitch {

// What the model cannot tell: a template must gain more.
constexpr double kNoise = 0.03;
constexpr int kLaunches[] = {128, 256, 512, 1024};  // threads of a block

// All that templates are chosen by: what it is mapped to, and what that costs.
static std::string describe(const StageSchedule& schedule, const StageWork& work) {
  std::string key = to_bytes(work, schedule.spaces.roots.size(), schedule.tiles.size());
  for (const MappedAxis& mapped : schedule.axes)
    key += to_bytes(to_string(mapped.axis.extent), mapped.in_grid, mapped.threads, mapped.vector,
                    mapped.thread_shift);
  return key;
}

std::vector<const StageSchedule*> pick_schedules(const Schedules& all,
                                                 const PlannedKernel& kernel) {
  return map_to_vector(kernel.stages(), [&](int s) { return &all[s]; });
}

KernelStages KernelChooser::gather(const KernelChoice& choice) const {
  PlannedKernel chosen = kernel;
  chosen.persistent_groups = choice.persistent_groups;
  KernelStages gathered = gather_stages(chosen, stages);
  gathered.templates = choice.templates;
  return gathered;
}

void KernelChooser::schedule(const KernelChoice& choice, SymbolTable& symbols,
                             Schedules& all) const {
  const KernelStages gathered = gather(choice);
  KernelScheduler own{graph, gathered.stages, device, worker_threads, symbols};
  Schedules schedules = own.schedule(gathered, choice.bounds);
  const std::vector<int> numbers = kernel.stages();
  for (size_t i = 0; i < numbers.size(); ++i) all[numbers[i]] = std::move(schedules[i]);
}

// The best level for the stage under blocks of this size; derived where none fits.
StageOption KernelChooser::find_option(int position, int block_threads) {
  const PlannedStage& stage = stages[kernel.stages()[position]];
  using enum ReductionLevel;
  std::vector<ReductionLevel> levels = {kDerived};
  if (reduces(graph, stage.roots)) levels = {kDerived, kBlock, kWarp, kThread};
  StageOption best = {{}, {std::numeric_limits<double>::infinity()}};
  for (ReductionLevel level : levels) {
    const Template tried = {level, block_threads};
    const StageSchedule schedule = scheduler.schedule_alone(position, {.chosen = tried});
    if (!check_arrays(graph, schedule)) continue;
    const StageWork work = measure_work(graph, stage, schedule, held[position]);
    const bool has_room = work.registers <= kMostRegisters &&
                          work.registers * work.threads <= device.registers_per_multiprocessor &&
                          work.shared_bytes <= device.shared_bytes_per_block;
    if (!has_room) continue;
    const StageEstimate estimate = estimate_stage(work, device, worker_threads);
    if (estimate.us < best.estimate.us) best = {tried, estimate};
  }
  return best;
}

// Of equal ones the first.
std::vector<KernelChoice> KernelChooser::evaluate(std::vector<KernelChoice> choices) {
  std::set<std::string> known;  // schedules, as text, without what was asked for
  std::erase_if(choices, [&](KernelChoice& choice) {
    Schedules schedules = scheduler.schedule(gather(choice), choice.bounds);
    if (schedules.empty()) return true;
    const bool fits = std::ranges::all_of(
        schedules, [&](const auto& schedule) { return check_arrays(graph, schedule).ok; });
    choice.us = estimate_kernel_us(graph, stages, kernel, list_pointers(schedules), worker_threads);
    std::string text;
    for (StageSchedule& schedule : schedules) {
      schedule.bounds.chosen = {};
      text += to_string(schedule, graph);
    }
    return !known.insert(text).second || !fits;
  });
  return choices;
}

std::optional<KernelChoice> KernelChooser::choose(
    const std::vector<const StageSchedule*>& derived) {
  if (!has_templates()) return std::nullopt;
  const std::vector<int> numbers = kernel.stages();
  std::vector<StageEstimate> estimates, least;
  std::vector<std::string> keys;
  for (size_t s = 0; s < numbers.size(); ++s) {
    const StageWork work = measure_work(graph, stages[numbers[s]], *derived[s], held[s]);
    estimates.push_back(estimate_stage(work, device, worker_threads));
    least.push_back({estimates.back().least_us});
    keys.push_back(describe(*derived[s], work));
  }
  const auto estimate_us = [&](const std::vector<StageEstimate>& of_stages) {
    return estimate_kernel_us(kernel, of_stages, device);
  };
  const double most_us = estimate_us(estimates) * (1 - kNoise);
  if (estimate_us(least) > most_us) return std::nullopt;
  KernelChoice best{.us = most_us};
  for (int block_threads : kLaunches) {
    KernelChoice choice;
    for (size_t s = 0; s < numbers.size(); ++s) {
      const auto [entry, is_new] = memo.try_emplace(keys[s] + to_bytes(block_threads));
      if (is_new) entry->second = find_option(static_cast<int>(s), block_threads);
      choice.templates.push_back(entry->second.chosen);
      estimates[s] = entry->second.estimate;
    }
    choice.us = estimate_us(estimates);
    if (choice.us < best.us) best = std::move(choice);
  }
  if (best.templates.empty()) return std::nullopt;
  // With blocks of one size, and each stage's own arrays.
  const std::vector<KernelChoice> found = evaluate({std::move(best)});
  if (found.empty() || found[0].us > most_us) return std::nullopt;
  return found[0];
}

std::vector<KernelChoice> KernelChooser::list_templates() {
  const int count = static_cast<int>(kernel.stages().size());
  std::vector<KernelChoice> choices;
  for (int block_threads : kLaunches) {
    choices.emplace_back();
    for (int s = 0; s < count; ++s)
      choices.back().templates.push_back(find_option(s, block_threads).chosen);
  }
  return choices;
}

std::optional<double> KernelChooser::predict_us(const StageGroups& groups) {
  kernel.persistent_groups = groups;
  const Schedules schedules =
      groups.empty() ? scheduler.schedule_apart()
                     : scheduler.schedule_together(gather_stages(kernel, stages).groups);
  if (schedules.empty()) return std::nullopt;
  const std::vector<const StageSchedule*> pointers = list_pointers(schedules);
  if (groups.empty()) {
    const auto better = graph.size() <= kMostEnumerated ? choose(pointers) : std::nullopt;
    if (better) return better->us;
    return estimate_kernel_us(graph, stages, kernel, pointers, worker_threads);
  }
  std::vector<StageEstimate> estimates;
  for (size_t s = 0; s < schedules.size(); ++s) {
    const StageWork work = measure_work(graph, stages[kernel.stages()[s]], schedules[s], held[s]);
    if (work.registers > count_registers(device, schedules[s].bounds, schedules[s].threads))
      return std::nullopt;
    estimates.push_back(estimate_stage(work, device, worker_threads));
  }
  return estimate_kernel_us(kernel, estimates, device);
}

KernelChoices KernelChooser::find_others(const std::vector<const StageSchedule*>& has) {
  KernelChoice present{.persistent_groups = kernel.persistent_groups,
                       .us = std::numeric_limits<double>::infinity(),
                       .is_present = true};
  for (const StageSchedule* own : has) present.templates.push_back(own->bounds.chosen);
  std::vector<KernelChoice> choices = {present};
  std::vector<StageGroups> groupings = {kernel.persistent_groups};
  if (!groupings[0].empty()) groupings.emplace_back();
  for (const auto& groups : groupings)
    for (int most : {kMostThreads, kMostThreads / 2, kMostThreads / 4})
      for (bool splits : {true, false})
        choices.push_back({{.most = most, .splits_homes = splits}, {}, groups});
  kernel.persistent_groups.clear();
  if (has_templates())
    for (KernelChoice& choice : list_templates()) choices.push_back(std::move(choice));
  std::vector<KernelChoice> others = evaluate(std::move(choices));
  std::erase_if(others, [&](const KernelChoice& choice) {
    if (choice.is_present) present.us = choice.us;
    return choice.is_present;
  });
  // The same with more registers comes first.
  const auto holds_more = map_to_vector(others, [](KernelChoice choice) {
    choice.bounds.resident_threads = kResidentThreads / 2;
    return choice;
  });
  others.insert(others.end(), holds_more.begin(), holds_more.end());
  std::ranges::stable_sort(others, std::greater<>(), &KernelChoice::us);
  for (int threads : {0, kResidentThreads / 2}) {
    others.push_back(present);
    others.back().bounds.resident_threads = threads;
  }
  return {std::move(present), std::move(others)};
}

KernelJudge judge_kernels(const Graph& graph, const DeviceSpec& device, int worker_threads) {
  auto memo = std::make_shared<TemplateMemo>();
  return [&graph, &device, worker_threads, memo](const PlannedStages& stages,
                                                 const PlannedKernel& kernel) -> GroupsJudge {
    auto chooser =
        std::make_shared<KernelChooser>(graph, stages, kernel, device, worker_threads, *memo);
    return [chooser, memo](const StageGroups& groups) { return chooser->predict_us(groups); };
  };
}

}  // namespace stitch
