#include "runtime/executor.h"

#include "base/words.h"
#include "runtime/error_flags.h"
#include "runtime/pool.h"
#include "stage/schedule.h"

namespace stitch {
namespace {

// A kernel that moves less is over before other threads have woken up: waking an idle pool costs 5
// us, in which one core moves about this much.
constexpr int64_t kBytesPerThread = 32 * 1024;
constexpr int64_t kSlabAlignmentBytes = 256;
// CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE and CUDA_ERROR_NOT_SUPPORTED of cuda.h.
constexpr CudaResult kCooperativeLaunchTooLarge = 720, kNotSupported = 801;

struct Execution {
  const Program& program;
  Frame& frame;
  const std::vector<int64_t>& symbols;
  bool flags_pending = false;
  // Of the launch that is made: one memory for all of the call's.
  std::vector<void*> pointers = {}, parameters = {}, tensors = {};
  std::vector<int64_t> sizes = {};

  void place_slab() {
    if (program.slots.empty()) return;
    std::vector<int64_t> offsets;
    offsets.reserve(program.slots.size());
    int64_t total = 0;
    for (const std::vector<BufferId>& slot : program.slots) {
      int64_t bytes = 1;  // an empty value has an address too
      for (const BufferId id : slot)
        bytes = std::max(bytes, storage_bytes(program.buffers[id.value()].type, symbols));
      offsets.push_back(total);
      total += round_up(bytes, kSlabAlignmentBytes);
    }
    frame.allocate_slab(total);
    for (size_t i = 0; i < program.slots.size(); ++i)
      for (const BufferId id : program.slots[i]) frame.place_in_slab(id, offsets[i]);
  }

  void operator()(const AllocateStep& step) { frame.allocate(step.buffer, step.over); }
  void operator()(const CopyStep& step) { frame.copy(step.from, step.to); }
  void operator()(const ReleaseStep& step) { frame.release(step.buffer); }

  void operator()(const CallStep& step) {
    wait_for_flags();
    frame.call(step);
  }

  int64_t count_blocks(const LaunchStep& step, size_t phase) const {
    const KernelSource& source = program.sources[step.kernel];
    const int64_t blocks = evaluate(source.phases[phase], symbols);
    const int64_t resident = program.kernels[step.kernel].resident_blocks;
    const bool in_turns = resident > 0 && std::ranges::count(source.in_turns, phase) > 0;
    return in_turns ? std::min(blocks, resident) : blocks;
  }

  void operator()(const LaunchStep& step) {
    for (const IndexedRows& indexed : step.indexed)
      if (evaluate(indexed.rows, symbols) == 0 && evaluate(indexed.indices, symbols) != 0)
        throw_failure(step.failures, static_cast<int>(KernelFailure::kIndexOutOfRange));
    const KernelSource& source = program.sources[step.kernel];
    int64_t grid = source.finishes;
    for (size_t p = 0; p < source.phases.size(); ++p) grid = std::max(grid, count_blocks(step, p));
    if (grid == 0) return;
    pointers.resize(step.pointers.size());
    for (size_t i = 0; i < pointers.size(); ++i)
      pointers[i] = aligned_data(step.pointers[i].buffer, source.pointers[i].alignment_bytes);
    sizes.resize(source.sizes.size());
    for (size_t i = 0; i < sizes.size(); ++i) sizes[i] = evaluate(source.sizes[i], symbols);
    if (program.on_cuda)
      launch_on_cuda(step, grid);
    else
      launch_on_cpu(step, grid);
  }

  // Before what is not ours may use results, and at the end; only where the call is to wait.
  void wait_for_flags() {
    if (std::exchange(flags_pending, false) && program.flags->waits())
      program.flags->wait_and_check(frame.stream());
  }

  void* aligned_data(BufferId buffer, int alignment_bytes) {
    void* address = frame.data(buffer);
    if (reinterpret_cast<uintptr_t>(address) % alignment_bytes == 0) return address;
    frame.align(buffer, alignment_bytes);
    return frame.data(buffer);
  }

  void launch_on_cpu(const LaunchStep& step, int64_t grid) const {
    using Entry = void (*)(void* const*, const int64_t*, int64_t, int64_t, int32_t*);
    const auto entry = reinterpret_cast<Entry>(program.kernels[step.kernel].entry);
    const int64_t scratch_bytes = program.sources[step.kernel].shared_bytes;
    int32_t error = 0;
    const auto run_blocks = [&](int64_t begin, int64_t end) {
      if (scratch_bytes == 0) return entry(pointers.data(), sizes.data(), begin, end, &error);
      const auto give_back = [](PoolBlock* block) { host_pool().release(block); };
      const std::unique_ptr<PoolBlock, decltype(give_back)> scratch(
          host_pool().allocate(scratch_bytes), give_back);
      std::vector<void*> all = pointers;
      all.push_back(scratch->data);
      entry(all.data(), sizes.data(), begin, end, &error);
    };
    const int64_t bytes = evaluate(step.bytes, symbols);
    if (grid == 1 || bytes < 2 * kBytesPerThread) {
      run_blocks(0, grid);
    } else {
      const int64_t pieces = std::min(grid, bytes / kBytesPerThread);
      frame.parallel_for(grid, divide_up(grid, pieces), std::ref(run_blocks));
    }
    if (error) throw_failure(step.failures, error);
  }

