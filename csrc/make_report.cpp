#include "make_report.h"

#include <algorithm>
#include <set>

#include "cost/estimate_kernel.h"
#include "ops/library_effects.h"
#include "plan/storage.h"
#include "schedule/measure_work.h"
#include "schedule/schedule_kernel.h"

namespace stitch {
namespace {

struct Reporter {
  const ReportInputs& in;

  int64_t bytes(NodeId id) const {
    const TensorType& type = in.graph[id].type;
    return in.graph.symbols.hint(element_count(type.shape)) * info(type.dtype).bytes;
  }

  // Bytes of the elements an op touches: an expanded tensor holds fewer than it shows.
  int64_t held_bytes(NodeId id) const {
    const TensorType& type = in.graph[id].type;
    int64_t elements = 1;
    for (int d = 0; d < type.rank(); ++d) {
      if (!type.strides[d].is(0)) elements *= in.graph.symbols.hint(type.shape[d]);
    }
    return elements * info(type.dtype).bytes;
  }

  ReportedKernel kernel(size_t k) const {
    const PlannedKernel& planned = in.plan.kernels[k];
    const KernelSchedule& schedule = in.schedules[k];
    const KernelSource& source = in.sources[k];
    ReportedKernel out;
    out.name = source.name;
    out.text = source.text;
    std::set<std::pair<std::string, std::string>> seen;
    for (NodeId node : planned.nodes) {
      const Origin& origin = in.graph[node].origin;
      const std::string op = origin.op.empty() ? info(in.graph[node]).name : origin.op;
      if (seen.insert({op, origin.location}).second) out.ops.push_back({op, origin.location});
    }
    for (const auto& [value, scheme] : schedule.schemes) {
      const std::string name =
          std::string(info(in.graph[value]).name) + " %" + std::to_string(value.value());
      out.schemes.push_back({name, to_string(scheme)});
    }
    for (NodeId load : planned.loads) out.bytes_read += held_bytes(load);
    for (NodeId store : planned.stores) out.bytes_written += bytes(store);
    out.bytes_planned = planned_bytes(in.graph, planned, schedule);
    out.grid = in.graph.symbols.hint(source.grid);
    out.block = source.threads;
    out.shared_bytes = source.shared_bytes;
    const KernelWork work = measure_work(in.graph, planned, schedule);
    out.predicted_us = estimate_us(work, in.device, in.worker_threads);
    if (in.device.is_cuda && k < in.binaries.size()) {
      const Binary& binary = in.binaries[k];
      out.registers = binary.registers;
      out.spill_bytes = binary.spill_bytes;
      out.shared_bytes = std::max(out.shared_bytes, binary.shared_bytes);
      out.compile_ms = binary.compile_ms;
      out.from_cache = binary.from_cache;
    }
    return out;
  }

  // Whether a call only replaces slices of its first operand: its source has that one's shape but
  // for the extent of the one index.
  bool replaces_slices(const Node& node) const {
    if (!writes_at_indices(node.name) || node.inputs.size() != 3) return false;
    const std::vector<Dim>& target = in.graph[node.inputs[0]].type.shape;
    const std::vector<Dim>& index = in.graph[node.inputs[1]].type.shape;
    const std::vector<Dim>& source = in.graph[node.inputs[2]].type.shape;
    if (index.size() != 1 || source.size() != target.size()) return false;
    int differing = 0;
    for (size_t d = 0; d < source.size(); ++d) {
      if (source[d] == target[d]) continue;
      if (++differing > 1 || !(source[d] == index[0])) return false;
    }
    return true;
  }

  ReportedCall call(NodeId id) const {
    const Node& node = in.graph[id];
    ReportedCall out{node.name, node.origin.location, 0, 0};
    if (replaces_slices(node)) {
      out.bytes_written = bytes(node.inputs[2]);
      out.bytes_read = held_bytes(node.inputs[1]) + held_bytes(node.inputs[2]);
      return out;
    }
    std::set<NodeId> operands(node.inputs.begin(), node.inputs.end());
    for (NodeId input : operands) {
      if (in.graph[input].type.dtype != DType::kOpaque) out.bytes_read += held_bytes(input);
    }
    if (node.type.dtype != DType::kOpaque) out.bytes_written += bytes(id);
    for (int n = 0; n < in.graph.size(); ++n) {
      const Node& get = in.graph.nodes[n];
      if (get.op == OpKind::k_get && get.inputs[0] == id && get.type.dtype != DType::kOpaque) {
        out.bytes_written += bytes(NodeId(n));
      }
    }
    return out;
  }

