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
                                 kNumbers.atomic_latency,
                                 kNumbers.tensor_latency};
static_assert(std::size(kLatencies) == static_cast<size_t>(Latency::tensor) + 1);

// What issuing one instruction needs, found once.
struct Cost {
  const Instruction* instruction;
  Pipe pipe;
  double pipe_cycles, stall_cycles, latency_cycles;
  uint8_t wait_mask;
  int barrier = 0, warps = 0;  // of BAR; 0 warps: all of the block
  int groups = 0;              // of DEPBAR: copies that may be left
};

Cost cost_of(const Instruction& instruction) {
  const Row& row = *instruction.row;
  Cost cost{&instruction,
            row.pipe,
            row.issue_cycles,
            std::max(1.0, static_cast<double>(instruction.control.stall_cycles)),
            kLatencies[static_cast<size_t>(row.latency)],
            instruction.control.wait_mask};
  if (row.flow == Flow::barrier) {
    const Operand* threads = instruction.find('N');
    cost.barrier = static_cast<int>(instruction.find('n')->value) % kBarriers;
    if (threads) cost.warps = static_cast<int>(threads->value / kLanes);
  }
  if (row.flow == Flow::await) cost.groups = static_cast<int>(instruction.operands.back().value);
  return cost;
}

struct WarpState;

// What a scheduler looks at each cycle.
struct Waiting {
  double ready = kNever;
  Pipe pipe = Pipe::none;
  WarpState* warp = nullptr;
};

struct WarpState {
  const Step *next = nullptr, *end = nullptr;
  int scheduler = 0;
  size_t place = 0;  // in the scheduler's list
  std::array<double, kScoreboards + 2> scoreboards = {};
  double stored_at = 0;           // its last store has arrived
  double copied_at = 0;           // copies since the last commit
  std::vector<double> groups;     // copies, by commit
  uint32_t index = 0, block = 0;  // of the trace
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
        device_(device),
        rounds_(rounds),
        resident_(static_cast<size_t>(occupancy.blocks)),
        blocks_(trace.blocks.size()),
        warps_(trace.warps.size()) {
    for (const Instruction& instruction : program.code) costs_.push_back(cost_of(instruction));
    run_.blocks.resize(blocks_.size());
    run_.warps.resize(warps_.size());
  }

  MachineRun run() {
    for (size_t slot = 0; slot < resident_; ++slot) start_block(0, static_cast<int>(slot));
    for (;;) {
      Candidate& next = *std::ranges::min_element(next_, {}, &Candidate::at);
      const auto chosen = static_cast<int>(&next - next_.data());
      if (next.at == kNever) {
        if (!free_stuck_warps()) break;
        continue;
      }
      // What others have issued since may fill the shared pipe.
      const double at = next.at;
      if (!next.waiting || earliest(chosen, *next.waiting) > at) next = find_next(chosen);
      if (next.at <= at) issue(*next.waiting, chosen, next.at);
    }
    run_.cycles = std::max(last_, memory_.idle_at());
    run_.memory_busy = memory_.memory_busy();
    run_.second_cache_busy = memory_.second_cache_busy();
    run_.traffic = memory_.traffic();
    return std::move(run_);
  }

 private:
  struct Candidate {
    double at = kNever;
    Waiting* waiting = nullptr;
  };
  const Cost& cost(const WarpState& warp) const { return costs_[warp.next->instruction]; }
  Waiting& waiting_of(const WarpState& warp) { return schedulers_[warp.scheduler][warp.place]; }

