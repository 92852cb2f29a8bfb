#include "ptxsim/machine/simulate.h"

#include <algorithm>
#include <cfenv>
#include <cstring>
#include <optional>

#include "base/error.h"
#include "base/round_up.h"
#include "base/words.h"
#include "ptxsim/lanes/lanes.h"
#include "ptxsim/machine/blocks.h"
#include "ptxsim/machine/contents.h"
#include "ptxsim/machine/memory_operations.h"
#include "ptxsim/machine/schedule.h"
#include "ptxsim/memory/races.h"
#include "ptxsim/memory/views.h"

namespace stitch::ptxsim {
namespace {

constexpr uint32_t kMostThreads = 1024;
constexpr std::array<uint32_t, 3> kMostThreadsPerDim = {1024, 1024, 64};
constexpr std::array<uint32_t, 3> kMostBlocksPerDim = {0x7fffffff, 65535, 65535};
constexpr uint64_t kMostLocalBytes = 512 << 10;  // per thread, of CUDA
constexpr int kMostRegisters = 255;              // per thread

template <class... Parts>
[[noreturn]] void refuse(const Launch& launch, const Parts&... parts) {
  throw UserError(concat("kernel ", launch.kernel->name, ": ", parts...));
}

// Lanes compute with what the process's own arithmetic does: torch.set_flush_denormal must not
// reach them.
class DefaultFloatingPoint {
 public:
  DefaultFloatingPoint() {
    std::fegetenv(&saved_);
    std::fesetenv(FE_DFL_ENV);
  }
  ~DefaultFloatingPoint() { std::fesetenv(&saved_); }
  DefaultFloatingPoint(const DefaultFloatingPoint&) = delete;
  DefaultFloatingPoint& operator=(const DefaultFloatingPoint&) = delete;

 private:
  std::fenv_t saved_;
};

using Extents = std::array<uint32_t, 3>;

void check_extents(const Launch& launch, const char* what, const Extents& given,
                   const Extents& most) {
  for (size_t dim = 0; dim < 3; ++dim) {
    if (given[dim] >= 1 && given[dim] <= most[dim]) continue;
    refuse(launch, what, " ", index_name(given), " is not allowed: dimension ", dim,
           " must be 1 to ", most[dim]);
  }
}

void check_shape(const Launch& launch) {
  check_extents(launch, "grid", launch.grid, kMostBlocksPerDim);
  check_extents(launch, "block", launch.block, kMostThreadsPerDim);
  if (volume(launch.block) > kMostThreads) {
    refuse(launch, "block ", index_name(launch.block), " has ", volume(launch.block),
           " threads; at most 1024 are allowed");
  }
  const auto& required = launch.kernel->required_threads;
  if (required[0] && launch.block != required) {
    refuse(launch, "block ", index_name(launch.block), " is not the .reqntid ",
           index_name(required), " of the kernel");
  }
  const auto& most = launch.kernel->max_threads;
  if (most[0] && volume(launch.block) > volume(most)) {
    refuse(launch, "block ", index_name(launch.block), " has more threads than the .maxntid ",
           index_name(most), " of the kernel");
  }
}

void check_sizes(const Launch& launch, const Machine& machine) {
  const Function& kernel = *launch.kernel;
  const uint64_t shared = kernel.shared_bytes + launch.dynamic_shared_bytes;
  if (shared > machine.shared_bytes_per_block) {
    refuse(launch, kernel.shared_bytes, " bytes of static and ", launch.dynamic_shared_bytes,
           " bytes of dynamic shared memory; ", machine.name, " has ",
           machine.shared_bytes_per_block, " per block");
  }
  if (launch.parameters.size() != kernel.parameter_bytes) {
    refuse(launch, "parameters of ", launch.parameters.size(), " bytes were passed; it takes ",
           kernel.parameter_bytes);
  }
  if (kernel.local_bytes > kMostLocalBytes) {
    refuse(launch, kernel.local_bytes, " bytes of local memory per thread; at most ",
           kMostLocalBytes, " are allowed");
  }
}

// What a thread holds when ptxas did not say: the registers that the text names, but never more
// than lets a block run, of `threads` or of the largest size that the kernel promises.
int estimate_registers(const Function& kernel, const Machine& machine, uint64_t threads) {
  if (kernel.max_threads[0]) threads = volume(kernel.max_threads);
  threads = round_up(std::max<uint64_t>(threads, 1), kLanes) * std::max(1u, kernel.min_blocks);
  const uint64_t most =
      std::max<uint64_t>(machine.registers_per_multiprocessor / threads / 8 * 8, 8);
  return static_cast<int>(std::min<uint64_t>(
      {most, kMostRegisters, static_cast<uint64_t>(std::max(kernel.registers, 16))}));
}

int registers_of(const Launch& launch, const Machine& machine, int registers) {
  if (registers > 0) return registers;
  return estimate_registers(*launch.kernel, machine, volume(launch.block));
}

// Zeros, aligned as a launch's parameters are.
std::vector<RegisterUnit> make_image(uint64_t bytes) {
  return std::vector<RegisterUnit>(bytes / kUnitBytes + 1);
}

// `bytes` are zeros.
void fill_variable(const Variable& variable, uint64_t globals, unsigned char* bytes) {
  std::copy(variable.initial.begin(), variable.initial.end(), bytes);
  for (const InitialAddress& initial : variable.addresses) {
    const uint64_t base = initial.space == Space::global ? globals
                          : initial.generic              ? window_of(Space::const_)
                                                         : 0;
    const uint64_t address = base + initial.offset;
    std::memcpy(bytes + initial.at, &address, sizeof(address));
  }
}

// The variables of a space at their offsets.
void fill_variables(const LoadedModule& module, Space space, unsigned char* bytes) {
  const uint64_t globals = reinterpret_cast<uintptr_t>(module.globals.data());
  for (const Variable& variable : module.module->variables)
    if (variable.space == space) fill_variable(variable, globals, bytes + variable.offset);
}

// The views of the launch and those of the module's variables.
std::vector<View> all_views(const Launch& launch) {
  std::vector<View> views = launch.views;
  const uint64_t globals = reinterpret_cast<uintptr_t>(launch.module->globals.data());
  for (const Variable& variable : launch.module->module->variables) {
    if (variable.space != Space::global || variable.bytes == 0) continue;
    views.push_back({.name = variable.name,
                     .address = globals + variable.offset,
                     .bytes = variable.bytes,
                     .role = View::Role::any});
  }
  return views;
}

constexpr std::array<const char*, 5> kOrderNames = {"in order", "reversed", "random",
                                                    "one warp ahead", "one warp behind"};

class Simulation {
 public:
  Simulation(const Launch& launch, const Machine& machine, const SimulationOptions& options)
      : launch_(launch),
        machine_(machine),
        options_(options),
        parameters_(make_image(launch.parameters.size())),
        constants_(make_image(launch.module->module->const_bytes)),
        views_(all_views(launch)) {
    std::memcpy(parameters_[0].bytes, launch.parameters.data(), launch.parameters.size());
    fill_variables(*launch.module, Space::const_, constants_[0].bytes);
  }

