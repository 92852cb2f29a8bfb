#include <algorithm>
#include <bit>
#include <map>
#include <set>

#include "base/error.h"
#include "base/words.h"
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

// The lanes of a warp: those that go on, and where the others are.
class Lanes {
 public:
  Split now;
  uint32_t alive = 0;

  void start(uint32_t lanes) {
    now = {0, lanes};
    alive = lanes;
    waiting_.clear();
    meetings_.fill({});
  }
  void end(uint32_t lanes) {
    alive &= ~lanes;
    now.lanes &= ~lanes;
  }
  void part(Split other) {
    if (other.lanes != 0) waiting_.push_back(other);
  }
  void take_last() {
    now = waiting_.back();
    waiting_.pop_back();
  }

  // Where nobody goes on, others do.
  void choose() {
    if (now.lanes != 0 || alive == 0) return;
    for (Meeting& meeting : meetings_)  // lanes that others waited for may have left
      if (meeting.arrived && is_complete(meeting)) return resume(meeting);
    if (!waiting_.empty()) {
      take_last();
      now.lanes &= alive;
      return;
    }
    for (Meeting& meeting : meetings_)  // no meeting can complete: the first goes on
      if (meeting.arrived) return resume(meeting);
    STITCH_CHECK(false, "lanes of a warp are nowhere");
  }

  Meeting& meeting_of(const Instruction& instruction) {
    if (const Operand* named = instruction.find('B')) return meetings_[named->index & 15];
    Meeting& all = meetings_.back();
    if (all.arrived == 0) all.expected = alive;
    return all;
  }
  void meet(Meeting& here, uint32_t lanes) {
    here.arrived |= lanes;
    here.next = now.at;
    now.lanes &= ~lanes;
    if (!is_complete(here)) return;
    part(now);
    resume(here);
  }

 private:
  bool is_complete(const Meeting& meeting) const {
    return (meeting.expected & alive & ~meeting.arrived) == 0;
  }
  void resume(Meeting& meeting) {
    now = {meeting.next, meeting.arrived & alive};
    meeting.arrived = 0;
  }

  std::vector<Split> waiting_;
  std::array<Meeting, 17> meetings_ = {};  // the last: of WARPSYNC
};

size_t target_of(const Instruction& instruction) {
  return static_cast<size_t>(instruction.find('j')->value) / kInstructionBytes;
}
std::array<uint32_t, 3> place_in(const std::array<int64_t, 3>& extents, int64_t index) {
  const int64_t x = extents[0], y = extents[1];
  return {static_cast<uint32_t>(index % x), static_cast<uint32_t>(index / x % y),
          static_cast<uint32_t>(index / x / y)};
}
std::string place_of(size_t at) { return to_hex(at * kInstructionBytes); }

class Walker {
 public:
  Walker(const Program& program, const Launch& launch)
      : program_(program),
        launch_(launch),
        memory_(std::max(program.kernel->parameters.size(), launch.arguments.size()) + 1, launch_,
                trace_) {
    warp_.constants = fill_constants(program, launch);
    const auto parameters = &warp_.constants.bytes[program.kernel->parameters_at];
    if (!launch.arguments.empty())  // generic loads find the parameters behind the arguments
      launch_.arguments.push_back({true, 1 << 15, 4, 0, 0, reinterpret_cast<uint64_t>(parameters)});
    steps_ = prepare(program, warp_);
    if (launch.arguments.empty() && !program.kernel->parameters.empty())
      assume("arguments of 8 bytes are pointers to memory of any size, others are unknown");
    if (program.kernel->local_bytes > 0)
      assume(concat("local memory (", program.kernel->local_bytes,
                    " bytes a thread) goes through the first cache, stores of it to the second"));
    for (const std::string& opcode : program.unknown)
      assume(concat("opcode ", opcode, " is not known: it counts as light arithmetic"));
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
    votes_.clear();
    const auto place = place_in(launch_.grid, block);
    for (int d = 0; d < 3; ++d) warp_.place.block[d] = Value::of(place[d]);
    for (int w = 0; w < trace_.warps_per_block; ++w) walk_warp(w);
    trace_.blocks.back().steps = trace_.steps.size() - first;
  }

