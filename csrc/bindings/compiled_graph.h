// CompiledGraph: a Program with its library calls, callable from Python.
//
// Plans for GPUs assume that sizes known at run time are of the class of those that they were made
// for (ir/assume_sizes.h).  The first call with others compiles the graph for theirs, the next such
// call assumes small offsets alone, the next nothing: a graph has four programs at most.
#pragma once

#include <c10/core/Device.h>

#include <mutex>

#include "bindings/call_table.h"
#include "compile.h"
#include "ptxsim/simulated_driver.h"

namespace stitch {

struct CompiledGraph {
  std::shared_ptr<const CallTable> calls;
  std::shared_ptr<const Program> program = nullptr;
  Report report = {};
  c10::Device device = c10::Device(c10::kCPU);
  const ptxsim::SimulatedDevice* simulated = nullptr;  // null: kernels run on `device`
  std::vector<CallRow> made_calls = {};                // of Program::made_calls

  struct Others {
    std::mutex mutex;
    // For a call's integers.
    std::function<std::unique_ptr<const CompiledGraph>(SymbolTable::Nearness,
                                                       const std::vector<int64_t>&)>
        compile;
    std::vector<std::unique_ptr<const CompiledGraph>> made = {};
  };
  std::shared_ptr<Others> others =
      nullptr;  // for sizes that break the program's assumptions; null: none do

  const CallRow& call(const CallStep& step) const {
    return step.call < 0 ? made_calls.at(-1 - step.call) : calls->rows.at(step.call);
  }
};

// compiled(arguments): clears the list, returns one of results; on its device's current stream.
PyObject* call_compiled_graph(PyObject* self, PyObject* arguments, PyObject* keywords);

// Throws what launches of the graph have reported, a replay's in a CUDA graph too; where
// check_indices=now, after those of the current stream.
void check_flags_of(const CompiledGraph& graph);

// Sets the Python error that belongs to the exception being handled; true if it is one of ours.
bool set_python_error();

}  // namespace stitch
