#include "ptxsim/machine/interpret.h"

#include <algorithm>
#include <bit>
#include <climits>

#include "ptxsim/machine/barriers.h"
#include "ptxsim/machine/memory_operations.h"
#include "ptxsim/machine/warp_operations.h"
#include "ptxsim/memory/races.h"

namespace stitch::ptxsim {
namespace {

// A loop that reads what others may write sleeps after 32 turns, any other loop after 4096: a spin
// loop must let others go on, a loop that works should keep its lanes together.
constexpr uint32_t kMostTurns = 4096;
constexpr uint32_t kObservingTurn = kMostTurns / 32;

uint32_t known_of(const Warp& warp, uint32_t unit) {
  return unit == kNoUnit ? kAllLanes : warp.valid[unit];
}

// Of a register that a mov packed, the low half may be known alone: NVRTC packs halves that nothing
// has written and drops them again.  The register's second unit tells, which is else unused; a
// later write of another kind leaves it, so a register used twice may pass unaccused.
uint32_t known_low_half(const Warp& warp, const Instruction& instruction) {
  const uint32_t unit = instruction.operands[instruction.destinations];
  return known_of(warp, unit) | (instruction.reads_packed ? warp.valid[unit + 1] : 0);
}

bool takes_low_half(const Instruction& instruction) {
  const Type from = instruction.source_type, to = instruction.type;
  return instruction.opcode == Opcode::cvt && !instruction.modifiers.sat && is_integer(from) &&
         is_integer(to) && type_bytes(from) == 8 && type_bytes(to) < 8;
}

// A shift to the left by half of the register or more drops the high half.
uint32_t known_shifted(Warp& warp, const Instruction& instruction) {
  const uint32_t amount = instruction.operands[2];
  const uint32_t half_bits = 4 * static_cast<uint32_t>(type_bytes(instruction.type));
  uint32_t drops_high = 0;
  for (LaneSet lane(kAllLanes); lane; ++lane)
    if (warp.lanes<uint32_t>(amount)[*lane] >= half_bits) drops_high |= 1u << *lane;
  const uint32_t known = known_of(warp, instruction.operands[1]);
  return known_of(warp, amount) & (known | (drops_high & known_low_half(warp, instruction)));
}

// Lanes of a Flow::lanes instruction whose result is known, given which operands are.
uint32_t known_result(Warp& warp, const Instruction& instruction) {
  const uint32_t* sources = instruction.operands.data() + instruction.destinations;
  if (instruction.opcode == Opcode::selp) {  // the side not chosen does not matter
    const uint32_t chosen = warp.predicate(sources[2]);
    return known_of(warp, sources[2]) &
           ((chosen & known_of(warp, sources[0])) | (~chosen & known_of(warp, sources[1])));
  }
  if (takes_low_half(instruction)) return known_low_half(warp, instruction);
  const bool is_shl = instruction.opcode == Opcode::shl;
  if (is_shl && instruction.reads_packed) return known_shifted(warp, instruction);
  const uint32_t known = [&] {
    uint32_t all = kAllLanes;
    for (int i = instruction.destinations; i < instruction.operand_count; ++i)
      all &= known_of(warp, instruction.operands[i]);
    return all;
  }();
  const bool is_and = instruction.opcode == Opcode::and_;
  if (instruction.type != Type::pred || !(is_and || instruction.opcode == Opcode::or_))
    return known;
  // One side may decide alone: false in an and, true in an or.
  uint32_t decided = known;
  for (int i = 0; i < 2; ++i) {
    const uint32_t value = warp.predicate(sources[i]);
    decided |= known_of(warp, sources[i]) & (is_and ? ~value : value);
  }
  return decided;
}

void run_lanes_checked(Warp& warp, const Instruction& instruction, uint32_t mask) {
  const uint32_t known = known_result(warp, instruction);
  const uint32_t* const units = instruction.operands.data();
  const uint32_t* const sources = units + instruction.destinations;
  const auto set = [&](uint32_t unit, uint32_t lanes) {
    warp.valid[unit] = (warp.valid[unit] & ~mask) | (mask & lanes);
  };
  if (instruction.opcode == Opcode::pack && units[0] != kNoUnit) {
    const int low = (instruction.operand_count - 1) / 2;  // elements of the low half
    uint32_t known_low = kAllLanes;
    for (int i = 0; i < low; ++i) known_low &= known_of(warp, sources[i]);
    set(units[0] + 1, known_low);
  }
  const bool unpacks = instruction.opcode == Opcode::unpack;
  const uint32_t low = unpacks ? known_low_half(warp, instruction) : known;
  instruction.handler(warp, instruction, mask);
  for (int i = 0; i < instruction.destinations; ++i)
    if (units[i] != kNoUnit) set(units[i], i < instruction.destinations / 2 ? low : known);
}

template <bool kChecked>
uint32_t guarded_lanes(Warp& warp, const Instruction& instruction, uint32_t lanes) {
  if (instruction.guard == kNoUnit) return lanes;
  if (kChecked) require_known(warp, instruction, instruction.guard, lanes, "guard");
  const uint32_t holds = warp.predicate(instruction.guard);
  return lanes & (instruction.guard_negated ? ~holds : holds);
}

// A branch backwards.  True: the split has turned so often that others shall go on.
bool has_spun(Warp& warp, Split& split) {
  split.turns += warp.observed ? kObservingTurn : 1;
  // A loop that observes nothing comes to an end, or to the end of the budget.
  if (!warp.observed) ++warp.block->grid->progress;
  warp.observed = false;
  if (split.turns < kMostTurns) return false;
  split.turns = 0;
  return true;
}

// Lanes of `mask` go to `target_of(lane)`, the others of the split to the next instruction.
template <class Target>
void go_to(Warp& warp, size_t index, uint32_t mask, Target target_of) {
  const Split from = warp.splits[index];
  warp.splits.erase(warp.splits.begin() + static_cast<ptrdiff_t>(index));
  if (const uint32_t others = from.mask & ~mask)
    warp.splits.push_back({.pc = from.pc + 1, .mask = others, .turns = from.turns});
  for (LaneSet rest(mask); rest;) {
    Split split{.pc = target_of(*rest), .mask = 0, .turns = from.turns};
    for (LaneSet lane(rest.mask); lane; ++lane)
      if (target_of(*lane) == split.pc) split.mask |= 1u << *lane;
    if (split.pc <= from.pc && has_spun(warp, split)) split.wait = Wait::sleep;
    rest.mask &= ~split.mask;
    warp.splits.push_back(split);
  }
}

void exit_lanes(Warp& warp, size_t index, uint32_t mask) {
  drop_copies(warp, mask);
  go_to(warp, index, mask, [](int) { return INT_MAX; });
  std::erase_if(warp.splits, [](const Split& split) { return split.pc == INT_MAX; });
  warp.live &= ~mask;
  ++warp.block->grid->progress;
  // Those who wait for these lanes look again whether all are there.
  for (Split& split : warp.splits)
    if (split.wait == Wait::warp) split.wait = Wait::none;
  lanes_exited(*warp.block);
}

void run_branch(Warp& warp, size_t index, const Instruction& instruction, uint32_t mask) {
  const Grid& grid = *warp.block->grid;
  const int next = warp.splits[index].pc + 1;
  switch (instruction.opcode) {
    case Opcode::brx_idx: {
      const std::vector<int>& table = grid.module->branch_tables[instruction.immediate];
      require_known(warp, instruction, instruction.operands[0], mask, "branch index");
      const uint32_t* chosen = warp.lanes<uint32_t>(instruction.operands[0]);
      // Beyond the table anything may happen: here, its last entry.
      return go_to(warp, index, mask, [&](int lane) {
        return table[std::min<size_t>(chosen[lane], table.size() - 1)];
      });
    }
    case Opcode::call: {
      uint32_t* back = warp.lanes<uint32_t>(instruction.operands[0]);
      for (LaneSet lane(mask); lane; ++lane) back[*lane] = next;
      const int first = grid.module->functions[instruction.immediate].first;
      return go_to(warp, index, mask, [&](int) { return first; });
    }
    case Opcode::ret: {
      if (instruction.operand_count == 0) return exit_lanes(warp, index, mask);
      const uint32_t* back = warp.lanes<uint32_t>(instruction.operands[0]);
      return go_to(warp, index, mask, [&](int lane) { return static_cast<int>(back[lane]); });
    }
    case Opcode::exit:
      return exit_lanes(warp, index, mask);
    case Opcode::trap:
    case Opcode::brkpt:
      warp.block->grid->trap = &instruction;
      return;
    default: {
      const int target = static_cast<int>(instruction.immediate);
      return go_to(warp, index, mask, [&](int) { return target; });
    }
  }
}

void run_order(Warp& warp, const Instruction& instruction, uint32_t mask) {
  Grid& grid = *warp.block->grid;
  switch (instruction.opcode) {
    case Opcode::membar:
    case Opcode::fence:
      if (grid.old) grid.old->stores.clear();  // of two fences one is first
      if (grid.order) {
        grid.order->fence(warp.block->linear, warp.index, mask, instruction.modifiers.scope,
                          instruction.modifiers.order);
      }
      return;
    case Opcode::nanosleep:
      warp.observed = true;
      return;
    case Opcode::clock: {
      const uint64_t now = grid.clock += 1 + next_random(grid) % 64;
      const uint32_t unit = instruction.operands[0];
      for (LaneSet lane(mask); lane; ++lane)
        warp.set_bits(unit, *lane, type_bytes(instruction.type), now);
      return set_known(warp, unit, mask);
    }
    default:
      return;  // hints, and griddepcontrol: the kernel before has ended
  }
}

// What may move, stop or divide the split.  Its counter is up to date and remains so.
void run_slowly(Warp& warp, size_t index, const Instruction& instruction, uint32_t mask) {
  if (instruction.flow == Flow::branch) return run_branch(warp, index, instruction, mask);
  if (mask != warp.splits[index].mask) {  // lanes whose guard forbids it pass by
    Split others = warp.splits[index];
    others.mask &= ~mask;
    ++others.pc;
    warp.splits[index].mask = mask;
    warp.splits.push_back(others);
  }
  if (instruction.flow == Flow::barrier)
    arrive_at_barrier(warp, index, instruction);
  else
    meet_lanes(warp, index, instruction);
}

// Lanes do not move in step: where they exchange values by strong accesses, one of them goes as far
// as it can before the others do.  False: the split goes on as it is.
bool part_lanes(Warp& warp, size_t index, const Instruction& instruction, uint32_t mask) {
  const Grid& grid = *warp.block->grid;
  const bool is_alone = (mask & (mask - 1)) == 0;
  if (!grid.parts_lanes || is_alone || instruction.modifiers.order == Order::weak) return false;
  if (instruction.opcode != Opcode::ld && instruction.opcode != Opcode::st) return false;
  const bool is_last = grid.lane_order == LaneOrder::descending;
  Split others = warp.splits[index];
  others.mask &= ~(is_last ? std::bit_floor(mask) : mask & -mask);
  others.wait = Wait::held;
  warp.splits[index].mask &= ~others.mask;
  warp.splits.push_back(others);
  return true;
}

// Runs the split until it is done with `quantum` instructions or at `stop`, or has to wait, or is
// no more what it was.  Returns the instructions done.
template <bool kChecked>
int64_t run_split(Warp& warp, size_t index, int stop, int64_t quantum) {
  const Instruction* code = warp.block->grid->module->code.data();
  const uint32_t lanes = warp.splits[index].mask;
  int pc = warp.splits[index].pc;
  int64_t done = 0;
  while (done < quantum && pc < stop) {
    ++done;
    const Instruction& instruction = code[pc];
    const uint32_t mask = guarded_lanes<kChecked>(warp, instruction, lanes);
    if (mask == 0) {
      ++pc;
      continue;
    }
    switch (instruction.flow) {
      case Flow::lanes:
        if (kChecked)
          run_lanes_checked(warp, instruction, mask);
        else
          instruction.handler(warp, instruction, mask);
        ++pc;
        continue;
      case Flow::memory:
        warp.splits[index].pc = pc;
        if (part_lanes(warp, index, instruction, mask)) return done;
        run_memory(warp, instruction, mask);
        ++pc;
        continue;
      case Flow::order:
        run_order(warp, instruction, mask);
        ++pc;
        continue;
      case Flow::branch:
        if (instruction.opcode == Opcode::bra && mask == lanes) {
          const int target = static_cast<int>(instruction.immediate);
          const bool spun = target <= pc && has_spun(warp, warp.splits[index]);
          pc = target;
          if (!spun) continue;
          warp.splits[index].wait = Wait::sleep;
          break;
        }
        warp.splits[index].pc = pc;
        run_slowly(warp, index, instruction, mask);
        return done;
      case Flow::warp:
        if (mask == warp.live && meet_all_lanes(warp, instruction)) {
          ++pc;
          continue;
        }
        [[fallthrough]];
      case Flow::barrier:
        warp.splits[index].pc = pc;
        run_slowly(warp, index, instruction, mask);
        return done;
    }
    break;
  }
  warp.splits[index].pc = pc;
  return done;
}

void merge_splits(Warp& warp) {
  std::vector<Split>& splits = warp.splits;
  for (size_t i = 0; i < splits.size(); ++i) {
    for (size_t k = splits.size() - 1; k > i; --k) {
      if (splits[i].pc != splits[k].pc || splits[i].wait != splits[k].wait) continue;
      if (!splits[i].can_run()) continue;
      splits[i].mask |= splits[k].mask;
      splits[i].turns = std::max(splits[i].turns, splits[k].turns);
      splits.erase(splits.begin() + static_cast<ptrdiff_t>(k));
    }
  }
}

struct Turn {
  size_t index;
  int stop = INT_MAX;  // where other lanes are
  int64_t quantum;
};

// The split to run; index == splits.size(): none can.
Turn find_turn(Warp& warp, int64_t quantum) {
  std::vector<Split>& splits = warp.splits;
  Turn turn{.index = splits.size(), .quantum = quantum};
  if (splits.size() > 1) merge_splits(warp);
  turn.index = splits.size();
  int second = INT_MAX;  // smallest counter but one
  for (size_t i = 0; i < splits.size(); ++i) {
    if (splits[i].wait != Wait::none) continue;
    if (turn.index == splits.size()) {
      turn.index = i;
    } else if (splits[i].pc < splits[turn.index].pc) {
      second = splits[turn.index].pc;
      turn.index = i;
    } else {
      second = std::min(second, splits[i].pc);
    }
  }
  turn.stop = second;
  Grid& grid = *warp.block->grid;
  if (second == INT_MAX || !grid.scatter || next_random(grid) % 4 != 0) return turn;
  // Any other split may as well be ahead for a while.
  const size_t other = next_random(grid) % splits.size();
  if (splits[other].wait != Wait::none) return turn;
  return {.index = other, .quantum = std::min<int64_t>(quantum, 1 + next_random(grid) % 32)};
}

Turn next_turn(Warp& warp, int64_t quantum) {
  const Turn turn = find_turn(warp, quantum);
  if (turn.index != warp.splits.size()) return turn;
  const auto held = std::ranges::find(warp.splits, Wait::held, &Split::wait);
  if (held == warp.splits.end()) return turn;
  held->wait = Wait::none;
  return find_turn(warp, quantum);
}

}  // namespace

void run_warp(Warp& warp, int64_t quantum) {
  Block& block = *warp.block;
  const uint32_t bit = 1u << warp.index;
  while (quantum > 0 && !block.grid->trap) {
    if (block.copies) progress_copies(warp);
    const Turn turn = next_turn(warp, quantum);
    if (turn.index == warp.splits.size()) break;
    const uint32_t mask = warp.splits[turn.index].mask;
    const int lanes = mask == kAllLanes ? kLanes : std::popcount(mask);
    const int64_t done = warp.valid ? run_split<true>(warp, turn.index, turn.stop, turn.quantum)
                                    : run_split<false>(warp, turn.index, turn.stop, turn.quantum);
    warp.executed += static_cast<uint64_t>(done) * static_cast<uint64_t>(lanes);
    quantum -= done;
  }
  block.ready &= ~bit;
  block.sleeping &= ~bit;
  for (const Split& split : warp.splits) {
    if (split.wait == Wait::none || split.wait == Wait::held) block.ready |= bit;
    if (split.wait == Wait::sleep) block.sleeping |= bit;
  }
}

void wake(Warp& warp) {
  for (Split& split : warp.splits)
    if (split.wait == Wait::sleep) split.wait = Wait::none;
  const uint32_t bit = 1u << warp.index;
  if (warp.block->sleeping & bit) warp.block->ready |= bit;
  warp.block->sleeping &= ~bit;
}

uint32_t check_known(Warp& warp, const Instruction& instruction, uint32_t unit, uint32_t mask,
                     const char* what) {
  const uint32_t unknown = mask & ~warp.valid[unit];
  if (unknown) [[unlikely]] {
    warp.block->grid->reporter->report(
        FindingKind::uninitialized, {&warp, &instruction, lowest_lane(unknown)},
        std::string("uses a register that was never written as ") + what);
    warp.valid[unit] |= mask;
  }
  return mask & ~unknown;
}

}  // namespace stitch::ptxsim