  void place_threads(int w) {
    for (int i = 0; i < kLanes; ++i) {
      const auto place = place_in(launch_.block, int64_t{w} * kLanes + i);
      for (int d = 0; d < 3; ++d) warp_.place.thread[d].lanes[i] = place[d];
    }
    for (Value& value : warp_.place.thread) value.known = kAllLanes;
  }

  void walk_warp(int w) {
    place_threads(w);
    warp_.registers.forget();
    trips_.clear();
    reductions_ = 0;
    const size_t slot = (trace_.blocks.size() - 1) % together_;
    memory_.start_warp((slot * trace_.warps_per_block + w + 1) *
                       static_cast<uint64_t>(program_.kernel->local_bytes / kWordBytes));
    const int64_t left = launch_.threads() - int64_t{w} * kLanes;
    lanes_.start(left >= kLanes ? kAllLanes : (1u << left) - 1);
    const uint64_t first = trace_.steps.size();
    while (lanes_.alive != 0) {
      lanes_.choose();
      run_instruction();
      if (trace_.steps.size() - first <= kMostSteps) continue;
      throw UserError(concat("a warp of ", program_.kernel->name, " does not end: it is at ",
                             place_of(lanes_.now.at), " after ", kMostSteps,
                             " instructions; give fewer trips, or smaller arguments"));
    }
    trace_.warps.push_back({first, trace_.steps.size()});
  }

  // Lanes of the split that execute; unknown guards count as true, which is said.
  uint32_t guarded_lanes(const Prepared& step) {
    const Truth guard = step.guard.read();
    const uint32_t unknown = lanes_.now.lanes & ~guard.known;
    const Flow flow = step.instruction->row->flow;
    if (unknown != 0 && (flow == Flow::load || flow == Flow::store || flow == Flow::atomic))
      assume("accesses whose predicate depends on data are made");
    return lanes_.now.lanes & ((guard.value & guard.known) | unknown);
  }

  void run_instruction() {
    const size_t at = lanes_.now.at++;
    if (at >= steps_.size())
      throw UserError("the code of " + program_.kernel->name + " runs past its end; it is damaged");
    const Prepared& step = steps_[at];
    const Flow flow = step.instruction->row->flow;
    Step record{static_cast<uint32_t>(at), Step::kNoAccess};
    if (flow == Flow::none) {
      const uint32_t lanes = guarded_lanes(step);
      if (lanes != 0) evaluate(step, lanes);
      if (step.instruction->row->opcode == Opcode::b2r) take_reduction(step, lanes);
    } else if (flow == Flow::branch) {
      record.access = branch(step, at);
    } else if (const uint32_t lanes = guarded_lanes(step); lanes != 0) {
      record.access = run_special(step, flow, lanes);
    }
    trace_.steps.push_back(record);
    lanes_.choose();
  }

  int32_t run_special(const Prepared& step, Flow flow, uint32_t lanes) {
    const Instruction& instruction = *step.instruction;
    switch (flow) {
      case Flow::exit:
        if (const Truth p = step.p.read(); (p.known & lanes) == lanes) lanes &= p.value;
        lanes_.end(lanes & step.guard.read().known);  // lanes whose data decides stay
        break;
      case Flow::push:
        lanes_.meeting_of(instruction) = {lanes, 0, 0};
        break;
      case Flow::leave:
        lanes_.meeting_of(instruction).expected &= ~lanes;
        break;
      case Flow::sync:  // lanes of a collective, which has a target, are together
        if (!instruction.find('j')) lanes_.meet(lanes_.meeting_of(instruction), lanes);
        break;
      case Flow::call:
        leave_others(lanes);
        lanes_.now = {target_of(instruction), lanes};
        break;
      case Flow::ret:
        return_to(step, lanes);
        break;
      case Flow::indirect:
        throw UnsupportedError(concat("kernel ", program_.kernel->name, " branches indirectly at ",
                                      place_of(lanes_.now.at - 1),
                                      ", which the clock does not follow"));
      case Flow::barrier:
        memory_.pass_barrier();
        if (reduces_over_block(instruction)) reduce(step, lanes);
        break;
      default:
        return memory_.touch(step, lanes);
    }
    return Step::kNoAccess;
  }