  SimulationResult run() {
    const int registers = registers_of(launch_, machine_, options_.registers);
    const int per_multiprocessor = resident_blocks(launch_, machine_, registers);
    if (per_multiprocessor == 0) {
      refuse(launch_, "a block of ", volume(launch_.block), " threads with ", registers,
             " registers each does not fit on a multiprocessor of ", machine_.name);
    }
    resident_ =
        static_cast<uint64_t>(per_multiprocessor) * static_cast<uint64_t>(machine_.multiprocessors);
    Reporter reporter(*launch_.kernel, result_.findings);
    if (launch_.cooperative && volume(launch_.grid) > resident_) {
      reporter.report(FindingKind::residency,
                      concat("is launched cooperatively with ", volume(launch_.grid), " blocks; ",
                             resident_, " fit on ", machine_.name));
      return result_;
    }
    if (options_.checks)
      run_orders(reporter);
    else
      run_order(0, {.reporter = &reporter, .traffic = &result_.traffic});
    return result_;
  }

 private:
  void run_orders(Reporter& reporter) {
    Contents contents(views_);
    for (int index = 0; index < std::max(options_.orders, 1); ++index) {
      contents.restore();
      HappensBefore order(static_cast<int>(volume(launch_.block)));
      Memory memory({.views = views_,
                     .constant_bytes = launch_.module->module->const_bytes,
                     .parameter_bytes = launch_.parameters.size(),
                     .grid = launch_.grid,
                     .block = launch_.block},
                    order, reporter);
      const Ending ending = run_order(index, {.memory = &memory,
                                              .order = &order,
                                              .reporter = &reporter,
                                              .traffic = index ? nullptr : &result_.traffic});
      if (ending == Ending::complete) memory.check_written();
      if (index == 0) {
        contents.keep_result();
      } else if (ending == Ending::complete && options_.deterministic && !options_.noise &&
                 !is_accused()) {
        if (result_.findings.all.empty() && old_.found.count && !contents.differences().empty())
          result_.findings = old_.found;
        else
          report_differences(contents, kOrderNames[static_cast<size_t>(order_of(index))], reporter);
      }
      if (ending != Ending::complete) break;
    }
    contents.restore_result();
  }

  // Of more than different bits, which then only follow.
  bool is_accused() const {
    const auto is_other = [](FindingKind kind) { return kind != FindingKind::nondeterministic; };
    return std::ranges::any_of(result_.findings.all, is_other, &Finding::kind);
  }

  void report_differences(const Contents& contents, const char* order, Reporter& reporter) const {
    for (const Difference& difference : contents.differences()) {
      reporter.report(
          FindingKind::nondeterministic,
          concat("leaves ", difference.first, " in ", locate(views_, difference.address),
                 " in order, but ", difference.other, " when run ", order));
    }
  }

