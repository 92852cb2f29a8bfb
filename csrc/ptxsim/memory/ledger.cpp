#include "ptxsim/memory/ledger.h"

#include <algorithm>

#include "ptxsim/machine/machine.h"

namespace stitch::ptxsim {
namespace {

constexpr size_t kMostRecords = 1 << 25;  // a stamp has no more bits

}  // namespace

uint32_t Ledger::intern(const Record& record) {
  const size_t key = (reinterpret_cast<uintptr_t>(record.instruction) >> 4) ^
                     (size_t{record.warp} * 37) ^ (size_t{record.block} * 151);
  uint32_t& recent = recent_[key % kRecent];
  if (recent && recent < records_.size() && records_[recent] == record) return recent;
  if (!free_.empty()) {
    recent = free_.back();
    free_.pop_back();
    records_[recent] = record;
  } else {
    recent = uint32_t(records_.size());
    records_.push_back(record);
  }
  return recent;
}

uint32_t Ledger::take_set() {
  if (free_sets_.empty()) {
    sets_.emplace_back();
    return uint32_t(sets_.size() - 1);
  }
  const uint32_t set = free_sets_.back();
  free_sets_.pop_back();
  return set;
}

void Ledger::free_set(uint32_t set) {
  sets_[set].clear();
  free_sets_.push_back(set);
}

void Ledger::clear() {
  records_.resize(1);
  free_.clear();
  free_sets_.resize(sets_.size());
  for (uint32_t i = 0; i < sets_.size(); ++i) {
    sets_[i].clear();
    free_sets_[i] = i;
  }
}

void Ledger::sweep(const std::vector<bool>& used) {
  free_.clear();
  for (uint32_t id = 1; id < records_.size(); ++id) {
    if (used[id]) continue;
    records_[id] = Record{};
    free_.push_back(id);
  }
  limit_ = std::min<size_t>(std::max(limit_, 2 * (records_.size() - free_.size())), kMostRecords);
}

Verdict Actor::judge(uint32_t other) {
  Verdict& verdict = recent[other % kRecent];
  if (verdict.record != other) {
    const Record& earlier = ledger[other];
    verdict.record = other;
    verdict.known = order.known(earlier.moment(), record.block, record.warp);
    verdict.is_own = earlier.block == record.block && earlier.warp == record.warp;
  }
  return verdict;
}

bool Actor::is_ordered(uint32_t other, int other_lane, int lane) {
  const Verdict verdict = judge(other);
  if (verdict.known == HappensBefore::Known::all) return true;
  const bool is_own = verdict.is_own && other_lane == lane;
  if (is_own || verdict.known == HappensBefore::Known::own) return is_own;
  return order.known(ledger[other].moment(), other_lane, {record.block, record.warp, lane});
}

uint32_t Actor::unordered(uint32_t other, uint32_t other_lanes, uint32_t lanes) {
  const Verdict verdict = judge(other);
  if (verdict.known == HappensBefore::Known::all) return 0;
  uint32_t kept = verdict.is_own ? other_lanes & ~lanes : other_lanes;
  if (verdict.known == HappensBefore::Known::own) return kept;
  for (LaneSet old(kept); old; ++old)
    if (is_ordered(other, *old, lowest_lane(lanes))) kept &= ~(1u << *old);
  return kept;
}

bool Actor::is_matched(uint32_t other) const {
  const Record& earlier = ledger[other];
  if (earlier.strength == Strength::weak || record.strength == Strength::weak) return false;
  if (earlier.bytes != record.bytes) return false;
  return earlier.block == record.block ||
         (earlier.strength == Strength::wide && record.strength == Strength::wide);
}

void Actor::conflict(uint64_t offset, int lane, uint32_t other, int other_lane) {
  for (const Conflict& known_one : conflicts)
    if (known_one.other == other) return;  // one of each is enough to tell
  conflicts.push_back({offset, lane, other, other_lane});
}

}  // namespace stitch::ptxsim
