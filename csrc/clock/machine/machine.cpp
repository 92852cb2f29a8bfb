#include "clock/machine/machine.h"

#include <limits>

namespace stitch::clock {

namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();
constexpr int kBarriers = 16;

// By Latency.
constexpr double kLatencies[] = {0,
                                 kNumbers.special_latency,
                                 kNumbers.convert_latency,
                                 kNumbers.fp64_latency,
                                 kNumbers.uniform_latency,
                                 kNumbers.constant_latency,
                                 kNumbers.shared_latency,
                                 kNumbers.exchange_latency,
                                 kNumbers.first_cache_latency,
                                 kNumbers.atomic_latency};
static_assert(std::size(kLatencies) == static_cast<size_t>(Latency::atomic) + 1);

// What issuing one instruction needs, found once.
struct Cost {
  const Instruction* instruction;
  Control control;
  size_t pipe;
  double pipe_cycles, latency_cycles;
  int barrier = 0, warps = 0;  // of BAR; 0 warps: all of the block
  int groups = 0;              // of DEPBAR: copies that may be left
};

Cost cost_of(const Instruction& instruction) {
  const Row& row = *instruction.row;
  Cost cost{&instruction, instruction.control, static_cast<size_t>(row.pipe), row.issue_cycles,
            kLatencies[static_cast<size_t>(row.latency)]};
  if (row.flow == Flow::barrier) {
    const Operand* threads = instruction.find('N');
    cost.barrier = static_cast<int>(instruction.find('n')->value) % kBarriers;
    if (threads) cost.warps = static_cast<int>(threads->value / kLanes);
  }
  if (row.flow == Flow::await) cost.groups = static_cast<int>(instruction.find('v')->value);
  return cost;
}

struct WarpState;

// What a scheduler looks at each cycle.
struct Waiting {
  double ready = kNever;
  size_t pipe = 0;
  WarpState* warp = nullptr;
};

// Issues from the warp that may issue first; of equals from the one that issued last.
struct Scheduler {
  std::vector<Waiting> warps;
  double free_at = 0;
  std::array<double, kPipes> pipes_free_at = {};  // of memory: when its queue has room
  const WarpState* last = nullptr;
  double next_at = kNever;  // not before
  Waiting* next = nullptr;  // null: to be found

  double earliest(const Waiting& waiting) const {
    return std::max({waiting.ready, free_at, pipes_free_at[waiting.pipe]});
  }
  void find_next() {
    double best = kNever;
    for (Waiting& waiting : warps) {
      const double at = earliest(waiting);
      if (at > best || (at == best && waiting.warp != last)) continue;
      best = at;
      next = &waiting;
    }
    next_at = best;
  }
  void wake(double at) {
    next_at = std::min(next_at, std::max(at, free_at));
    next = nullptr;
  }
};

struct WarpState {
  const Step *next = nullptr, *end = nullptr;
  Scheduler* scheduler = nullptr;
  size_t place = 0;  // in the scheduler's list
  std::array<double, kScoreboards + 2> scoreboards = {};
  double stored_at = 0;           // its last store has arrived
  double copied_at = 0;           // copies since the last commit
  std::vector<double> groups;     // copies, by commit
  uint32_t index = 0, block = 0;  // of the trace

  Waiting& waiting() const { return scheduler->warps[place]; }
  void hold(uint8_t scoreboard, double until) {
    if (scoreboard == kNoScoreboard) return;
    scoreboards[scoreboard] = std::max(scoreboards[scoreboard], until);
  }
};

struct BlockState {
  int alive = 0;
  std::array<std::vector<WarpState*>, kBarriers> waiting;
};

class Machine {
 public:
  Machine(const Program& program, const Trace& trace, MemorySystem&& memory,
          const Occupancy& occupancy, const DeviceSpec& device, Rounds rounds)
      : trace_(trace),
        memory_(std::move(memory)),
        block_interval_(kNumbers.block_interval_ns * 1e-3 * device.cycles_per_us *
                        device.multiprocessors),
        rounds_(rounds),
        resident_(static_cast<size_t>(occupancy.blocks)),
        costs_(map_to_vector(program.code, cost_of)),
        blocks_(trace.blocks.size()),
        warps_(trace.warps.size()) {
    run_.blocks.resize(blocks_.size());
    run_.warps.resize(warps_.size());
  }