  // What looks at an order while it runs; what is left out does not.
  struct Watchers {
    Memory* memory = nullptr;
    HappensBefore* order = nullptr;
    Reporter* reporter = nullptr;
    Traffic* traffic = nullptr;
  };

  static WarpOrder order_of(int index) {
    return index < 5 ? static_cast<WarpOrder>(index) : WarpOrder::random;
  }

  Ending run_order(int index, const Watchers& watchers) {
    const WarpOrder order = order_of(index);
    const uint64_t seed = options_.seed * 0x9e3779b97f4a7c15u + static_cast<uint64_t>(index);
    const bool is_random = order != WarpOrder::in_order && order != WarpOrder::reversed;
    const bool is_reversed = order == WarpOrder::reversed;
    Grid grid{.module = launch_.module->module.get(),
              .kernel = launch_.kernel,
              .memory = watchers.memory,
              .order = watchers.order,
              .reporter = watchers.reporter,
              .traffic = watchers.traffic,
              .old = order == WarpOrder::one_behind ? &old_ : nullptr,
              .parameters = parameters_[0].bytes,
              .constants = constants_[0].bytes,
              .random = seed,
              .lane_order = is_random     ? LaneOrder::random
                            : is_reversed ? LaneOrder::descending
                                          : LaneOrder::ascending,
              .scatter = order == WarpOrder::random,
              .parts_lanes = is_reversed || order == WarpOrder::one_ahead};
    set_approximation_noise(options_.noise ? seed | 1 : 0);
    const Ending ending = run_grid(grid,
                                   {.launch = &launch_,
                                    .order = order,
                                    .resident = resident_,
                                    .budget = options_.budget,
                                    .multiprocessors = machine_.multiprocessors},
                                   result_.lane_instructions);
    set_approximation_noise(0);
    if (ending == Ending::trapped) {
      refuse(launch_, "executed ", row_of(grid.trap->opcode).name, " at ", line_name(*grid.trap),
             "; the device would report a launch failure");
    }
    return ending;
  }

  const Launch& launch_;
  const Machine& machine_;
  const SimulationOptions& options_;
  std::vector<RegisterUnit> parameters_, constants_;
  std::vector<View> views_;
  uint64_t resident_ = 0;
  SimulationResult result_;
  OldValues old_ = {};
};

// What the decoder cannot know to be wrong.
void check_atomics(const Module& module) {
  for (const Instruction& instruction : module.code) {
    const Opcode opcode = instruction.opcode;
    if (opcode != Opcode::atom && opcode != Opcode::red) continue;
    const Modifiers& modifiers = instruction.modifiers;
    if (find_atomic(modifiers.word, instruction.type, Space::global)) continue;
    throw UserError(concat("PTX line ", instruction.line, ": ", row_of(opcode).name, ".",
                           name_of(modifiers.word), " is not defined for .",
                           name_of(instruction.type)));
  }
}

}  // namespace

LoadedModule instantiate(std::shared_ptr<const Module> module) {
  check_atomics(*module);
  LoadedModule loaded{std::move(module), {}};
  loaded.globals.resize(loaded.module->global_bytes);
  fill_variables(loaded, Space::global, loaded.globals.data());
  return loaded;
}

int resident_blocks(const Launch& launch, const Machine& machine, int registers) {
  constexpr int kRegisterUnit = 256;  // allocated per warp at a time
  constexpr int kWarpUnit = 4;        // a multiprocessor has four parts
  constexpr uint64_t kSharedUnit = 128;
  constexpr uint64_t kSharedPerBlock = 1024;  // the driver's own
  const uint64_t threads = round_up(volume(launch.block), kLanes);
  const uint64_t warps = std::max<uint64_t>(threads / kLanes, 1);
  const uint64_t per_warp = round_up(
      static_cast<uint64_t>(registers_of(launch, machine, registers)) * kLanes, kRegisterUnit);
  const uint64_t warps_by_registers = static_cast<uint64_t>(machine.registers_per_multiprocessor) /
                                      per_warp / kWarpUnit * kWarpUnit;
  const uint64_t shared =
      round_up(launch.kernel->shared_bytes + launch.dynamic_shared_bytes, kSharedUnit) +
      kSharedPerBlock;
  return static_cast<int>(std::min<uint64_t>(
      {static_cast<uint64_t>(machine.blocks_per_multiprocessor),
       static_cast<uint64_t>(machine.threads_per_multiprocessor) / (warps * kLanes),
       warps_by_registers / warps, machine.shared_bytes_per_multiprocessor / shared}));
}

SimulationResult simulate(const Launch& launch, const Machine& machine,
                          const SimulationOptions& options) {
  check_shape(launch);
  check_sizes(launch, machine);
  const DefaultFloatingPoint arithmetic;
  return Simulation(launch, machine, options).run();
}

}  // namespace stitch::ptxsim
