#include <climits>

#include "base/log.h"
#include "compilation.h"
#include "plan/plan_stitches.h"

namespace stitch {
namespace {

constexpr int kTrials = 4;         // of a kernel, at once
constexpr double kNoise = 0.03;    // what the clock cannot tell apart: another choice gains more
constexpr int kMostTimed = 128;    // spilled bytes: at 424 the clock has half an H200's time
constexpr double kSpillsCost = 2;  // times a kernel's own time, at most: slower is no remedy [A]

// By the clock, which counts what is spilled; where it cannot tell or has no answer, by that.
bool is_better(const Trial& trial, const Trial& present) {
  const auto [least, most] = std::minmax({trial.us, present.us});
  if (least > 0 && least < most * (1 - kNoise)) return trial.us < present.us;
  return trial.spilled_bytes < present.spilled_bytes;
}

int count_spilled(const Binary& binary, const StageGroups& kept) {
  if (binary.bytes.empty()) return INT_MAX;
  return binary.spill_bytes + (kept.empty() ? 0 : binary.stack_bytes);
}

std::vector<Binary> compile_all(const Compilation& c, const Settings& settings) {
  const bool is_needed = c.request.load || (asks_clock(settings) && c.device.is_cuda);
  try {
    return compile_kernels(c.sources, c.device.arch, settings, is_needed);
  } catch (const NotCompiledError& error) {
    std::vector<size_t> failed;
    for (size_t k = 0; k < c.sources.size(); ++k)
      if (std::ranges::count(error.kernels, c.sources[k].name)) failed.push_back(k);
    throw KernelError(error, c.graph, c.plan, failed);
  }
}

struct Settler {
  Compilation& c;
  const TimeKernel& time;
  const bool is_clock_asked = c.device.is_cuda && c.request.settings.clock == "choose";
  Settings settings = c.request.settings;  // of what is tried
  TemplateMemo memo = {};

  KernelChooser chooser_of(size_t k) {
    return {c.graph, c.plan.stages, c.plan.kernels[k], c.target, memo};
  }

  void judge(Trial& trial, const KernelSource& source, const Binary& binary) const {
    trial.spilled_bytes = count_spilled(binary, trial.choice.kept);
    if (trial.spilled_bytes > kMostTimed) return;
    try {
      trial.us = time(source, binary);
    } catch (const Error& error) {
      if (!is_clock_asked) return;
      warn_once("clock " + source.name, "a schedule is not timed: " + std::string(error.what()));
    }
  }

  std::vector<Trial> list_unsettled(const std::vector<Binary>& binaries) {
    std::vector<Trial> found;
    for (size_t k = 0; c.device.is_cuda && k < binaries.size(); ++k) {
      Trial trial{.kernel = k};
      trial.choice.kept = c.plan.kernels[k].kept;
      if (!is_clock_asked && count_spilled(binaries[k], trial.choice.kept) == 0) continue;
      judge(trial, c.sources[k], binaries[k]);
      KernelChoices choices = chooser_of(k).find_others();
      trial.choice = std::move(choices.present);
      trial.others = std::move(choices.others);
      found.push_back(std::move(trial));
    }
    return found;
  }

  KernelSource take(const Trial& trial) {
    PlannedKernel& kernel = c.plan.kernels[trial.kernel];
    kernel.kept = trial.choice.kept;
    kernel.templates = trial.choice.templates;
    schedule_kernel(c.graph, c.target, trial.choice.bounds, trial.kernel, c.plan);
    if (!trial.choice.is_present) kernel.choice = trial.us > 0 ? Choice::kClock : Choice::kSpilled;
    for (int s : kernel.stages()) name_blocks(c.graph.symbols, c.plan.schedules[s]);
    return c.sources[trial.kernel] = emit(c, trial.kernel);
  }

  void compile(std::vector<Trial>& trials) {
    const auto sources = map_to_vector(trials, [&](const Trial& trial) { return take(trial); });
    const std::vector<Binary> tried = try_kernels(sources, c.device.arch, settings);
    for (size_t i = 0; i < trials.size(); ++i) judge(trials[i], sources[i], tried[i]);
  }
};

}  // namespace

void try_choices(std::vector<Trial>& kernels,
                 const std::function<void(std::vector<Trial>&)>& compile) {
  for (Trial& kernel : kernels)
    std::erase_if(kernel.others, [&](const KernelChoice& other) {
      return kernel.spilled_bytes != INT_MAX && other.us > kSpillsCost * kernel.choice.us;
    });
  for (bool is_first = true;; is_first = false) {
    std::vector<Trial> trials;
    for (Trial& kernel : kernels) {
      const bool is_open = kernel.spilled_bytes > 0 || (is_first && kernel.us > 0);
      for (int i = 0; i < kTrials && is_open && !kernel.others.empty(); ++i) {
        trials.push_back({kernel.kernel, std::move(kernel.others.back())});
        kernel.others.pop_back();
      }
    }
    if (trials.empty()) return;
    compile(trials);
    for (Trial& kernel : kernels) {
      const double us = kernel.us;
      for (const Trial& trial : trials) {
        if (trial.kernel != kernel.kernel || !is_better(trial, kernel)) continue;
        kernel.choice = trial.choice;
        kernel.spilled_bytes = trial.spilled_bytes;
        kernel.us = trial.us;
      }
      if (us > 0 && kernel.us == us) kernel.others.clear();
    }
  }
}

std::vector<Binary> settle_kernels(Compilation& c, const TimeKernel& time) {
  Settler settler{c, time};
  if (settler.is_clock_asked) settler.settings.simulate = "false";  // it reads a GPU's code
  std::vector<Binary> binaries = compile_all(c, settler.settings);
  std::vector<Trial> kernels = settler.list_unsettled(binaries);
  if (kernels.empty()) return binaries;
  try_choices(kernels, [&](std::vector<Trial>& trials) { settler.compile(trials); });
  for (const Trial& kernel : kernels) settler.take(kernel);
  return compile_all(c, c.request.settings);
}

}  // namespace stitch
