#include "jit/nvrtc.h"

#include <dlfcn.h>
#include <locale.h>

#include <charconv>
#include <chrono>
#include <memory>

#include "base/files.h"
#include "base/fork_mutex.h"
#include "base/lists.h"

namespace stitch {
namespace {

using Clock = std::chrono::steady_clock;

// The part of nvrtc.h that we use.
using NvrtcHandle = struct NvrtcProgram*;
using Result = int;
constexpr Result kSuccess = 0, kErrorInvalidOption = 5, kErrorCancelled = 16;

struct Functions {
  Result (*version)(int*, int*);
  const char* (*error_string)(Result);
  Result (*create)(NvrtcHandle*, const char* source, const char* name, int header_count,
                   const char* const* headers, const char* const* include_names);
  Result (*destroy)(NvrtcHandle*);
  Result (*compile)(NvrtcHandle, int option_count, const char* const* options);
  Result (*cubin_size)(NvrtcHandle, size_t*);
  Result (*cubin)(NvrtcHandle, char*);
  Result (*ptx_size)(NvrtcHandle, size_t*);
  Result (*ptx)(NvrtcHandle, char*);
  Result (*log_size)(NvrtcHandle, size_t*);
  Result (*log)(NvrtcHandle, char*);
  Result (*set_flow_callback)(NvrtcHandle, int (*)(void*, void*),
                              void*);  // since CUDA 13; may be null
};

struct Library {
  ForkMutex mutex;
  std::vector<std::string> directories;
  bool is_loaded = false;
  std::string failure = "libnvrtc was not found";
  Functions call{};
};

// Never destroyed, and made while the library is loaded (base/fork_mutex.h).
Library& g_library = *new Library;

bool resolve(void* handle, Functions& call) {
  auto get = [&](auto& function, const char* name) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(handle, name));
    return function != nullptr;
  };
  get(call.set_flow_callback, "nvrtcSetFlowCallback");
  return get(call.version, "nvrtcVersion") && get(call.error_string, "nvrtcGetErrorString") &&
         get(call.create, "nvrtcCreateProgram") && get(call.destroy, "nvrtcDestroyProgram") &&
         get(call.compile, "nvrtcCompileProgram") && get(call.cubin_size, "nvrtcGetCUBINSize") &&
         get(call.cubin, "nvrtcGetCUBIN") && get(call.ptx_size, "nvrtcGetPTXSize") &&
         get(call.ptx, "nvrtcGetPTX") && get(call.log_size, "nvrtcGetProgramLogSize") &&
         get(call.log, "nvrtcGetProgramLog");
}

bool load_from(const std::string& directory) {
  for (const std::string& path : list_newest_first(directory, "libnvrtc.so")) {
    // The wheel has no run path: libnvrtc finds its builtins only if they are loaded already.
    for (const std::string& builtins : list_newest_first(directory, "libnvrtc-builtins.so"))
      if (dlopen(builtins.c_str(), RTLD_NOW | RTLD_GLOBAL)) break;
    void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!handle)
      g_library.failure = path + " does not load: " + dlerror();
    else if (!resolve(handle, g_library.call))
      g_library.failure = path + " lacks functions we need; it is older than CUDA 11.1";
    else
      return g_library.is_loaded = true;
  }
  return false;
}

// A failure is tried again: the package may have been installed meanwhile.
const Library& load_library() {
  std::lock_guard lock(g_library.mutex);
  if (g_library.is_loaded) return g_library;
  std::vector<std::string> directories = g_library.directories;
  directories.insert(directories.end(), {"/usr/local/cuda/lib64", "/usr/lib/x86_64-linux-gnu",
                                         "/usr/lib/aarch64-linux-gnu", "/usr/lib64"});
  for (const std::string& directory : directories)
    if (load_from(directory)) break;
  return g_library;
}

const Functions& nvrtc() {
  const Verdict verdict = nvrtc_available();
  if (!verdict) throw UnsupportedError(verdict.why + "; " + verdict.remedy);
  return load_library().call;
}

// ptxas has taken 41 minutes for one kernel (raft#1246); a compile that long helps nobody.
constexpr auto kCompileLimit = std::chrono::seconds(30);

std::string read_text(NvrtcHandle program, Result (*size_of)(NvrtcHandle, size_t*),
                      Result (*get)(NvrtcHandle, char*)) {
  size_t size = 0;
  if (size_of(program, &size) != kSuccess) return "";
  std::string text(size, '\0');
  return get(program, text.data()) == kSuccess ? text : "";
}

