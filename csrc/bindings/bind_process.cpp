// What the process has one of: errors, options, the op table, caches, pools, the driver.
#include <pybind11/stl.h>

#include <filesystem>

#include "base/log.h"
#include "bindings/compiled_graph.h"
#include "bindings/python_types.h"
#include "compilation.h"
#include "jit/kernel_cache.h"
#include "jit/nvrtc.h"
#include "runtime/error_flags.h"
#include "runtime/pool.h"

namespace stitch {
namespace {

using namespace py::literals;

struct {
  PyObject *user, *unsupported, *internal, *kernel;
} error_classes;

std::atomic<int64_t> kernel_count, stitched_op_count, library_call_count, fallback_op_count;

PyObject* make_error(py::module_& module, const char* name, PyObject* base, const char* doc) {
  const std::string full_name = "torch_stitch." + std::string(name);
  PyObject* error = PyErr_NewExceptionWithDoc(full_name.c_str(), doc, base, nullptr);
  if (!error) throw py::error_already_set();
  module.attr(name) = py::handle(error);
  return error;  // kept for the life of the process
}

void bind_errors(py::module_& module) {
  error_classes.user =
      make_error(module, "StitchError", PyExc_ValueError,
                 "An option, a mode or an argument that torch_stitch does not take.");
  error_classes.unsupported = make_error(module, "UnsupportedError", PyExc_RuntimeError,
                                         "Something that torch_stitch does not do.");
  error_classes.internal = make_error(module, "InternalError", PyExc_RuntimeError,
                                      "A fault in torch_stitch; please report it.");
  error_classes.kernel =
      make_error(module, "KernelError", error_classes.internal,
                 "A fault inside single kernels; `ops`: positions of their ops in the graph.");
  py::register_exception_translator([](std::exception_ptr exception) {
    try {
      std::rethrow_exception(exception);
    } catch (const Error&) {
      set_python_error();
    }
  });
}

// Warnings become Python's; one that a filter makes an error cannot unwind us and is printed.
void warn_in_python(const std::string& message) {
  py::gil_scoped_acquire gil;
  if (PyErr_WarnEx(PyExc_RuntimeWarning, ("torch_stitch: " + message).c_str(), 1) < 0)
    PyErr_WriteUnraisable(nullptr);
}

SettingValue to_setting(const std::string& name, py::handle value) {
  if (py::isinstance<py::bool_>(value)) return value.cast<bool>();
  if (py::isinstance<py::str>(value)) return value.cast<std::string>();
  py::detail::make_caster<int64_t> number;
  if (py::isinstance<py::int_>(value) && number.load(value, false)) return int64_t{number};
  throw UserError("option '" + name + "' is " + std::string(py::repr(value)) +
                  "; options are bool, int of 64 bits or str");
}

void bind_settings(py::module_& module) {
  module.def("settings", [] {
    return map_to_vector(settings_rows(), [](const SettingRow& row) {
      return py::dict("name"_a = row.name, "env"_a = row.env, "type"_a = row.type(),
                      "default"_a = row.default_value, "allowed"_a = row.allowed,
                      "doc"_a = row.doc);
    });
  });
  module.def("check_options", [](const py::dict& options) { read_options(options); });
  module.def("get_option", [](const py::dict& options, const std::string& name) {
    return get_option(read_options(options), name);
  });
}

std::vector<py::dict> list_ops() {
  static constexpr const char* kFamilies[] = {"source", "input",  "pointwise", "reduce",
                                              "view",   "reader", "writer",    "library"};
  static constexpr const char* kTypeRules[] = {"same",     "bool",   "first", "integer",
                                               "explicit", "second", "float"};
  static constexpr const char* kCosts[] = {"free", "light", "divide", "special", "heavy"};
  return map_to_vector(all_ops(), [](const OpInfo& op) {
    return py::dict(
        "name"_a = op.name, "family"_a = kFamilies[static_cast<int>(op.family)],
        "arity"_a = op.arity, "type_rule"_a = kTypeRules[static_cast<int>(op.type_rule)],
        "cost"_a = kCosts[static_cast<int>(op.cost)], "aten"_a = op.aten, "doc"_a = op.doc);
  });
}

py::dict read_counters() {
  const CacheCounters &cache = cache_counters().kernels, &plans = cache_counters().plans;
  return py::dict(
      "kernels"_a = kernel_count.load(), "stitched_ops"_a = stitched_op_count.load(),
      "library_calls"_a = library_call_count.load(), "fallback_ops"_a = fallback_op_count.load(),
      "cache_hits"_a = cache.hits_memory + cache.hits_disk,
      "cache_hits_disk"_a = cache.hits_disk.load(), "cache_misses"_a = cache.misses.load(),
      "cache_refused"_a = cache.refused.load(), "compile_seconds"_a = cache.compile_seconds.load(),
      "plans_found"_a = plans.hits_memory + plans.hits_disk, "plans_made"_a = plans.misses.load());
}

// Folders that may hold a libnvrtc: torch's own and those of NVIDIA's wheels beside it.
std::vector<std::string> find_nvrtc_directories() {
  const std::filesystem::path torch =
      py::module_::import("torch").attr("__file__").cast<std::string>();
  std::vector<std::string> directories;
  for (const std::string& wheel : list_newest_first(torch.parent_path().parent_path() / "nvidia"))
    directories.push_back(wheel + "/lib");
  directories.push_back(torch.parent_path() / "lib");
  return directories;
}

// What no call was there to raise.
void check_flags_at_exit() {
  try {
    check_flags();
  } catch (const Error& error) {
    warn_once("exit", std::string("a call before the end of the process failed: ") + error.what());
  }
}

void bind_resources(py::module_& module) {
  py::module_::import("atexit").attr("register")(py::cpp_function(&check_flags_at_exit));
  module.def("counters", &read_counters,
             "What was made since reset_counters(): numbers of kernels, ops, calls and entries of "
             "caches, and compile_seconds, by name.");
  const auto reset = [] {
    kernel_count = stitched_op_count = library_call_count = fallback_op_count = 0;
    reset_cache_counters();
  };
  module.def("reset_counters", reset, "Sets what counters() returns to 0; returns nothing.");
  module.def("synchronize", &check_flags, py::call_guard<py::gil_scoped_release>(),
             "Waits for the device; raises IndexError for what kernels found out of range.");
  module.def("count_fallback", [](int64_t ops) { fallback_op_count += ops; });
  module.def("pool_statistics", [] {
    const PoolStatistics pool = host_pool().statistics();
    return py::dict("used_bytes"_a = pool.used_bytes, "cached_bytes"_a = pool.cached_bytes,
                    "limit_bytes"_a = pool.limit_bytes, "reused_blocks"_a = pool.reused_blocks,
                    "created_blocks"_a = pool.created_blocks);
  });
  module.def(
      "clear_cache",
      [](const std::optional<py::dict>& options) {
        process_cache(read_options(options.value_or(py::dict()))).clear();
      },
      "options"_a = py::none(),
      "Forgets compiled kernels, here and on disk, of the directory that graphs with these options "
      "use.  Raises StitchError for options that there are not.");
  module.def(
      "release_memory", [] { host_pool().release_cached(); },
      "Gives memory back that the pool of CPU tensors holds for calls to come.");
  set_nvrtc_directories(find_nvrtc_directories());
  module.def("nvrtc_available", [] {
    const Verdict verdict = nvrtc_available();
    return py::make_tuple(verdict.ok, verdict.why, verdict.remedy);
  });
}

}  // namespace

Settings read_options(const py::dict& options) {
  Settings settings = default_settings();
  for (const auto& [key, value] : options) {
    const std::string name = py::str(key);
    set_option(settings, name, to_setting(name, value));
  }
  return settings;
}

void count_compilation(const Report& report) {
  kernel_count += std::ssize(report.kernels);
  stitched_op_count += report.stitched_ops;
  library_call_count += std::ssize(report.library_calls);
}

bool set_python_error() {
  try {
    throw;
  } catch (const OutOfRangeError& error) {
    PyErr_SetString(PyExc_IndexError, error.what());
  } catch (const FailedCallError& error) {
    PyErr_SetString(PyExc_RuntimeError, error.what());
  } catch (const UserError& error) {
    PyErr_SetString(error_classes.user, error.what());
  } catch (const UnsupportedError& error) {
    PyErr_SetString(error_classes.unsupported, error.what());
  } catch (const KernelError& error) {
    const py::object instance = py::handle(error_classes.kernel)(error.what());
    instance.attr("ops") = error.ops;
    PyErr_SetObject(error_classes.kernel, instance.ptr());
  } catch (const StoppedError& error) {
    PyErr_SetString(PyExc_SystemExit, error.what());  // ends a thread without a word
  } catch (const Error& error) {
    PyErr_SetString(error_classes.internal, error.what());
  } catch (...) {
    return false;
  }
  return true;
}

}  // namespace stitch

PYBIND11_MODULE(_core, module) {
  using namespace stitch;
  bind_errors(module);
  bind_settings(module);
  module.def("ops", &list_ops);
  bind_resources(module);
  set_warning_sink(&warn_in_python);
  bind_builder(module);
  bind_compile(module);
  bind_meanwhile(module);
  bind_clock(module);
  bind_ptxsim(module);
}
