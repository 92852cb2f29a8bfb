#include "runtime/error_flags.h"

#include "base/fork_mutex.h"

namespace stitch {
namespace {

constexpr unsigned kPortableAndMapped = 3;   // cuMemHostAlloc's flags, cuda.h
constexpr CudaResult kInvalidContext = 201;  // the thread has none: it has launched nothing

struct Registry {
  ForkMutex mutex;
  std::vector<std::weak_ptr<ErrorFlags>> all;
} registry;

}  // namespace

void throw_failure(const FailureWords& launch, int code) {
  const std::string& ops = launch.ops.at(code);
  const std::string place = ops.empty() ? launch.kernel : ops;
  const auto failure = static_cast<KernelFailure>(code);
  if (failure == KernelFailure::kAssertionFailed) throw FailedCallError(place);
  if (failure == KernelFailure::kDivisionByZero)
    throw FailedCallError("ZeroDivisionError in " + place);  // eager's word
  if (launch.raises_runtime_error) throw FailedCallError("index out of range in " + place);
  throw OutOfRangeError("index out of range in " + place);
}

// The words are never given back: a launch that nobody waited for may still store there.
std::shared_ptr<ErrorFlags> ErrorFlags::make(const Program& program, bool waits) {
  auto flags = std::make_shared<ErrorFlags>();
  for (const Step& step : program.steps) {
    const auto* launch = std::get_if<LaunchStep>(&step);
    if (launch && launch->flag >= 0) flags->launches_.push_back(launch->failures);
  }
  if (flags->launches_.empty()) return nullptr;
  const Driver& table = driver();
  void* memory = nullptr;
  const size_t bytes = flags->launches_.size() * sizeof(int32_t);
  check_driver(table.host_allocate(&memory, bytes, kPortableAndMapped), "cuMemHostAlloc",
               "the error flags");
  check_driver(table.host_device_address(&flags->address_, memory, 0), "cuMemHostGetDevicePointer",
               "the error flags");
  flags->words_ = static_cast<int32_t*>(memory);
  std::fill_n(flags->words_, flags->launches_.size(), 0);
  flags->synchronize_ = table.context_synchronize;
  flags->waits_ = waits;
  const std::lock_guard lock(registry.mutex);
  std::erase_if(registry.all, [](const auto& other) { return other.expired(); });
  registry.all.push_back(flags);
  return flags;
}

void ErrorFlags::check() {
  for (size_t i = 0; i < launches_.size(); ++i) {
    const std::atomic_ref<int32_t> word(words_[i]);
    const int32_t code = word.load(std::memory_order_relaxed) == 0 ? 0 : word.exchange(0);
    if (code != 0) throw_failure(launches_[i], code);
  }
}

void ErrorFlags::wait_and_check(CudaHandle stream) {
  int capturing = 0;
  check_driver(driver().stream_is_capturing(stream, &capturing), "cuStreamIsCapturing", "a stream");
  if (capturing) return;
  check_driver(driver().stream_synchronize(stream), "cuStreamSynchronize", "the error flags");
  check();
}

void check_flags() {
  std::vector<std::weak_ptr<ErrorFlags>> all;
  {
    const std::lock_guard lock(registry.mutex);
    all = registry.all;
  }
  for (const auto& known : all) {
    const std::shared_ptr<ErrorFlags> flags = known.lock();
    if (!flags) continue;
    const CudaResult result = flags->synchronize_();
    if (result != kInvalidContext) check_driver(result, "cuCtxSynchronize", "the device");
    flags->check();
  }
}

}  // namespace stitch
