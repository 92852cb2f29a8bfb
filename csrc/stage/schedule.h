// StageSchedule: how one planned stage runs: a mapping of axes to levels and a tree of loops.
//
// All roots of the stage share the mapping, so a value is local unless a reduction crosses threads;
// a reduction combines at the levels where its axes live: loops in a register or an array, lanes
// and warps by all_reduce (DESIGN.md 3).  On the host the innermost loop is vectorised.
#pragma once

#include "cost/device_spec.h"
#include "stage/mapping.h"
#include "stage/stage.h"

namespace stitch {

// A loop walks one digit of an axis.  Sums over an axis of strips run along the strips, which are
// written out inside, of one span after the other; what sums nothing over it runs over the whole,
// kSerial.
struct LoopSpec {
  int axis;
  Level level;
  friend bool operator==(const LoopSpec&, const LoopSpec&) = default;
};

// A block of the loop tree: children and roots in order.  The roots of one leaf share its loops.
struct LoopBlock {
  int loop = -1;    // index into StageSchedule::loops; -1: the kernel's body
  int parent = -1;  // the block around it; -1: none
  struct Item {
    int block = -1;  // a nested block, or
    NodeList roots;  // roots evaluated here
  };
  std::vector<Item> items;
};

// What a leaf block loads and evaluates; all ascending.
struct LeafUse {
  int block;
  NodeList roots;
  NodeList loads = {};      // read from memory here, of
  NodeList parts = {};      // these what has no home (PersistentValue::share_in_memory)
  NodeList evaluated = {};  // values that are loaded or computed here
  NodeList reused = {};     // kept values made by an earlier leaf
  NodeList made = {};       // kept values made here
};

enum class Scheme { kLocal, kWarp, kRegional, kGlobal, kStore };
inline const char* to_string(Scheme scheme) {
  return std::array{"local", "warp", "regional", "global", "store"}[static_cast<size_t>(scheme)];
}

inline constexpr int kMostThreads = 1024, kResidentThreads = 1024;
inline constexpr int64_t kMostGrid = (int64_t{1} << 31) - 1;  // blocks: CUDA programming guide

// How one mapping of many is chosen (FusionStitching 2020, 20.7 to 20.9): the threads that a
// reduction's axes get, and the launch.
enum class ReductionLevel { kDerived, kThread, kWarp, kBlock };
struct Template {
  ReductionLevel level = ReductionLevel::kDerived;  // kDerived: by the lengths of the axes
  int block_threads = 0;                            // 0: by the shape of the work
  friend bool operator==(const Template&, const Template&) = default;
};

// What a kernel's blocks may use: stages of one kernel have blocks of one size.
struct BlockBounds {
  int least = 1, most = kMostThreads;  // threads, powers of two: fewer leave more registers to each
  int64_t least_blocks = 0;            // of rows, that several would else share one of
  int per_multiprocessor = 1;          // blocks that must be resident beside each other
  int resident_threads = kResidentThreads;  // that should be, with 64 registers each
  int64_t most_trips = 16;                  // of run-time loops that are written out
  bool splits_homes = true;                 // a value may be in registers and in shared memory
  int persistent_registers = 0;             // of a thread, that hold persistent values
  int persistent_shared_bytes = 0;  // of a block, from its first byte on, that hold the rest
  Template chosen = {};             // of the stage; tiles and what stays across barriers have none
};

// Where a thread keeps what it accesses of a value: the first accesses in registers, the next in
// shared memory, in slots [access][thread] that nobody else touches.  The last are read again: they
// were read last, so the cache still has what it can hold.
struct Home {
  int64_t in_registers = 0, in_shared = 0, in_memory = 0;  // accesses
  int registers = 0;                                       // of a thread
  int shared_bytes = 0, shared_offset = 0;                 // of a block
};
// "registers", "shared memory", "registers and shared memory", "registers in part"
inline std::string to_string(const Home& home) {
  const std::string part = home.in_memory > 0 ? " in part" : "";
  if (home.in_shared == 0) return "registers" + part;
  return (home.in_registers == 0 ? "shared memory" : "registers and shared memory") + part;
}

// A value in memory whose elements each thread accesses once and keeps: across grid barriers, where
// stages of one mapping in several phases of a kernel access the same (a grid-persistent buffer),
// or between the loop nests of one stage.
struct PersistentValue {
  NodeId value;
  IndexExpr offset;             // of every access
  int vector_axis = -1;         // one access moves a vector along it; -1: one element
  std::vector<int> loops = {};  // the accesses of a thread, outermost loop first
  int64_t accesses = 1;
  Home home = {};
  bool is_filled = false;    // by an earlier stage
  bool is_of_stage = false;  // between loop nests of this stage only

  // Of a pass over the value, what is read again.
  double share_in_memory() const {
    return static_cast<double>(home.in_memory) / static_cast<double>(accesses);
  }
};

// A load that is contiguous along another axis than the one that lanes walk, or takes each second
// or fourth element there (x[:, ::2] transposed: step 2).  Blocks copy the part of it that they
// need to a tile on chip, along the contiguous axis, and read it across there.
struct TiledLoad {
  NodeId value;
  IndexExpr offset;             // of the access
  int along = -1;               // the axis it is contiguous along
  int across = -1;              // the axis that lanes walk, or the vectorised loop
  int64_t rows = 0, pitch = 0;  // of the tile: a row per index along, elements from row to row
  int64_t step = 1;             // elements from index to index along
  int vector = 1;               // elements that one access moves along, on a GPU
  int shared_offset = 0;        // bytes, in a block's shared memory on a GPU
};

// A value that a stage leaves in shared memory for later stages of its blocks: the elements of one
// block, [block * elements, (block + 1) * elements), in rows of `length`, `pitch` from row to row.
struct BlockBuffer {
  NodeId value;
  int64_t elements = 0, length = 0, pitch = 0;
  int shared_offset = 0;  // bytes

  int64_t size() const { return elements / length * pitch; }  // elements
};

struct StageSchedule {
  const DeviceSpec* device = nullptr;
  Spaces spaces;
  Accesses accesses;
  std::vector<bool> is_load;  // by node: the stage reads it from memory
  std::vector<MappedAxis> axes;
  std::vector<LoopSpec> loops;    // global order, outermost first
  std::vector<LoopBlock> blocks;  // blocks[0] is the kernel's body
  // Pointwise values kept in arrays between loop nests, with the index they are made at.
  std::map<NodeId, Index> kept_on_chip;
  int kept_registers = 0;       // of a thread, that these arrays need at once
  std::vector<LeafUse> leaves;  // in order, under what is kept, persistent and tiled
  int threads = 1;
  BlockBounds bounds;
  std::vector<PersistentValue> persistent;
  std::vector<TiledLoad> tiles;
  std::vector<BlockBuffer> buffers;     // of all stages that its blocks run
  Dim grid = 1;                         // blocks of all axes; set by name_blocks
  std::vector<Assumption> assumptions;  // that loops cover extents known at run time
  int shared_bytes = 0;
  std::map<NodeId, Scheme> schemes;  // per root and kept value
};
using Schedules = std::vector<StageSchedule>;

// The buffer of a value, if it has one; nullptr otherwise.
inline const BlockBuffer* find_buffer(const StageSchedule& schedule, NodeId value) {
  return find_by(schedule.buffers, value, &BlockBuffer::value);
}

std::string to_string(const StageSchedule& schedule, const Graph& graph);

}  // namespace stitch
