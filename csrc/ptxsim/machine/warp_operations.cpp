#include "ptxsim/machine/warp_operations.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <string>

#include "base/words.h"
#include "ptxsim/machine/interpret.h"
#include "ptxsim/memory/races.h"

namespace stitch::ptxsim {
namespace {

uint32_t mask_unit(const Instruction& instruction) {
  return instruction.operands[instruction.operand_count - 1];
}

template <class T>
void write_lanes(Warp& warp, uint32_t unit, uint32_t group, uint32_t known,
                 const std::array<T, kLanes>& values) {
  if (unit == kNoUnit) return;
  T* to = warp.lanes<T>(unit);
  if (group == kAllLanes)
    std::copy_n(values.data(), kLanes, to);
  else
    for (LaneSet lane(group); lane; ++lane) to[*lane] = values[*lane];
  if (warp.valid) warp.valid[unit] = (warp.valid[unit] & ~group) | (known & group);
}

void write_all(Warp& warp, uint32_t unit, uint32_t group, uint32_t known, uint32_t value) {
  std::array<uint32_t, kLanes> values;
  values.fill(value);
  write_lanes(warp, unit, group, known, values);
}

void write_predicate(Warp& warp, uint32_t unit, uint32_t group, uint32_t known, uint32_t values) {
  if (unit == kNoUnit) return;
  warp.set_predicate(unit, group, values);
  if (warp.valid) warp.valid[unit] = (warp.valid[unit] & ~group) | (known & group);
}

uint32_t known_lanes(const Warp& warp, uint32_t unit) {
  return warp.valid ? warp.valid[unit] : kAllLanes;
}

// All lanes if the value of every lane of the group is known, else none.
uint32_t known_by_all(const Warp& warp, uint32_t unit, uint32_t group) {
  return (group & ~known_lanes(warp, unit)) == 0 ? kAllLanes : 0;
}

// The lane that each lane reads, and the lanes for which it is in range.
struct Sources {
  std::array<uint32_t, kLanes> lane;
  uint32_t in_range = 0;
};

// `from_of(lane, step, least, most)`: the lane asked for, of the segment [least, most].
template <class From>
Sources find_sources(const uint32_t* steps, const uint32_t* bounds, bool upwards, From from_of) {
  Sources sources;
  uint32_t all_in_range = 0;
  for (uint32_t lane = 0; lane < kLanes; ++lane) {
    const uint32_t segment = bounds[lane] >> 8 & 31, clamp = bounds[lane] & 31;
    const uint32_t least = lane & segment, most = least | (clamp & ~segment);
    const uint32_t from = from_of(lane, steps[lane] & 31, least, segment);
    const bool in_range = upwards ? static_cast<int32_t>(from) >= static_cast<int32_t>(most)
                                  : static_cast<int32_t>(from) <= static_cast<int32_t>(most);
    sources.lane[lane] = (in_range ? from : lane) & 31;
    all_in_range |= (0 - uint32_t{in_range}) & kLaneBits<uint32_t>[lane];
  }
  sources.in_range = all_in_range;
  return sources;
}

Sources shuffle_sources(Word mode, const uint32_t* steps, const uint32_t* bounds) {
  using U = uint32_t;
  switch (mode) {
    case Word::up:
      return find_sources(steps, bounds, true, [](U lane, U step, U, U) { return lane - step; });
    case Word::down:
      return find_sources(steps, bounds, false, [](U lane, U step, U, U) { return lane + step; });
    case Word::bfly:
      return find_sources(steps, bounds, false, [](U lane, U step, U, U) { return lane ^ step; });
    default:
      return find_sources(steps, bounds, false,
                          [](U, U step, U least, U segment) { return least | (step & ~segment); });
  }
}

void shuffle(Warp& warp, const Instruction& instruction, uint32_t group) {
  const auto& units = instruction.operands;
  const uint32_t* values = warp.lanes<uint32_t>(units[2]);
  const Sources sources = shuffle_sources(
      instruction.modifiers.word, warp.lanes<uint32_t>(units[3]), warp.lanes<uint32_t>(units[4]));
  std::array<uint32_t, kLanes> result;
  for (int lane = 0; lane < kLanes; ++lane) result[lane] = values[sources.lane[lane]];
  uint32_t known = kAllLanes, chosen = kAllLanes;
  if (warp.valid) {
    // What a lane outside the group holds is not defined.
    const uint32_t defined = warp.valid[units[2]] & group;
    chosen = warp.valid[units[3]] & warp.valid[units[4]];
    if (defined != kAllLanes) {
      known = 0;
      for (int lane = 0; lane < kLanes; ++lane)
        known |= (defined >> sources.lane[lane] & 1) << lane;
    }
  }
  write_lanes(warp, units[0], group, known & chosen, result);
  write_predicate(warp, units[1], group, chosen, sources.in_range);
}

void vote(Warp& warp, const Instruction& instruction, uint32_t group) {
  const auto& units = instruction.operands;
  const uint32_t holds = warp.predicate(units[1]) & group;
  const uint32_t known = known_by_all(warp, units[1], group);
  if (instruction.opcode == Opcode::vote_ballot)
    return write_all(warp, units[0], group, known, holds);
  const bool all = holds == group, any = holds != 0;
  const Word word = instruction.modifiers.word;
  const bool result = word == Word::all ? all : word == Word::any ? any : all || !any;
  write_predicate(warp, units[0], group, known, result ? kAllLanes : 0);
}

template <class T>
void match(Warp& warp, const Instruction& instruction, uint32_t group) {
  const auto& units = instruction.operands;
  const bool all = instruction.opcode == Opcode::match_all;
  const uint32_t source = units[all ? 2 : 1];
  const T* values = warp.lanes<T>(source);
  std::array<uint32_t, kLanes> equal = {};
  for (LaneSet lane(group); lane; ++lane) {
    for (LaneSet other(group); other; ++other)
      if (values[*lane] == values[*other]) equal[*lane] |= 1u << *other;
  }
  const uint32_t known = known_by_all(warp, source, group);
  if (all) {
    const bool same = equal[lowest_lane(group)] == group;
    equal.fill(same ? group : 0);
    write_predicate(warp, units[1], group, known, same ? kAllLanes : 0);
  }
  write_lanes(warp, units[0], group, known, equal);
}

uint32_t combine_floats(const Modifiers& modifiers, uint32_t x, uint32_t y) {
  const auto number = [](uint32_t bits) { return std::bit_cast<float>(bits); };
  if (std::isnan(number(x))) return modifiers.nan ? x : y;
  if (std::isnan(number(y))) return modifiers.nan ? y : x;
  const bool is_less = number(x) < number(y) || (number(x) == number(y) && x >> 31 > y >> 31);
  return is_less == (modifiers.word == Word::min) ? x : y;
}

uint32_t combine(const Instruction& instruction, uint32_t x, uint32_t y) {
  if (instruction.type == Type::f32) return combine_floats(instruction.modifiers, x, y);
  const bool is_less =
      instruction.type == Type::s32 ? static_cast<int32_t>(x) < static_cast<int32_t>(y) : x < y;
  switch (instruction.modifiers.word) {
    case Word::add:
      return x + y;
    case Word::and_:
      return x & y;
    case Word::or_:
      return x | y;
    case Word::xor_:
      return x ^ y;
    case Word::min:
      return is_less ? x : y;
    default:
      return is_less ? y : x;
  }
}

void reduce(Warp& warp, const Instruction& instruction, uint32_t group) {
  const uint32_t* values = warp.lanes<uint32_t>(instruction.operands[1]);
  const uint32_t bits = instruction.modifiers.absolute ? 0x7fffffffu : 0xffffffffu;
  LaneSet lane(group);
  uint32_t total = values[*lane] & bits;
  for (++lane; lane; ++lane) total = combine(instruction, total, values[*lane] & bits);
  if (instruction.type == Type::f32 && std::isnan(std::bit_cast<float>(total))) total = 0x7fffffffu;
  write_all(warp, instruction.operands[0], group,
            known_by_all(warp, instruction.operands[1], group), total);
}

void elect(Warp& warp, const Instruction& instruction, uint32_t group) {
  const int leader = lowest_lane(group);
  write_all(warp, instruction.operands[0], group, kAllLanes, static_cast<uint32_t>(leader));
  write_predicate(warp, instruction.operands[1], group, kAllLanes, 1u << leader);
}

void execute(Warp& warp, const Instruction& instruction, uint32_t group) {
  switch (instruction.opcode) {
    case Opcode::shfl_sync:
      return shuffle(warp, instruction, group);
    case Opcode::vote_sync:
    case Opcode::vote_ballot:
      return vote(warp, instruction, group);
    case Opcode::match_any:
    case Opcode::match_all:
      return type_bytes(instruction.type) == 8 ? match<uint64_t>(warp, instruction, group)
                                               : match<uint32_t>(warp, instruction, group);
    case Opcode::redux_sync:
      return reduce(warp, instruction, group);
    case Opcode::elect_sync:
      return elect(warp, instruction, group);
    case Opcode::activemask:
      return write_all(warp, instruction.operands[0], group, kAllLanes, group);
    default:  // bar.warp.sync
      if (HappensBefore* order = warp.block->grid->order)
        order->warp_barrier(warp.block->linear, warp.index, group);
  }
}

std::string lane_list(uint32_t mask) {
  std::string text;
  for (LaneSet lane(mask); lane; ++lane) text += (text.empty() ? "" : ", ") + std::to_string(*lane);
  return text;
}

// Where the lanes of `missing` are instead.
std::string whereabouts(const Warp& warp, uint32_t missing) {
  std::string text;
  for (const Split& split : warp.splits) {
    if (!(split.mask & missing)) continue;
    const Instruction& at = warp.block->grid->module->code[split.pc];
    text += concat("; lanes ", lane_list(split.mask & missing), " are at ", line_name(at));
  }
  return text;
}

void report_absent(Warp& warp, const Instruction& instruction, uint32_t group, uint32_t named) {
  Reporter& reporter = *warp.block->grid->reporter;
  warp.block->grid->is_divergent = true;
  const Site site{&warp, &instruction, lowest_lane(group)};
  const std::string_view name = row_of(instruction.opcode).name;
  if (const uint32_t outside = group & ~named) {
    reporter.report(FindingKind::divergent_barrier, {&warp, &instruction, lowest_lane(outside)},
                    concat("executes ", name, " with a mask that lacks its own lane"));
  }
  // __syncwarp() of a warp that is not full names lanes that never were.
  const bool orders_only = instruction.opcode == Opcode::bar_warp_sync;
  const uint32_t gone = named & ~warp.live & (orders_only ? warp.lanes_mask : kAllLanes);
  if (gone) {
    reporter.report(FindingKind::divergent_barrier, site,
                    concat("executes ", name, " with a mask that names lanes ", lane_list(gone),
                           ", which have exited or never were"));
  }
  if (const uint32_t missing = named & warp.live & ~group) {
    reporter.report(FindingKind::divergent_barrier, site,
                    concat("waits at ", name, " for lanes ", lane_list(missing),
                           ", which do not come", whereabouts(warp, missing)));
  }
}

// Lanes of `lanes` whose mask is that of `lane`.
uint32_t lanes_alike(const uint32_t* masks, uint32_t lanes, int lane) {
  uint32_t alike = 0;
  for (LaneSet other(lanes); other; ++other)
    if (masks[*other] == masks[lane]) alike |= 1u << *other;
  return alike;
}

}  // namespace

bool meet_all_lanes(Warp& warp, const Instruction& instruction) {
  if (instruction.opcode != Opcode::activemask) {
    const uint32_t unit = mask_unit(instruction);
    const uint32_t* masks = warp.lanes<uint32_t>(unit);
    uint32_t different = 0;
    for (int lane = 0; lane < kLanes; ++lane)
      different |=
          (masks[lane] ^ warp.live) & (kLaneBits<uint32_t>[lane] & warp.live ? kAllLanes : 0);
    if (different || (warp.live & ~known_lanes(warp, unit))) return false;
  }
  execute(warp, instruction, warp.live);
  return true;
}

void absorb_waiting(Warp& warp, size_t& index) {
  Split& split = warp.splits[index];
  for (size_t i = warp.splits.size(); i-- > 0;) {
    const Split other = warp.splits[i];
    if (i == index || other.pc != split.pc || other.wait != Wait::warp) continue;
    warp.splits[index].mask |= other.mask;
    warp.splits[index].forced |= other.forced;
    warp.splits.erase(warp.splits.begin() + static_cast<ptrdiff_t>(i));
    if (i < index) --index;
  }
}

void meet_lanes(Warp& warp, size_t index, const Instruction& instruction) {
  absorb_waiting(warp, index);
  const Split split = warp.splits[index];
  uint32_t released = 0;
  if (instruction.opcode == Opcode::activemask) {
    execute(warp, instruction, released = split.mask);
  } else {
    const uint32_t unit = mask_unit(instruction);
    require_known(warp, instruction, unit, split.mask, "mask of lanes");
    const uint32_t* masks = warp.lanes<uint32_t>(unit);
    for (LaneSet rest(split.mask); rest;) {
      const uint32_t named = masks[*rest];
      const uint32_t group = lanes_alike(masks, split.mask, *rest);
      rest.mask &= ~group;
      if ((named & warp.live & ~group) != 0 && !split.forced) continue;
      if (named != group) report_absent(warp, instruction, group, named);
      execute(warp, instruction, group);
      if (named != group)  // has been reported: what comes of it is no second finding
        for (int d = 0; d < instruction.destinations; ++d)
          set_known(warp, instruction.operands[d], group);
      released |= group;
    }
  }
  if (released) warp.splits.push_back({.pc = split.pc + 1, .mask = released, .turns = split.turns});
  Split& waiting = warp.splits[index];
  waiting.mask &= ~released;
  waiting.wait = Wait::warp;
  if (!waiting.mask) warp.splits.erase(warp.splits.begin() + static_cast<ptrdiff_t>(index));
}

bool force_meeting(Warp& warp) {
  if (std::ranges::any_of(warp.splits, &Split::can_run)) return false;
  bool found = false;
  for (Split& split : warp.splits) {
    if (split.wait != Wait::warp) continue;
    split.wait = Wait::none;
    split.forced = true;
    found = true;
  }
  if (found) warp.block->ready |= 1u << warp.index;
  return found;
}

}  // namespace stitch::ptxsim