  // Every op a kernel of its own: operands in, result out; views move nothing.
  int64_t unfused_bytes() const {
    int64_t total = 0;
    std::set<NodeId> stitched;
    for (const PlannedKernel& kernel : in.plan.kernels) {
      stitched.insert(kernel.nodes.begin(), kernel.nodes.end());
    }
    for (NodeId node : stitched) {
      const Family kind = family(in.graph[node]);
      if (kind == Family::kView || kind == Family::kSource) continue;
      for (NodeId input : in.graph[node].inputs) total += held_bytes(input);
      total += bytes(node);
    }
    return total;
  }

  // What no plan can avoid: each stored value once, each value read from outside the scope once.
  // A scope is what runs between two library calls; values passed between its kernels are ours.
  int64_t compulsory_bytes() const {
    int64_t total = 0;
    std::set<NodeId> made, read;
    auto close_scope = [&] {
      made.clear();
      read.clear();
    };
    const Demands demands = find_demands(in.graph);
    for (const PlanStep& step : in.plan.steps) {
      if (step.kind == PlanStep::Kind::kLibrary) {
        close_scope();
        continue;
      }
      const PlannedKernel& planned = in.plan.kernels[step.kernel];
      const KernelSchedule& schedule = in.schedules[step.kernel];
      for (NodeId load : planned.loads) {
        if (made.count(load) || !read.insert(load).second) continue;
        total +=
            accessed_elements(in.graph, schedule, load) * info(in.graph[load].type.dtype).bytes;
      }
      for (NodeId store : planned.stores) {
        made.insert(store);
        if (demands.is_demanded[store.index()]) total += bytes(store);
      }
    }
    return total;
  }
};

}  // namespace

Report make_report(const ReportInputs& inputs) {
  const Reporter reporter{inputs};
  Report report;
  report.target = inputs.device.name;
  std::set<NodeId> stitched;
  for (size_t k = 0; k < inputs.plan.kernels.size(); ++k) {
    report.kernels.push_back(reporter.kernel(k));
    const PlannedKernel& planned = inputs.plan.kernels[k];
    stitched.insert(planned.nodes.begin(), planned.nodes.end());
  }
  for (const PlanStep& step : inputs.plan.steps) {
    if (step.kind == PlanStep::Kind::kLibrary)
      report.library_calls.push_back(reporter.call(step.call));
  }
  for (size_t m = 0; m < inputs.plan.in_place.size(); ++m) {
    if (inputs.plan.in_place[m]) continue;
    const int64_t bytes = reporter.bytes(inputs.graph.mutations[m].value);
    report.library_calls.push_back({"aten.copy_.default", "", bytes, bytes});
  }
  for (const Cut& cut : inputs.plan.cuts) {
    const std::string edge =
        std::string(info(inputs.graph[cut.from]).name) + " %" + std::to_string(cut.from.value()) +
        " -> " + info(inputs.graph[cut.to]).name + " %" + std::to_string(cut.to.value());
    report.cuts.push_back({edge, cut.reason.why, cut.reason.remedy, cut.reason.rule});
  }
  for (const StageTime& stage : inputs.times.rows) {
    report.stages.push_back({stage.name, stage.us / 1000});
  }
  for (const ReportedKernel& kernel : report.kernels) {
    report.bytes_touched += kernel.bytes_read + kernel.bytes_written;
    report.bytes_planned += kernel.bytes_planned;
  }
  for (const ReportedCall& call : report.library_calls) {
    report.bytes_touched += call.bytes_read + call.bytes_written;
  }
  report.bytes_unfused = reporter.unfused_bytes();
  report.bytes_compulsory = reporter.compulsory_bytes();
  report.stitched_ops = static_cast<int>(stitched.size());
  return report;
}

}  // namespace stitch
