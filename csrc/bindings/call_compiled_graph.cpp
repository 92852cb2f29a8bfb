#include <ATen/Functions.h>
#include <ATen/Parallel.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <c10/core/DeviceGuard.h>
#include <c10/util/StringUtil.h>
#include <pybind11/gil_safe_call_once.h>
#include <torch/csrc/Exceptions.h>
#include <torch/csrc/autograd/python_variable.h>
#include <torch/csrc/utils/pybind.h>

#include "bindings/compiled_graph.h"
#include "bindings/tensors.h"
#include "host_ops/host_ops.h"
#include "runtime/error_flags.h"
#include "runtime/executor.h"

#ifndef _OPENMP
#error "compile this file with -fopenmp: without it at::parallel_for silently uses one thread"
#endif

namespace stitch {
namespace {

std::string describe(const at::Tensor& tensor) {
  return c10::str(tensor.scalar_type(), tensor.sizes(), " on ", tensor.device());
}

// The tensors of one running call.
//
// Slab values and views are addresses until a library call wants them as tensors.  CPU memory comes
// from the host pool, CUDA memory from torch's caching allocator.
struct TorchFrame final : Frame {
  struct Cell {
    at::Tensor tensor;        // undefined: nothing there, or only an address
    void* address = nullptr;  // null: not asked for, or no elements
  };

  const CompiledGraph& graph;
  void* const own_stream;
  std::vector<int64_t>* symbols = nullptr;
  std::vector<Cell> cells;
  at::Tensor slab;
  void* own_barrier = nullptr;
  at::Tensor captured_barrier;
  std::vector<py::object> objects;
  // Tensors that `start` and `align` replaced, kept while their memory may be in use.
  std::vector<std::pair<BufferId, at::Tensor>> replaced;

  TorchFrame(const CompiledGraph& graph, void* stream)
      : graph(graph), own_stream(stream), cells(graph.program->buffers.size()) {}

  void start(std::vector<int64_t>& values) override {
    symbols = &values;
    for (size_t i = 0; i < cells.size(); ++i) {
      const BufferId id(static_cast<int64_t>(i));
      if (buffer(id).kind == Buffer::Kind::kArgument && buffer(id).type.dtype != DType::kOpaque)
        conform_argument(id);
    }
  }

  void allocate_slab(int64_t bytes) override {
    slab = make_tensor({{bytes}, {1}, c10::kByte}, graph.device);
  }

  void place_in_slab(BufferId id, int64_t offset_bytes) override {
    cells[id.value()].address = static_cast<char*>(slab.storage().mutable_data()) + offset_bytes;
  }

  void allocate(BufferId id, BufferId over) override {
    at::Tensor& made = cells[id.value()].tensor;
    const Layout layout = layout_of(buffer(id));
    if (over.valid()) made = make_tensor_over(cells[over.value()].tensor, layout);
    if (!made.defined()) made = make_tensor(layout, graph.device);
  }

  void align(BufferId id, int bytes) override {
    at::Tensor aligned = copy_tensor(tensor(id), layout_of(buffer(id)));
    STITCH_CHECK(reinterpret_cast<uintptr_t>(aligned.const_data_ptr()) % bytes == 0,
                 "the allocator gives addresses that are not " << bytes << "-byte aligned");
    replace(id, std::move(aligned));
  }

  void write_back(BufferId id) override {
    at::AutoDispatchBelowADInplaceOrView guard;
    for (const auto& [changed, original] : replaced)
      if (changed == id) original.copy_(tensor(id));
  }

  void* data(BufferId id) override {
    Cell& cell = cells[id.value()];
    if (cell.address) return cell.address;
    const Buffer& promised = buffer(id);
    const at::Tensor& tensor = cell.tensor;
    if (promised.kind == Buffer::Kind::kAlias && !tensor.defined()) {
      char* base = static_cast<char*>(data(promised.base));
      const int64_t offset = evaluate(promised.offset, *symbols);
      return cell.address = base + offset * info(promised.type.dtype).bytes;
    }
    STITCH_CHECK(tensor.defined(), "buffer " << id << " is not set when a kernel uses it");
    if (tensor.device().type() != graph.device.type() || tensor.layout() != c10::kStrided)
      throw UnsupportedError("a kernel on " + graph.device.str() + " would read " +
                             describe(tensor) + "; it can only read dense tensors of its device");
    return cell.address = tensor.unsafeGetTensorImpl()->mutable_data();
  }