  // But for `lanes` the split goes on behind this instruction, later.
  void leave_others(uint32_t lanes) { lanes_.part({lanes_.now.at, lanes_.now.lanes & ~lanes}); }

  // Lanes may return to several places; those of the first go on.
  void return_to(const Prepared& step, uint32_t lanes) {
    leave_others(lanes);
    if ((step.a->known & lanes) != lanes)
      throw UnsupportedError(concat("kernel ", program_.kernel->name, " calls or returns at ",
                                    place_of(lanes_.now.at - 1),
                                    " to an address that is not known"));
    const int64_t base = step.instruction->find('j')->value;
    while (lanes != 0) {
      const uint32_t target = step.a->lanes[std::countr_zero(lanes)];
      uint32_t same = 0;
      for (int i = 0; i < kLanes; ++i)
        same |= static_cast<uint32_t>((lanes >> i & 1) && step.a->lanes[i] == target) << i;
      lanes_.part({static_cast<size_t>(base + target) / kInstructionBytes, same});
      lanes &= ~same;
    }
    lanes_.take_last();
  }

  // BAR.RED: what warps before this one have said counts, so that thread 0 may speak for all.
  void reduce(const Prepared& step, uint32_t lanes) {
    const Truth p = step.p.read();
    if ((p.known & lanes) != lanes) assume("votes of a block on data are false");
    votes_.resize(std::max(votes_.size(), reductions_ + 1));
    votes_[reductions_] = votes_[reductions_] || (p.value & p.known & lanes) != 0;
  }
  void take_reduction(const Prepared& step, uint32_t lanes) {
    const bool holds = reductions_ < votes_.size() && votes_[reductions_];
    ++reductions_;
    store(step.P, Truth::of(holds), lanes);
  }

  // Which lanes go where; what is returned marks a poll.
  int32_t branch(const Prepared& step, size_t at) {
    const Instruction& instruction = *step.instruction;
    Truth taken = both(step.guard.read(), step.p.read());
    if (step.q.truth) taken = both(taken, step.q.read());  // BRA.U
    const size_t target = target_of(instruction);
    const Operand* wanted = instruction.find('z');
    if (wanted && wanted->kind == OperandKind::uniform)  // BRA.DIV: some lanes are not there
      taken = lanes_.now.lanes == lanes_.alive ? Truth::of(false) : taken;
    const uint32_t lanes = lanes_.now.lanes, unknown = lanes & ~taken.known;
    const bool is_back = target <= at, is_poll = unknown != 0 && is_back && polls(target, at);
    if (unknown != 0 && !is_poll && decide(target, at))
      taken.value |= unknown;
    else
      taken.value &= ~unknown;
    const Split going{target, lanes & taken.value}, staying{lanes_.now.at, lanes & ~taken.value};
    if (is_poll && going.lanes == 0) memory_.wait_for_grid();
    if (going.lanes == 0) return is_poll ? Step::kGridWait : Step::kNoAccess;
    // The lower address first: splits meet as soon as may be.
    const bool goes = is_back || staying.lanes == 0;
    lanes_.part(goes ? staying : going);
    lanes_.now = goes ? going : staying;
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
  Launch launch_;
  Trace trace_;
  MemoryWalk memory_;
  Warp warp_;
  std::vector<Prepared> steps_;
  Lanes lanes_;
  std::map<size_t, int> trips_;
  std::vector<bool> votes_;  // of the block's reductions over all threads
  size_t reductions_ = 0, together_ = 1;
  std::set<std::string> assumptions_;
};

}  // namespace

Trace walk(const Program& program, const Launch& launch, const Sample& sample) {
  return Walker(program, launch).walk(sample);
}

}  // namespace stitch::clock
