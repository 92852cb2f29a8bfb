// The clock, as Python sees it.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include "bindings/python_types.h"
#include "clock/sass/program.h"
#include "cost/device_spec.h"
#include "jit/compiler.h"

namespace stitch {
namespace {

namespace py = pybind11;
using namespace py::literals;

py::bytes compile_cubin(const std::string& text, const std::string& target) {
  return compile_own_text({"kernel", text}, device_spec(target).arch, CudaOutput::kCubin,
                          default_settings())
      .bytes;
}

std::string disassemble(const std::string& bytes, const std::string& kernel) {
  const clock::Cubin cubin = clock::read_cubin(bytes);
  return print_program(decode(cubin, find_kernel(cubin, kernel)));
}

}  // namespace

void bind_clock(py::module_& module) {
  module.def("compile_cubin", &compile_cubin, "text"_a, "target"_a = "h200");
  module.def("disassemble", &disassemble, "SASS, modifiers left out.", "cubin"_a, "kernel"_a = "");
}

}  // namespace stitch
