// Finds the values in memory that threads keep on chip, and their homes (AStitch A.12 to A.14).
//
// Across grid barriers: whole tensors that are reduced and then used again (grid-persistent
// buffers).  A thread holds the same elements in every stage, because the stages have one mapping,
// one block runs one block's work, and all blocks are resident.  Where a launch has fewer blocks,
// or runs one phase alone, a stage reads the values again: the text asks at run time.
//
// Between the loop nests of a stage: loads of rows too long for the arrays of place_values.h.
//
// A home is registers as far as they go, shared memory as far as that goes, else global memory:
// values are placed one at a time, those that save most first.  Each thread takes what it has put
// itself, so no barrier is needed.
#pragma once

#include "stage/place_values.h"

namespace stitch {

inline constexpr int64_t kSectorBytes = 32, kBankBytes = 128;  // of all banks of shared memory
inline constexpr int kMostRegisters = 255;                     // of a thread, on every device
// Registers that addresses, accumulators and temporaries need beside arrays (probe: 40 values at
// 1024 threads compile to 62 registers without spills, NVRTC 13).
inline constexpr int kWorkingRegisters = 24;
// Threads of a multiprocessor that keep memory busy with 8 accesses of 16 bytes each in flight: 46
// KB on an H200 (csrc/cost/estimate_kernel.cpp).  What is kept on chip leaves no fewer, but across
// barriers where all of it is kept.
inline constexpr int kLeastResidentThreads = 512;
// Shared memory of a thread, where a reduction crosses warps.
inline constexpr int64_t kMostPartialBytes = 16;
// What a thread may have, all blocks of BlockBounds resident.
int count_registers(const DeviceSpec& device, const BlockBounds& bounds, int threads);
// Of them, those that arrays may take and do not yet.
inline int count_free_registers(const StageSchedule& schedule) {
  return count_registers(*schedule.device, schedule.bounds, schedule.threads) -
         schedule.bounds.persistent_registers - kWorkingRegisters - schedule.kept_registers;
}
// Shared memory of each of so many blocks that are resident together.
int64_t count_shared_bytes(const DeviceSpec& device, int blocks_per_multiprocessor);

// A value that several of the stages access at one offset each, the same.
struct SharedAccess {
  NodeId value;
  IndexExpr offset;
  std::vector<size_t> stages;  // positions, ascending
  int64_t bytes = 0;           // of one pass

  int64_t saved_bytes() const { return bytes * static_cast<int64_t>(stages.size() - 1); }
};
// Of stages that share `schedule` (describe_stages), under any mapping; those worth a home, the
// largest savings first.
std::vector<SharedAccess> find_shared_accesses(const Graph& graph,
                                               const std::vector<const Stage*>& stages,
                                               const StageSchedule& schedule);

// What is left of a thread's registers and a block's shared memory, whose first free byte that is.
struct ChipRoom {
  int registers = 0;
  int64_t shared_bytes = 0;
  int shared_begin = 0;
};
struct Persistence {
  std::vector<std::vector<PersistentValue>> values;  // by stage
  ChipRoom left;
  int64_t saved_bytes = 0;  // loads that do not happen
  bool is_complete = true;  // every candidate fits
};
// What stages that share a mapping keep within `room`; `accesses` are theirs, those that come first
// have first choice, the stages in the order of their phases.
Persistence find_persistent_values(const Graph& graph, const std::vector<SharedAccess>& accesses,
                                   size_t stages, const ChipRoom& room,
                                   const StageSchedule& schedule);

// Adds to schedule.persistent what several loop nests of the stage would load again: those that
// save most for each byte of their homes first.  After everything else has its place on chip; fills
// schedule.leaves.
void keep_loads(const Graph& graph, StageSchedule& schedule);

// The value of this stage's `persistent`, if it is one; nullptr otherwise.
inline const PersistentValue* find_persistent(const StageSchedule& schedule, NodeId value) {
  return find_by(schedule.persistent, value, &PersistentValue::value);
}

// Of what the leaf loads of a value.
inline double share_loaded(const StageSchedule& schedule, const LeafUse& leaf, NodeId value) {
  return contains(leaf.parts, value) ? find_persistent(schedule, value)->share_in_memory() : 1;
}

}  // namespace stitch
