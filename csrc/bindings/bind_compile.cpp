// compile, show_stage and CompiledGraph as Python sees them.
#include <ATen/Parallel.h>
#include <c10/core/DeviceGuard.h>
#include <pybind11/stl.h>

#include "base/log.h"
#include "bindings/compiled_graph.h"
#include "bindings/python_types.h"
#include "ir/assume_sizes.h"
#include "runtime/pool.h"

namespace stitch {
namespace {

using namespace py::literals;

py::dict list_kernel(const ReportedKernel& kernel) {
  py::dict persistent, tiles;
  const auto ops = map_to_vector(kernel.ops, [](const ReportedOp& op) {
    return py::dict("op"_a = op.op, "location"_a = op.location);
  });
  for (const ReportedPersistent& value : kernel.persistent)
    persistent[py::str(value.value)] =
        py::dict("home"_a = value.home, "bytes"_a = value.bytes, "registers"_a = value.registers,
                 "shared_bytes"_a = value.shared_bytes);
  for (const ReportedTile& tile : kernel.tiles)
    tiles[py::str(tile.value)] = py::dict("rows"_a = tile.rows, "bytes"_a = tile.bytes);
  py::dict row("name"_a = kernel.name, "policy"_a = kernel.policy, "ops"_a = ops,
               "persistent"_a = persistent, "tiles"_a = tiles, "bytes_read"_a = kernel.bytes_read,
               "bytes_written"_a = kernel.bytes_written, "bytes_planned"_a = kernel.bytes_planned,
               "grid"_a = kernel.grid, "block"_a = kernel.block,
               "shared_bytes"_a = kernel.shared_bytes, "registers"_a = kernel.registers,
               "spill_bytes"_a = kernel.spill_bytes, "stack_bytes"_a = kernel.stack_bytes,
               "predicted_us"_a = kernel.predicted_us,
               "scheme"_a = py::dict(py::cast(kernel.schemes)), "compile_ms"_a = kernel.compile_ms,
               "from_cache"_a = kernel.from_cache, "text"_a = kernel.text);
  const ReportedTime& time = kernel.time;
  if (time.us >= 0)
    row.attr("update")("clock_us"_a = time.us, "bound"_a = time.bound,
                       "instructions_per_16_bytes"_a = time.instructions_per_16_bytes,
                       "instructions"_a = time.instructions,
                       "resident_threads"_a = time.resident_threads,
                       "limited_by"_a = time.limited_by, "launches"_a = time.launches,
                       "assumptions"_a = time.assumptions);
  return row;
}

py::dict to_dict(const Report& report) {
  const auto calls = map_to_vector(report.library_calls, [](const ReportedCall& call) {
    return py::dict("name"_a = call.name, "location"_a = call.location,
                    "bytes_read"_a = call.bytes_read, "bytes_written"_a = call.bytes_written);
  });
  const auto cuts = map_to_vector(report.cuts, [](const ReportedCut& cut) {
    return py::dict("edge"_a = cut.edge, "rule"_a = cut.rule, "words"_a = cut.words,
                    "remedy"_a = cut.remedy);
  });
  const auto stages = map_to_vector(report.stages, [](const StageTime& stage) {
    return py::dict("name"_a = stage.name, "milliseconds"_a = stage.us / 1000);
  });
  return py::dict(
      "kernels"_a = map_to_vector(report.kernels, list_kernel), "library_calls"_a = calls,
      "cuts"_a = cuts, "stages"_a = stages, "bytes_touched"_a = report.bytes_touched,
      "bytes_planned"_a = report.bytes_planned, "bytes_unfused"_a = report.bytes_unfused,
      "bytes_compulsory"_a = report.bytes_compulsory, "assumed_sizes"_a = report.assumed_sizes,
      "target"_a = report.target, "device"_a = report.device);
}

// A function's plan, of its kernels what is the same in each run; and that plan as a table.
struct Explanation {
  py::dict plan;
  std::string table;
};

Explanation explain(const Report& merged) {
  py::dict plan = to_dict(merged);
  plan.attr("pop")("stages");
  for (py::handle kernel : plan["kernels"])
    for (const char* name : {"compile_ms", "from_cache", "text"}) kernel.attr("pop")(name);
  if (merged.graphs == 0) plan["target"] = py::none();
  plan["launches"] = merged.kernels.size() + merged.library_calls.size();
  plan["graph_breaks"] = merged.graph_breaks();
  return {plan, to_string(merged)};
}

// Each graph with the name of its pass.
Explanation merge_reports(const std::vector<std::pair<std::string, const CompiledGraph*>>& graphs,
                          bool training) {
  std::array<Report, 2> merged;
  for (const auto& [pass, graph] : graphs) merged[pass == "backward"].add(graph->report);
  const Explanation forward = explain(merged[0]), backward = explain(merged[1]);
  if (!training) return forward;
  return {py::dict("forward"_a = forward.plan, "backward"_a = backward.plan),
          "forward\n" + forward.table + "\n\nbackward\n" + backward.table};
}

// The pool is the process's: a graph that runs sets its limit by its options, or if nothing has.
void limit_pool(const py::dict& options, const Settings& settings) {
  static bool is_set = false;
  if (!is_set || options.contains("pool_bytes")) host_pool().set_limit(settings.pool_bytes);
  is_set = true;
}

using Nearness = SymbolTable::Nearness;

CompileRequest make_request(const Graph& graph, const py::dict& options, const std::string& target,
                            bool load) {
  CompileRequest request{graph, read_options(options), target, load, at::get_num_threads()};
  if (target != "cpu" && request.settings.assume_sizes)
    request.graph.symbols.nearness = Nearness::kClass;
  return request;
}

// Fills in program, report and the rows that the core makes; without the interpreter's lock.
void compile_into(CompiledGraph& graph, const CompileRequest& request) {
  std::optional<ptxsim::SimulatedRun> simulation;
  if (graph.simulated) simulation.emplace(*graph.simulated);
  // Kernels are loaded into the context of the device they will run on.
  const c10::DeviceGuard guard(graph.device);
  if (graph.device.is_cuda()) ensure_context(graph.device.index());
  std::optional<ProgressLine> progress;
  if (request.settings.progress)
    progress.emplace("torch_stitch: compiling a graph of " + std::to_string(request.graph.size()) +
                     " ops ...");
  CompileResult result = compile(request);
  graph.program = std::move(result.program);
  graph.report = std::move(result.report);
  if (!graph.program) return;
  count_compilation(graph.report);
  graph.made_calls = map_to_vector(graph.program->made_calls, make_row);
}

CompiledGraph compile_graph(const Graph& graph, std::shared_ptr<CallTable> calls,
                            const py::dict& options, const std::string& target, bool load,
                            int device_index) {
  const CompileRequest request = make_request(graph, options, target, load);
  CompiledGraph compiled{.calls = std::move(calls)};
  if (is_simulated(request.settings) && target != "cpu" && load)
    compiled.simulated = &ptxsim::simulated_device(target, request.settings.simulate);
  else if (target != "cpu" && load)
    compiled.device = c10::Device(c10::kCUDA, static_cast<c10::DeviceIndex>(device_index));
  if (load) limit_pool(options, request.settings);
  py::gil_scoped_release no_gil;
  const CompiledGraph blank = compiled;
  compile_into(compiled, request);
  if (!compiled.program || compiled.program->symbols.assumptions.empty()) return compiled;
  compiled.others = std::make_shared<CompiledGraph::Others>();
  compiled.others->compile = [=](Nearness nearness, const std::vector<int64_t>& integers) {
    CompileRequest again = request;
    again.graph.symbols = with_hints(request.graph.symbols, integers);
    again.graph.symbols.nearness = nearness;
    CompiledGraph other = blank;
    compile_into(other, again);
    return std::make_unique<const CompiledGraph>(std::move(other));
  };
  return compiled;
}

void check_target(const Settings& settings, bool on_host) {
  if (settings.target == "auto" || (settings.target == "cpu") == on_host) return;
  throw UserError("found the target " + settings.target + " and tensors on other devices; " +
                  "explain(..., target=) plans for devices that are not there, simulate=True runs "
                  "plans");
}

std::string find_gpu_target(int gpu, const py::dict& options) {
  check_target(read_options(options), false);
  return find_device(read_device(gpu)).name;
}

// The row of the device table that CPU tensors are planned for.
std::string find_host_target(const py::dict& options) {
  const Settings settings = read_options(options);
  if (!is_simulated(settings)) {
    check_target(settings, true);
    return "cpu";
  }
  if (settings.target == "cpu")
    throw UserError("simulate runs a GPU's kernels and the target is cpu; leave one of them out");
  return settings.target == "auto" ? "h200" : settings.target;
}

}  // namespace

void bind_compile(py::module_& module) {
  const auto make_callable = [](PyHeapTypeObject* t) { t->ht_type.tp_call = &call_compiled_graph; };
  py::class_<CompiledGraph> compiled(module, "CompiledGraph", py::custom_type_setup(make_callable));
  compiled.def("report", [](const CompiledGraph& graph) { return to_dict(graph.report); })
      .def("check_flags", &check_flags_of)
      .def("__str__", [](const CompiledGraph& graph) {
        return graph.program ? to_string(*graph.program) : std::string("not loaded");
      });
  // AOTAutograd hands its list of arguments over to a callable with this mark.
  compiled.attr("_boxed_call") = true;
  module.def("compile", &compile_graph, "graph"_a, "calls"_a, "options"_a, "target"_a,
             "load"_a = true, "device_index"_a = 0);
  py::class_<Explanation>(module, "Report", "What explain() found: print() shows it as a table.")
      .def_readonly("plan", &Explanation::plan)
      .def("to_json",
           [](const Explanation& found) {
             return py::module_::import("json").attr("dumps")(found.plan, "indent"_a = 1);
           })
      .def("__repr__", [](const Explanation& found) { return found.table; });
  module.def("merge_reports", &merge_reports, "graphs"_a, "training"_a);
  module.def("find_gpu_target", &find_gpu_target, "gpu"_a, "options"_a);
  module.def("find_host_target", &find_host_target, "options"_a);
  module.def(
      "show_stage",
      [](const Graph& graph, const py::dict& options, const std::string& target,
         const std::string& stage) {
        return show_stage(make_request(graph, options, target, false), stage);
      },
      "graph"_a, "options"_a, "target"_a, "stage"_a);
}

}  // namespace stitch
