#include "ptxsim/machine/barriers.h"

#include <bit>
#include <string>

#include "base/words.h"
#include "ptxsim/machine/interpret.h"
#include "ptxsim/machine/warp_operations.h"
#include "ptxsim/memory/races.h"

namespace stitch::ptxsim {
namespace {

bool is_arrival(const Instruction& instruction) {
  return instruction.opcode == Opcode::bar_arrive || instruction.opcode == Opcode::barrier_arrive;
}

bool is_reduction(const Instruction& instruction) { return instruction.destinations != 0; }

// What one split says when it arrives.
struct Arrival {
  uint32_t id = 0;
  uint32_t expected = 0;  // threads; 0: all of the block
  uint32_t lanes = 0;     // those that say the same as the first
};

Arrival read_arrival(Warp& warp, const Instruction& instruction, uint32_t mask) {
  const uint32_t* operands = instruction.operands.data() + instruction.destinations;
  require_known(warp, instruction, operands[0], mask, "barrier");
  const uint32_t* ids = warp.lanes<uint32_t>(operands[0]);
  const uint32_t* counts = nullptr;
  if (operands[1] != kNoUnit) {
    require_known(warp, instruction, operands[1], mask, "count of a barrier");
    counts = warp.lanes<uint32_t>(operands[1]);
  }
  const int first = lowest_lane(mask);
  Arrival arrival{.id = ids[first], .expected = counts ? counts[first] : 0};
  uint32_t different = 0;
  for (int lane = 0; lane < kLanes; ++lane) different |= ids[lane] ^ arrival.id;
  if (!different && !counts) {  // as mostly: `bar.sync 0`
    arrival.lanes = mask;
    return arrival;
  }
  for (LaneSet lane(mask); lane; ++lane) {
    const bool same = ids[*lane] == arrival.id && (!counts || counts[*lane] == arrival.expected);
    arrival.lanes |= uint32_t{same} << *lane;
  }
  return arrival;
}

void report_divergent(const Warp& warp, const Instruction& instruction, uint32_t lanes,
                      const std::string& what) {
  Grid& grid = *warp.block->grid;
  grid.is_divergent = true;
  grid.reporter->report(FindingKind::divergent_barrier, {&warp, &instruction, lowest_lane(lanes)},
                        what);
}

// What is wrong with the arrival by itself, or beside those that came before; empty: nothing.
std::string mismatch(const Warp& warp, const Instruction& instruction, const Arrival& arrival) {
  if (arrival.id >= kBarriers) return concat("names barrier ", arrival.id, "; a block has 16");
  if (arrival.expected % kLanes) {
    return concat("expects ", arrival.expected,
                  " threads at a barrier; the count must be a multiple of 32");
  }
  const Barrier& barrier = warp.block->barriers[arrival.id];
  if (!barrier.is_open) return {};
  const Instruction& first = *barrier.first;
  const auto where = [&] {
    return concat(" at barrier ", arrival.id, ", while others came at ", line_name(first));
  };
  if (barrier.expected != arrival.expected) {
    return concat("expects ", arrival.expected, " threads", where(), " and expect ",
                  barrier.expected, " (0: the whole block)");
  }
  if (barrier.arriving[warp.index] & arrival.lanes)
    return concat("arrives again", where(), " and it is not complete");
  const bool whole_block =
      arrival.expected == 0 && instruction.modifiers.aligned && first.modifiers.aligned;
  if (whole_block && &instruction != &first)
    return concat("is", where(), ": not all at one barrier");
  const bool waits = !is_arrival(instruction) && !is_arrival(first);
  if (waits && is_reduction(instruction) != is_reduction(first))
    return concat("waits", where(), ": one reduces, one does not");
  return {};
}

void write_result(Warp& warp, const Split& split, const Barrier& barrier) {
  const Instruction& instruction = warp.block->grid->module->code[split.pc];
  if (!is_reduction(instruction)) return;
  const uint32_t unit = instruction.operands[0];
  if (unit == kNoUnit) return;
  const bool popc =
      instruction.opcode == Opcode::bar_red_popc || instruction.opcode == Opcode::barrier_red_popc;
  if (popc) {
    for (LaneSet lane(split.mask); lane; ++lane) warp.lanes<uint32_t>(unit)[*lane] = barrier.trues;
  } else {
    const bool holds = instruction.modifiers.word == Word::and_ ? barrier.trues == barrier.total
                                                                : barrier.trues != 0;
    warp.set_predicate(unit, split.mask, holds ? kAllLanes : 0);
  }
  set_known(warp, unit, split.mask);
}

// Threads that count as arrived.  A warp whose lanes are all there counts in full, those that it
// never had or that have exited included, as the hardware counts warps.
uint32_t count_arrived(const Block& block, const Barrier& barrier) {
  uint32_t count = 0;
  for (const Warp& warp : block.warps) {
    const uint32_t lanes = barrier.arriving[warp.index];
    if (lanes) count += (warp.live & ~lanes) == 0 ? kLanes : std::popcount(lanes);
  }
  return count;
}

bool is_complete(const Block& block, const Barrier& barrier) {
  if (barrier.expected) return count_arrived(block, barrier) >= barrier.expected;
  for (size_t i = block.warps.size(); i-- > 0;)  // the last arrive last, mostly
    if (block.warps[i].live & ~barrier.arriving[i]) return false;
  return true;
}

// Threads that have exited and for which a barrier of the whole block waits in vain.
void report_exited(Block& block, const Barrier& barrier) {
  if (barrier.expected) return;
  int exited = 0;
  for (const Warp& warp : block.warps)
    if (warp.live != warp.lanes_mask) exited += std::popcount(warp.lanes_mask & ~warp.live);
  if (!exited) return;
  for (const Warp& warp : block.warps) {
    if (const uint32_t lanes = barrier.leaving[warp.index]) {
      return report_divergent(warp, *barrier.first, lanes,
                              concat("waits at a barrier of the whole block, of which ", exited,
                                     " threads have exited"));
    }
  }
}

void order_threads(Block& block, const Barrier& barrier) {
  HappensBefore* order = block.grid->order;
  if (!order) return;
  bool everyone = true;
  for (const Warp& warp : block.warps) {
    everyone &= barrier.arriving[warp.index] == warp.lanes_mask &&
                barrier.leaving[warp.index] == warp.lanes_mask;
  }
  if (everyone) return order->block_barrier(block.linear);
  const auto count = static_cast<ptrdiff_t>(block.warps.size());
  order->barrier(block.linear, {barrier.arriving.begin(), barrier.arriving.begin() + count},
                 {barrier.leaving.begin(), barrier.leaving.begin() + count});
}

void release_if_complete(Block& block, int id) {
  Barrier& barrier = block.barriers[id];
  if (!is_complete(block, barrier)) return;
  report_exited(block, barrier);
  order_threads(block, barrier);
  for (Warp& warp : block.warps) {
    if (!barrier.leaving[warp.index]) continue;
    for (Split& split : warp.splits) {
      if (split.wait != Wait::barrier || split.barrier != id) continue;
      write_result(warp, split, barrier);
      split = {.pc = split.pc + 1, .mask = split.mask};
    }
    block.ready |= 1u << warp.index;
  }
  ++block.grid->progress;
  barrier = {};
}

// An aligned barrier is for all lanes of a warp.  False: some are still elsewhere.
bool has_all_lanes(Warp& warp, const Split& split, const Instruction& instruction) {
  if (!instruction.modifiers.aligned || split.mask == warp.live) return true;
  if (!split.forced) return false;
  report_divergent(warp, instruction, split.mask,
                   concat("waits at an aligned barrier with ", std::popcount(split.mask),
                          " of the ", std::popcount(warp.live), " lanes of its warp"));
  return true;
}

}  // namespace

void arrive_at_barrier(Warp& warp, size_t index, const Instruction& instruction) {
  absorb_waiting(warp, index);
  Split& split = warp.splits[index];
  if (!has_all_lanes(warp, split, instruction)) {
    split.wait = Wait::warp;
    return;
  }
  Block& block = *warp.block;
  Arrival arrival = read_arrival(warp, instruction, split.mask);
  if (const std::string wrong = mismatch(warp, instruction, arrival); !wrong.empty())
    report_divergent(warp, instruction, arrival.lanes, wrong);
  arrival.id %= kBarriers;
  Barrier& barrier = block.barriers[arrival.id];
  if (!barrier.is_open) {
    barrier.is_open = true;
    barrier.expected = arrival.expected;
    barrier.first = &instruction;
  }
  barrier.arriving[warp.index] |= arrival.lanes;
  if (is_reduction(instruction)) {
    const uint32_t unit = instruction.operands[instruction.destinations + 2];
    require_known(warp, instruction, unit, arrival.lanes, "predicate of a barrier");
    barrier.trues += std::popcount(warp.predicate(unit) & arrival.lanes);
    barrier.total += std::popcount(arrival.lanes);
  }
  Split here = split;
  here.mask = arrival.lanes;
  here.forced = false;
  if (is_arrival(instruction)) {
    ++here.pc;
  } else {
    barrier.leaving[warp.index] |= arrival.lanes;
    here.wait = Wait::barrier;
    here.barrier = static_cast<uint8_t>(arrival.id);
  }
  split.mask &= ~arrival.lanes;  // lanes that name another barrier arrive by themselves
  split.forced = true;
  if (split.mask)
    warp.splits.push_back(here);
  else
    split = here;
  release_if_complete(block, static_cast<int>(arrival.id));
}

void lanes_exited(Block& block) {
  for (int id = 0; id < kBarriers; ++id)
    if (block.barriers[id].is_open) release_if_complete(block, id);
}

}  // namespace stitch::ptxsim
