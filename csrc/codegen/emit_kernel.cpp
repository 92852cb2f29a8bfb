#include "codegen/emit_kernel.h"

#include "base/hash.h"
#include "codegen/emit_phases.h"
#include "codegen/split_loops.h"

namespace stitch {
namespace {

std::string cuda_frame(const Graph& graph, const StageSchedule& schedule,
                       const LoweredStage& lowered, const LoweringOptions& options,
                       KernelSource& source) {
  std::string text = "(" + list_parameters(graph, lowered.pointers, lowered.sizes.size(), options) +
                     "i32* error) {\n";
  text += declare_shared(schedule.shared_bytes, source);
  text += "  const " + lowered.index_type + " block = " + lowered.index_type + "(block_index());\n";
  text += declare_arrays(graph, schedule);
  if (!options.dependent_launch) return text + to_string(lowered.body) + "}\n";
  KernelBody body = lowered.body;
  std::set<std::string> loaded;
  for (size_t i = 0; i < lowered.pointers.size(); ++i)
    if (!lowered.pointers[i].is_store) loaded.insert(concat("p", i));
  body.insert(body.begin() + end_of_uses(body, loaded), Statement::call("admit_next_launch()"));
  return text + kWaitForLaunch + to_string(body) + "}\n";
}

std::string host_frame(const Graph& graph, const LoweredStage& lowered,
                       const LoweringOptions& options, KernelSource& source) {
  KernelBody body = lowered.body;
  source.shared_bytes = static_cast<int>(place_arrays(body));
  std::string text =
      "(void* const* pointers, const i64* sizes, i64 begin, i64 end, i32* error) {\n";
  for (size_t i = 0; i < lowered.pointers.size(); ++i) {
    const KernelArgument& argument = lowered.pointers[i];
    text += concat("  ", pointer_parameter(graph, argument, i, !shares_memory(argument, options)),
                   " = static_cast<", pointer_type(graph, argument), ">(pointers[", i, "]);\n");
  }
  for (size_t i = 0; i < lowered.sizes.size(); ++i)
    text += concat("  const i64 n", i, " = sizes[", i, "];\n");
  if (source.shared_bytes > 0)
    text += concat("  u8* const scratch = static_cast<u8*>(pointers[", lowered.pointers.size(),
                   "]);\n");
  text += "  for (i64 block = begin; block < end; ++block) {\n";
  return text + to_string(body) + "  }\n}\n";
}

// "amax_exp_sum": the ops that tell kernels apart, from the table's own names.
std::string describe(const Graph& graph, const LoweredKernel& kernel) {
  std::string name;
  int words = 0;
  for (const KernelStage& part : stages_of(kernel))
    for (NodeId node : part.stage->nodes) {
      const std::string op = info(graph[node]).name;
      if (info(graph[node]).cost == CostClass::kFree || words == 4) continue;
      if (name.find(op) != std::string::npos) continue;
      name += (name.empty() ? "" : "_") + op;
      ++words;
    }
  return name.empty() ? "copy" : name;
}

void verify_stage(const LoweredStage& lowered, const StageSchedule& schedule) {
  std::vector<std::string> parameters;
  for (size_t i = 0; i < lowered.pointers.size(); ++i) parameters.push_back(concat("p", i));
  for (size_t i = 0; i < lowered.sizes.size(); ++i) parameters.push_back(concat("n", i));
  for (size_t i = 0; i < schedule.persistent.size(); ++i)
    if (schedule.persistent[i].home.in_registers > 0) parameters.push_back(concat("k", i));
  verify_body(lowered.body, parameters);
}

// Blocks that the compiler is to leave registers for.
int count_resident_blocks(const StageSchedule& schedule) {
  if (!schedule.device->is_cuda) return 1;
  const int wanted = schedule.bounds.resident_threads / schedule.threads;
  return std::clamp(wanted, schedule.bounds.per_multiprocessor,
                    schedule.device->blocks_per_multiprocessor);
}

}  // namespace

LoweringOptions choose_lowering(const Graph& graph, const StitchPlan& plan,
                                const DeviceSpec& device, const Settings& settings) {
  LoweringOptions options{settings.emulate_eager_casts, plan.stored_over, find_rounded(graph),
                          find_streamed(graph, plan, device)};
  if (device.is_cuda) options.precision = find_precision(graph, options.rounded);
  options.dependent_launch = settings.dependent_launch && device.capability >= 90;
  for (size_t m = 0; m < plan.in_place.size(); ++m)
    if (plan.in_place[m])
      options.stored_over.emplace(graph.mutations[m].value, graph.mutations[m].input);
  return options;
}

LoweredKernel lower_kernel(const Graph& graph, const StitchPlan& plan, const PlannedKernel& kernel,
                           const LoweringOptions& options) {
  int number = 0;
  const auto lower = [&](int s) -> KernelStage {
    const Stage& stage = plan.stages[s];
    return {&stage, &plan.schedules[s], lower_stage(graph, stage, plan.schedules[s], options),
            kernel.group_of(s), number++};
  };
  const auto lower_blocks = [&](const PlannedBlocks& blocks) {
    return map_to_vector(blocks.stages, lower);
  };
  return map_to_vector(kernel.phases, [&](const PlannedPhase& phase) -> LoweredPhase {
    return {phase.join, map_to_vector(phase.blocks, lower_blocks)};
  });
}

KernelSource emit_kernel(const Graph& graph, const LoweredKernel& kernel,
                         const LoweringOptions& options) {
  for (const KernelStage& part : stages_of(kernel)) verify_stage(part.lowered, *part.schedule);
  const KernelStage& first = kernel[0].blocks[0][0];
  KernelSource source;
  std::string before, frame;
  if (std::ranges::distance(stages_of(kernel)) == 1) {
    const LoweredStage& lowered = first.lowered;
    frame = first.schedule->device->is_cuda
                ? cuda_frame(graph, *first.schedule, lowered, options, source)
                : host_frame(graph, lowered, options, source);
    source.pointers = lowered.pointers;
    source.sizes = lowered.sizes;
    source.phases = {first.schedule->grid};
    source.may_fail = lowered.may_fail;
  } else {
    std::tie(before, frame) = emit_phases(graph, kernel, options, source);
  }
  for (const KernelStage& part : stages_of(kernel))
    std::ranges::copy(part.lowered.assumptions, std::back_inserter(source.assumptions));
  source.threads = first.schedule->threads;
  source.is_dependent = options.dependent_launch;
  source.name =
      "stitch_" + describe(graph, kernel) + "_" + sha256_hex(before + frame).substr(0, 10);
  source.text =
      concat("namespace stitch {\n", before, "STITCH_KERNEL(", source.name, ", ", source.threads,
             ", ", count_resident_blocks(*first.schedule), ")", frame, "}  // namespace stitch\n");
  return source;
}

}  // namespace stitch
