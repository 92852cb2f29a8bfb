#include "ptxsim/decode/assign_units.h"

#include <algorithm>
#include <array>
#include <functional>
#include <queue>
#include <span>
#include <utility>

namespace stitch::ptxsim {
namespace {

// Blocks walked for the registers of a function, far beyond real ones: registers that are left then
// have units of their own.
constexpr int64_t kMostSteps = int64_t{1} << 26;

// Instructions [first, last], entered at the first and left at the last alone.
struct CodeBlock {
  uint32_t first;
  uint32_t last;
  std::vector<uint32_t> before;  // blocks that lanes come from
};

struct Use {
  uint32_t slot;
  uint32_t at;
  bool reads;
  bool defines;  // in every lane that comes by: it is not guarded
};

// From the first instruction to the last at which the slot is taken.
struct Extent {
  uint32_t slot;
  uint32_t first;
  uint32_t last;
};

// Calls `go(target)` for where lanes go after the instruction.
template <class Go>
void for_each_successor(const FunctionCode& code, uint32_t at, Go go) {
  const Instruction& instruction = code.code[at];
  if (instruction.opcode == Opcode::bra) go(static_cast<uint32_t>(instruction.immediate));
  if (instruction.opcode == Opcode::brx_idx)
    for (const int target : code.tables[static_cast<size_t>(instruction.immediate)])
      go(static_cast<uint32_t>(target));
  const bool stays = !leaves(instruction.opcode) || instruction.guard != kNoUnit;
  if (stays && at + 1 < code.code.size()) go(at + 1);
}

class Liveness {
 public:
  explicit Liveness(const FunctionCode& code) {
    const auto count = static_cast<uint32_t>(code.code.size());
    std::vector<bool> is_first(count + 1, false);
    for (uint32_t at = 0; at < count; ++at) {
      if (!leaves(code.code[at].opcode)) continue;
      for_each_successor(code, at, [&](uint32_t target) { is_first[target] = true; });
      is_first[at + 1] = true;
    }
    for (uint32_t at = 0; at < count; ++at) {
      if (at == 0 || is_first[at]) blocks_.push_back({at, at, {}});
      blocks_.back().last = at;
      block_of_.push_back(static_cast<uint32_t>(blocks_.size() - 1));
    }
    for (uint32_t block = 0; block < blocks_.size(); ++block) {
      for_each_successor(code, blocks_[block].last, [&](uint32_t target) {
        blocks_[block_of_[target]].before.push_back(block);
      });
    }
    written_.resize(blocks_.size());
    entered_.resize(blocks_.size());
  }

  // Of one slot's uses in the order of the code.
  Extent extent_of(std::span<const Use> uses) {
    Extent extent{uses.front().slot, uses.front().at, uses.back().at};
    ++stamp_;
    for (const Use& use : uses) {
      const uint32_t block = block_of_[use.at];
      if (use.reads && written_[block] != stamp_) enter(block);
      if (use.defines) written_[block] = stamp_;
    }
    while (!pending_.empty()) {
      const CodeBlock& block = blocks_[pending_.back()];
      pending_.pop_back();
      extent.first = std::min(extent.first, block.first);
      for (const uint32_t from : block.before) {
        extent.last = std::max(extent.last, blocks_[from].last);
        if (written_[from] != stamp_) enter(from);
      }
      steps_ += static_cast<int64_t>(block.before.size()) + 1;
    }
    return extent;
  }

  // Whether the slot asked for last may be read before it is written.
  bool is_live_at_entry() const { return entered_[0] == stamp_; }
  bool is_exhausted() const { return steps_ > kMostSteps; }

 private:
  // The slot's value is needed at the start of the block.
  void enter(uint32_t block) {
    if (entered_[block] != stamp_) pending_.push_back(block);
    entered_[block] = stamp_;
  }