  // By thread and stream, as launches of one stream follow each other; for the life of the process,
  // in the driver's memory, since torch's may be a CUDA graph's that is being warmed up.  A capture
  // has its own, as graphs captured on one stream may run on several.
  void* barrier() override {
    if (own_barrier) return own_barrier;
    const Driver& table = driver();
    int capturing = 0;
    check_driver(table.stream_is_capturing(own_stream, &capturing), "cuStreamIsCapturing",
                 "a stream");
    if (capturing) {
      at::AutoDispatchBelowADInplaceOrView guard;
      captured_barrier = at::zeros({1}, at::TensorOptions().dtype(at::kInt).device(graph.device));
      return own_barrier = captured_barrier.mutable_data_ptr();
    }
    thread_local std::map<std::pair<c10::DeviceIndex, void*>, CudaAddress> barriers;
    CudaAddress& kept = barriers[{graph.device.index(), own_stream}];
    if (!kept) {
      check_driver(table.memory_allocate(&kept, sizeof(uint32_t)), "cuMemAlloc", "a barrier");
      check_driver(table.memory_set(kept, 0, 1, own_stream), "cuMemsetD32Async", "a barrier");
    }
    return own_barrier = reinterpret_cast<void*>(kept);
  }

  void copy(BufferId from, BufferId to) override {
    if (buffer(to).kind != Buffer::Kind::kArgument) return fill_made(tensor(to), tensor(from));
    at::AutoDispatchBelowADInplaceOrView guard;
    tensor(to).copy_(tensor(from));
    write_back(to);
  }

  void call(const CallStep& step) override {
    const CallRow& row = graph.call(step);
    const bool stores_over = step.stores_over && is_held_once(step.inputs[0]);
    const auto operands = map_to_vector(step.inputs, [&](BufferId input) { return tensor(input); });
    CallValues values{operands, *symbols, objects, {}};
    const OperatorCall* op = std::get_if<OperatorCall>(&row.call);
    const bool is_one = step.outputs.size() == 1 && step.outputs[0].valid();
    if (op && op->out_variant && (graph.device.is_cpu() || stores_over) && is_one &&
        buffer(step.outputs[0]).type.dtype != DType::kOpaque) {
      at::Tensor& out = cells[step.outputs[0].value()].tensor;
      if (stores_over)
        out = operands[0];
      else
        allocate(step.outputs[0], BufferId());
      values.out = out;
      run_call(row, values);
      return;
    }
    std::vector<at::Tensor> results = run_call(row, values);
    define_symbols(results, step.call);
    for (size_t i = 0; i < step.outputs.size() && i < results.size(); ++i)
      if (step.outputs[i].valid()) set_result(step.outputs[i], std::move(results[i]), step);
  }

  void parallel_for(int64_t count, int64_t grain,
                    const std::function<void(int64_t, int64_t)>& body) override {
    at::parallel_for(0, count, grain, body);
  }

  void release(BufferId id) override { cells[id.value()] = Cell(); }
  void* stream() override { return own_stream; }

  const Buffer& buffer(BufferId id) const { return graph.program->buffers[id.value()]; }
  Layout layout_of(const Buffer& buffer) const { return evaluate_layout(buffer.type, *symbols); }

  // The tensor in the layout that is promised; undefined where it has that, or its sizes are
  // nobody's business; nothing where it does not fit.
  std::optional<at::Tensor> conform(const Buffer& promised, const at::Tensor& tensor) const {
    const TensorType& type = promised.type;
    const auto now = [&](const Dim& dim) { return evaluate(dim, *symbols); };
    const bool fits = std::ranges::equal(tensor.sizes(), type.shape, {}, {}, now);
    if (!fits && !promised.is_addressed) return at::Tensor();
    if (!fits || tensor.scalar_type() != to_scalar_type(type.dtype)) return std::nullopt;
    at::Tensor laid;
    if (tensor.is_neg()) {  // kernels read the bits in memory
      at::AutoDispatchBelowADInplaceOrView guard;
      laid = tensor.resolve_neg();
    }
    const at::Tensor& read = laid.defined() ? laid : tensor;
    if (!has_strides(read, type, *symbols)) laid = copy_tensor(read, layout_of(promised));
    return laid;
  }

  std::string describe_promise(const Buffer& buffer) const {
    return c10::str(info(buffer.type.dtype).name, c10::IntArrayRef(layout_of(buffer).sizes));
  }

  void conform_argument(BufferId id) {
    const Buffer& promised = buffer(id);
    const at::Tensor& given = cells[id.value()].tensor;
    std::optional<at::Tensor> laid = conform(promised, given);
    if (!laid)
      throw UserError("argument " + std::to_string(promised.index) + " is " + describe(given) +
                      ", but the graph was compiled for " + describe_promise(promised) +
                      "; compile again for these sizes");
    if (laid->defined()) replace(id, *std::move(laid));
  }

  void replace(BufferId id, at::Tensor replacement) {
    Cell& cell = cells[id.value()];
    replaced.emplace_back(id, std::move(cell.tensor));
    cell.tensor = std::move(replacement);
    cell.address = nullptr;
  }

