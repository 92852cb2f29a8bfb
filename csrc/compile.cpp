#include "compile.h"

#include "base/files.h"
#include "base/log.h"
#include "base/words.h"
#include "compilation.h"
#include "plan/plan_stitches.h"
#include "rewrite/rewrite_graph.h"
#include "runtime/build_program.h"
#include "runtime/error_flags.h"

namespace stitch {
namespace {

std::string text_of(const Compilation& c, const std::string& stage) {
  std::string text;
  if (stage == "rewrite") return to_string(c.graph);
  if (stage == "plan") return to_string(c.plan, c.graph);
  if (stage == "schedule")
    for (const StageSchedule& schedule : c.plan.schedules)
      text += to_string(schedule, c.graph) + "\n";
  else if (stage == "emit")
    for (const KernelSource& source : c.sources) text += source.text + "\n";
  else if (stage == "times")
    for (const StageTime& time : c.log.times) text += concat(time.name, " ", time.us, "\n");
  else
    throw UserError("found stage '" + stage +
                    "'; known are graph, rewrite, plan, schedule, emit, times");
  return text;
}

void dump(const Compilation& c, const std::string& stage, const std::string& what = {}) {
  write_dump(c.log, stage, [&] { return text_of(c, what.empty() ? stage : what); }, what);
}

void run_and_dump(Compilation& c, const std::string& stage, const std::function<void()>& work) {
  run_stage(stage, c.log, work);
  dump(c, stage);
}

Compilation plan_and_emit(const CompileRequest& request) {
  static std::atomic<int> graphs = 0;  // of the process: each has dumps of its own
  const std::string name = "graph" + std::to_string(graphs++);
  const Settings& settings = request.settings;
  Compilation c{.request = request, .log = {{}, name, settings.dump, settings.dump_dir}};
  verify_graph(request.graph);
  Rewritten rewritten;
  run_and_dump(c, "rewrite", [&] {
    rewritten = rewrite_for_target(request.graph, settings, c.target);
    c.graph = std::move(rewritten.graph);
  });
  verify_graph(c.graph);
  run_and_dump(c, "plan", [&] {
    c.plan = plan_stitches(c.graph, c.target, settings.policy);
    c.plan.cuts.insert(c.plan.cuts.begin(), rewritten.cuts.begin(), rewritten.cuts.end());
    name_blocks(c.graph.symbols, c.plan);
  });
  dump(c, "plan", "schedule");
  c.options = choose_lowering(c.graph, c.plan, c.device, settings);
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
                const std::function<std::string()>& print, const std::string& what) {
  size_t position = log.times.size();  // of the stage's last run, from 1; 0 if it has not ended
  while (position > 0 && log.times[position - 1].name != stage) --position;
  const std::vector<std::string> names = split_words(log.dump);
  const std::string shown = what.empty() ? stage : what;
  const std::array<std::string, 2> named = {shown, "all"};
  if (position == 0 || std::ranges::find_first_of(names, named) == names.end()) return;
  const std::string name = log.subject + "." + std::to_string(position) + "." + shown + ".txt";
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
    for (const char* stage : {"plan", "emit"}) dump(c, stage);  // what runs
    dump(c, "plan", "schedule");
    Report report = make_report(c);
    if (asks_clock(request.settings) && !request.load)
      run_stage("clock", c.log, [&] { time_kernels(report, c, binaries); });
    log = c.log;
    return CompiledPlan{
        request.load ? build_program(c.graph, c.plan, c.sources, device.is_cuda) : Program(),
        report, binaries};
  });
  if (device.is_cuda) add_binaries(made.report, made.binaries);
  made.report.stages = log.times;
  if (!request.load) return {nullptr, std::move(made.report)};
  run_stage("load", log, [&] {
    load_kernels(made.program, made.binaries);
    const bool waits = request.settings.check_indices == "now";
    if (device.is_cuda) made.program.flags = ErrorFlags::make(made.program, waits);
  });
  return {std::make_shared<const Program>(std::move(made.program)), std::move(made.report)};
}

std::string show_stage(const CompileRequest& request, const std::string& stage) {
  if (stage == "graph") return to_string(request.graph);
  Compilation c = plan_and_emit(request);
  if (stage != "rewrite" && stage != "times") settle_by_clock(c);
  return text_of(c, stage);
}

}  // namespace stitch
