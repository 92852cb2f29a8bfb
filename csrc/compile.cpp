#include "compile.h"

#include <algorithm>
#include <atomic>
#include <map>

#include "base/stage.h"
#include "codegen/emit_kernel.h"
#include "ir/print_graph.h"
#include "ir/verify_graph.h"
#include "jit/compile_kernels.h"
#include "kernel_error.h"
#include "make_report.h"
#include "plan/choose_attention.h"
#include "plan/plan_stitches.h"
#include "plan/split_reductions.h"
#include "rewrite/attention/call_attention.h"
#include "rewrite/lower_scatters.h"
#include "rewrite/rewrite_graph.h"
#include "rewrite/write_in_place.h"
#include "runtime/build_program.h"
#include "runtime/load_kernels.h"
#include "schedule/chain_stages.h"
#include "schedule/choose_template.h"

namespace stitch {
namespace {

// Everything between the imported graph and kernel text; `explain` and `show_stage` stop here.
struct Compilation {
  Graph graph = {};
  StitchPlan plan = {};
  std::vector<StageSchedule> schedules = {};
  std::vector<KernelSource> sources = {};
  StageLog log = {};
};

// Reductions are split before deviations are expanded: a split one needs no second pass.  `cuts`
// gets the attention that stays written out.
Graph rewrite(const CompileRequest& request, const DeviceSpec& device, int workers,
              std::vector<Cut>& cuts) {
  const Graph lowered = lower_scatters(request.graph, !device.is_cuda);
  const Graph first = rewrite_graph(lowered, {"expand_deviations"});
  const AttentionChoice attention = choose_attention(first, request.settings, device);
  // A simulated GPU's library calls run on the host.
  const bool on_gpu = device.is_cuda && !is_simulated(request.settings);
  const Graph called = call_attention(first, attention.chosen, on_gpu);
  Graph graph = write_joined_parts(rewrite_graph(split_reductions(called, device, workers)));
  cuts = find_cuts(attention.refused, first, graph);
  return graph;
}

// What stands behind a stage.
std::string text_of(const Compilation& c, const std::string& stage) {
  std::string text;
  if (stage == "plan") return to_string(c.plan, c.graph);
  if (stage == "schedule")
    for (const StageSchedule& schedule : c.schedules) text += to_string(schedule, c.graph) + "\n";
  if (stage == "emit")
    for (const KernelSource& source : c.sources) text += source.text + "\n";
  return text;
}

void dump_stages(const Compilation& c) {
  for (const char* stage : {"plan", "schedule", "emit"})
    if (is_dumped(c.log, stage)) write_dump(c.log, stage, text_of(c, stage));
}

KernelSource emit(const Compilation& c, const PlannedKernel& kernel,
                  const LoweringOptions& options) {
  return emit_kernel(c.graph, lower_kernel(c.graph, c.plan, kernel, c.schedules, options), options);
}

Compilation plan_and_emit(const CompileRequest& request) {
  const DeviceSpec& device = device_spec(request.target);
  const int workers = std::max(1, request.worker_threads);
  static std::atomic<int> graphs = 0;  // of the process: each has dumps of its own
  Compilation c{.log = {{},
                        "graph" + std::to_string(graphs++),
                        request.settings.dump,
                        request.settings.dump_dir}};
  verify_graph(request.graph);
  std::vector<Cut> cuts;
  c.graph = run_stage("rewrite", c.log, [&] { return rewrite(request, device, workers, cuts); });
  verify_graph(c.graph);
  c.plan = run_stage("plan", c.log, [&] {
    StitchPlan plan =
        plan_stitches(c.graph, judge_stages(c.graph, device, workers), device,
                      request.settings.policy, judge_kernels(c.graph, device, workers));
    return chain_stages(c.graph, std::move(plan), device, workers);
  });
  c.plan.cuts.insert(c.plan.cuts.begin(), cuts.begin(), cuts.end());
  dump_stages(c);
  run_stage("schedule", c.log, [&] {
    SymbolTable symbols = c.graph.symbols;
    c.schedules.resize(c.plan.stages.size());
    TemplateMemo memo;
    for_each_kernel(c.graph, c.plan, [&](size_t k) {
      const PlannedKernel& kernel = c.plan.kernels[k];
      KernelChooser chooser(c.graph, c.plan.stages, kernel, device, workers, memo);
      chooser.schedule({.persistent_groups = kernel.persistent_groups}, symbols, c.schedules);
      if (const auto better = chooser.choose(pick_schedules(c.schedules, kernel)))
        chooser.schedule(*better, symbols, c.schedules);
    });
    c.graph.symbols = std::move(symbols);
  });
  dump_stages(c);
  const LoweringOptions options = choose_lowering(c.graph, c.plan, request.settings);
  run_stage("emit", c.log, [&] {
    for_each_kernel(c.graph, c.plan,
                    [&](size_t k) { c.sources.push_back(emit(c, c.plan.kernels[k], options)); });
  });
  dump_stages(c);
  return c;
}

CompiledKernels compile_all(const Compilation& c, const DeviceSpec& device,
                            const CompileRequest& request) {
  try {
    return compile_kernels(c.sources, device.arch, request.settings, request.load);
  } catch (const NotCompiledError& error) {
    throw KernelError(error, find_ops(c.graph, c.plan, c.sources, error.kernels));
  }
}

bool fits_in_registers(const Binary& binary, const PlannedKernel& kernel) {
  return binary.spill_bytes == 0 && (kernel.persistent_groups.empty() || binary.stack_bytes == 0);
}

// Launch bounds are assumed, then checked against the compiled kernel (AStitch A.14): one that
// spills is scheduled otherwise, until it does not or nothing is left to try.
CompiledKernels compile_without_spills(Compilation& c, const DeviceSpec& device,
                                       const CompileRequest& request) {
  CompiledKernels compiled = compile_all(c, device, request);
  const int workers = std::max(1, request.worker_threads);
  const LoweringOptions options = choose_lowering(c.graph, c.plan, request.settings);
  TemplateMemo memo;
  std::map<size_t, std::vector<KernelChoice>> remedies;  // by kernel, the next one last
  for (bool changed = device.is_cuda; changed;) {
    changed = false;
    for (size_t k = 0; k < compiled.binaries.size(); ++k) {
      PlannedKernel& kernel = c.plan.kernels[k];
      if (fits_in_registers(compiled.binaries[k], kernel)) continue;
      KernelChooser chooser(c.graph, c.plan.stages, kernel, device, workers, memo);
      const auto [left, is_first] = remedies.try_emplace(k);
      if (is_first) left->second = chooser.find_remedies(pick_schedules(c.schedules, kernel));
      if (left->second.empty()) continue;
      kernel.persistent_groups = left->second.back().persistent_groups;
      chooser.schedule(left->second.back(), c.graph.symbols, c.schedules);
      left->second.pop_back();
      c.sources[k] = emit(c, kernel, options);
      changed = true;
    }
    if (changed) compiled = compile_all(c, device, request);
  }
  if (!remedies.empty()) dump_stages(c);  // what runs
  return compiled;
}

}  // namespace

CompileResult compile(const CompileRequest& request) {
  const DeviceSpec& device = device_spec(request.target);
  Compilation c = plan_and_emit(request);
  const CompiledKernels compiled =
      run_stage("compile", c.log, [&] { return compile_without_spills(c, device, request); });
  CompileResult result;
  result.report = make_report({c.graph, c.plan, c.schedules, c.sources, compiled.binaries,
                               c.log.times, device, std::max(1, request.worker_threads)});
  if (!request.load) return result;
  result.program = run_stage("program", c.log, [&] {
    const std::vector<LoadedKernel> loaded = load_kernels(c.sources, compiled, device.is_cuda);
    return std::make_shared<const Program>(
        build_program(c.graph, c.plan, c.sources, loaded, device.is_cuda));
  });
  return result;
}

std::string show_stage(const CompileRequest& request, const std::string& stage) {
  if (stage == "graph") return print(request.graph);
  Compilation c = plan_and_emit(request);
  if (stage == "rewritten") return print(c.graph);
  compile_without_spills(c, device_spec(request.target), request);
  if (stage == "text") return text_of(c, "emit");
  if (stage == "plan" || stage == "schedule") return text_of(c, stage);
  throw UserError("unknown stage '" + stage +
                  "'; stages are graph, rewritten, plan, schedule and text");
}

}  // namespace stitch
