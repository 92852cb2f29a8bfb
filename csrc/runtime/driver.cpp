#include "runtime/driver.h"

#include <dlfcn.h>

#include <map>

#include "base/fork_mutex.h"
#include "base/hash.h"

namespace stitch {

constexpr int kSuccess = 0;
// CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES of cuda.h.
constexpr int kMaxDynamicSharedBytes = 8;
// CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, _COMPUTE_CAPABILITY_*, _COOPERATIVE_LAUNCH.
constexpr int kMultiprocessors = 16, kMajor = 75, kMinor = 76, kCooperativeLaunch = 95;
// Up to this a kernel needs no leave (CUDA programming guide, "Shared Memory").
constexpr int kDefaultSharedBytes = 48 * 1024;

static Verdict load_driver(Driver& table) {
  void* library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (!library)
    return Verdict::no(0, "libcuda.so.1 cannot be loaded",
                       "install the NVIDIA driver, or run on the CPU");
  std::string missing;
  const auto resolve = [&]<class Function>(const char* symbol, Function& function) {
    function = reinterpret_cast<Function>(dlsym(library, symbol));
    if (!function && missing.empty()) missing = symbol;
  };
#define STITCH_DRIVER(symbol, member, ...) resolve(#symbol, table.member);
#include "runtime/driver.def"
#undef STITCH_DRIVER
  if (!missing.empty())
    return Verdict::no(0, "libcuda.so.1 has no " + missing,
                       "update the NVIDIA driver to 525 or later");
  int count = 0;
  if (const CudaResult result = table.init(0); result != kSuccess)
    return Verdict::no(0, "cuInit failed with error " + std::to_string(result),
                       "check the driver with nvidia-smi");
  if (table.device_count(&count) != kSuccess || count == 0)
    return Verdict::no(0, "the driver finds no GPU", "check nvidia-smi and CUDA_VISIBLE_DEVICES");
  return Verdict::yes();
}

static thread_local const Driver* stand_in = nullptr;

const Driver& driver() {
  if (stand_in) return *stand_in;
  static Driver table{};
  static const Verdict verdict = load_driver(table);
  if (!verdict) throw UnsupportedError("no CUDA device: " + verdict.why + "; " + verdict.remedy);
  return table;
}

ScopedDriver::ScopedDriver(const Driver& replacement)
    : outer_(std::exchange(stand_in, &replacement)) {}
ScopedDriver::~ScopedDriver() { stand_in = outer_; }

DeviceAttributes read_device(int ordinal) {
  const Driver& table = driver();
  int handle = 0;
  check_driver(table.device_get(&handle, ordinal), "cuDeviceGet", "a device");
  const auto ask = [&](int attribute, int value = 0) {
    return table.device_attribute(&value, attribute, handle) == kSuccess ? value : 0;
  };
  DeviceAttributes gpu{.capability = 10 * ask(kMajor) + ask(kMinor)};
  for (const auto& [member, number] : kAttributes) gpu.*member = ask(number);
  return gpu;
}

void check_driver(CudaResult result, const std::string& function, const std::string& subject) {
  if (result == kSuccess) return;
  const char* text = nullptr;
  driver().error_string(result, &text);
  throw FailedCallError(std::string(function) + " of " + subject + ": " +
                        (text ? text : "unknown error") + " (" + std::to_string(result) + ")");
}

void ensure_context(int device) {
  const Driver& table = driver();
  CudaHandle context = nullptr;
  check_driver(table.context_get_current(&context), "cuCtxGetCurrent", "this thread");
  if (context) return;
  const std::string subject = "device " + std::to_string(device);
  int handle = 0;
  check_driver(table.device_get(&handle, device), "cuDeviceGet", subject);
  check_driver(table.primary_context_retain(&context, handle), "cuDevicePrimaryCtxRetain", subject);
  check_driver(table.context_set_current(context), "cuCtxSetCurrent", subject);
}

CudaHandle load_function(const std::string& cubin, const std::string& name, int shared_bytes) {
  static auto& mutex = *new ForkMutex;
  static std::map<std::pair<CudaHandle, std::string>, CudaHandle> modules;
  const Driver& table = driver();
  CudaHandle context = nullptr;
  check_driver(table.context_get_current(&context), "cuCtxGetCurrent", name);
  std::lock_guard lock(mutex);
  CudaHandle& module = modules[{context, sha256_hex(cubin)}];
  if (!module)
    check_driver(table.module_load_data(&module, cubin.data()), "cuModuleLoadData", name);
  CudaHandle function = nullptr;
  check_driver(table.module_get_function(&function, module, name.c_str()), "cuModuleGetFunction",
               name);
  if (shared_bytes > kDefaultSharedBytes)
    check_driver(
        table.function_set_attribute(function, kMaxDynamicSharedBytes, shared_bytes),
        "cuFuncSetAttribute(max dynamic shared bytes = " + std::to_string(shared_bytes) + ")",
        name);
  return function;
}

int count_resident_blocks(CudaHandle function, const std::string& name, int threads,
                          int shared_bytes) {
  const Driver& table = driver();
  int device = 0, blocks = 0;
  check_driver(table.context_get_device(&device), "cuCtxGetDevice", name);
  const auto ask = [&](int attribute, int value = 0) {
    check_driver(table.device_attribute(&value, attribute, device), "cuDeviceGetAttribute", name);
    return value;
  };
  if (!ask(kCooperativeLaunch)) return 0;
  check_driver(table.max_blocks_per_multiprocessor(&blocks, function, threads, shared_bytes),
               "cuOccupancyMaxActiveBlocksPerMultiprocessor", name);
  return blocks * ask(kMultiprocessors);
}

}  // namespace stitch