  MachineRun run() {
    for (size_t slot = 0; slot < resident_; ++slot) start_block(0, static_cast<int>(slot));
    for (;;) {
      Scheduler& first = *std::ranges::min_element(schedulers_, {}, &Scheduler::next_at);
      const double at = first.next_at;
      if (at == kNever) {
        if (!free_stuck_warps()) break;
        continue;
      }
      // What others have issued since may fill the shared pipe.
      if (!first.next || first.earliest(*first.next) > at) first.find_next();
      if (first.next_at <= at) issue(first, *first.next, at);
    }
    run_.cycles = std::max({last_, memory_.memory().free_at, memory_.second_cache().free_at});
    run_.memory_busy = memory_.memory().busy;
    run_.second_cache_busy = memory_.second_cache().busy;
    return std::move(run_);
  }

 private:
  void start_block(double cycle, int slot) {
    if (started_ == blocks_.size()) return;
    const double at = started_ == 0 ? 0 : std::max(cycle, last_start_ + block_interval_);
    last_start_ = at;
    const auto b = static_cast<uint32_t>(started_++);
    blocks_[b].alive = trace_.warps_per_block;
    run_.blocks[b] = {{at, at}, slot, run_.issued, 0};
    for (int w = 0; w < trace_.warps_per_block; ++w) {
      const uint32_t index = trace_.blocks[b].first_warp + w;
      run_.warps[index].start = at;
      Scheduler& scheduler = schedulers_[(slot * trace_.warps_per_block + w) % kSchedulers];
      WarpState& warp = warps_[index];
      warp = {.next = trace_.steps.data() + trace_.warps[index].first,
              .end = trace_.steps.data() + trace_.warps[index].end,
              .scheduler = &scheduler,
              .place = scheduler.warps.size(),
              .groups = {},
              .index = index,
              .block = b};
      scheduler.warps.push_back({at, 0, &warp});
      prepare_next(warp);
      scheduler.wake(at);
    }
  }

  void issue(Scheduler& scheduler, Waiting& waiting, double at) {
    WarpState& warp = *waiting.warp;
    const Step& step = *warp.next++;
    const Cost& cost = costs_[step.instruction];
    const Row& row = *cost.instruction->row;
    ++run_.issued;
    last_ = std::max(last_, at);
    scheduler.last = &warp;
    scheduler.free_at = at + kNumbers.issue_cycles;
    const Times times =
        row.pipe == Pipe::memory ? use_memory(warp, step, cost, at) : use_pipe(scheduler, cost, at);
    warp.hold(cost.control.write_scoreboard, times.done);
    warp.hold(cost.control.read_scoreboard, times.read);
    waiting.ready = at + std::max<int>(1, cost.control.stall_cycles);
    if (row.flow == Flow::await) await_copies(warp, cost);
    if (row.opcode == Opcode::membar)
      waiting.ready = std::max({waiting.ready, times.done, warp.stored_at});
    if (warp.next == warp.end) {
      end_warp(warp, at);
    } else {
      prepare_next(warp);
      if (row.flow == Flow::barrier) arrive(warp, cost);
      if (step.access == Step::kGridWait) wait_for_grid(warp, at);
    }
    scheduler.find_next();
  }

  // The scoreboards of what comes next: all that will free them is known by now.
  void prepare_next(const WarpState& warp) const {
    const Cost& next = costs_[warp.next->instruction];
    Waiting& waiting = warp.waiting();
    waiting.pipe = next.pipe;
    for (int k = 0; k < kScoreboards; ++k)
      if (next.control.wait_mask >> k & 1)
        waiting.ready = std::max(waiting.ready, warp.scoreboards[k]);
  }

  struct Times {
    double done, read;  // the result is there; the operands are read
  };
  Times use_pipe(Scheduler& scheduler, const Cost& cost, double at) {
    const double end = at + cost.pipe_cycles;
    run_.busy[cost.pipe] += cost.pipe_cycles;
    if (cost.pipe != 0) scheduler.pipes_free_at[cost.pipe] = end;
    return {end + cost.latency_cycles, end};
  }