struct Numbers {
  int sum = 0, largest = -1;  // -1: there are none
};

// Those written directly before `unit`, as in "28 bytes spill stores".
Numbers numbers_before(std::string_view log, std::string_view unit) {
  Numbers numbers;
  for (size_t at = log.find(unit); at != log.npos; at = log.find(unit, at + 1)) {
    size_t first = at;
    while (first > 0 && log[first - 1] >= '0' && log[first - 1] <= '9') --first;
    int number = 0;
    std::from_chars(log.data() + first, log.data() + at, number);
    numbers.sum += number;
    numbers.largest = std::max(numbers.largest, number);
  }
  return numbers;
}

}  // namespace

void set_nvrtc_directories(std::vector<std::string> directories) {
  std::lock_guard lock(g_library.mutex);
  g_library.directories = std::move(directories);
}

Verdict nvrtc_available() {
  const Library& library = load_library();
  if (library.is_loaded) return Verdict::yes();
  return Verdict::no(0, "CUDA kernels cannot be compiled: " + library.failure,
                     "pip install nvidia-cuda-nvrtc");
}

std::string nvrtc_version() {
  int major = 0, minor = 0;
  nvrtc().version(&major, &minor);
  return std::to_string(major) + "." + std::to_string(minor);
}

std::vector<std::string> nvrtc_options(const std::string& arch, CudaOutput output) {
  std::vector<std::string> options = {"--gpu-architecture=" + arch, "--std=c++20", "--fmad=false",
                                      "--ptxas-options=-v"};
  if (output == CudaOutput::kPtx) options.push_back("-lineinfo");
  return options;
}

Binary run_nvrtc(const std::string& name, std::string_view source, const std::string& arch,
                 CudaOutput output) {
  const Functions& call = nvrtc();
  // NVRTC reads floating-point literals by the thread's locale: under some, 2.2e-16 became 2.
  const locale_t c_locale = newlocale(LC_ALL_MASK, "C", nullptr), saved = uselocale(c_locale);
  const std::shared_ptr<void> restored(nullptr, [&](void*) {
    uselocale(saved);
    freelocale(c_locale);
  });
  Binary binary;
  NvrtcHandle program = nullptr;
  const std::string text(source);
  Result result = call.create(&program, text.c_str(), (name + ".cu").c_str(), 0, nullptr, nullptr);
  if (result != kSuccess) {
    binary.log = call.error_string(result);
    return binary;
  }
  const std::vector<std::string> options = nvrtc_options(arch, output);
  const auto pointers = map_to_vector(options, [](const auto& option) { return option.c_str(); });
  Clock::time_point deadline = Clock::now() + kCompileLimit;
  const auto is_overdue = [](void* time, void*) {
    return Clock::now() > *static_cast<const Clock::time_point*>(time) ? 1 : 0;
  };
  if (call.set_flow_callback) call.set_flow_callback(program, is_overdue, &deadline);
  result = call.compile(program, static_cast<int>(pointers.size()), pointers.data());
  binary.log = read_text(program, call.log_size, call.log).c_str();  // up to the NUL
  if (result == kErrorCancelled) binary.log += "\ncancelled after 30 s";
  if (result == kSuccess)
    binary.bytes = output == CudaOutput::kCubin
                       ? read_text(program, call.cubin_size, call.cubin)
                       : read_text(program, call.ptx_size, call.ptx).c_str();  // up to the NUL
  if (result != kSuccess && binary.log.empty()) binary.log = call.error_string(result);
  call.destroy(&program);
  if (result == kErrorInvalidOption)
    throw UnsupportedError("NVRTC " + nvrtc_version() + " cannot compile for " + arch + ": " +
                           binary.log + "; pip install -U nvidia-cuda-nvrtc");
  read_ptxas_log(binary.log, binary);
  return binary;
}

void read_ptxas_log(std::string_view log, Binary& binary) {
  binary.registers = numbers_before(log, " registers").largest;
  binary.spill_bytes = numbers_before(log, " bytes spill stores").sum +
                       numbers_before(log, " bytes spill loads").sum;
  binary.stack_bytes = std::max(0, numbers_before(log, " bytes stack frame").largest);
  binary.shared_bytes = std::max(0, numbers_before(log, " bytes smem").largest);
}

}  // namespace stitch
