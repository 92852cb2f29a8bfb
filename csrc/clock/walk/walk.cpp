#include <algorithm>
#include <bit>
#include <map>
#include <set>

#include "base/error.h"
#include "clock/walk/touch_memory.h"

namespace stitch::clock {

namespace {

constexpr uint64_t kMostSteps = 4'000'000;  // of one warp: then its loop counts as endless

// Lanes of a warp that are at one instruction.
struct Split {
  size_t at = 0;
  uint32_t lanes = 0;
};

// What BSSY and BSYNC keep: who takes part, who has arrived, where they go on.
struct Meeting {
  uint32_t expected = 0, arrived = 0;
  size_t next = 0;
};

std::string place_of(size_t at) { return to_hex(at * kInstructionBytes); }

class Walker {
 public:
  Walker(const Program& program, const Launch& launch)
      : program_(program),
        launch_(launch),
        memory_(program.kernel->parameters.size(), launch, trace_) {
    warp_.constants = fill_constants(program, launch);
    steps_ = prepare(program, warp_, pool_);
    if (launch.arguments.empty() && !program.kernel->parameters.empty())
      assume("arguments of 8 bytes are pointers to memory of any size, others are unknown");
    if (program.kernel->local_bytes > 0)
      assume("local memory (" + std::to_string(program.kernel->local_bytes) +
             " bytes a thread) goes through the first cache, stores of it to the second");
    for (const std::string& opcode : program.unknown)
      assume("opcode " + opcode + " is not known: it counts as light arithmetic");
  }

  Trace walk(const Sample& sample) {
    together_ = sample.together;
    trace_.warps_per_block = static_cast<int>((launch_.threads() + kLanes - 1) / kLanes);
    for (const int64_t block : sample.blocks) {
      const size_t done = trace_.blocks.size();
      const bool is_enough = done >= sample.least && trace_.steps.size() > sample.enough_steps;
      if (is_enough && done % sample.together == 0) break;
      walk_block(block);
    }
    trace_.last_differs =
        sample.last_differs && sample.blocks.size() > 1 && memory_.has_counted_blocks();
    if (memory_.has_read_what_changes())
      assume("integers in memory that the kernel also stores to are those from before the launch");
    if (memory_.has_local_arrays()) assume("arrays in local memory are found in the first cache");
    if (memory_.outside_lanes() > 0)
      assume("accesses outside of the arguments given go to memory, a sector a lane");
    if (std::ranges::any_of(trace_.accesses, [](const Access& a) { return a.unknown > 0; }))
      assume("addresses that depend on data are a sector a lane, never seen again");
    trace_.assumptions.insert(trace_.assumptions.end(), assumptions_.begin(), assumptions_.end());
    return std::move(trace_);
  }

 private:
  void assume(const std::string& sentence) { assumptions_.insert(sentence); }

  void walk_block(int64_t block) {
    trace_.blocks.push_back({block, static_cast<uint32_t>(trace_.warps.size()),
                             static_cast<uint32_t>(trace_.runs.size()), 0, 0});
    const uint64_t first = trace_.steps.size();
    memory_.start_block(block);
    const int64_t x = launch_.grid[0], y = launch_.grid[1];
    warp_.place.block = {static_cast<uint32_t>(block % x), static_cast<uint32_t>(block / x % y),
                         static_cast<uint32_t>(block / x / y)};
    for (int w = 0; w < trace_.warps_per_block; ++w) walk_warp(w);
    trace_.blocks.back().steps = trace_.steps.size() - first;
  }

  void place_threads(int w) {
    const auto x = static_cast<uint32_t>(launch_.block[0]);
    const auto y = static_cast<uint32_t>(launch_.block[1]);
    for (int i = 0; i < kLanes; ++i) {
      const auto linear = static_cast<uint32_t>(w * kLanes + i);
      warp_.place.thread[0].lanes[i] = linear % x;
      warp_.place.thread[1].lanes[i] = linear / x % y;
      warp_.place.thread[2].lanes[i] = linear / x / y;
    }
    for (Value& value : warp_.place.thread) value.known = kAllLanes;
  }

  void walk_warp(int w) {
    place_threads(w);
    warp_.registers.forget();
    waiting_.clear();
    meetings_.fill({});
    trips_.clear();
    reductions_ = 0;
    const size_t slot = (trace_.blocks.size() - 1) % together_;
    memory_.start_warp((slot * trace_.warps_per_block + w + 1) *
                       static_cast<uint64_t>(program_.kernel->local_bytes / kWordBytes));
    const int64_t left = launch_.threads() - int64_t{w} * kLanes;
    now_ = {0, left >= kLanes ? kAllLanes : (1u << left) - 1};
    alive_ = now_.lanes;
    const uint64_t first = trace_.steps.size();
    while (alive_ != 0) {
      if (now_.lanes == 0) choose_split();
      run_instruction();
      if (trace_.steps.size() - first > kMostSteps) {
        throw UserError("a warp of " + program_.kernel->name + " does not end: it is at " +
                        place_of(now_.at) + " after " + std::to_string(kMostSteps) +
                        " instructions; give fewer trips, or smaller arguments");
      }
    }
    trace_.warps.push_back({first, trace_.steps.size()});
  }

