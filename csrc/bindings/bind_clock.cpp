// The clock, as Python sees it.
#include <pybind11/stl.h>

#include "base/words.h"
#include "bindings/python_types.h"
#include "clock/time_kernel.h"
#include "jit/compiler.h"

namespace stitch {
namespace {

using namespace py::literals;

py::bytes compile_cubin(const std::string& text, const std::string& target) {
  return compile_own_text({"kernel", text}, device_spec(target).arch, CudaOutput::kCubin).bytes;
}

std::string disassemble(const std::string& bytes, const std::string& kernel) {
  const clock::Cubin cubin = clock::read_cubin(bytes);
  return print_program(decode(cubin, find_kernel(cubin, kernel)));
}

// Of each instruction its text, and what of it says when it may be issued.
std::vector<py::dict> list_instructions(const std::string& bytes, const std::string& kernel) {
  const clock::Cubin cubin = clock::read_cubin(bytes);
  const clock::Program program = decode(cubin, find_kernel(cubin, kernel));
  std::vector<py::dict> found;
  for (size_t i = 0; i < program.code.size(); ++i) {
    const clock::Instruction& instruction = program.code[i];
    found.push_back(py::dict(
        "text"_a = print_instruction(program, i), "sets"_a = registers_of(instruction, true),
        "reads"_a = registers_of(instruction, false), "queue"_a = clock::queue_of(instruction),
        "scoreboard"_a = instruction.control.write_scoreboard,
        "wait_mask"_a = instruction.control.wait_mask));
  }
  return found;
}

std::array<int64_t, 3> to_extents(std::vector<int64_t> given) {
  given.resize(3, 1);
  return {given[0], given[1], given[2]};
}

clock::ClockResult time_kernel(const std::string& bytes, const py::kwargs& given) {
  const auto get = [&]<class T>(const char* name, T) { return given[name].cast<T>(); };
  const std::string target = get("target", std::string());
  clock::Launch launch{.grid = to_extents(get("grid", std::vector<int64_t>())),
                       .block = to_extents(get("block", std::vector<int64_t>())),
                       .shared_bytes = get("shared_bytes", int64_t{}),
                       .arguments = {},
                       .trips = get("trips", int{})};
  for (const std::string& word : split_words(get("args", std::string())))
    launch.arguments.push_back(clock::parse_argument(word));
  const bool is_cubin = bytes.starts_with("\177ELF");
  const std::string cubin = is_cubin ? bytes : std::string(compile_cubin(bytes, target));
  const clock::ClockResult result =
      clock::time_kernel(cubin, get("kernel", std::string()), launch, device_spec(target));
  write_timeline(result, get("trace", std::string()));
  return result;
}

}  // namespace

void bind_clock(py::module_& module) {
  py::class_<clock::ClockResult>(module, "ClockResult", "How long a kernel takes, and why.")
      .def("to_json", &clock::print_json)
      .def("__repr__", &clock::print_result);
  module.def("time_kernel", &time_kernel, "source"_a);
  module.def("compile_cubin", &compile_cubin, "text"_a, "target"_a = "h200");
  module.def("list_instructions", &list_instructions, "cubin"_a, "kernel"_a = "");
  module.def("disassemble", &disassemble, "SASS, modifiers left out.", "cubin"_a, "kernel"_a = "");
}

}  // namespace stitch
