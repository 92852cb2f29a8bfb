// StageSchedule -> KernelBody: loops opened and closed, values evaluated where their indices live.
#pragma once

#include "analysis/precision.h"
#include "codegen/kernel_body.h"
#include "codegen/kernel_source.h"
#include "stage/schedule.h"

namespace stitch {

struct LoweringOptions {
  bool emulate_eager_casts = false;      // round 16-bit values wherever eager rounds
  std::map<NodeId, NodeId> stored_over;  // a store -> the load it may overwrite
  std::set<NodeId> rounded = {};         // as find_rounded has it
  std::set<NodeId> streamed = {};        // stores that go past the caches (split_loops.h)
  Precision precision = {};              // of a GPU's kernels
  bool dependent_launch = false;         // KernelSource::is_dependent
};

struct LoweredStage {
  KernelBody body;
  std::vector<KernelArgument> pointers;  // p0, p1, ...
  DimList sizes;                         // n0, n1, ...
  bool may_fail = false;                 // reports through `error`
  // What kernels of the host find wrong is collected in variables: by the function that reports it.
  std::map<std::string, std::string> collected;
  std::vector<Assumption> assumptions;  // of the schedule and of the index type
  std::string index_type = "i64";       // "i32" where no offset can exceed it: half the registers
};

LoweredStage lower_stage(const Graph& graph, const Stage& stage, const StageSchedule& schedule,
                         const LoweringOptions& options);

}  // namespace stitch