  // Lanes that others waited for may have left: then a meeting is complete.
  void choose_split() {
    for (Meeting& meeting : meetings_)
      if (meeting.arrived && (meeting.expected & alive_ & ~meeting.arrived) == 0)
        return resume(meeting);
    if (!waiting_.empty()) {
      now_ = waiting_.back();
      waiting_.pop_back();
      now_.lanes &= alive_;
      return;
    }
    for (Meeting& meeting : meetings_)  // no meeting can complete: the first goes on
      if (meeting.arrived) return resume(meeting);
    STITCH_CHECK(false, "lanes of a warp are nowhere");
  }
  void resume(Meeting& meeting) {
    now_ = {meeting.next, meeting.arrived & alive_};
    meeting.arrived = 0;
  }

  // Lanes of the split that execute; unknown guards count as true, which is said.
  uint32_t guarded_lanes(const Prepared& step) {
    const Truth guard = read_truth(step.guard, step.instruction->guard_negated);
    const uint32_t unknown = now_.lanes & ~guard.known;
    const Flow flow = step.instruction->row->flow;
    if (unknown != 0 && (flow == Flow::load || flow == Flow::store || flow == Flow::atomic))
      assume("accesses whose predicate depends on data are made");
    return now_.lanes & ((guard.value & guard.known) | unknown);
  }

  void run_instruction() {
    const size_t at = now_.at++;
    if (at >= steps_.size())
      throw UserError("the code of " + program_.kernel->name + " runs past its end; it is damaged");
    const Prepared& step = steps_[at];
    const Flow flow = step.instruction->row->flow;
    Step record{static_cast<uint32_t>(at), Step::kNoAccess};
    if (flow == Flow::none) {
      const uint32_t lanes = guarded_lanes(step);
      if (lanes != 0) evaluate(step, lanes, warp_);
      if (step.instruction->row->opcode == Opcode::b2r) take_reduction(step, lanes);
    } else if (flow == Flow::branch) {
      record.access = branch(step, at);
    } else if (const uint32_t lanes = guarded_lanes(step); lanes != 0) {
      record.access = run_special(step, flow, lanes);
    }
    trace_.steps.push_back(record);
    if (now_.lanes == 0 && alive_ != 0) choose_split();
  }

  int32_t run_special(const Prepared& step, Flow flow, uint32_t lanes) {
    const auto meeting = [&]() -> Meeting& {
      const Operand* named = step.instruction->find('B');
      if (named) return meetings_[named->index & 15];
      Meeting& all = meetings_.back();
      if (all.arrived == 0) all.expected = alive_;
      return all;
    };
    switch (flow) {
      case Flow::exit: {
        if (const Truth p = read_truth(step.p, step.negates_p); (p.known & lanes) == lanes)
          lanes &= p.value;
        const Truth guard = read_truth(step.guard, step.instruction->guard_negated);
        lanes &= guard.known;  // lanes whose data decides stay
        alive_ &= ~lanes;
        now_.lanes &= ~lanes;
        break;
      }
      case Flow::push:
        meeting() = {lanes, 0, 0};
        break;
      case Flow::leave:
        meeting().expected &= ~lanes;
        break;
      case Flow::sync: {
        if (step.instruction->find('j')) break;  // a collective: its lanes are together
        Meeting& here = meeting();
        here.arrived |= lanes;
        here.next = now_.at;
        now_.lanes &= ~lanes;
        if ((here.expected & alive_ & ~here.arrived) == 0) {
          if (now_.lanes != 0) waiting_.push_back(now_);
          resume(here);
        }
        break;
      }
      case Flow::call:
        jump(step, lanes);
        break;
      case Flow::ret:
        return_to(step, lanes);
        break;
      case Flow::indirect:
        throw UnsupportedError("kernel " + program_.kernel->name + " branches indirectly at " +
                               place_of(now_.at - 1) + ", which the clock does not follow");
      case Flow::barrier:
        memory_.pass_barrier();
        if (reduces_over_block(*step.instruction)) reduce(step, lanes);
        break;
      default:
        return memory_.touch(step, lanes);
    }
    return Step::kNoAccess;
  }

  void jump(const Prepared& step, uint32_t lanes) {
    if (lanes != now_.lanes) waiting_.push_back({now_.at, now_.lanes & ~lanes});
    now_ = {static_cast<size_t>(step.instruction->find('j')->value) / kInstructionBytes, lanes};
  }

