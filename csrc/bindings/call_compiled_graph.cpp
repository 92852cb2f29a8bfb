#include <ATen/ops/scalar_tensor.h>
#include <c10/core/DeviceGuard.h>
#include <pybind11/gil_safe_call_once.h>
#include <torch/csrc/Exceptions.h>
#include <torch/csrc/autograd/python_variable.h>
#include <torch/csrc/utils/pybind.h>

#include <optional>

#include "bindings/compiled_graph.h"
#include "bindings/tensors.h"
#include "bindings/torch_frame.h"
#include "runtime/error_flags.h"

namespace stitch {
namespace {

PyObject* item_at(PyObject* list, int position) {
  PyObject* item = PyList_GetItem(list, position);
  if (!item) throw python_error();
  return item;
}

std::vector<int64_t> read_integers(const Program& program, PyObject* list) {
  return map_to_vector(program.integer_positions, [&](int position) {
    const int64_t integer = PyLong_AsLongLong(item_at(list, position));
    if (integer == -1 && PyErr_Occurred()) throw python_error();
    return integer;
  });
}

void read_tensors(const CompiledGraph& graph, PyObject* list, TorchFrame& frame) {
  const std::vector<Buffer>& buffers = graph.program->buffers;
  for (size_t i = 0; i < buffers.size(); ++i) {
    if (buffers[i].kind != Buffer::Kind::kArgument) continue;
    PyObject* item = item_at(list, buffers[i].index);
    if (!THPVariable_Check(item))
      throw UserError("argument " + std::to_string(buffers[i].index) + " is of type " +
                      Py_TYPE(item)->tp_name + ", the graph takes a tensor there");
    frame.set_argument(BufferId(static_cast<int64_t>(i)), THPVariable_Unpack(item));
  }
  for (const int position : graph.calls->objects)
    frame.add_object(py::reinterpret_borrow<py::object>(item_at(list, position)));
}

PyObject* make_output(const ProgramOutput& output, TorchFrame& frame,
                      const std::vector<int64_t>& symbols) {
  if (output.kind == ProgramOutput::Kind::kTensor)
    return wrap_tensor(frame.output(output.buffer, symbols)).release().ptr();
  if (output.kind == ProgramOutput::Kind::kInteger)
    return PyLong_FromLongLong(evaluate(output.integer, symbols));
  Py_RETURN_NONE;
}

void add_extras(const CompiledGraph& graph, py::list arguments) {
  for (const py::handle extra : graph.calls->extras) {
    if (PyCallable_Check(extra.ptr())) {
      arguments.append(extra(arguments));
    } else if (py::isinstance<py::int_>(extra)) {
      const at::Tensor number = at::scalar_tensor(arguments[extra].cast<double>(),
                                                  at::dtype(at::kDouble).device(graph.device));
      arguments.append(wrap_tensor(number));
    } else {
      arguments.append(extra);
    }
  }
}

void finish_results(const CompiledGraph& graph, py::list results) {
  for (const py::handle position : graph.calls->number_outputs)
    results[position] = results[position].attr("item")();
  for (size_t v = graph.calls->views.size(); v-- > 0;) {
    using View = std::tuple<size_t, size_t, at::ScalarType>;
    const auto [position, rank, dtype] = graph.calls->views[v].cast<View>();
    const size_t place = results.size() - 2 * rank - 1;
    const py::object numbers = results[py::slice(place, results.size(), 1)];
    const at::Tensor whole = THPVariable_Unpack(py::object(results[position]).ptr());
    results[position] = wrap_tensor(part_of(whole, dtype, numbers.cast<std::vector<int64_t>>()));
    if (PyList_SetSlice(results.ptr(), py::ssize_t(place), PY_SSIZE_T_MAX, nullptr) < 0)
      throw python_error();
  }
}

void* current_stream(const CompiledGraph& graph) {
  if (!graph.device.is_cuda()) return nullptr;
  PYBIND11_CONSTINIT static py::gil_safe_call_once_and_store<py::object> kept;
  const py::object& find = kept.call_once_and_store_result([] {
                                 return py::module_::import("torch._C")
                                     .attr("_cuda_getCurrentRawStream")
                                     .cast<py::object>();
                               })
                               .get_stored();
  return reinterpret_cast<void*>(find(graph.device.index()).cast<uintptr_t>());
}

bool is_for(const CompiledGraph& graph, const std::vector<int64_t>& integers) {
  const SymbolTable& symbols = graph.program->symbols;
  return symbols.assumptions.empty() || symbols.holds(symbols.evaluate(integers));
}

// The graph itself or one of its others, compiled if need be, whose assumptions hold for a call.
const CompiledGraph& choose_for(const CompiledGraph& graph, const std::vector<int64_t>& integers) {
  using Nearness = SymbolTable::Nearness;
  if (is_for(graph, integers)) return graph;
  py::gil_scoped_release no_gil;
  const std::lock_guard lock(graph.others->mutex);
  auto& made = graph.others->made;
  for (const auto& other : made)
    if (is_for(*other, integers)) return *other;
  static constexpr Nearness kNext[] = {Nearness::kClass, Nearness::kSmall, Nearness::kAny};
  made.push_back(graph.others->compile(kNext[made.size()], integers));
  STITCH_CHECK(is_for(*made.back(), integers), "a program does not fit the sizes it was made for");
  return *made.back();
}

PyObject* run_graph(const CompiledGraph& compiled, PyObject* list, void* stream) {
  if (!compiled.program)
    throw UserError("the graph was compiled with load=False, to be looked at; it cannot run");
  add_extras(compiled, py::reinterpret_borrow<py::list>(list));
  if (PyList_GET_SIZE(list) != compiled.program->argument_count)
    throw UserError("the graph takes " + std::to_string(compiled.program->argument_count) +
                    " arguments and was given " + std::to_string(PyList_GET_SIZE(list)));
  const std::vector<int64_t> integers = read_integers(*compiled.program, list);
  const CompiledGraph& graph = choose_for(compiled, integers);
  const Program& program = *graph.program;
  TorchFrame frame(graph, stream);
  read_tensors(graph, list, frame);
  if (PyList_SetSlice(list, 0, PyList_GET_SIZE(list), nullptr) < 0) throw python_error();
  std::vector<int64_t> symbols;
  {
    py::gil_scoped_release no_gil;
    std::optional<ptxsim::SimulatedRun> simulation;
    if (graph.simulated) simulation.emplace(*graph.simulated);
    c10::OptionalDeviceGuard guard;
    if (graph.device.is_cuda()) {
      guard.reset_device(graph.device);
      ensure_context(graph.device.index());
    }
    symbols = run(program, frame, integers);
    if (simulation) simulation->check();
  }
  py::list results(program.outputs.size());
  for (size_t i = 0; i < program.outputs.size(); ++i) {
    PyObject* result = make_output(program.outputs[i], frame, symbols);
    if (!result) throw python_error();
    PyList_SET_ITEM(results.ptr(), static_cast<Py_ssize_t>(i), result);
  }
  finish_results(graph, results);
  return results.release().ptr();
}

const CompiledGraph& unwrap(PyObject* self) {
  // What py::cast finds after a type lookup that would double the time of a call.
  const auto* instance = reinterpret_cast<const py::detail::instance*>(self);
  if (!instance->simple_value_holder[0]) throw UserError("the compiled graph was never made");
  return *static_cast<const CompiledGraph*>(instance->simple_value_holder[0]);
}

}  // namespace

void check_flags_of(const CompiledGraph& graph) {
  std::vector<const CompiledGraph*> all{&graph};
  if (graph.others) {
    py::gil_scoped_release no_gil;
    const std::lock_guard lock(graph.others->mutex);
    for (const auto& other : graph.others->made) all.push_back(other.get());
  }
  for (const CompiledGraph* each : all) {
    ErrorFlags* flags = each->program ? each->program->flags.get() : nullptr;
    if (!flags) continue;
    if (flags->waits() && graph.device.is_cuda()) flags->wait_and_check(current_stream(graph));
    flags->check();
  }
}

PyObject* call_compiled_graph(PyObject* self, PyObject* arguments, PyObject* keywords) {
  PyObject* list = PyTuple_GET_SIZE(arguments) == 1 ? PyTuple_GET_ITEM(arguments, 0) : nullptr;
  if (!list || keywords || !PyList_CheckExact(list)) {
    PyErr_SetString(PyExc_TypeError, "a compiled graph takes one list of arguments");
    return nullptr;
  }
  HANDLE_TH_ERRORS
  try {
    const CompiledGraph& graph = unwrap(self);
    return run_graph(graph, list, current_stream(graph));
  } catch (const py::error_already_set&) {
    throw;
  } catch (const std::exception&) {
    if (!set_python_error()) throw;
    throw python_error();
  }
  END_HANDLE_TH_ERRORS
}

}  // namespace stitch
