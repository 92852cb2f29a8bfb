#include "ptxsim/run_kernel.h"

#include <cxxabi.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <iomanip>
#include <memory>
#include <sstream>

#include "base/error.h"
#include "base/words.h"
#include "cost/device_spec.h"
#include "ptxsim/decode/lex_ptx.h"
#include "ptxsim/memory/views.h"

namespace stitch::ptxsim {
namespace {

// "scale" of _Z5scalePfi, which is scale(float*, int); other names stay.
std::string plain_name(const std::string& name) {
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> demangled(
      abi::__cxa_demangle(name.c_str(), nullptr, nullptr, &status), &std::free);
  if (name.compare(0, 2, "_Z") != 0 || !demangled) return name;
  const std::string text = demangled.get();  // "void scale<int>(int*)": templates name their result
  const size_t end = text.find('(');
  const std::string head = text.substr(0, end);
  return head.substr(head.find("void ") == 0 ? 5 : 0);
}

const Function& find_kernel(const Module& module, const std::string& name) {
  if (const Function* exact = module.find_entry(name)) return *exact;
  std::vector<std::string> names;
  const Function* found = nullptr;
  for (const Function& function : module.functions) {
    if (!function.is_entry) continue;
    names.push_back(plain_name(function.name));
    if (names.back() != name) continue;
    if (found) {
      throw UserError(concat("several kernels are called '", name, "': ", found->name, " and ",
                             function.name, "; give one of these names"));
    }
    found = &function;
  }
  if (found) return *found;
  if (names.empty()) throw UserError("the text has no kernel; a kernel is a __global__ function");
  throw UserError("the text has no kernel '" + name + "'; did you mean '" +
                  nearest_name(name, names) + "'?");
}

std::array<uint32_t, 3> to_extents(const std::array<int64_t, 3>& given, const char* what) {
  std::array<uint32_t, 3> extents;
  for (size_t d = 0; d < 3; ++d) {
    if (given[d] < 1 || given[d] > INT32_MAX)
      throw UserError(concat(what, "[", d, "] is ", given[d], "; it can be 1 to 2147483647"));
    extents[d] = static_cast<uint32_t>(given[d]);
  }
  return extents;
}

// Writes the values of one launch's parameters; each knows what it was given.
class ParameterWriter {
 public:
  ParameterWriter(const Parameter& parameter, size_t position, char* to)
      : parameter_(parameter), position_(position), to_(to) {}

  void operator()(const View& tensor) const {
    if (parameter_.bytes != sizeof(uint64_t) || is_float()) refuse("a tensor");
    write(tensor.address);
  }

  void operator()(const Integer& integer) const {
    if (is_float()) {
      return (*this)(integer.is_negative ? static_cast<double>(static_cast<int64_t>(integer.bits))
                                         : static_cast<double>(integer.bits));
    }
    if (parameter_.type == Type::b8 && parameter_.bytes > 1) refuse("a number");
    const unsigned width = 8 * parameter_.bytes;
    const auto bits = static_cast<int64_t>(integer.bits);
    const bool fits = width >= 64 || (integer.is_negative ? bits >= -(int64_t{1} << (width - 1))
                                                          : integer.bits < uint64_t{1} << width);
    if (!fits) refuse("a number that does not fit");
    write(integer.bits);
  }

  void operator()(double number) const {
    if (parameter_.type == Type::f32)
      write(std::bit_cast<uint32_t>(static_cast<float>(number)));
    else if (parameter_.type == Type::f64)
      write(std::bit_cast<uint64_t>(number));
    else
      refuse("a float");
  }

  void operator()(const Bytes& given) const {
    if (given.bytes.size() != parameter_.bytes) refuse(concat(given.bytes.size(), " bytes"));
    std::memcpy(to_, given.bytes.data(), given.bytes.size());
  }

 private:
  bool is_float() const { return parameter_.type == Type::f32 || parameter_.type == Type::f64; }

  void write(uint64_t bits) const { std::memcpy(to_, &bits, parameter_.bytes); }  // little endian

  [[noreturn]] void refuse(const std::string& given) const {
    const bool is_struct = parameter_.type == Type::b8 && parameter_.bytes > 1;
    throw UserError(
        concat("argument ", position_, " is ", given, "; the kernel's parameter is ",
               is_struct ? concat("a struct of ", parameter_.bytes, " bytes: give it as bytes")
                         : concat(".", name_of(parameter_.type))));
  }