  at::Tensor& tensor(BufferId id) {
    Cell& cell = cells[id.value()];
    const Buffer& promised = buffer(id);
    if (cell.tensor.defined() || promised.kind == Buffer::Kind::kResult) return cell.tensor;
    const Layout layout = layout_of(promised);
    if (promised.kind == Buffer::Kind::kAlias) {
      const at::Tensor& base = tensor(promised.base);
      const int64_t offset = base.storage_offset() + evaluate(promised.offset, *symbols);
      return cell.tensor = view_memory(base, offset, layout);
    }
    STITCH_CHECK(promised.kind == Buffer::Kind::kSlab,
                 "buffer " << id << " is not set when a library call uses it");
    const auto* begin = static_cast<const char*>(slab.storage().data());
    const int64_t offset_bytes = static_cast<const char*>(cell.address) - begin;
    return cell.tensor = place_in_memory(slab, offset_bytes, layout);
  }

  // Nobody outside of this call, and no view in it, has the memory.
  bool is_held_once(BufferId id) const {
    const at::Tensor& held = cells[memory_of(*graph.program, id).value()].tensor;
    return held.has_storage() && held.use_count() == 1 && held.storage().use_count() == 1;
  }

  bool is_in_slab(const at::Tensor& tensor) const {
    if (!tensor.defined() || !slab.defined() || !tensor.has_storage()) return false;
    const auto* begin = static_cast<const char*>(slab.storage().data());
    const auto* data = static_cast<const char*>(tensor.storage().data());
    return data >= begin && data < begin + slab.storage().nbytes();
  }

  void define_symbols(const std::vector<at::Tensor>& results, int64_t call) {
    const SymbolTable& table = graph.program->symbols;
    bool is_defined = false;
    for (size_t i = 0; i < table.symbols.size(); ++i) {
      const Symbol& symbol = table.symbols[i];
      if (!is_late(symbol) || row_of(symbol) != call) continue;
      const at::Tensor& result = results.at(symbol.left.value());
      const int64_t dimension = symbol.right.value();
      (*symbols)[i] = dimension < 0 ? result.item().toLong() : result.size(dimension);
      is_defined = true;
    }
    if (is_defined) complete(table, *symbols);
  }

  void set_result(BufferId id, at::Tensor result, const CallStep& step) {
    const Buffer& promised = buffer(id);
    // What outlives the call must not sit in memory that the next value overwrites.
    if (is_in_slab(result)) {
      at::AutoDispatchBelowADInplaceOrView guard;
      result = result.clone();
    }
    if (result.defined() && promised.type.dtype != DType::kOpaque) {
      std::optional<at::Tensor> laid = conform(promised, result);
      if (!laid)
        throw InternalError(graph.call(step).name + " returned " + describe(result) +
                            ", the graph expects " + describe_promise(promised));
      if (laid->defined()) result = *std::move(laid);
    }
    cells[id.value()] = Cell{std::move(result), nullptr};
  }
};

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
    frame.cells[i].tensor = THPVariable_Unpack(item);
  }
  for (const int position : graph.calls->objects)
    frame.objects.push_back(py::reinterpret_borrow<py::object>(item_at(list, position)));
}

py::object make_output(const ProgramOutput& output, TorchFrame& frame) {
  if (output.kind == ProgramOutput::Kind::kTensor) return wrap_tensor(frame.tensor(output.buffer));
  if (output.kind == ProgramOutput::Kind::kInteger)
    return py::int_(evaluate(output.integer, *frame.symbols));
  return py::none();
}

void add_extras(const CompiledGraph& graph, py::list arguments) {
  for (const py::handle extra : graph.calls->extras) {
    if (PyCallable_Check(extra.ptr())) {
      arguments.append(extra(arguments));
    } else if (py::isinstance<py::int_>(extra)) {
      const at::Tensor number = at::scalar_tensor(arguments[extra].cast<double>(),
                                                  at::dtype(at::kDouble).device(graph.device));
      arguments.append(wrap_tensor(number));
    } else if (THPDevice_Check(extra.ptr())) {
      arguments.append(draw_word(extra.cast<at::Device>()));
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
  kept.call_once_and_store_result(
      [] { return py::object(py::module_::import("torch._C").attr("_cuda_getCurrentRawStream")); });
  return reinterpret_cast<void*>(kept.get_stored()(graph.device.index()).cast<uintptr_t>());
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
    const c10::DeviceGuard guard(graph.device);
    if (graph.device.is_cuda()) ensure_context(graph.device.index());
    symbols = run(program, frame, integers);
    frame.symbols = &symbols;
    if (simulation) simulation->check();
  }
  py::list results(program.outputs.size());
  for (size_t i = 0; i < program.outputs.size(); ++i)
    results[i] = make_output(program.outputs[i], frame);
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
