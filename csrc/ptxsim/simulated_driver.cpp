#include "ptxsim/simulated_driver.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <utility>

#include "cost/device_spec.h"
#include "ptxsim/memory/views.h"

namespace stitch::ptxsim {

// What the driver API keeps by thread.
struct ThreadState {
  const SimulatedDevice* device = nullptr;
  std::string error = {};
  std::vector<PointerArgument> arguments = {};  // of the launch to come
  std::vector<std::string> accusations = {};
  uint64_t count = 0;
};

namespace {

thread_local ThreadState state;
std::atomic<int> orders = SimulationOptions().orders;
std::atomic<uint64_t> waits = 0, copies = 0;
std::mutex traffic_mutex;
Traffic traffic;

// Of cuda.h: CUDA_SUCCESS, CUDA_ERROR_INVALID_VALUE, CUDA_ERROR_NOT_FOUND and attributes of
// functions (CU_FUNC_ATTRIBUTE_*) and devices (CU_DEVICE_ATTRIBUTE_*).
constexpr CudaResult kSuccess = 0, kInvalidValue = 1, kOutOfMemory = 2, kNotFound = 500;
constexpr int kMultiprocessors = 16, kMajor = 75, kMinor = 76, kCooperativeLaunch = 95;
constexpr size_t kMostListed = 20;  // findings in one message

struct SimulatedFunction;

struct SimulatedModule {
  const SimulatedDevice* device;
  LoadedModule loaded;
  std::mutex mutex;  // launches share the .global variables
  std::map<std::string, SimulatedFunction> functions;
};

struct SimulatedFunction {
  SimulatedModule* module;
  const Function* kernel;
};

const SimulatedFunction& function_of(CudaHandle handle) {
  return *static_cast<const SimulatedFunction*>(handle);
}

// Errors leave through the result, as from a driver; error_string gives their words.
template <class Body>
CudaResult guarded(CudaResult failure, Body body) {
  try {
    body();
    return kSuccess;
  } catch (const Error& error) {
    state.error = error.what();
    return failure;
  }
}

View::Role role_of(PointerArgument::Access access) {
  if (access == PointerArgument::Access::kLoad) return View::Role::input;
  return access == PointerArgument::Access::kStore ? View::Role::output : View::Role::any;
}

// Memory that is reached through several pointers is read and written at will where one of them
// stores, and is one view where all see the same bytes.
std::vector<View> make_views(const std::vector<PointerArgument>& arguments) {
  std::vector<View> views;
  for (const PointerArgument& argument : arguments) {
    if (argument.bytes == 0) continue;
    View view{argument.name,
              argument.address,
              static_cast<uint64_t>(argument.bytes),
              static_cast<uint32_t>(argument.element_bytes),
              role_of(argument.access),
              argument.sizes,
              argument.strides};
    bool is_known = false;
    for (View& other : views) {
      if (!overlap(view, other)) continue;
      const bool is_read_only = view.role == View::Role::input && other.role == View::Role::input;
      if (!is_read_only) view.role = other.role = View::Role::any;
      is_known |= view.address == other.address && view.bytes == other.bytes;
    }
    if (!is_known) views.push_back(std::move(view));
  }
  return views;
}

std::string pack_parameters(const Function& kernel, void* const* values) {
  std::string packed(kernel.parameter_bytes, '\0');
  for (size_t i = 0; i < kernel.parameters.size(); ++i) {
    const Parameter& parameter = kernel.parameters[i];
    std::memcpy(packed.data() + parameter.offset, values[i], parameter.bytes);
  }
  return packed;
}

void keep(const SimulationResult& result) {
  {
    std::lock_guard<std::mutex> lock(traffic_mutex);
    traffic.add(result.traffic);
  }
  const Findings& findings = result.findings;
  state.count += findings.count;
  for (const Finding& finding : findings.all) {
    if (state.accusations.size() == kMostListed) break;
    state.accusations.push_back(to_string(finding));
  }
}

CudaResult module_load_data(CudaHandle* module, const void* image) {
  return guarded(kInvalidValue, [&] {
    auto loaded = std::make_unique<SimulatedModule>();
    loaded->device = state.device;
    loaded->loaded = instantiate(load_module(static_cast<const char*>(image)));
    *module = loaded.release();  // modules stay loaded for the life of the process
  });
}

CudaResult module_get_function(CudaHandle* function, CudaHandle handle, const char* name) {
  auto* module = static_cast<SimulatedModule*>(handle);
  const Function* kernel = module->loaded.module->find_entry(name);
  if (!kernel) {
    state.error = "the module has no kernel of this name";
    return kNotFound;
  }
  std::lock_guard<std::mutex> lock(module->mutex);
  *function = &module->functions.try_emplace(name, SimulatedFunction{module, kernel}).first->second;
  return kSuccess;
}

const DeviceSpec& spec_of(const std::string& target) {
  const DeviceSpec& spec = device_spec(target == "two_sm" ? "h200" : target);
  if (!spec.is_cuda)
    throw UserError("the target '" + target + "' is no GPU: there is nothing to simulate");
  return spec;
}

CudaResult device_attribute(int* value, int attribute, int) {
  const Machine& machine = state.device->machine;
  const DeviceSpec& gpu = spec_of(machine.name);
  std::map<int, int> values = {
      {kCooperativeLaunch, 1}, {kMajor, gpu.capability / 10}, {kMinor, gpu.capability % 10}};
  for (const auto& [member, number] : kAttributes) values[number] = gpu.*member;
  values[kMultiprocessors] = machine.multiprocessors;
  const auto found = values.find(attribute);
  if (found == values.end()) return kInvalidValue;
  *value = found->second;
  return kSuccess;
}

CudaResult max_blocks_per_multiprocessor(int* blocks, CudaHandle handle, int threads,
                                         size_t shared_bytes) {
  const SimulatedFunction& function = function_of(handle);
  const Launch launch{.module = &function.module->loaded,
                      .kernel = function.kernel,
                      .block = {static_cast<uint32_t>(threads), 1, 1},
                      .dynamic_shared_bytes = static_cast<uint32_t>(shared_bytes),
                      .parameters = {},
                      .views = {}};
  *blocks = resident_blocks(launch, function.module->device->machine, 0);
  return kSuccess;
}

CudaResult launch_kernel(const LaunchConfig* config, CudaHandle handle, void** parameters, void**) {
  return guarded(kInvalidValue, [&] {
    const SimulatedFunction& function = function_of(handle);
    const SimulatedDevice& device = *function.module->device;
    const unsigned *grid = config->grid, *block = config->block;
    const Launch launch{.module = &function.module->loaded,
                        .kernel = function.kernel,
                        .grid = {grid[0], grid[1], grid[2]},
                        .block = {block[0], block[1], block[2]},
                        .dynamic_shared_bytes = config->shared_bytes,
                        .cooperative = config->has(LaunchAttribute::kCooperative),
                        .parameters = pack_parameters(*function.kernel, parameters),
                        .views = make_views(std::exchange(state.arguments, {}))};
    std::lock_guard<std::mutex> lock(function.module->mutex);
    SimulationOptions options = device.options;
    if (options.checks) options.orders = orders;
    keep(simulate(launch, device.machine, options));
  });
}

void add_memory_and_streams(Driver& table) {
  table.memory_allocate = [](CudaAddress* address, size_t bytes) {
    *address = reinterpret_cast<CudaAddress>(std::malloc(bytes));
    return *address ? kSuccess : kOutOfMemory;
  };
  table.memory_set = [](CudaAddress address, unsigned word, size_t count, CudaHandle) {
    ++copies;
    return std::fill_n(reinterpret_cast<uint32_t*>(address), count, word), kSuccess;
  };
  table.host_allocate = [](void** memory, size_t bytes, unsigned) {
    *memory = std::malloc(bytes);
    return *memory ? kSuccess : kOutOfMemory;
  };
  table.host_device_address = [](CudaAddress* address, void* memory, unsigned) {
    *address = reinterpret_cast<CudaAddress>(memory);
    return kSuccess;
  };
  table.context_synchronize = [] { return ++waits, kSuccess; };
  table.stream_synchronize = [](CudaHandle) { return ++waits, kSuccess; };
  table.stream_is_capturing = [](CudaHandle, int* status) { return *status = 0, kSuccess; };
}

void add_device_and_context(Driver& table) {
  table.init = [](unsigned) { return kSuccess; };
  table.device_count = [](int* count) { return *count = 1, kSuccess; };
  table.device_get = [](int* device, int) { return *device = 0, kSuccess; };
  table.device_attribute = &device_attribute;
  table.primary_context_retain = [](CudaHandle* context, int) {
    return *context = const_cast<SimulatedDevice*>(state.device), kSuccess;
  };
  table.context_get_current = [](CudaHandle* context) {
    return *context = const_cast<SimulatedDevice*>(state.device), kSuccess;
  };
  table.context_get_device = [](int* device) { return *device = 0, kSuccess; };
  table.context_set_current = [](CudaHandle context) {
    state.device = static_cast<const SimulatedDevice*>(context);
    return kSuccess;
  };
}

const Driver& driver_table() {
  static const Driver table = [] {
    Driver driver{};
    add_device_and_context(driver);
    add_memory_and_streams(driver);
    driver.module_load_data = &module_load_data;
    driver.module_get_function = &module_get_function;
    // Leave to use more shared memory changes nothing here: simulate refuses what does not fit.
    driver.function_set_attribute = [](CudaHandle, int, int) { return kSuccess; };
    driver.max_blocks_per_multiprocessor = &max_blocks_per_multiprocessor;
    driver.launch_kernel = &launch_kernel;
    driver.error_string = [](CudaResult, const char** text) {
      return *text = state.error.c_str(), kSuccess;
    };
    driver.describe_arguments = [](std::vector<PointerArgument> arguments) {
      state.arguments = std::move(arguments);
    };
    return driver;
  }();
  return table;
}

}  // namespace

Machine machine_of(const std::string& target) {
  const DeviceSpec& spec = spec_of(target);
  const auto bytes = [](auto count) { return static_cast<uint32_t>(count); };
  return {.name = target,
          .multiprocessors = target == "two_sm" ? 2 : spec.multiprocessors,
          .threads_per_multiprocessor = spec.threads_per_multiprocessor,
          .blocks_per_multiprocessor = spec.blocks_per_multiprocessor,
          .registers_per_multiprocessor = spec.registers_per_multiprocessor,
          .shared_bytes_per_multiprocessor = bytes(spec.shared_bytes_per_multiprocessor),
          .shared_bytes_per_block = bytes(spec.shared_bytes_per_block)};
}

std::string arch_of(const std::string& target) { return spec_of(target).arch; }

const SimulatedDevice& simulated_device(const std::string& target, const std::string& how) {
  static std::mutex mutex;
  static std::map<std::pair<std::string, std::string>, SimulatedDevice> devices;
  SimulatedDevice device{machine_of(target), {}};
  device.options.noise = how == "noise";
  device.options.checks = how != "fast";
  if (!device.options.checks) device.options.orders = 1;
  std::lock_guard<std::mutex> lock(mutex);
  return devices.try_emplace({target, how}, std::move(device)).first->second;
}

void set_orders(int count) { orders = count; }

Traffic read_traffic() {
  std::lock_guard<std::mutex> lock(traffic_mutex);
  return traffic;
}

void reset_traffic() {
  std::lock_guard<std::mutex> lock(traffic_mutex);
  traffic = {};
}

HostCalls read_host_calls() { return {waits, copies}; }

SimulatedRun::SimulatedRun(const SimulatedDevice& device)
    : driver_(driver_table()),
      outer_(std::make_unique<ThreadState>(std::exchange(state, {.device = &device}))) {}

SimulatedRun::~SimulatedRun() { state = std::move(*outer_); }

void SimulatedRun::check() const {
  if (state.accusations.empty()) return;
  std::string text = "ptxsim found " + std::to_string(state.count) + " defects";
  for (const std::string& accusation : state.accusations) text += "\n" + accusation;
  throw InternalError(text);
}

}  // namespace stitch::ptxsim