  const Parameter& parameter_;
  const size_t position_;
  char* const to_;
};

std::string pack_arguments(const KernelRun& run, const Function& kernel) {
  if (run.arguments.size() != kernel.parameters.size()) {
    throw UserError(concat("the kernel ", plain_name(kernel.name), " takes ",
                           kernel.parameters.size(), " arguments and is given ",
                           run.arguments.size()));
  }
  std::string packed(kernel.parameter_bytes, '\0');
  for (size_t i = 0; i < run.arguments.size(); ++i) {
    const Parameter& parameter = kernel.parameters[i];
    std::visit(ParameterWriter(parameter, i, packed.data() + parameter.offset), run.arguments[i]);
  }
  return packed;
}

void set_roles(const std::vector<int64_t>& positions, View::Role role, const char* what,
               std::vector<View*>& views) {
  for (const int64_t position : positions) {
    const auto count = static_cast<int64_t>(views.size());
    View* const view = position >= 0 && position < count ? views[position] : nullptr;
    if (!view) {
      throw UserError(concat(what, " holds ", position,
                             ", which is the position of no tensor among the ", count,
                             " arguments"));
    }
    if (view->role != View::Role::any) {
      throw UserError(concat("argument ", position,
                             " is named twice in inputs and outputs; a tensor that is read and "
                             "written is in neither"));
    }
    view->role = role;
  }
}

void check_overlaps(const std::vector<View>& views) {
  for (size_t i = 0; i < views.size(); ++i) {
    for (size_t k = 0; k < i; ++k) {
      const View &a = views[k], &b = views[i];
      const bool has_role = a.role != b.role || a.role == View::Role::output;
      if (!has_role || !overlap(a, b)) continue;
      throw UserError(concat(a.name, " and ", b.name,
                             " share memory; then neither can be an output and both or none are "
                             "inputs"));
    }
  }
}

std::vector<View> make_views(const KernelRun& run) {
  std::vector<KernelValue> arguments = run.arguments;
  std::vector<View*> tensors;
  for (size_t i = 0; i < arguments.size(); ++i) {
    View* const view = std::get_if<View>(&arguments[i]);
    if (view) view->name = "arg " + std::to_string(i);
    tensors.push_back(view);
  }
  set_roles(run.inputs, View::Role::input, "inputs", tensors);
  set_roles(run.outputs, View::Role::output, "outputs", tensors);
  std::vector<View> views;
  for (const View* view : tensors)
    if (view && view->bytes > 0) views.push_back(*view);
  check_overlaps(views);
  return views;
}

// What a parameter is for the clock; `packed` are the launch's parameters.  Nothing is known of an
// output: it is written before it is read.
clock::Argument clock_argument(const KernelRun& run, size_t i, const char* packed) {
  const View* const view = std::get_if<View>(&run.arguments[i]);
  if (!view) return {.data = reinterpret_cast<uint64_t>(packed)};
  const bool is_known =
      view->is_integer && !std::ranges::count(run.outputs, static_cast<int64_t>(i));
  return {.is_pointer = true,
          .bytes = static_cast<int64_t>(view->bytes),
          .element_bytes = static_cast<int>(view->element_bytes),
          .data = is_known ? view->address : 0};
}

clock::ClockResult time_launch(const KernelRun& run, const Launch& launch) {
  clock::Launch timed{
      .grid = run.grid, .block = run.block, .shared_bytes = run.shared_bytes, .arguments = {}};
  for (size_t i = 0; i < run.arguments.size(); ++i) {
    const uint32_t at = launch.kernel->parameters[i].offset;
    timed.arguments.push_back(clock_argument(run, i, launch.parameters.data() + at));
  }
  return clock::time_kernel(run.cubin, launch.kernel->name, timed, device_spec(run.machine.name));
}

}  // namespace

bool is_ptx(std::string_view source) {
  try {
    const Token first = Lexer(source).peek();
    return first.kind == Token::Kind::directive && first.text == ".version";
  } catch (const UserError&) {  // not even a token
    return false;
  }
}

KernelResult run_kernel(const KernelRun& run) {
  const auto start = std::chrono::steady_clock::now();
  LoadedModule loaded = instantiate(load_module(run.ptx));
  Launch launch;
  launch.module = &loaded;
  launch.kernel = &find_kernel(*loaded.module, run.kernel);
  const ErrorContext context("while simulating kernel " + plain_name(launch.kernel->name));
  launch.grid = to_extents(run.grid, "grid");
  launch.block = to_extents(run.block, "block");
  if (run.shared_bytes < 0 || run.shared_bytes > run.machine.shared_bytes_per_block) {
    throw UserError(concat("shared_bytes is ", run.shared_bytes, "; ", run.machine.name, " has ",
                           run.machine.shared_bytes_per_block, " for a block"));
  }
  launch.dynamic_shared_bytes = static_cast<uint32_t>(run.shared_bytes);
  launch.cooperative = run.cooperative;
  launch.parameters = pack_arguments(run, *launch.kernel);
  launch.views = make_views(run);
  KernelResult result;
  if (!run.cubin.empty()) result.clock = time_launch(run, launch);  // before tensors are written
  static_cast<SimulationResult&>(result) = simulate(launch, run.machine, run.options);
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
  result.seconds = elapsed.count();
  return result;
}

std::string to_string(const KernelResult& result) {
  std::ostringstream text;
  for (const Finding& finding : result.findings.all) text << to_string(finding) << "\n";
  text << result.findings.all.size() << " findings, " << result.lane_instructions
       << " lane instructions in " << std::setprecision(3) << result.seconds << " s";
  if (result.clock) {
    text << "\n"
         << result.clock->us << " us on " << result.clock->device
         << " without its launch, bound by " << result.clock->bound;
    const size_t assumed = result.clock->assumptions.size();
    if (assumed > 0) text << ", " << assumed << " assumptions";
  }
  return text.str();
}

std::string print_json(const KernelResult& result) {
  const auto list = [](const std::array<uint32_t, 3>& index) {
    return "[" + join(index, ", ") + "]";
  };
  const std::string findings = join(result.findings.all, ",\n  ", [&](const Finding& found) {
    return concat("{\"kind\": ", quote_json(kind_name(found.kind)),
                  ", \"message\": ", quote_json(found.message), ", \"line\": ", found.line,
                  ", \"block\": ", list(found.block), ", \"thread\": ", list(found.thread), "}");
  });
  std::string moved;  // bytes by the width of the access
  for (size_t i = 0; i < result.traffic.bytes.size(); ++i)
    moved += concat(i ? ", \"" : "\"", 1 << i, "\": ", result.traffic.bytes[i]);
  return concat("{\n \"findings\": [", findings,
                "],\n \"lane_instructions\": ", result.lane_instructions,
                ",\n \"seconds\": ", result.seconds, ",\n \"moved_bytes\": {", moved,
                "},\n \"clock\": ", result.clock ? print_json(*result.clock) : "null", "\n}");
}

}  // namespace stitch::ptxsim
