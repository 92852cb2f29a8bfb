// Shadow: who touched each byte of a piece of memory last, and which bytes hold something.
//
// A cell per granule (4 bytes, or 2 or 1 in pages where smaller accesses were seen) names its last
// write and the reads since that are not ordered before one another.  What the lanes of one
// instruction did is one Record in a Ledger; cells hold stamps, a record and a lane.  Races are
// exact for up to kMostReaders unordered readers of a cell; beyond that a random one is forgotten,
// so a race may be missed but a correct kernel is never accused.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "ptxsim/memory/ledger.h"

namespace stitch::ptxsim {

// Consecutive lanes that access consecutive scalars or vectors, or one and the same.
struct Run {
  uint64_t offset;
  uint32_t bytes;  // of one lane; a power of two that divides the offset
  int lane;        // the first
  int count;
  bool is_same;
  uint64_t end() const { return offset + uint64_t(is_same ? 1 : count) * bytes; }
  int lane_at(uint64_t at) const { return is_same ? lane : lane + int((at - offset) / bytes); }
};

class Shadow {
 public:
  static constexpr uint64_t kPageBytes = 1 << 16;
  static constexpr size_t kMostReaders = 64;
  // Per byte.  kOnce: all that was ever written to it is one strong store.
  enum Bits : uint8_t { kWritten, kNonCoherent, kInFlight, kOnce, kBits };

  explicit Shadow(uint64_t bytes) : bytes_(bytes), pages_((bytes + kPageBytes - 1) / kPageBytes) {}

  // A run lies in one page.
  void read(Actor& actor, const Run& run);
  void write(Actor& actor, const Run& run);
  // The last write or, else, some read of a byte: its stamp's record and lane; record 0: none.
  Conflict last_write(const Ledger& ledger, uint64_t offset) const;
  Conflict some_read(Ledger& ledger, uint64_t offset) const;

  bool all(Bits bits, uint64_t begin, uint64_t end) const;
  bool any(Bits bits, uint64_t begin, uint64_t end) const;
  void set(Bits bits, uint64_t begin, uint64_t end, bool value);
  // The first byte from `at` on that has the bit, or has it not; there is one.
  uint64_t find(Bits bits, bool value, uint64_t at) const {
    while (any(bits, at, at + 1) != value) ++at;
    return at;
  }

  void forget_accesses();  // all are ordered before what follows
  void mark(Ledger& ledger, std::vector<bool>& used) const;

 private:
  struct Page {
    int shift = 2;                        // log2 of the granule
    uint64_t touched = 0;                 // a bit per KiB whose cells are not zero
    std::vector<uint32_t> writes, reads;  // stamps, per granule
    std::array<std::vector<uint64_t>, kBits> bits;
  };
  Page& page_of(uint64_t offset);
  const Page* find_page(uint64_t offset) const { return pages_[offset / kPageBytes].get(); }
  Page& prepare(Actor& actor, const Run& run);
  void refine(Ledger& ledger, Page& page, int shift);
  void read_cells(Actor& actor, Page& page, const Run& run, size_t first);
  void write_cells(Actor& actor, Page& page, const Run& run, size_t first);
  void read_cell(Actor& actor, Page& page, size_t cell, uint32_t lanes);
  void write_cell(Actor& actor, Page& page, size_t cell, int lane);
  bool has_observed(Actor& actor, const Page& page, size_t cell, int lane);

  uint64_t bytes_;
  std::vector<std::unique_ptr<Page>> pages_;
};

}  // namespace stitch::ptxsim
