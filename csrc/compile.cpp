#include "compile.h"

#include "base/files.h"
#include "base/log.h"
#include "base/words.h"
#include "compilation.h"
#include "ir/assume_sizes.h"
#include "plan/choose_attention.h"
#include "plan/split_reductions.h"
#include "plan/store_in_place.h"
#include "rewrite/rewrite_graph.h"
#include "runtime/build_program.h"
#include "runtime/error_flags.h"
#include "schedule/chain_stages.h"

namespace stitch {
namespace {

// Reductions are split before deviations are expanded: a split one needs no second pass.  `cuts`
// gets the attention that stays written out.
Graph rewrite(const Compilation& c, std::vector<Cut>& cuts) {
  const auto& [settings, device] = std::tie(c.request.settings, c.device);
  const std::string layout = device.is_cuda ? "eager" : settings.convolution_layout;
  const Graph laid = lay_channels_last(assume_units(c.request.graph), layout);
  const Graph first = rewrite_graph(lower_scatters(laid, !device.is_cuda), {"expand_deviations"});
  const std::vector<Attention> attention = choose_attention(first, settings, device);
  // A simulated GPU's library calls run on the host.
  const bool on_gpu = device.is_cuda && !is_simulated(settings);
  const Graph called = call_attention(first, attention, on_gpu);
  const bool rounds = settings.emulate_eager_casts;
  Graph graph = rewrite_graph(split_reductions(called, device, c.workers, rounds));
  // The other policies show what they alone make of a graph.
  if (settings.policy == "auto") graph = merge_views(remove_dead(add_in_products(graph, rounds)));
  graph = write_joined_parts(graph);
  if (device.is_cuda && !rounds) graph = remove_dead(form_sigmoids(graph));
  cuts = find_cuts(attention, first, graph);
  return graph;
}

std::string text_of(const Compilation& c, const std::string& stage) {
  std::string text;
  if (stage == "rewrite") return to_string(c.graph);
  if (stage == "plan") return to_string(c.plan, c.graph);
  if (stage == "schedule")
    for (const StageSchedule& schedule : c.schedules) text += to_string(schedule, c.graph) + "\n";
  else if (stage == "emit")
    for (const KernelSource& source : c.sources) text += source.text + "\n";
  else
    throw UserError("found stage '" + stage + "'; known are graph, rewrite, plan, schedule, emit");
  return text;
}

void dump(const Compilation& c, const std::string& stage) {
  write_dump(c.log, stage, [&] { return text_of(c, stage); });
}

void run_and_dump(Compilation& c, const std::string& stage, const std::function<void()>& work) {
  run_stage(stage, c.log, work);
  dump(c, stage);
}

Compilation plan_and_emit(const CompileRequest& request) {
  static std::atomic<int> graphs = 0;  // of the process: each has dumps of its own
  const std::string name = "graph" + std::to_string(graphs++);
  Compilation c{.request = request,
                .log = {{}, name, request.settings.dump, request.settings.dump_dir}};
  const auto& [device, workers] = std::tie(c.device, c.workers);
  verify_graph(request.graph);
  std::vector<Cut> cuts;
  run_and_dump(c, "rewrite", [&] { c.graph = rewrite(c, cuts); });
  verify_graph(c.graph);
  run_and_dump(c, "plan", [&] {
    c.plan = plan_stitches(c.graph, judge_stages(c.graph, device, workers), device,
                           request.settings.policy, judge_kernels(c.graph, device, workers));
    c.plan = chain_stages(c.graph, std::move(c.plan), device, workers);
    if (!device.is_cuda) c.plan.stored_over = find_stored_over(c.graph, c.plan);
    c.plan.cuts.insert(c.plan.cuts.begin(), cuts.begin(), cuts.end());
  });
  run_and_dump(c, "schedule", [&] {
    SymbolTable symbols = c.graph.symbols;
    c.schedules.resize(c.plan.stages.size());
    TemplateMemo memo;
    for_each_kernel(c.graph, c.plan, [&](size_t k) {
      const PlannedKernel& kernel = c.plan.kernels[k];
      KernelChooser chooser{c.graph, c.plan.stages, kernel, device, workers, memo};
      chooser.schedule({.persistent_groups = kernel.persistent_groups}, symbols, c.schedules);
      if (const auto better = chooser.choose(pick_schedules(c.schedules, kernel)))
        chooser.schedule(*better, symbols, c.schedules);
    });
    c.graph.symbols = std::move(symbols);
  });
  c.options = choose_lowering(c.graph, c.plan, device, request.settings);
  run_and_dump(c, "emit", [&] {
    for_each_kernel(c.graph, c.plan, [&](size_t k) { c.sources.push_back(emit(c, k)); });
  });
  return c;
}

std::vector<Binary> settle_by_clock(Compilation& c) {
  return settle_kernels(c, [&](const KernelSource& source, const Binary& binary) {
    return time_kernel(c, source, binary).us;
  });
}

}  // namespace

void run_stage(const std::string& name, StageLog& log, const std::function<void()>& work) {
  check_stopping();
  const ErrorContext context("while running stage " + name);
  const auto start = std::chrono::steady_clock::now();
  work();
  const std::chrono::duration<double, std::micro> elapsed =
      std::chrono::steady_clock::now() - start;
  log.times.push_back({name, elapsed.count()});
}

void write_dump(const StageLog& log, const std::string& stage,
                const std::function<std::string()>& print) {
  size_t position = log.times.size();  // of the stage's last run, from 1; 0 if it has not ended
  while (position > 0 && log.times[position - 1].name != stage) --position;
  const std::vector<std::string> names = split_words(log.dump);
  const std::array<std::string, 2> named = {stage, "all"};
  if (position == 0 || std::ranges::find_first_of(names, named) == names.end()) return;
  const std::string name = log.subject + "." + std::to_string(position) + "." + stage + ".txt";
  if (write_text_file(log.dump_dir, name, print()).empty())
    warn_once("dump " + log.dump_dir, "cannot write dumps to '" + log.dump_dir +
                                          "'; set dump_dir to a directory you may write to");
}

CompileResult compile(const CompileRequest& request) {
  const DeviceSpec& device = device_spec(request.target);
  StageLog log;
  CompiledPlan made = find_plan(request, device.arch, [&] {
    Compilation c = plan_and_emit(request);
    std::vector<Binary> binaries;
    run_stage("compile", c.log, [&] { binaries = settle_by_clock(c); });
    for (const char* stage : {"plan", "schedule", "emit"}) dump(c, stage);  // what runs
    Report report = make_report(c);
    if (asks_clock(request.settings) && !request.load)
      run_stage("clock", c.log, [&] { time_kernels(report, c, binaries); });
    log = c.log;
    return CompiledPlan{
        request.load ? build_program(c.graph, c.plan, c.sources, device.is_cuda) : Program(),
        c.sources, report, binaries};
  });
  if (device.is_cuda) add_binaries(made.report, made.binaries);
  made.report.stages = log.times;
  if (!request.load) return {nullptr, std::move(made.report)};
  run_stage("load", log, [&] {
    made.program.kernels = load_kernels(made.sources, made.binaries, device.is_cuda);
    const bool waits = request.settings.check_indices == "now";
    if (device.is_cuda) made.program.flags = ErrorFlags::make(made.program, waits);
  });
  return {std::make_shared<const Program>(std::move(made.program)), std::move(made.report)};
}

std::string show_stage(const CompileRequest& request, const std::string& stage) {
  if (stage == "graph") return to_string(request.graph);
  Compilation c = plan_and_emit(request);
  if (stage != "rewrite") settle_by_clock(c);
  return text_of(c, stage);
}

}  // namespace stitch
