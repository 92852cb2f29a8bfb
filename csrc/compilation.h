// Compilation: everything between the imported graph and kernel text, as the spine fills it in;
// and what it makes of that: binaries, reports, times, and what is kept.
#pragma once

#include "codegen/emit_kernel.h"
#include "compile.h"
#include "jit/compiler.h"
#include "plan/kernels/choose_template.h"

namespace stitch {

struct StageLog {
  std::vector<StageTime> times;
  std::string subject;   // "graph3": starts the names of dump files
  std::string dump;      // stages to dump, "plan,schedule" or "all"; empty: none
  std::string dump_dir;  // where dumps go
};

// Runs one stage of the flow: timed, named in errors.  StoppedError once the process ends.
void run_stage(const std::string& name, StageLog& log, const std::function<void()>& work);

// Of stage n, if it has run and `dump` names it, or `what` it made: writes
// `<dump_dir>/<subject>.<n>.<what>.txt`, anew where it did so before.
void write_dump(const StageLog& log, const std::string& stage,
                const std::function<std::string()>& print, const std::string& what = {});

struct Compilation {
  const CompileRequest& request;
  const DeviceSpec& device = device_spec(request.target);
  Target target = {device, request.worker_threads};
  Graph graph = {};
  StitchPlan plan = {};
  LoweringOptions options = {};
  std::vector<KernelSource> sources = {};
  StageLog log = {};
};

// The text of planned kernel `k` as it is scheduled now.
inline KernelSource emit(const Compilation& c, size_t k) {
  return emit_kernel(c.graph, lower_kernel(c.graph, c.plan, c.plan.kernels[k], c.options),
                     c.options);
}

// A kernel of the plan as one of its choices, what its code says, and what else it could be.
struct Trial {
  size_t kernel = 0;
  KernelChoice choice = {};
  int spilled_bytes = 0;
  double us = 0;                          // by the clock; 0: it is not asked, or has no answer
  std::vector<KernelChoice> others = {};  // the fastest last
};

// Each kernel becomes what the clock calls fastest, spills included: registers in memory may cost
// less than a schedule that needs fewer (cross entropy of 32,000 classes: 356 us with 40 bytes
// spilled, 467 and more with none).  Of what the clock cannot tell apart, or has no time for since
// it spills much, it becomes what spills least, else the first; but nothing that is predicted at
// more than twice its own time.  `compile` says of a few trials of all kernels what they spill and
// how long they take: of those that spill, and in the first round of all that are timed.  A round
// by which the clock sees no gain is a kernel's last.
void try_choices(std::vector<Trial>& kernels,
                 const std::function<void(std::vector<Trial>&)>& compile);

// The binaries of c.sources; none where nothing is to be compiled.  Errors: as compile().
//
// Launch bounds are assumed, then checked against the compiled kernel (AStitch A.14): of one that
// spills, and with `clock=choose` of every kernel, the best few other choices are compiled, and
// what `time` (microseconds) says of them decides.  What does not spill is not timed unless asked
// for.
using TimeKernel = std::function<double(const KernelSource& source, const Binary& binary)>;
std::vector<Binary> settle_kernels(Compilation& c, const TimeKernel& time);

Report make_report(const Compilation& c);
// What the compiler said of a GPU's kernels; there may be none: planned, not compiled.
void add_binaries(Report& report, const std::vector<Binary>& binaries);

// How long kernels take on a GPU that is not here, by the clock (docs/clock.md).
//
// A kernel is launched as runtime/executor.cpp does it: where its blocks wait for each other,
// cooperatively if all are resident, else once for each phase.  Sizes that only a call knows are
// their hints.  Example: softmax of f32[4096, 4096] on an H200 is one launch of 4,096 blocks.
//
// Answers are kept beside binaries (jit/kernel_cache.h).  What the clock cannot read is its error.
ReportedTime time_kernel(const Compilation& c, const KernelSource& source, const Binary& binary);
// Of each of c.sources.  UserError where the device is no GPU.
void time_kernels(Report& report, const Compilation& c, const std::vector<Binary>& binaries);

// What is kept of a compiled graph, so that nobody plans it twice.
//
// The kernel cache holds program, kernel texts and report under the text of the imported graph, the
// target, the settings that plans depend on, the threads that work is cut for and the sources that
// this library is built from: what another build keeps is not found, nor what is kept of a graph
// that differs in the hint of one size.  Kernels have entries of their own, and are compiled again
// where those are gone.
struct CompiledPlan {
  Program program;  // its kernels still to be loaded
  Report report;    // without what the compiler said and how long stages took
  std::vector<Binary> binaries;
};

// What `plan` makes of the request, or once made; nothing is looked up or kept of what is only
// shown.  `arch` is the device's; whatever `plan` throws reaches the caller and is not kept.
CompiledPlan find_plan(const CompileRequest& request, const std::string& arch,
                       const std::function<CompiledPlan()>& plan);

}  // namespace stitch
