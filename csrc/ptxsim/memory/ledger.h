// Ledger: who accessed what, one record for all lanes of an instruction, and how an access that
// runs stands to the earlier ones.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "ptxsim/isa/module.h"
#include "ptxsim/memory/races.h"

namespace stitch::ptxsim {

enum class Strength : uint8_t { weak, near, wide };  // near: strong, within its block

// One instruction of one warp between two synchronisation events.
struct Record {
  uint32_t block = 0;
  uint32_t clock = 0;
  uint32_t mask = 0;  // lanes
  uint8_t warp = 0;
  uint8_t bytes = 0;  // of a scalar
  Strength strength = Strength::weak;
  bool writes : 1 = false;
  bool is_atomic : 1 = false;
  bool is_copy : 1 = false;       // cp.async
  bool non_coherent : 1 = false;  // no race: a store makes a `read_only` finding of it
  const Instruction* instruction = nullptr;
  bool operator==(const Record&) const = default;
  Moment moment() const { return {block, clock, warp}; }
};

// Lanes of one record that read a cell.
struct Reader {
  uint32_t record;
  uint32_t lanes;
  bool before_write;  // a strong read that a later strong write did not wait for
};

// Records and sets of readers, for the shadows of global memory or that of one block.
class Ledger {
 public:
  // The number of an equal record, or a fresh one.
  uint32_t intern(const Record& record);
  const Record& operator[](uint32_t id) const { return records_[id]; }
  std::vector<Reader>& readers(uint32_t set) { return sets_[set]; }
  uint32_t take_set();
  void free_set(uint32_t set);
  void clear();
  bool is_full() const { return free_.empty() && records_.size() >= limit_; }
  // Keeps the records marked.
  void sweep(const std::vector<bool>& used);
  size_t size() const { return records_.size(); }

 private:
  static constexpr size_t kRecent = 512;
  std::vector<Record> records_ = std::vector<Record>(1);  // 0 is nothing
  std::vector<uint32_t> free_;
  std::vector<std::vector<Reader>> sets_;
  std::vector<uint32_t> free_sets_;
  std::array<uint32_t, kRecent> recent_ = {};
  size_t limit_ = size_t{1} << 20;
};

// Two accesses that no synchronisation orders.
struct Conflict {
  uint64_t offset;  // in the shadow
  int lane;
  uint32_t other;  // record
  int other_lane;
};

// What the lanes of an access know of a record.
struct Verdict {
  uint32_t record = 0;
  HappensBefore::Known known = {};
  bool is_own = false;  // by the same warp
};

// The warp that accesses.
struct Actor {
  const HappensBefore& order;
  Ledger& ledger;
  Record record;
  uint32_t id;  // of the record
  std::vector<Conflict>& conflicts;
  static constexpr size_t kRecent = 8;
  std::array<Verdict, kRecent> recent = {};

  Verdict judge(uint32_t other);
  bool is_ordered(uint32_t other, int other_lane, int lane);
  // Of the lanes of an earlier record, those that none of `lanes` is ordered after.
  uint32_t unordered(uint32_t other, uint32_t other_lanes, uint32_t lanes);
  // Both strong, of the same size and within each other's scope.
  bool is_matched(uint32_t other) const;
  void conflict(uint64_t offset, int lane, uint32_t other, int other_lane);
};

}  // namespace stitch::ptxsim