  std::vector<CodeBlock> blocks_;
  std::vector<uint32_t> block_of_;  // of each instruction
  uint32_t stamp_ = 0;              // of the slot
  std::vector<uint32_t> written_;   // by block: the last slot that it defines
  std::vector<uint32_t> entered_;   // by block: the last slot that is live at its start
  std::vector<uint32_t> pending_;
  int64_t steps_ = 0;
};

// By slot, each slot's in the order of the code, an instruction's reads before its writes.
std::vector<Use> find_uses(const FunctionCode& code) {
  std::vector<uint32_t> slot_of(code.units);
  for (uint32_t i = 0; i < code.slots.size(); ++i) slot_of[code.slots[i].unit] = i;
  std::vector<Use> uses;
  for (uint32_t at = 0; at < code.code.size(); ++at) {
    const Instruction& instruction = code.code[at];
    const bool is_guarded = instruction.guard != kNoUnit;
    if (is_guarded) uses.push_back({slot_of[instruction.guard], at, true, false});
    for (size_t i = instruction.operand_count; i-- > 0;) {
      const uint32_t unit = instruction.operands[i];
      const bool writes = i < instruction.destinations;
      if (unit != kNoUnit) uses.push_back({slot_of[unit], at, !writes, writes && !is_guarded});
    }
  }
  std::ranges::stable_sort(uses, {}, &Use::slot);
  return uses;
}

// By unit: registers that a mov packs.  They have two units at least: under checks the second has a
// tale of its own (known_low_half in interpret.cpp).
std::vector<bool> find_packed(const FunctionCode& code) {
  std::vector<bool> is_packed(code.units, false);
  for (const Instruction& instruction : code.code) {
    const bool packs = instruction.opcode == Opcode::pack && instruction.destinations > 0;
    if (packs && instruction.operands[0] != kNoUnit) is_packed[instruction.operands[0]] = true;
  }
  for (const Slot& slot : code.slots) is_packed[slot.unit] = is_packed[slot.unit] && slot.bytes > 2;
  return is_packed;
}

// Of slots that may share, by where they begin; `pools` receives each slot's pool.  Slots of one
// pool have one width: lanes at different places of the code are then in different bytes.
std::vector<Extent> find_extents(bool is_entry, const FunctionCode& code,
                                 const std::vector<bool>& is_packed, std::vector<int>& pools) {
  std::vector<bool> is_own(code.units, false);
  if (!is_entry) is_own[kReturnUnit] = true;
  for (const Constant& constant : code.constants) is_own[constant.unit] = true;
  for (const SpecialUnit& special : code.specials) is_own[special.unit] = true;
  const std::vector<Use> uses = find_uses(code);
  Liveness liveness(code);
  std::vector<Extent> extents;
  for (size_t first = 0, end = 0; first < uses.size() && !liveness.is_exhausted(); first = end) {
    const uint32_t slot = uses[first].slot;
    pools[slot] = code.slots[slot].bytes | is_packed[code.slots[slot].unit];  // no other's width
    for (end = first; end < uses.size() && uses[end].slot == slot;) ++end;
    if (is_own[code.slots[slot].unit]) continue;
    const Extent extent = liveness.extent_of(std::span(uses).subspan(first, end - first));
    if (is_entry || !liveness.is_live_at_entry()) extents.push_back(extent);
  }
  std::ranges::stable_sort(extents, {}, &Extent::first);
  return extents;
}

struct Pool {
  using Taken = std::pair<uint32_t, uint32_t>;  // last instruction, unit
  std::priority_queue<Taken, std::vector<Taken>, std::greater<>> taken;
  std::vector<uint32_t> free;

  // Linear scan: of the free units that which was given back last, likely in the cache.
  uint32_t take(const Extent& extent, uint32_t count, uint32_t& units) {
    for (; !taken.empty() && taken.top().first < extent.first; taken.pop())
      free.push_back(taken.top().second);
    if (free.empty()) free.push_back(std::exchange(units, units + count));
    const uint32_t unit = free.back();
    free.pop_back();
    taken.emplace(extent.last, unit);
    return unit;
  }
};

}  // namespace

void assign_units(bool is_entry, FunctionCode& code) {
  std::vector<int> pool_of(code.slots.size());
  const std::vector<bool> is_packed = find_packed(code);
  const std::vector<Extent> extents = find_extents(is_entry, code, is_packed, pool_of);
  const auto count_of = [&](const Slot& slot) {
    return std::max(slot.count(), is_packed[slot.unit] ? 2u : 1u);
  };
  std::vector<bool> is_shared(code.slots.size(), false);
  for (const Extent& extent : extents) is_shared[extent.slot] = true;
  std::vector<uint32_t> new_unit(code.units, kNoUnit);
  uint32_t units = 0;
  for (size_t i = 0; i < code.slots.size(); ++i) {
    if (is_shared[i]) continue;
    new_unit[code.slots[i].unit] = units;
    units += count_of(code.slots[i]);
  }
  std::array<Pool, 18> pools;  // by width
  for (const Extent& extent : extents) {
    const Slot& slot = code.slots[extent.slot];
    Pool& pool = pools[static_cast<size_t>(pool_of[extent.slot])];
    new_unit[slot.unit] = pool.take(extent, count_of(slot), units);
  }
  const auto rename = [&](uint32_t& unit) {
    if (unit != kNoUnit) unit = new_unit[unit];
  };
  for (Instruction& instruction : code.code) {
    const size_t first = instruction.destinations;
    const bool reads = first < instruction.operand_count;
    const uint32_t source = reads ? instruction.operands[first] : kNoUnit;
    instruction.reads_packed = source != kNoUnit && is_packed[source];
    rename(instruction.guard);
    for (size_t i = 0; i < instruction.operand_count; ++i) rename(instruction.operands[i]);
  }
  for (Constant& constant : code.constants) rename(constant.unit);
  for (SpecialUnit& special : code.specials) rename(special.unit);
  code.units = units;
  code.slots.clear();
}

}  // namespace stitch::ptxsim
