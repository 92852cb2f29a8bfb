#include "base/archive.h"
#include "clock/time_kernel.h"
#include "compilation.h"
#include "jit/generated.h"
#include "jit/kernel_cache.h"
#include "jit/nvrtc.h"

namespace stitch {
namespace {

constexpr int64_t kCounters = 64;  // words behind the barrier and the error flag, at least

// What indices may be: rows of what is read by them; 0: `value` holds none.
uint64_t index_bound(const Graph& graph, NodeId value) {
  if (!info(graph[value].type.dtype).is_integer) return 0;
  int64_t bound = 0;
  for (const Node& node : graph.nodes) {
    if (node.op != OpKind::k_index && node.op != OpKind::k_gather) continue;
    for (size_t i = 0; i < node.ints.size(); ++i) {
      NodeId index = skip_views(graph, node.inputs[i + 1]);
      while (graph[index].op == OpKind::k_cast) index = skip_views(graph, graph[index].inputs[0]);
      if (index != value) continue;
      bound = std::max(bound, graph.symbols.hint(graph[node.inputs[0]].type.shape[node.ints[i]]));
    }
  }
  return static_cast<uint64_t>(bound);
}

clock::Argument pointer(const Graph& graph, NodeId value) {
  const TensorType& type = graph[value].type;
  return {.is_pointer = true,
          .bytes = storage_bytes(type, graph.symbols.hints()),
          .element_bytes = info(type.dtype).bytes,
          .below = index_bound(graph, value)};
}

clock::Argument number(int64_t value) { return {.bits = static_cast<uint64_t>(value)}; }

// As kernel_source.h lists them; `phases`: the first, and what comes after the last.
std::vector<clock::Argument> arguments_of(const Graph& graph, const KernelSource& source,
                                          std::pair<size_t, size_t> phases) {
  std::vector<clock::Argument> arguments;
  for (const KernelArgument& own : source.pointers)
    if (!own.is_tabled) arguments.push_back(pointer(graph, own.value));
  for (const Dim& size : source.sizes) arguments.push_back(number(graph.symbols.hint(size)));
  const clock::Argument counter = {.is_pointer = true, .bytes = kCounters * 4};
  if (source.phases.size() > 1) {
    arguments.push_back(number(static_cast<int64_t>(phases.first)));
    arguments.push_back(number(static_cast<int64_t>(phases.second)));
  }
  if (source.phases.size() > 1 || source.finishes) arguments.push_back(counter);
  arguments.push_back(counter);
  for (size_t i : source.tensors) arguments.push_back(pointer(graph, source.pointers[i].value));
  return arguments;
}

using Launches = std::vector<clock::Launch>;

// One, or one for each phase.
Launches find_launches(const Graph& graph, const KernelSource& source, const Binary& binary,
                       const DeviceSpec& device) {
  Launches separate;
  for (size_t phase = 0; phase < source.phases.size(); ++phase) {
    const int64_t blocks = std::max<int64_t>(1, graph.symbols.hint(source.phases[phase]));
    separate.push_back({.grid = {blocks, 1, 1},
                        .block = {source.threads, 1, 1},
                        .shared_bytes = source.shared_bytes,
                        .arguments = arguments_of(graph, source, {phase, phase + 1})});
  }
  if (separate.size() == 1) return separate;
  clock::Launch together = std::ranges::max(separate, {}, &clock::Launch::blocks);
  together.arguments = arguments_of(graph, source, {0, separate.size()});
  const clock::Cubin cubin = clock::read_cubin(binary.bytes);
  const int64_t resident =
      find_occupancy(cubin, find_kernel(cubin, source.name), together, device).blocks *
      device.multiprocessors;
  for (const size_t phase : source.in_turns)
    separate[phase].grid[0] = std::min(separate[phase].grid[0], resident);
  together.grid = std::ranges::max(separate, {}, &clock::Launch::blocks).grid;
  return together.grid[0] <= resident ? Launches{together} : separate;
}

// Launches one after the other; but for the times, the longest one's figures.
ReportedTime time_launches(const Launches& launches, const KernelSource& source,
                           const Binary& binary, const DeviceSpec& device) {
  ReportedTime time;
  time.us = 0;
  double longest = 0;
  for (const clock::Launch& launch : launches) {
    const clock::ClockResult found = clock::time_kernel(binary.bytes, source.name, launch, device);
    time.us += found.us;
    time.instructions += found.instructions_per_thread * static_cast<double>(launch.blocks()) *
                         static_cast<double>(launch.threads());
    for (const std::string& sentence : found.assumptions) add_once(time.assumptions, sentence);
    if (found.us <= longest) continue;
    longest = found.us;
    time.bound = found.bound;
    time.instructions_per_16_bytes = found.instructions_per_16_bytes;
    time.resident_threads = found.resident_threads;
    time.limited_by = found.occupancy.limit;
  }
  time.launches = static_cast<int>(launches.size());
  return time;
}

}  // namespace

ReportedTime time_kernel(const Compilation& c, const KernelSource& source, const Binary& binary) {
  const Launches launches = find_launches(c.graph, source, binary, c.device);
  const CacheRequest request = {
      "clock", c.request.target, source_hash() + " nvrtc " + nvrtc_version(), to_bytes(launches),
      "",      source.text};
  const Binary kept = process_cache(c.request.settings).get_or_compile(request, [&] {
    return Binary{.bytes = to_bytes(time_launches(launches, source, binary, c.device))};
  });
  ReportedTime time;
  STITCH_CHECK(from_bytes(kept.bytes, time), "an answer of the clock cannot be read");
  return time;
}

void time_kernels(Report& report, const Compilation& c, const std::vector<Binary>& binaries) {
  if (!c.device.is_cuda)
    throw UserError("the clock reads the code of GPUs, and " + std::string(c.device.name) +
                    " is none; name a GPU as the target (docs/settings.md)");
  for (size_t k = 0; k < c.sources.size(); ++k)
    report.kernels[k].time = time_kernel(c, c.sources[k], binaries[k]);
}

}  // namespace stitch
