// MappedAxis: which lane, loop or block each digit of an axis index comes from (DESIGN.md 3).
//
// An index is a number of mixed digits, of which the first counts single elements:
//   index = vector + 4 * (lane + 32 * (warp + 8 * (serial + 4 * grid)))
// [64, 4096] summed over 1 by blocks of 256 threads: the columns are {vector 4, lane 32, warp 8,
// serial 4}, the rows {grid 64}.  On the host there is one thread: {serial 256, grid 16}.  The rows
// of an m16n8 fragment are {lane 8 from bit 2 on, serial 2}, its columns {vector 2, lane 4}.
#pragma once

#include <bit>

#include "analysis/accesses.h"

namespace stitch {

inline constexpr int kLaneBits = 5;  // of a thread's number, that say which lane of its warp it is

// From the inside out.  On the host, sums walk equal parts of an axis, or of spans of it, side by
// side: the strips, along each of which runs kAlong.  No device offers kCluster yet.
enum class Level { kVector, kLane, kWarp, kSerial, kAlong, kStrip, kSpan, kChunk, kCluster, kGrid };
inline const char* to_string(Level level) {
  return std::array{"vector", "lane", "warp",  "serial",  "along strips",
                    "strip",  "span", "chunk", "cluster", "grid"}[static_cast<size_t>(level)];
}

inline constexpr int64_t kOpen = -1;  // indices: as many as cover the axis, counted when run

struct Digit {
  Level level;
  Dim count;      // of indices
  int shift = 0;  // of lanes and warps: the first of the bits of a thread's number that they are
  friend bool operator==(const Digit&, const Digit&) = default;
};

struct MappedAxis {
  Axis axis;
  std::vector<Digit> digits = {};  // in the order of levels; without those of one index, but kGrid
  bool is_unrolled = false;  // on the host: a short loop inside the vectorised one, written out
  bool is_exact = true;      // each combination of digits is an index that lies inside the extent

  bool has(Level level) const { return find_by(digits, level, &Digit::level) != nullptr; }
  bool in_grid() const { return has(Level::kGrid); }
  Dim count(Level level) const;  // 1: there is no such digit
  void set(Level level, Dim count, int shift = 0);
  // Lanes, and warps beyond them; `count` is a power of two.  Returns the first bit after theirs.
  int set_threads(int count, int shift);

  int vector() const { return static_cast<int>(count(Level::kVector).value()); }
  int threads() const;
  unsigned thread_bits() const;                                         // of a thread's number
  int thread_shift() const { return std::countr_zero(thread_bits()); }  // where it has threads
  Dim extent_below(Level level) const;               // indices that the digits of lower levels make
  int step() const { return threads() * vector(); }  // to the index of a thread's next trip
  // Of a block.
  Dim tile() const { return in_grid() ? extent_below(Level::kCluster) : axis.extent; }
  Dim trips() const;  // of a thread's loops along the axis, all together; may be kOpen
  std::optional<int64_t> static_trips() const;
  friend bool operator==(const MappedAxis&, const MappedAxis&) = default;
};

std::string to_string(const MappedAxis& mapped);

}  // namespace stitch