  // Lanes may return to several places; those of the first go on.
  void return_to(const Prepared& step, uint32_t lanes) {
    const uint32_t others = now_.lanes & ~lanes;
    if (others) waiting_.push_back({now_.at, others});
    if ((step.a->known & lanes) != lanes) {
      throw UnsupportedError("kernel " + program_.kernel->name + " calls or returns at " +
                             place_of(now_.at - 1) + " to an address that is not known");
    }
    const int64_t base = step.instruction->find('j')->value;
    while (lanes != 0) {
      const uint32_t target = step.a->lanes[std::countr_zero(lanes)];
      uint32_t same = 0;
      for (int i = 0; i < kLanes; ++i)
        same |= static_cast<uint32_t>((lanes >> i & 1) && step.a->lanes[i] == target) << i;
      waiting_.push_back({static_cast<size_t>(base + target) / kInstructionBytes, same});
      lanes &= ~same;
    }
    now_ = waiting_.back();
    waiting_.pop_back();
  }

  // BAR.RED: what warps before this one have said counts, so that thread 0 may speak for all.
  void reduce(const Prepared& step, uint32_t lanes) {
    const Truth p = read_truth(step.p, step.negates_p);
    if ((p.known & lanes) != lanes) assume("votes of a block on data are false");
    memory_.vote(reductions_, (p.value & p.known & lanes) != 0);
  }
  void take_reduction(const Prepared& step, uint32_t lanes) {
    const bool holds = memory_.vote(reductions_++, false);
    store(step.P, {holds ? kAllLanes : 0, kAllLanes}, lanes);
  }

  // Which lanes go where; what is returned marks a poll.
  int32_t branch(const Prepared& step, size_t at) {
    const Instruction& instruction = *step.instruction;
    Truth taken = read_truth(step.guard, instruction.guard_negated);
    if (step.p) taken = both(taken, read_truth(step.p, step.negates_p));
    const size_t target = static_cast<size_t>(instruction.find('j')->value) / kInstructionBytes;
    const Operand* wanted = instruction.find('z');
    if (wanted && wanted->kind == OperandKind::uniform)  // BRA.DIV: some lanes are not there
      taken = now_.lanes == alive_ ? Truth{0, kAllLanes} : taken;
    const uint32_t unknown = now_.lanes & ~taken.known;
    const bool is_poll = unknown != 0 && target <= at && polls(target, at);
    if (unknown != 0 && !is_poll && decide(target, at))
      taken.value |= unknown;
    else
      taken.value &= ~unknown;
    const uint32_t going = now_.lanes & taken.value, staying = now_.lanes & ~taken.value;
    if (is_poll && going == 0) memory_.wait_for_grid();
    if (going == 0) return is_poll ? Step::kGridWait : Step::kNoAccess;
    if (staying == 0) {
      now_.at = target;
      return Step::kNoAccess;
    }
    // The lower address first: splits meet as soon as may be.
    const bool is_back = target <= at;
    waiting_.push_back(is_back ? Split{now_.at, staying} : Split{target, going});
    now_ = is_back ? Split{target, going} : Split{now_.at, staying};
    return Step::kNoAccess;
  }

  // A loop that loads with order waits for other blocks; it ends at once, when they have come.
  bool polls(size_t first, size_t last) const {
    const auto is_strong = [](const Instruction& instruction) {
      return instruction.row->opcode == Opcode::ldg && !is_weak(instruction);
    };
    return std::any_of(program_.code.begin() + first, program_.code.begin() + last, is_strong);
  }

  // A branch that depends on data: slow paths are skipped, loops run the trips of the launch.
  bool decide(size_t target, size_t at) {
    if (target <= at) {
      assume("loops whose end depends on data run " + std::to_string(launch_.trips) + " trips");
      int& trips = trips_[at];
      if (++trips < launch_.trips) return true;
      trips = 0;
      return false;
    }
    const bool skips_call = std::any_of(
        program_.code.begin() + at + 1, program_.code.begin() + target,
        [](const Instruction& instruction) { return instruction.row->flow == Flow::call; });
    assume(skips_call ? "slow paths of arithmetic, which calls are behind, are not taken"
                      : "branches forward that depend on data are not taken");
    return skips_call;
  }

  const Program& program_;
  const Launch& launch_;
  Trace trace_;
  MemoryWalk memory_;
  Warp warp_;
  std::deque<Value> pool_;
  std::vector<Prepared> steps_;
  Split now_;
  uint32_t alive_ = 0;
  std::vector<Split> waiting_;
  std::array<Meeting, 17> meetings_ = {};  // the last: of WARPSYNC
  std::map<size_t, int> trips_;
  size_t reductions_ = 0, together_ = 1;
  std::set<std::string> assumptions_;
};

}  // namespace

Trace walk(const Program& program, const Launch& launch, const Sample& sample) {
  return Walker(program, launch).walk(sample);
}

}  // namespace stitch::clock
