#include "clock/time_kernel.h"

#include <algorithm>

#include "base/error.h"
#include "base/words.h"

namespace stitch::clock {

namespace {

constexpr int64_t kResidencies = 4;  // that are run before the rest is extrapolated
constexpr int64_t kLeastResidencies = 3;
constexpr uint64_t kEnoughSteps = 300'000;  // warp instructions, if so many residencies have passed
constexpr double kSaturated = 0.8;          // of its time: what is used so bounds the kernel

// Blocks of multiprocessor 0, in the order in which they start there; the grid's last one is among
// them where it may do what others do not.
Sample choose_blocks(int64_t grid, int64_t multiprocessors, int64_t resident, bool may_differ) {
  Sample sample;
  const int64_t most = kResidencies * resident;
  for (int64_t b = 0; b < grid && std::ssize(sample.blocks) < most; b += multiprocessors)
    sample.blocks.push_back(b);
  sample.together = static_cast<size_t>(resident);
  sample.least = static_cast<size_t>(kLeastResidencies * resident);
  sample.enough_steps = may_differ ? UINT64_MAX : kEnoughSteps;
  sample.last_differs = may_differ;
  if (may_differ) sample.blocks.back() = grid - 1;
  return sample;
}

// A counter of blocks that some block reads: the last one may do more than others.
bool counts_blocks(const Program& program) {
  return std::ranges::any_of(program.code, [](const Instruction& instruction) {
    const Operand* result = instruction.find('d');
    return instruction.row->opcode == Opcode::atomg && result->index != kZeroRegister;
  });
}

// A figure of a block over `count` of them: one that differs counts once.
template <class Block, class Figure>
double sum_over(const std::vector<Block>& blocks, Figure Block::* figure, double count,
                bool last_differs) {
  double sum = 0;
  for (const Block& block : blocks) sum += static_cast<double>(block.*figure);
  const double last = last_differs ? static_cast<double>(blocks.back().*figure) : 0;
  return (sum - last) / static_cast<double>(blocks.size() - last_differs) * (count - last_differs) +
         last;
}

// Of all blocks of one multiprocessor: those that were run, and the rest at the pace at which these
// issued while none of their places was empty.  No resource goes on faster than it worked.
double extrapolate(const MachineRun& run, const Trace& trace, double all_blocks, int64_t resident) {
  const auto done = static_cast<double>(run.blocks.size());
  if (done >= all_blocks) return run.cycles;
  const BlockSpan& first = run.blocks[static_cast<size_t>(resident)];
  const BlockSpan& last = run.blocks.back();
  const auto issued = static_cast<double>(last.issued_at_start - first.issued_at_start);
  const double left = sum_over(trace.blocks, &BlockTrace::steps, all_blocks, trace.last_differs) -
                      sum_over(trace.blocks, &BlockTrace::steps, done, trace.last_differs);
  const double pace = issued > 0 ? (last.start - first.start) / issued : 0;
  const double busiest = *std::ranges::max_element(run.busy) / kSchedulers;
  const double least = std::max({run.memory_busy, run.second_cache_busy, busiest});
  return run.cycles + std::max(pace, least / static_cast<double>(run.issued)) * left;
}

std::vector<Use> find_uses(const MachineRun& run) {
  const double slots = kSchedulers * run.cycles;
  std::vector<Use> uses = {
      {"memory", run.memory_busy / run.cycles},
      {"second cache", run.second_cache_busy / run.cycles},
      {"issue", static_cast<double>(run.issued) * kNumbers.issue_cycles / slots}};
  for (size_t p = 1; p < run.busy.size(); ++p) {
    const auto pipe = static_cast<Pipe>(p);
    const bool is_shared = pipe == Pipe::memory;
    uses.push_back({is_shared ? "shared pipe" : std::string(pipe_name(pipe)),
                    run.busy[p] / (is_shared ? run.cycles : slots)});
  }
  std::ranges::stable_sort(uses, std::greater(), &Use::share);
  return uses;
}

std::string find_bound(const ClockResult& result, const Launch& launch, const DeviceSpec& device) {
  const Use& most = result.uses.front();
  if (most.share >= kSaturated) return most.what;
  if (launch.blocks() < device.multiprocessors) return "too few blocks";
  if (result.occupancy.blocks == 1 && launch.blocks() > device.multiprocessors)
    return "one resident block";
  return "latency";
}

void check_grid_barrier(const MachineRun& run, const Launch& launch, const Occupancy& occupancy,
                        const DeviceSpec& device) {
  const int64_t most = occupancy.blocks * device.multiprocessors;
  if (!run.waits_for_grid || launch.blocks() <= most) return;
  throw UserError(concat("blocks wait for each other, and of ", launch.blocks(), " only ", most,
                         " are resident on ", device.name, ": the kernel would never end"));
}

void add_assumptions(const CubinKernel& kernel, const Cubin& cubin, ClockResult& result) {
  const auto add = [&](const std::string& sentence) { result.assumptions.push_back(sentence); };
  if (cubin.is_debug) add("the cubin was built for debugging: it is not what would be shipped");
  if (kernel.registers == 0) add("the cubin does not say its registers: one is counted");
  if (result.run.has_stuck_barrier)
    add("warps that wait at a barrier to which others do not come go on");
  if (result.run.waits_for_grid) add("all blocks reach a barrier of the grid together");
}

}  // namespace

ClockResult time_kernel(std::string_view bytes, const std::string& name, const Launch& launch,
                        const DeviceSpec& device) {
  const Cubin cubin = read_cubin(bytes);
  const CubinKernel& kernel = find_kernel(cubin, name);
  ErrorContext context("while timing kernel " + kernel.name);
  const Program program = decode(cubin, kernel);
  ClockResult result;
  result.kernel = kernel.name;
  result.device = device.name;
  result.registers = kernel.registers;
  result.cycles_per_us = device.cycles_per_us;
  result.occupancy = find_occupancy(cubin, kernel, launch, device);
  const int64_t grid = launch.blocks(), multiprocessors = device.multiprocessors;
  const int64_t resident = result.occupancy.blocks;
  const auto walk_blocks = [&](bool may_differ) {
    return walk(program, launch, choose_blocks(grid, multiprocessors, resident, may_differ));
  };
  Trace trace = walk_blocks(counts_blocks(program));
  // Blocks that wait for each other are counted too: the first have most of the work then.
  if (std::ranges::find(trace.steps, Step::kGridWait, &Step::access) != trace.steps.end())
    trace = walk_blocks(false);
  const double all_blocks = std::max(1.0, static_cast<double>(grid) / multiprocessors);
  const int64_t rest = grid % multiprocessors;
  const bool is_whole = static_cast<double>(trace.blocks.size()) >= all_blocks;
  const Rounds rounds = is_whole && rest > 0 && grid > multiprocessors
                            ? Rounds{static_cast<size_t>(grid / multiprocessors),
                                     static_cast<double>(rest) / multiprocessors}
                            : Rounds{trace.blocks.size(), 1};
  result.run = run_machine(program, trace, MemorySystem(trace, launch, device, result.occupancy),
                           result.occupancy, device, rounds);
  check_grid_barrier(result.run, launch, result.occupancy, device);
  const auto all = static_cast<double>(grid);
  const bool differs = trace.last_differs;
  const double instructions = sum_over(trace.blocks, &BlockTrace::steps, all, differs);
  result.us = kNumbers.edge_ns * 1e-3 +
              extrapolate(result.run, trace, all_blocks, resident) / device.cycles_per_us;
  result.uses = find_uses(result.run);
  result.bound = find_bound(result, launch, device);
  result.asked_bytes = sum_over(trace.blocks, &BlockTrace::requested_bytes, all, differs);
  result.memory_bytes = sum_over(result.run.blocks, &BlockSpan::memory_bytes, all, differs);
  if (result.asked_bytes > 0)
    result.instructions_per_16_bytes = instructions * kLanes * 16 / result.asked_bytes;
  result.warps_per_block = trace.warps_per_block;
  result.instructions_per_thread = instructions / (all * trace.warps_per_block);
  result.resident_threads = resident * launch.threads();
  result.simulated_share = std::min(1.0, static_cast<double>(trace.blocks.size()) / all_blocks);
  result.assumptions = trace.assumptions;
  add_assumptions(kernel, cubin, result);
  return result;
}

}  // namespace stitch::clock
