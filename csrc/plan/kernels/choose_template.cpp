#include "plan/kernels/choose_template.h"

#include <limits>

#include "base/archive.h"
#include "plan/find_roots.h"
#include "stage/reduction_arrays.h"

namespace stitch {

// What the model cannot tell: a template must gain more.
constexpr double kNoise = 0.03;
constexpr int kLaunches[] = {128, 256, 512, 1024};  // threads of a block

// All that templates are chosen by: what it is mapped to, and what that costs.
static std::string describe(const StageSchedule& schedule, const StageWork& work) {
  std::string key = to_bytes(work, schedule.spaces.roots.size(), schedule.tiles.size());
  for (const MappedAxis& mapped : schedule.axes)
    key += to_bytes(to_string(mapped.axis.extent), mapped.in_grid(), mapped.vector(),
                    mapped.thread_bits());
  return key;
}

// The best level for the stage under blocks of this size; derived where none fits.
StageOption KernelChooser::find_option(int position, int block_threads) {
  const Stage& stage = stages[numbers[position]];
  using enum ReductionLevel;
  std::vector<ReductionLevel> levels = {kDerived};
  if (reduces(graph, stage.roots)) levels = {kDerived, kBlock, kWarp, kThread};
  StageOption best = {{}, {std::numeric_limits<double>::infinity()}};
  std::vector<std::vector<MappedAxis>> known;  // mappings, which follow from the axes
  for (ReductionLevel level : levels) {
    const Template tried = {level, block_threads};
    StageSchedule schedule = scheduler.map_alone(numbers[position], {.chosen = tried});
    if (std::ranges::count(known, schedule.axes)) continue;
    known.push_back(schedule.axes);
    finish_stage(graph, stage, schedule);
    if (!check_arrays(graph, schedule)) continue;
    const StageWork work = measure_work(graph, stage, schedule, held[position]);
    const bool has_room =
        work.registers <= kMostRegisters &&
        work.registers * work.threads <= target.device.registers_per_multiprocessor &&
        work.shared_bytes <= target.device.shared_bytes_per_block;
    if (!has_room) continue;
    const StageEstimate estimate = estimate_stage(work, target.device, target.workers);
    if (estimate.us < best.estimate.us) best = {tried, estimate};
  }
  return best;
}

// Of equal ones the first.
std::vector<KernelChoice> KernelChooser::evaluate(std::vector<KernelChoice> choices) {
  std::set<std::string> known;  // schedules, as text, without what was asked for
  std::erase_if(choices, [&](KernelChoice& choice) {
    KernelSchedules schedules = schedule(choice);
    if (schedules.empty()) return true;
    const bool fits = std::ranges::all_of(
        schedules, [&](const auto& own) { return check_arrays(graph, own.second).ok; });
    choice.us = predict_us(schedules);
    std::string text;
    for (auto& [s, schedule] : schedules) {
      schedule.bounds.chosen = {};
      text += to_string(schedule, graph);
    }
    return !known.insert(text).second || !fits;
  });
  return choices;
}

std::vector<StageWork> KernelChooser::measure(const KernelSchedules& schedules) const {
  std::vector<StageWork> works;
  for (int s : numbers)
    works.push_back(measure_work(graph, stages[s], schedules.at(s), held[works.size()]));
  return works;
}

double KernelChooser::estimate_us(const std::vector<StageWork>& works) const {
  return estimate_us(map_to_vector(works, [&](const StageWork& work) {
    return estimate_stage(work, target.device, target.workers);
  }));
}

std::vector<KernelChoice> KernelChooser::list_templates(double share) {
  PlannedKernel plain = kernel;
  plain.templates.clear();
  const KernelSchedules derived = scheduler.schedule_apart(plain);
  const std::vector<StageWork> works = measure(derived);
  std::vector<StageEstimate> estimates, least;
  std::vector<std::string> keys;
  for (const StageWork& work : works) {
    estimates.push_back(estimate_stage(work, target.device, target.workers));
    least.push_back({estimates.back().least_us});
  }
  std::vector<KernelChoice> choices = {{.us = estimate_us(estimates)}};
  if (!has_templates() || estimate_us(least) > share * choices[0].us) return choices;
  for (size_t s = 0; s < works.size(); ++s)
    keys.push_back(describe(derived.at(numbers[s]), works[s]));
  for (int block_threads : kLaunches) {
    KernelChoice& choice = choices.emplace_back();
    for (size_t s = 0; s < works.size(); ++s) {
      const auto [entry, is_new] = memo.try_emplace(keys[s] + to_bytes(block_threads));
      if (is_new) entry->second = find_option(static_cast<int>(s), block_threads);
      choice.templates.push_back(entry->second.chosen);
      estimates[s] = entry->second.estimate;
    }
    choice.us = estimate_us(estimates);
  }
  return choices;
}

KernelChoice KernelChooser::choose() {
  const std::vector<KernelChoice> choices = list_templates(1 - kNoise);
  const KernelChoice& best = *std::ranges::min_element(choices, {}, &KernelChoice::us);
  const double most_us = choices[0].us * (1 - kNoise);
  if (best.us >= most_us) return choices[0];
  // With blocks of one size, and each stage's own arrays.
  const std::vector<KernelChoice> found = evaluate({best});
  return found.empty() || found[0].us > most_us ? choices[0] : found[0];
}

std::optional<double> KernelChooser::predict_us(const StageGroups& groups) {
  kernel.kept = groups;
  const KernelSchedules schedules =
      groups.empty() ? scheduler.schedule(kernel) : scheduler.schedule_together(kernel);
  if (schedules.empty()) return std::nullopt;
  const std::vector<StageWork> works = measure(schedules);
  for (size_t s = 0; s < works.size(); ++s) {
    const StageSchedule& own = schedules.at(numbers[s]);
    const int most = count_registers(target.device, own.bounds, own.threads);
    if (!groups.empty() && works[s].registers > most) return std::nullopt;
  }
  return estimate_us(works);
}

KernelChoices KernelChooser::find_others() {
  KernelChoice present{.templates = kernel.templates,
                       .kept = kernel.kept,
                       .us = std::numeric_limits<double>::infinity(),
                       .is_present = true};
  std::vector<KernelChoice> choices = {present};
  std::vector<StageGroups> groupings = {kernel.kept};
  if (!groupings[0].empty()) groupings.emplace_back();
  for (const auto& groups : groupings)
    for (int most : {kMostThreads, kMostThreads / 2, kMostThreads / 4})
      for (bool splits : {true, false})
        choices.push_back({{.most = most, .splits_homes = splits}, {}, groups});
  kernel.kept.clear();
  for (KernelChoice& choice : list_templates(std::numeric_limits<double>::infinity()))
    choices.push_back(std::move(choice));
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
    others.back().is_present = false;
  }
  return {std::move(present), std::move(others)};
}

}  // namespace stitch