  Times use_memory(WarpState& warp, const Step& step, const Cost& cost, double at) {
    const Access* access = step.access >= 0 ? &trace_.accesses[step.access] : nullptr;
    const double cycles = access ? std::max<double>(1, access->wavefronts) : cost.pipe_cycles;
    queue_free_at_ = std::max(queue_free_at_, at) + cycles;
    for (Scheduler& scheduler : schedulers_)
      scheduler.pipes_free_at[cost.pipe] = queue_free_at_ - kNumbers.memory_queue;
    run_.busy[cost.pipe] += cycles;
    Times times{queue_free_at_ + cost.latency_cycles, queue_free_at_ + kNumbers.operand_latency};
    const Row& row = *cost.instruction->row;
    if (row.flow == Flow::commit) {
      warp.groups.push_back(warp.copied_at);
      times.done = at;
    }
    const bool is_atomic = row.latency == Latency::atomic;
    if (!access || !(row.latency == Latency::global || is_atomic)) return times;
    const double share = warp.block < rounds_.whole ? 1 : rounds_.last_share;
    const auto served = memory_.access(*access, *cost.instruction, queue_free_at_, share);
    run_.blocks[warp.block].memory_bytes += served.memory_bytes;
    times.done = is_atomic ? std::max(times.done, served.done) : served.done;
    if (row.flow == Flow::store || row.flow == Flow::atomic)
      warp.stored_at = std::max(warp.stored_at, times.done);
    if (row.flow == Flow::copy) warp.copied_at = std::max(warp.copied_at, times.done);
    return times;
  }

  void await_copies(const WarpState& warp, const Cost& cost) {
    double& ready = warp.waiting().ready;
    const auto count = static_cast<int>(warp.groups.size()) - cost.groups;
    for (int k = 0; k < count; ++k) ready = std::max(ready, warp.groups[k]);
  }

  void stop(WarpState& warp, std::vector<WarpState*>& list) {
    list.push_back(&warp);
    warp.waiting().ready = kNever;
  }
  void release(std::vector<WarpState*>& list, double at) {
    for (WarpState* warp : list) {
      warp->waiting().ready = at;
      prepare_next(*warp);
      warp->scheduler->wake(at);
    }
    list.clear();
  }

  void arrive(WarpState& warp, const Cost& cost) {
    BlockState& block = blocks_[warp.block];
    auto& waiting = block.waiting[cost.barrier];
    stop(warp, waiting);
    const int expected = cost.warps > 0 ? std::min(cost.warps, block.alive) : block.alive;
    if (std::ssize(waiting) >= expected)
      release(waiting, queue_free_at_ + kNumbers.barrier_latency);
  }

  // One warp of each resident block polls; the others wait at a barrier of their block.
  void wait_for_grid(WarpState& warp, double at) {
    run_.waits_for_grid = true;
    stop(warp, grid_waiting_);
    if (grid_waiting_.size() >= std::min(resident_, blocks_.size()))
      release(grid_waiting_, at + kNumbers.grid_release);
  }

  void end_warp(WarpState& warp, double at) {
    run_.warps[warp.index].end = at;
    auto& list = warp.scheduler->warps;
    list[warp.place] = list.back();
    list[warp.place].warp->place = warp.place;
    list.pop_back();
    BlockState& block = blocks_[warp.block];
    if (--block.alive == 0) {
      run_.blocks[warp.block].end = at;
      start_block(at + kNumbers.block_restart, run_.blocks[warp.block].slot);
      return;
    }
    for (auto& waiting : block.waiting)
      if (!waiting.empty() && std::ssize(waiting) >= block.alive)
        release(waiting, at + kNumbers.barrier_latency);
  }

  // Nobody can issue: warps that wait for others that never come go on, which the result says.
  bool free_stuck_warps() {
    bool any = !grid_waiting_.empty();
    if (any) release(grid_waiting_, last_ + kNumbers.grid_release);
    for (BlockState& block : blocks_) {
      for (auto& waiting : block.waiting) {
        if (waiting.empty()) continue;
        release(waiting, last_ + kNumbers.barrier_latency);
        any = run_.has_stuck_barrier = true;
      }
    }
    return any;
  }

  const Trace& trace_;
  MemorySystem memory_;
  double block_interval_;  // cycles, between blocks that start here
  Rounds rounds_;
  size_t resident_;
  std::vector<Cost> costs_;
  std::vector<BlockState> blocks_;
  std::vector<WarpState> warps_;
  std::array<Scheduler, kSchedulers> schedulers_ = {};
  std::vector<WarpState*> grid_waiting_;
  double queue_free_at_ = 0;  // of the pipe that all schedulers share
  double last_ = 0, last_start_ = 0;
  size_t started_ = 0;
  MachineRun run_;
};

}  // namespace

MachineRun run_machine(const Program& program, const Trace& trace, MemorySystem memory,
                       const Occupancy& occupancy, const DeviceSpec& device, Rounds rounds) {
  return Machine(program, trace, std::move(memory), occupancy, device, rounds).run();
}

}  // namespace stitch::clock