  void launch_on_cuda(const LaunchStep& step, int64_t grid) {
    const KernelSource& source = program.sources[step.kernel];
    parameters.clear();
    parameters.reserve(pointers.size() + sizes.size() + 5);
    for (size_t i = 0; i < pointers.size(); ++i)
      if (!source.pointers[i].is_tabled) parameters.push_back(&pointers[i]);
    for (int64_t& size : sizes) parameters.push_back(&size);
    int32_t first_phase = 0, end_phase = static_cast<int32_t>(source.phases.size());
    CudaAddress barrier = 0;
    if (end_phase > 1) parameters.insert(parameters.end(), {&first_phase, &end_phase});
    if (end_phase > 1 || source.finishes) {
      barrier = reinterpret_cast<CudaAddress>(frame.barrier());
      parameters.push_back(&barrier);
    }
    CudaAddress flag = step.flag < 0 ? 0 : program.flags->address(step.flag);
    parameters.push_back(&flag);
    tensors.clear();
    for (size_t i : source.tensors) tensors.push_back(pointers[i]);
    if (!tensors.empty()) parameters.push_back(tensors.data());
    flags_pending |= step.flag >= 0;
    describe_arguments(step, flag, barrier, true);
    if (end_phase <= 1) {
      launch(step.kernel, grid);
      return;
    }
    // Blocks that do the work of several in turn cost more than launches (by a third, H200,
    // 2026-11), where they compute nothing once for all of it.
    const int64_t resident = program.kernels[step.kernel].resident_blocks;
    if (grid <= resident && launch(step.kernel, grid, true)) return;
    // A launch per phase needs no barrier: they follow each other on the stream.
    for (const int32_t phases = end_phase; first_phase < phases; ++first_phase) {
      end_phase = first_phase + 1;
      describe_arguments(step, flag, barrier, false);
      launch(step.kernel, std::clamp<int64_t>(count_blocks(step, first_phase), 1, kMostGrid));
    }
  }

  // False where a device has less room for a cooperative launch than when the kernel was loaded.
  bool launch(int kernel, int64_t grid, bool meets = false) {
    const KernelSource& source = program.sources[kernel];
    if (grid > kMostGrid)
      throw UserError(describe_launch(source, grid) +
                      ": a launch takes 2147483647 blocks at most; "
                      "compile with dynamic=False, so that sizes as large are planned for");
    const LaunchAttribute attribute{
        meets ? LaunchAttribute::kCooperative : LaunchAttribute::kMayBeginEarly, {1}};
    const LaunchConfig config{{static_cast<unsigned>(grid), 1, 1},
                              {static_cast<unsigned>(source.threads), 1, 1},
                              static_cast<unsigned>(source.shared_bytes),
                              frame.stream(),
                              &attribute,
                              meets || source.is_dependent};
    const CudaResult result =
        driver().launch_kernel(&config, program.kernels[kernel].entry, parameters.data(), nullptr);
    if (meets && (result == kCooperativeLaunchTooLarge || result == kNotSupported)) return false;
    if (result != 0) check_driver(result, "cuLaunchKernelEx", describe_launch(source, grid));
    return true;
  }

  static std::string describe_launch(const KernelSource& source, int64_t grid) {
    return concat(source.name, " (grid ", grid, ", block ", source.threads, ", ",
                  source.shared_bytes, " bytes of shared memory)");
  }

  void describe_arguments(const LaunchStep& step, CudaAddress flag, CudaAddress barrier,
                          bool is_whole) const {
    if (!driver().describe_arguments) return;
    using Access = PointerArgument::Access;
    const Access stores = is_whole ? Access::kStore : Access::kBoth;  // a part of a kernel
    std::vector<PointerArgument> arguments;
    for (size_t i = 0; i < step.pointers.size(); ++i) {
      const auto& [buffer, keeps_part] = step.pointers[i];
      const bool is_store = program.sources[step.kernel].pointers[i].is_store;
      const TensorType& type = program.buffers[buffer.value()].type;
      const Access written = keeps_part ? Access::kBoth : stores;
      arguments.push_back({is_store ? written : Access::kLoad, "p" + std::to_string(i),
                           reinterpret_cast<CudaAddress>(pointers[i]), storage_bytes(type, symbols),
                           info(type.dtype).bytes});
      for (const Dim& dim : type.shape) arguments[i].sizes.push_back(evaluate(dim, symbols));
      for (const Dim& dim : type.strides) arguments[i].strides.push_back(evaluate(dim, symbols));
    }
    if (flag) arguments.push_back({Access::kBoth, "error", flag, 4, 4, {1}, {1}});
    if (barrier) arguments.push_back({Access::kBoth, "barrier", barrier, 4, 4, {1}, {1}});
    driver().describe_arguments(std::move(arguments));
  }
};

}  // namespace

std::vector<int64_t> run(const Program& program, Frame& frame,
                         const std::vector<int64_t>& integers) {
  std::vector<int64_t> symbols = program.symbols.evaluate(integers);
  frame.start(symbols);
  Execution execution{program, frame, symbols};
  if (program.flags) program.flags->check();  // of calls before this one
  execution.place_slab();
  for (const Step& step : program.steps) std::visit(execution, step);
  execution.wait_for_flags();
  if (program.flags) program.flags->check();
  for (const BufferId id : program.stored_arguments) frame.write_back(id);
  return symbols;
}

}  // namespace stitch