  void start_block(double cycle, int slot) {
    if (started_ == blocks_.size()) return;
    const double interval =
        kNumbers.block_interval_ns * 1e-3 * device_.cycles_per_us * device_.multiprocessors;
    const double at = started_ == 0 ? 0 : std::max(cycle, last_start_ + interval);
    last_start_ = at;
    const auto b = static_cast<uint32_t>(started_++);
    blocks_[b].alive = trace_.warps_per_block;
    run_.blocks[b] = {{at, at}, slot, run_.issued, 0};
    for (int w = 0; w < trace_.warps_per_block; ++w) {
      const uint32_t index = trace_.blocks[b].first_warp + w;
      WarpState& warp = warps_[index];
      warp.next = trace_.steps.data() + trace_.warps[index].first;
      warp.end = trace_.steps.data() + trace_.warps[index].end;
      warp.index = index;
      warp.block = b;
      run_.warps[index].start = at;
      warp.scheduler = (slot * trace_.warps_per_block + w) % kSchedulers;
      warp.place = schedulers_[warp.scheduler].size();
      schedulers_[warp.scheduler].push_back({at, Pipe::none, &warp});
      prepare_next(warp, waiting_of(warp));
      wake(warp.scheduler, at);
    }
  }

  void wake(int s, double at) {
    next_[s] = {std::min(next_[s].at, std::max(at, free_[s])), nullptr};
  }

  double earliest(int s, const Waiting& waiting) const {
    const double at = std::max(waiting.ready, free_[s]);
    if (waiting.pipe == Pipe::none) return at;
    if (waiting.pipe == Pipe::memory) return std::max(at, queue_free_ - kNumbers.memory_queue);
    return std::max(at, pipes_[s][static_cast<size_t>(waiting.pipe)]);
  }

  // The warp that may issue first; of equals the one that issued last.
  Candidate find_next(int s) {
    Candidate best;
    for (Waiting& waiting : schedulers_[s]) {
      const double at = earliest(s, waiting);
      if (at < best.at || (at == best.at && waiting.warp == greedy_[s])) best = {at, &waiting};
    }
    return best.at == kNever ? Candidate() : best;
  }

  void issue(Waiting& waiting, int s, double at) {
    WarpState& warp = *waiting.warp;
    const Step& step = *warp.next++;
    const Cost& cost = costs_[step.instruction];
    const Control& control = cost.instruction->control;
    ++run_.issued;
    greedy_[s] = &warp;
    free_[s] = at + kNumbers.issue_cycles;
    double done = at, read = at;
    if (cost.pipe == Pipe::memory) {
      done = use_memory(warp, step, cost, at, read);
    } else {
      pipes_[s][static_cast<size_t>(cost.pipe)] = at + cost.pipe_cycles;
      run_.busy[static_cast<size_t>(cost.pipe)] += cost.pipe_cycles;
      done = at + cost.pipe_cycles + cost.latency_cycles;
      read = at + cost.pipe_cycles;
    }
    const auto hold = [&](uint8_t scoreboard, double until) {
      if (scoreboard == kNoScoreboard) return;
      warp.scoreboards[scoreboard] = std::max(warp.scoreboards[scoreboard], until);
    };
    hold(control.write_scoreboard, done);
    hold(control.read_scoreboard, read);
    waiting.ready = at + cost.stall_cycles;
    last_ = std::max(last_, at);
    if (cost.instruction->row->flow == Flow::await) await_copies(warp, waiting, cost);
    if (cost.instruction->row->opcode == Opcode::membar)
      waiting.ready = std::max({waiting.ready, done, warp.stored_at});
    if (warp.next == warp.end) {
      end_warp(warp, s, at);
    } else {
      prepare_next(warp, waiting);
      if (cost.instruction->row->flow == Flow::barrier) arrive(warp, cost, queue_free_);
      if (step.access == Step::kGridWait) wait_for_grid(warp, at);
    }
    next_[s] = find_next(s);
  }

  // The scoreboards of what comes next: all that will free them is known by now.
  void prepare_next(const WarpState& warp, Waiting& waiting) const {
    const Cost& next = cost(warp);
    waiting.pipe = next.pipe;
    for (int k = 0; k < kScoreboards; ++k)
      if (next.wait_mask >> k & 1) waiting.ready = std::max(waiting.ready, warp.scoreboards[k]);
  }

