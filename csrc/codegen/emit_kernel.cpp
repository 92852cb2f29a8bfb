#include "codegen/emit_kernel.h"

#include <algorithm>

#include "base/hash.h"

namespace stitch {
namespace {

std::string pointer_type(const Graph& graph, const KernelArgument& argument) {
  const std::string type = info(graph[argument.value].type.dtype).device_name;
  return argument.is_store ? type + "*" : "const " + type + "*";
}

std::string restrict_word(const KernelArgument& argument, const LoweringOptions& options) {
  const bool shares_memory =
      std::any_of(options.stored_over.begin(), options.stored_over.end(), [&](const auto& entry) {
        return entry.first == argument.value || entry.second == argument.value;
      });
  return shares_memory ? "" : " __restrict__";
}

std::string cuda_frame(const Graph& graph, const KernelSchedule& schedule,
                       const LoweredKernel& lowered, const LoweringOptions& options) {
  std::string parameters;
  auto add = [&](const std::string& text) {
    parameters += (parameters.empty() ? "" : ", ") + text;
  };
  for (size_t i = 0; i < lowered.pointers.size(); ++i) {
    add(pointer_type(graph, lowered.pointers[i]) + restrict_word(lowered.pointers[i], options) +
        " p" + std::to_string(i));
  }
  for (size_t i = 0; i < lowered.sizes.size(); ++i) add("i64 n" + std::to_string(i));
  add("i32* error");
  std::string text = "(" + parameters + ") {\n";
  if (schedule.shared_bytes > 0) {
    text += "  STITCH_SHARED(u8, shared, " + std::to_string(schedule.shared_bytes) + ");\n";
  }
  text += "  const " + lowered.index_type + " block = " + lowered.index_type + "(block_index());\n";
  return text + to_string(lowered.body) + "}\n";
}

std::string host_frame(const Graph& graph, const LoweredKernel& lowered,
                       const LoweringOptions& options) {
  std::string text =
      "(void* const* pointers, const i64* sizes, i64 begin, i64 end, i32* error) {\n";
  for (size_t i = 0; i < lowered.pointers.size(); ++i) {
    const std::string type = pointer_type(graph, lowered.pointers[i]);
    text += "  " + type + restrict_word(lowered.pointers[i], options) + " p" + std::to_string(i) +
            " = static_cast<" + type + ">(pointers[" + std::to_string(i) + "]);\n";
  }
  for (size_t i = 0; i < lowered.sizes.size(); ++i) {
    text += "  const i64 n" + std::to_string(i) + " = sizes[" + std::to_string(i) + "];\n";
  }
  text += "  for (i64 block = begin; block < end; ++block) {\n";
  return text + to_string(lowered.body) + "  }\n}\n";
}

// "amax_exp_sum": the ops that tell kernels apart, from the table's own names.
std::string describe(const Graph& graph, const PlannedKernel& kernel) {
  std::string name;
  int words = 0;
  for (NodeId node : kernel.nodes) {
    if (info(graph[node]).cost == CostClass::kFree || words == 4) continue;
    const std::string op = info(graph[node]).name;
    if (name.find(op) != std::string::npos) continue;
    name += (name.empty() ? "" : "_") + op;
    ++words;
  }
  return name.empty() ? "copy" : name;
}

}  // namespace

KernelSource emit_kernel(const Graph& graph, const PlannedKernel& kernel,
                         const KernelSchedule& schedule, const LoweredKernel& lowered,
                         const LoweringOptions& options) {
  std::vector<std::string> parameters;
  for (size_t i = 0; i < lowered.pointers.size(); ++i)
    parameters.push_back("p" + std::to_string(i));
  for (size_t i = 0; i < lowered.sizes.size(); ++i) parameters.push_back("n" + std::to_string(i));
  verify_body(lowered.body, parameters);

  KernelSource source;
  const bool on_cuda = schedule.device->is_cuda;
  const std::string frame =
      on_cuda ? cuda_frame(graph, schedule, lowered, options) : host_frame(graph, lowered, options);
  source.name = "stitch_" + describe(graph, kernel) + "_" + sha256_hex(frame).substr(0, 10);
  source.text = "namespace stitch {\nSTITCH_KERNEL(" + source.name + ", " +
                std::to_string(schedule.threads) + ", 1)" + frame + "}  // namespace stitch\n";
  source.pointers = lowered.pointers;
  source.sizes = lowered.sizes;
  source.grid = lowered.grid;
  source.threads = schedule.threads;
  source.may_fail = lowered.may_fail;
  return source;
}

}  // namespace stitch
