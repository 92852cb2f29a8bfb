// The text of kernels with several stages.
#pragma once

#include "codegen/emit_kernel.h"
#include "codegen/scopes.h"

namespace stitch {

// May two arguments, this one and another, be the same memory?
inline bool shares_memory(const KernelArgument& argument, const LoweringOptions& options) {
  return std::ranges::any_of(options.stored_over, [&](const auto& entry) {
    return entry.first == argument.value || entry.second == argument.value;
  });
}
inline std::string pointer_type(const Graph& graph, const KernelArgument& argument) {
  const std::string type = info(graph[argument.value].type.dtype).device_name;
  return argument.is_store ? type + "*" : "const " + type + "*";
}
// "const f32* __restrict__ p3"
inline std::string pointer_parameter(const Graph& graph, const KernelArgument& argument,
                                     size_t number, bool is_restrict) {
  return concat(pointer_type(graph, argument), is_restrict ? " __restrict__" : "", " p", number);
}
// "const f32* __restrict__ p0, f32* p1, i64 n0, "; of `exchanged` values none is restrict.
std::string list_parameters(const Graph& graph, const std::vector<KernelArgument>& pointers,
                            size_t sizes, const LoweringOptions& options,
                            const std::set<NodeId>& exchanged = {});

// The first statement of a kernel that may begin while the launch before it ends.
inline constexpr const char* kWaitForLaunch = "  wait_for_earlier_launch();\n";

// The kernel's `shared`.  Beyond 48 KB it is dynamic: the source says how much a launch asks for.
std::string declare_shared(int bytes, KernelSource& source);

// The arrays k0, k1, ... of what registers hold for one stage alone (stage/persistent_values.h).
std::string declare_arrays(const Graph& graph, const StageSchedule& schedule);

// A function per stage, and the kernel from its parameters on.  Fills the source's pointers, sizes,
// phases, finishes and may_fail.  The kernel runs phases [first, end), so that one binary serves a
// cooperative launch and, where the device has none, a launch per phase.
std::pair<std::string, std::string> emit_phases(const Graph& graph, const LoweredKernel& kernel,
                                                const LoweringOptions& options,
                                                KernelSource& source);

}  // namespace stitch