  double use_memory(WarpState& warp, const Step& step, const Cost& cost, double at, double& read) {
    const Access* access = step.access >= 0 ? &trace_.accesses[step.access] : nullptr;
    const double cycles = access ? std::max<double>(1, access->wavefronts) : cost.pipe_cycles;
    queue_free_ = std::max(queue_free_, at) + cycles;
    run_.busy[static_cast<size_t>(Pipe::memory)] += cycles;
    read = queue_free_ + kNumbers.operand_latency;
    const Flow flow = cost.instruction->row->flow;
    if (flow == Flow::commit) {
      warp.groups.push_back(warp.copied_at);
      return at;
    }
    const Latency latency = cost.instruction->row->latency;
    const bool is_global = access && (latency == Latency::global || latency == Latency::atomic);
    double done = queue_free_ + cost.latency_cycles;
    if (!is_global) return done;
    const double share = warp.block < rounds_.whole ? 1 : rounds_.last_share;
    double& moved = run_.blocks[warp.block].memory_bytes;
    moved -= memory_.traffic().memory_bytes;
    const double arrived = memory_.access(*access, *cost.instruction, queue_free_, share);
    moved += memory_.traffic().memory_bytes;
    done = latency == Latency::atomic ? std::max(done, arrived) : arrived;
    if (flow == Flow::store || flow == Flow::atomic)
      warp.stored_at = std::max(warp.stored_at, done);
    if (flow == Flow::copy) warp.copied_at = std::max(warp.copied_at, done);
    return done;
  }

  void await_copies(const WarpState& warp, Waiting& waiting, const Cost& cost) {
    const auto count = static_cast<int>(warp.groups.size()) - cost.groups;
    for (int k = 0; k < count; ++k) waiting.ready = std::max(waiting.ready, warp.groups[k]);
  }

  void release(std::vector<WarpState*>& waiting, double at) {
    for (WarpState* warp : waiting) {
      Waiting& place = waiting_of(*warp);
      place.ready = at;
      prepare_next(*warp, place);
      wake(warp->scheduler, at);
    }
    waiting.clear();
  }

  void arrive(WarpState& warp, const Cost& cost, double at) {
    BlockState& block = blocks_[warp.block];
    auto& waiting = block.waiting[cost.barrier];
    waiting.push_back(&warp);
    waiting_of(warp).ready = kNever;
    const int expected = cost.warps > 0 ? std::min(cost.warps, block.alive) : block.alive;
    if (std::ssize(waiting) >= expected) release(waiting, at + kNumbers.barrier_latency);
  }

  // One warp of each resident block polls; the others wait at a barrier of their block.
  void wait_for_grid(WarpState& warp, double at) {
    run_.waits_for_grid = true;
    grid_waiting_.push_back(&warp);
    waiting_of(warp).ready = kNever;
    if (grid_waiting_.size() >= std::min(resident_, blocks_.size()))
      release(grid_waiting_, at + kNumbers.grid_release);
  }

  void end_warp(WarpState& warp, int s, double at) {
    run_.warps[warp.index].end = at;
    auto& list = schedulers_[s];
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
  const DeviceSpec& device_;
  Rounds rounds_;
  size_t resident_;
  std::vector<Cost> costs_;
  std::vector<BlockState> blocks_;
  std::vector<WarpState> warps_;
  std::array<std::vector<Waiting>, kSchedulers> schedulers_;
  std::array<Candidate, kSchedulers> next_ = {};
  std::array<double, kSchedulers> free_ = {};
  std::array<WarpState*, kSchedulers> greedy_ = {};
  std::array<std::array<double, static_cast<size_t>(Pipe::count)>, kSchedulers> pipes_ = {};
  std::vector<WarpState*> grid_waiting_;
  double queue_free_ = 0, last_ = 0, last_start_ = 0;
  size_t started_ = 0;
  MachineRun run_;
};

}  // namespace

MachineRun run_machine(const Program& program, const Trace& trace, MemorySystem memory,
                       const Occupancy& occupancy, const DeviceSpec& device, Rounds rounds) {
  return Machine(program, trace, std::move(memory), occupancy, device, rounds).run();
}

}  // namespace stitch::clock
