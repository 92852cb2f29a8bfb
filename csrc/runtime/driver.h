// Driver: the CUDA driver functions that this project calls, as one replaceable table.
//
// libcuda.so.1 is loaded at first use; nothing links against it.  A simulated device stands in for
// the GPU by a ScopedDriver.  Calls run in the context that is current on the calling thread.
#pragma once

#include <algorithm>

#include "base/error.h"
#include "cost/device_spec.h"

namespace stitch {

// The driver refused (no memory, a sticky error of an earlier kernel, a bad launch), or a call met
// what eager raises a RuntimeError for: an index out of range in gather and scatter, an integer
// that is divided by zero, what the graph asserts and is not so, in the user's words.
struct FailedCallError : Error {
  using Error::Error;
};

// Types as cuda.h declares them: handles are pointers, results and attributes enums.
using CudaResult = int;
using CudaHandle = void*;      // CUcontext, CUmodule, CUfunction, CUstream
using CudaAddress = uint64_t;  // CUdeviceptr

// What a launch's pointer points to, for a device that checks what kernels do with it.
struct PointerArgument {
  enum class Access { kLoad, kStore, kBoth } access;
  std::string name;
  CudaAddress address;
  int64_t bytes;  // from the first element to behind the last
  int element_bytes;
  std::vector<int64_t> sizes = {}, strides = {};  // in elements
};

// CUlaunchAttribute and CUlaunchConfig, as cuda.h declares them.
struct LaunchAttribute {
  enum Id : int { kCooperative = 2, kMayBeginEarly = 6 /* programmatic stream serialization */ } id;
  alignas(8) int value[16];
};
struct LaunchConfig {
  unsigned grid[3], block[3], shared_bytes;
  CudaHandle stream;
  const LaunchAttribute* attributes;
  unsigned attribute_count;

  bool has(LaunchAttribute::Id id) const {
    return std::any_of(attributes, attributes + attribute_count,
                       [&](const LaunchAttribute& known) { return known.id == id; });
  }
};

struct Driver {
#define STITCH_DRIVER(symbol, member, ...) CudaResult (*member)(__VA_ARGS__);
#include "runtime/driver.def"
#undef STITCH_DRIVER
  // Before a launch, by the thread that launches; null where nobody wants to know.
  void (*describe_arguments)(std::vector<PointerArgument> arguments);
};

// UnsupportedError where there is no libcuda, one that is too old or no device; loads it once.
const Driver& driver();
// A stand-in on this thread, until the end of the scope.
class ScopedDriver {
 public:
  explicit ScopedDriver(const Driver& replacement);
  ~ScopedDriver();
  ScopedDriver(const ScopedDriver&) = delete;

 private:
  const Driver* outer_;
};

// What the driver says of a device; of what it refuses to say, nothing.
DeviceAttributes read_device(int ordinal);

// FailedCallError "cuModuleLoadData of softmax_3f2a: out of memory (2)" unless result is success.
void check_driver(CudaResult result, const std::string& function, const std::string& subject);

// The primary context of the device becomes current where the thread has none.
void ensure_context(int device);

// The entry of a kernel in a cubin, with leave to use `shared_bytes` of dynamic shared memory.  One
// module per text of cubin and context; modules stay loaded for the life of the process.
CudaHandle load_function(const std::string& cubin, const std::string& name, int shared_bytes);

// Blocks of a kernel that the current device holds at once; 0: it cannot launch cooperatively.
int count_resident_blocks(CudaHandle function, const std::string& name, int threads,
                          int shared_bytes);

}  // namespace stitch
