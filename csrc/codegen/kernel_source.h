// KernelSource: the text of one kernel and how it is called.
//
// CPU:  void name(void* const* pointers, const i64* sizes, i64 begin, i64 end, i32* error)
//       runs blocks [begin, end); any split of [0, grid) over threads is right.  Behind the
//       pointers comes the scratch of the calling thread, 64-byte aligned, where it needs some.
// CUDA: name<<<grid, threads>>>(pointer 0, ..., size 0, ..., i32* error)
//       With several phases: (..., i32 first_phase, i32 end_phase, u32* barrier, i32* error), a
//       cooperative launch whose blocks are all resident, for any grid; or a launch per phase.
//       Where the last block finishes: (..., u32* barrier, i32* error) with one phase too.
//       Where it has a table of tensors, Tensors{void* at[N]} follows `error`.
// `error` becomes one of the codes of device/stitch/load_store.cuh when the results mean nothing.
#pragma once

#include "ir/graph.h"

namespace stitch {

struct KernelArgument {
  NodeId value;  // a materialised value of the graph
  bool is_store = false;
  int alignment_bytes = 1;  // the text assumes this alignment of the base address
  bool is_tabled = false;   // in the table of tensors, and no parameter of its own
};

struct KernelSource {
  std::string name;  // begins with the ops it holds, ends in a hash of the text
  std::string text;  // without the device headers
  std::vector<KernelArgument> pointers;
  // The table, indices of `pointers`: of a parameter of equal stages, what it is for each of them.
  std::vector<size_t> tensors;
  DimList sizes;                        // integer arguments: sizes only known at run time
  DimList phases;                       // blocks to share out, by phase
  std::vector<Assumption> assumptions;  // about sizes: the text is wrong for others
  // Phases of which as many blocks are launched as are resident, which take turns: each would begin
  // with the same computation, or reads again what an earlier phase has read.
  std::vector<size_t> in_turns;
  bool finishes = false;  // the last block of the last phase goes on alone: one block at least
  int threads = 1;
  int shared_bytes = 0;   // CUDA: dynamic shared memory of a block; CPU: scratch of a thread
  bool may_fail = false;  // the text reports through `error`
  // It may begin while the launch before it ends, since it waits for that before its first access.
  bool is_dependent = false;
};

// What the graph and its kernels take for granted of sizes, each once.
inline std::vector<Assumption> list_assumptions(const SymbolTable& symbols,
                                                const std::vector<KernelSource>& sources) {
  std::vector<Assumption> all = symbols.assumptions;
  for (const KernelSource& source : sources)
    for (const Assumption& assumption : source.assumptions) add_once(all, assumption);
  return all;
}

}  // namespace stitch
