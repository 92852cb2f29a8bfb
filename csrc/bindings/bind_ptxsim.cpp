// run_kernel: one CUDA or PTX kernel on CPU tensors, as Python and the command line see it.
#include <ATen/EmptyTensor.h>
#include <ATen/Functions.h>
#include <pybind11/stl.h>
#include <torch/csrc/utils/pybind.h>

#include <regex>

#include "base/words.h"
#include "bindings/python_types.h"
#include "bindings/tensors.h"
#include "jit/compiler.h"
#include "ptxsim/run_kernel.h"
#include "ptxsim/simulated_driver.h"

namespace stitch {
namespace {

using namespace py::literals;
using namespace ptxsim;

constexpr const char* kRunDoc =
    "run_kernel(source, kernel, grid, block, args, *, inputs=(), outputs=(), shared_bytes=0,\n"
    "           target='h200', cooperative=False, orders=5, seed=0, checks=True) -> Result\n\n"
    "Runs one kernel of a CUDA or PTX text on the simulator.  grid and block are ints or tuples;\n"
    "args are CPU tensors (written in place), numbers (converted to their parameters' types),\n"
    "None (a null pointer) or bytes (a struct).  inputs and outputs are positions in args: inputs\n"
    "are never written, outputs start uninitialised and are written whole, each element once.\n"
    "target is a GPU of the device table, or 'two_sm'.  Without checks there is one order.\n"
    "budget: lane instructions of one order after which a loop counts as endless.\n"
    "noise: approximate instructions err by what their documentation allows, drawn from the seed.\n"
    "clock: what docs/clock.md says of the launch too, as `clock` of the result; for CUDA text.";

std::array<int64_t, 3> read_extents(const py::object& given, const char* what) {
  const py::object listed = PyIndex_Check(given.ptr()) ? py::make_tuple(given) : given;
  const auto count = py::isinstance<py::sequence>(listed) ? py::len(listed) : 0;
  if (count < 1 || count > 3)
    throw UserError(concat(what, " is ", std::string(py::repr(given)),
                           "; it is an int or a tuple of one to three"));
  std::array<int64_t, 3> extents = {1, 1, 1};
  for (size_t d = 0; d < count; ++d) extents[d] = listed[py::int_(d)].cast<int64_t>();
  return extents;
}

View read_tensor(const at::Tensor& tensor, size_t position) {
  const std::string subject = "argument " + std::to_string(position) + " is a tensor ";
  if (!tensor.device().is_cpu())
    throw UserError(subject + "on " + tensor.device().str() + "; the simulator takes CPU tensors");
  if (tensor.layout() != c10::kStrided || tensor.is_neg() || tensor.is_conj())
    throw UserError(subject + "whose memory does not hold its elements; give a dense copy of it");
  View view;
  view.element_bytes = static_cast<uint32_t>(tensor.element_size());
  view.is_integer = at::isIntegralType(tensor.scalar_type(), /*includeBool=*/true);
  view.sizes = tensor.sizes().vec();
  view.strides = tensor.strides().vec();
  if (tensor.numel() == 0) return view;
  view.address = reinterpret_cast<uint64_t>(tensor.mutable_data_ptr());
  view.bytes = at::detail::computeStorageNbytes(view.sizes, view.strides, view.element_bytes);
  return view;
}

Integer read_integer(py::handle given) {
  const auto index = py::reinterpret_steal<py::object>(PyNumber_Index(given.ptr()));
  if (!index) throw py::error_already_set();
  const bool is_negative = index < py::int_(0);
  const auto bits = is_negative ? static_cast<uint64_t>(PyLong_AsLongLong(index.ptr()))
                                : PyLong_AsUnsignedLongLong(index.ptr());
  if (PyErr_Occurred()) throw py::error_already_set();
  return {bits, is_negative};
}

KernelValue read_argument(py::handle given, size_t position) {
  if (THPVariable_Check(given.ptr())) return read_tensor(THPVariable_Unpack(given.ptr()), position);
  if (given.is_none()) return Integer{0, false};
  if (PyFloat_Check(given.ptr())) return given.cast<double>();
  if (PyBytes_Check(given.ptr())) return Bytes{given.cast<std::string>()};
  if (PyIndex_Check(given.ptr())) return read_integer(given);
  throw UserError(concat("argument ", position, " is of type ", Py_TYPE(given.ptr())->tp_name,
                         "; arguments are CPU tensors, numbers, None and bytes"));
}

// What a run takes beside the kernel's own arguments.
void read_keywords(const py::dict& keywords, KernelRun& run) {
  run.inputs = keywords["inputs"].cast<std::vector<int64_t>>();
  run.outputs = keywords["outputs"].cast<std::vector<int64_t>>();
  run.shared_bytes = keywords["shared_bytes"].cast<int64_t>();
  run.machine = machine_of(keywords["target"].cast<std::string>());
  run.cooperative = keywords["cooperative"].cast<bool>();
  run.options.checks = run.options.deterministic = keywords["checks"].cast<bool>();
  run.options.orders = run.options.checks ? keywords["orders"].cast<int>() : 1;
  run.options.seed = keywords["seed"].cast<uint64_t>();
  run.options.budget = keywords["budget"].cast<uint64_t>();
  run.options.noise = keywords["noise"].cast<bool>();
  if (run.options.orders < 1)
    throw UserError("orders is " + std::to_string(run.options.orders) + "; it is at least 1");
}

KernelResult run_on_tensors(const std::string& source, bool asks_clock, KernelRun run) {
  if (is_ptx(source)) {
    if (asks_clock)
      throw UserError("the clock reads compiled code, and the source is PTX; give CUDA text");
    run.ptx = source;
    return run_kernel(run);
  }
  const KernelText text = {run.kernel, source};
  const std::string arch = arch_of(run.machine.name);
  Binary binary = compile_own_text(text, arch, CudaOutput::kPtx);
  run.ptx = std::move(binary.bytes);
  run.options.registers = binary.registers;
  if (asks_clock) run.cubin = compile_own_text(text, arch, CudaOutput::kCubin).bytes;
  return run_kernel(run);
}

KernelResult run_from_python(const std::string& source, const std::string& kernel,
                             const py::object& grid, const py::object& block,
                             const py::sequence& args, const py::kwargs& given) {
  py::dict keywords("inputs"_a = py::tuple(), "outputs"_a = py::tuple(), "shared_bytes"_a = 0,
                    "target"_a = "h200", "cooperative"_a = false, "orders"_a = 5, "seed"_a = 0,
                    "checks"_a = true, "budget"_a = SimulationOptions().budget, "noise"_a = false,
                    "clock"_a = false);
  for (const auto& [name, value] : given) {
    if (!keywords.contains(name))
      throw py::type_error("run() has no argument '" + std::string(py::str(name)) + "'\n" +
                           kRunDoc);
    keywords[name] = value;
  }
  KernelRun run;
  run.kernel = kernel;
  run.grid = read_extents(grid, "grid");
  run.block = read_extents(block, "block");
  for (size_t i = 0; i < py::len(args); ++i) run.arguments.push_back(read_argument(args[i], i));
  read_keywords(keywords, run);
  const bool asks_clock = keywords["clock"].cast<bool>();
  py::gil_scoped_release no_gil;
  return run_on_tensors(source, asks_clock, std::move(run));
}

// A word of the command line: dtype[sizes]=fill:role.
at::Tensor make_filled(const std::smatch& word) {
  const DType dtype = dtype_from_name(word[1]);
  const std::vector<int64_t> sizes = map_to_vector(
      split_words(word[2]), [](const std::string& size) -> int64_t { return std::stoll(size); });
  at::Tensor made = at::empty(sizes, to_scalar_type(dtype));
  if (word[3] == "arange") return made.copy_(at::arange(made.numel()).view(sizes));
  if (word[3] != "rand") return word[3] == "empty" ? made : made.fill_(word[3] == "ones");
  const int low = info(dtype).is_signed ? -9 : 0, high = dtype == DType::kBool ? 2 : 9;
  return made.copy_(info(dtype).is_float ? at::empty(sizes, at::kDouble).uniform_(low, high)
                                         : at::randint(low, high, sizes));
}

KernelResult run_words(const std::string& source, const std::string& kernel, const py::object& grid,
                       const py::object& block, const std::vector<std::string>& words,
                       const py::kwargs& given) {
  static const std::regex form(
      R"((\w+)\[([\d,]*)\](?:=(zeros|ones|rand|arange|empty))?(?::(in|out))?)");
  at::manual_seed(given["seed"].cast<uint64_t>());
  py::list args, inputs, outputs;
  for (const std::string& word : words) {
    try {
      std::smatch parts;
      const bool is_tensor = std::regex_match(word, parts, form);
      if (parts.length(4)) (parts[4] == "in" ? inputs : outputs).append(args.size());
      args.append(is_tensor ? py::cast(make_filled(parts))
                            : py::module_::import("ast").attr("literal_eval")(word));
    } catch (const std::exception&) {
      const auto dtypes = std::views::iota(0, static_cast<int>(DType::kOpaque));
      const std::string names = join(dtypes, ", ", [](int type) { return info(DType(type)).name; });
      throw UserError("found the argument '" + word + "'; it can be a number, or dtype[sizes]=" +
                      "zeros|ones|rand|arange|empty:in|out; dtypes are " + names);
    }
  }
  given.attr("update")("inputs"_a = inputs, "outputs"_a = outputs);
  return run_from_python(source, kernel, grid, block, args, given);
}

// Bytes by the width of the access that moved them.
py::dict to_dict(const Traffic& traffic) {
  py::dict bytes;
  for (size_t i = 0; i < traffic.bytes.size(); ++i) bytes[py::int_(1 << i)] = traffic.bytes[i];
  return bytes;
}

py::tuple to_tuple(const std::array<uint32_t, 3>& index) {
  return py::make_tuple(index[0], index[1], index[2]);
}

}  // namespace

void bind_ptxsim(py::module_& module) {
  py::class_<Finding>(module, "Finding", "One defect of a kernel; `message` is whole.")
      .def_property_readonly("kind", [](const Finding& finding) { return kind_name(finding.kind); })
      .def_readonly("message", &Finding::message)
      .def_readonly("line", &Finding::line)
      .def_property_readonly("block", [](const Finding& found) { return to_tuple(found.block); })
      .def_property_readonly("thread", [](const Finding& found) { return to_tuple(found.thread); })
      .def("__repr__", [](const Finding& finding) { return "<" + to_string(finding) + ">"; });
  py::class_<KernelResult>(module, "Result",
                           "What a simulated launch was accused of, and what it cost.")
      .def_property_readonly("findings",
                             [](const KernelResult& result) { return result.findings.all; })
      .def_readonly("lane_instructions", &KernelResult::lane_instructions)
      .def_readonly("seconds", &KernelResult::seconds)
      .def_readonly("clock", &KernelResult::clock)
      .def_property_readonly("moved_bytes",
                             [](const KernelResult& result) { return to_dict(result.traffic); })
      .def("to_json", [](const KernelResult& result) { return print_json(result); })
      .def("__repr__", [](const KernelResult& result) { return to_string(result); });
  module.def("simulated_bytes", [] { return to_dict(read_traffic()); });
  module.def("reset_simulated_bytes", &reset_traffic);
  module.def("simulated_host_calls", [] {
    const HostCalls calls = read_host_calls();
    return py::dict("waits"_a = calls.waits, "copies"_a = calls.copies);
  });
  module.def("set_simulated_orders", &set_orders, "Of warps, of each checked launch; 5 at first.",
             "orders"_a);
  module.def("run_kernel", &run_from_python, kRunDoc, "source"_a, "kernel"_a, "grid"_a, "block"_a,
             "args"_a);
  module.def("run_words", &run_words, "source"_a, "kernel"_a, "grid"_a, "block"_a, "words"_a);
  module.def(
      "compile_ptx",
      [](const std::string& kernel, const std::string& source, const std::string& target) {
        return compile_own_text({kernel, source}, arch_of(target), CudaOutput::kPtx).bytes;
      },
      "PTX of a CUDA text, as run_kernel runs it.", "kernel"_a, "source"_a, "target"_a = "h200");
}

}  // namespace stitch
