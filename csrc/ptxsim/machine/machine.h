// The machine while it runs: warps of split lanes in blocks, blocks of a grid.
//
// A warp keeps a program counter per group of lanes (Split).  Splits of equal counter merge; no two
// lanes are ever assumed to move together, so a race between lanes of one warp is a race.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "ptxsim/isa/module.h"

namespace stitch::ptxsim {

class HappensBefore;
class Memory;
class Reporter;
struct Block;
struct OldValues;
struct Traffic;

constexpr uint32_t kAllLanes = 0xffffffffu;
constexpr int kMostWarps = 32;  // of a block of 1024 threads: one bit each in Block::ready
constexpr int kBarriers = 16;   // of a block

enum class Wait : uint8_t {
  none,
  barrier,  // has arrived at Split::barrier
  warp,     // for other lanes of its warp to come to the same instruction
  sleep,    // it spins, or was told to sleep: others go first
  held,     // a lane of its warp goes ahead until that has to wait
};

// Lanes that are at the same instruction.
struct Split {
  int pc = 0;
  uint32_t mask = 0;
  Wait wait = Wait::none;
  uint8_t barrier = 0;
  bool forced = false;  // lanes that it waits for will never come: go on without
  uint32_t turns = 0;   // branches backwards since it last slept, weighted
  bool can_run() const { return wait == Wait::none || wait == Wait::sleep; }  // now, or once woken
};

// A copy that cp.async has issued for one lane and that has not been waited for.
struct AsyncCopy {
  uint64_t destination;  // offset in shared memory
  uint64_t source;       // global address
  uint32_t bytes;        // copied; the rest up to `size` is zeros
  uint32_t size;
  int lane;
  int group;  // commit group; -1: not committed
  const Instruction* instruction;
  bool done;  // the bytes have moved, which nobody may rely on yet
};

struct Warp {
  Block* block = nullptr;
  int index = 0;            // in the block
  uint32_t lanes_mask = 0;  // lanes that exist
  uint32_t live = 0;        // of these, lanes that have not exited
  bool observed = false;    // has read what others may write since the last branch backwards
  std::vector<Split> splits;
  unsigned char* registers = nullptr;  // Function::units x kUnitBytes, 64-byte aligned
  uint32_t* valid = nullptr;  // per unit (the first of a wide register): lanes whose value is
                              // known; nullptr when nothing is checked
  std::vector<unsigned char> local;        // [lane][Function::local_bytes]
  std::vector<unsigned char> local_valid;  // the same shape, a byte each; empty: not checked
  std::vector<AsyncCopy> copies;
  std::array<int, kLanes> copy_groups = {};  // committed by each lane
  uint64_t executed = 0;                     // lane-instructions

  template <class T>
  T* lanes(uint32_t unit) {
    return reinterpret_cast<T*>(registers + size_t{unit} * kUnitBytes);
  }
  uint32_t& predicate(uint32_t unit) { return *lanes<uint32_t>(unit); }
  // Inlined, as lane operations are compiled more than once.
  [[gnu::always_inline]] void set_predicate(uint32_t unit, uint32_t mask, uint32_t bits) {
    if (unit == kNoUnit) return;
    uint32_t& all = predicate(unit);
    all = (all & ~mask) | (bits & mask);
  }
  // The low `bytes` of one lane of a register that is so wide.
  void set_bits(uint32_t unit, int lane, size_t bytes, uint64_t bits) {
    std::memcpy(lanes<unsigned char>(unit) + static_cast<size_t>(lane) * bytes, &bits, bytes);
  }
};

// One of the barriers of a block, from its first arrival to its release.
struct Barrier {
  uint32_t expected = 0;  // threads; 0: all of the block
  bool is_open = false;
  uint32_t trues = 0;                  // arrivals of bar.red whose predicate holds
  uint32_t total = 0;                  // arrivals
  const Instruction* first = nullptr;  // of the first to arrive
  std::array<uint32_t, kMostWarps> arriving = {};
  std::array<uint32_t, kMostWarps> leaving = {};  // those that wait for it
};

struct Grid;

// Who of a warp is first in an atomic operation.
enum class LaneOrder : uint8_t { ascending, descending, random };

// One block while it is resident.
struct Block {
  Grid* grid = nullptr;
  std::array<uint32_t, 3> index = {0, 0, 0};
  uint64_t linear = 0;
  std::array<uint32_t, 3> threads = {1, 1, 1};
  std::vector<Warp> warps;
  std::vector<unsigned char> shared;  // static, then dynamic
  std::array<Barrier, kBarriers> barriers;
  uint32_t ready = 0;     // warps with a split that can run
  uint32_t sleeping = 0;  // warps with a split that sleeps
  uint32_t copies = 0;    // asynchronous copies not waited for
};

// What the blocks of one order share.
struct Grid {
  const Module* module = nullptr;
  const Function* kernel = nullptr;
  Memory* memory = nullptr;        // nullptr: nothing is checked
  HappensBefore* order = nullptr;  // the same
  Reporter* reporter = nullptr;
  Traffic* traffic = nullptr;  // nullptr: not counted
  OldValues* old = nullptr;    // nullptr: loads find what is there
  const unsigned char* parameters = nullptr;
  const unsigned char* constants = nullptr;  // the .const variables
  uint64_t random = 0;                       // state of next_random
  uint64_t clock = 0;                        // what %clock read last
  LaneOrder lane_order = LaneOrder::ascending;
  bool scatter = false;               // run diverged lanes in a random order
  bool parts_lanes = false;           // at strong loads and stores; one goes ahead
  uint64_t progress = 0;              // what makes a spinning lane hope: stores, releases, exits
  const Instruction* trap = nullptr;  // was executed
  bool is_divergent = false;  // a divergent barrier was reported: what follows is its consequence
};

// splitmix64.  Inlined, so that no lane operation's copy can serve a CPU that lacks its
// instructions.
[[gnu::always_inline]] inline uint64_t next_random(uint64_t& state) {
  uint64_t x = state += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}
inline uint64_t next_random(Grid& grid) { return next_random(grid.random); }

// The bit of each lane, of as many as a word has: a shift by its number would keep a loop from
// becoming vectors.
template <class Word>
constexpr auto kLaneBits = [] {
  std::array<Word, sizeof(Word) * 8 < kLanes ? sizeof(Word) * 8 : kLanes> bits = {};
  for (size_t lane = 0; lane < bits.size(); ++lane) bits[lane] = static_cast<Word>(Word{1} << lane);
  return bits;
}();

inline int lowest_lane(uint32_t mask) { return __builtin_ctz(mask); }

// for (LaneSet rest(mask); rest; ++rest) use *rest.
struct LaneSet {
  uint32_t mask;
  explicit LaneSet(uint32_t lanes) : mask(lanes) {}
  explicit operator bool() const { return mask != 0; }
  int operator*() const { return lowest_lane(mask); }
  void operator++() { mask &= mask - 1; }
};

}  // namespace stitch::ptxsim
