// HappensBefore: which accesses are ordered, by the synchronisation that a kernel has done.
//
// Vector clocks over threads, compressed: what a whole block knows is stored once, a thread has
// clocks of its own only since it was alone with an edge.  Edges: barriers of a block or of named
// lanes; release and acquire patterns (an access with .release/.acquire, or a fence beside a
// strong access) where the scopes reach each other.  Shuffles and votes are no edges; blocks are
// concurrent however they were run.  Time is counted per block, in synchronisation events.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "ptxsim/isa/isa.h"

namespace stitch::ptxsim {

struct ThreadId {
  uint64_t block = 0;  // linear in the grid
  int warp = 0;        // in the block
  int lane = 0;
};

// What one warp did between two synchronisation events of its block.
struct Moment {
  uint32_t block = 0;
  uint32_t clock = 0;
  int warp = 0;
};

// A relaxed, volatile, acquire, release or atomic access of one thread to one scalar.
struct StrongAccess {
  ThreadId thread;
  uint64_t address = 0;  // of shared memory: the offset
  bool is_shared = false;
  bool collects = false;   // reads a value and tells it
  bool publishes = false;  // writes
  bool continues = false;  // writes as part of a read-modify-write: the release sequence goes on
  Order order = Order::relaxed;
  Scope scope = Scope::gpu;
};

class HappensBefore {
 public:
  explicit HappensBefore(int threads_per_block);
  ~HappensBefore();

  // Memory starts and ends blocks; edges are made for blocks between the two.
  void start_block(uint64_t block);
  void end_block(uint64_t block);

  // All threads of the block meet.
  void block_barrier(uint64_t block);
  // Lanes, per warp of the block: what `arriving` did before is visible to `leaving`, some of them,
  // after.
  void barrier(uint64_t block, const std::vector<uint32_t>& arriving,
               const std::vector<uint32_t>& leaving);
  void warp_barrier(uint64_t block, int warp, uint32_t mask);
  // `order` seq_cst: membar and fence.sc; else acq_rel, acquire or release.
  void fence(uint64_t block, int warp, uint32_t mask, Scope scope, Order order);
  // Memory calls it for every strong access, in the order in which they take effect.
  void strong_access(const StrongAccess& access);

  // Now, in the block's time, and when it last met as a whole.
  struct Times {
    uint32_t now = 0;
    uint32_t barrier = 0;
  };
  Times times(uint64_t block) const;

  // What lanes of a running warp know of an earlier moment of some warp.
  enum class Known : uint8_t {
    all,   // every lane knows what every lane did
    own,   // a lane knows what it did itself and nothing else
    some,  // ask for each pair of lanes
  };
  Known known(const Moment& earlier, uint64_t block, int warp) const;
  bool known(const Moment& earlier, int earlier_lane, const ThreadId& now) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace stitch::ptxsim
