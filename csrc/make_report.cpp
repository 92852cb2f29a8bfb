#include "make_report.h"

#include <algorithm>
#include <map>
#include <set>

#include "ops/library_calls.h"
#include "plan/storage.h"
#include "schedule/choose_template.h"
#include "schedule/schedule_stage.h"
#include "schedule/stage_tiles.h"

namespace stitch {
namespace {

// A value has one row: its last.
template <class Row>
void put(std::vector<Row>& rows, const Row& row) {
  const auto known = std::ranges::find(rows, row.value, &Row::value);
  *(known == rows.end() ? rows.insert(known, row) : known) = row;
}

struct Reporter {
  const ReportInputs& in;
  std::set<NodeId> stitched = {};  // what kernels evaluate

  // Bytes of the elements an op touches: an expanded tensor holds fewer than it shows.
  int64_t held_bytes(NodeId id) const {
    const TensorType& type = in.graph[id].type;
    int64_t elements = 1;
    for (int d = 0; d < type.rank(); ++d)
      if (!type.strides[d].is(0)) elements *= in.graph.symbols.hint(type.shape[d]);
    return elements * info(type.dtype).bytes;
  }

  void add_ops(const std::vector<NodeId>& nodes, ReportedKernel& out) const {
    std::set<std::pair<std::string, std::string>> seen;
    for (NodeId node : nodes) {
      const Origin& origin = in.graph[node].origin;
      const std::string op = origin.op.empty() ? info(in.graph[node]).name : origin.op;
      if (seen.insert({op, origin.location}).second) out.ops.push_back({op, origin.location});
    }
  }

  struct Values {
    std::set<NodeId> loads, stores;
  };

  // In memory.
  Values list_values(const PlannedKernel& kernel) const {
    Values values;
    for (const PlannedStage* stage : stages_of(in.plan, kernel)) {
      values.loads.insert(stage->loads.begin(), stage->loads.end());
      values.stores.insert(stage->stores.begin(), stage->stores.end());
    }
    for (const PlannedChain& chain : kernel.chains) {
      for (NodeId value : chain.in_shared) {
        values.loads.erase(value);
        values.stores.erase(value);
      }
    }
    return values;
  }

  // Values that pass a grid barrier are the global ones.
  void add_schemes(const PlannedKernel& kernel, ReportedKernel& out) const {
    std::map<NodeId, Scheme> schemes;
    for (int s : kernel.stages())
      for (const auto& [value, scheme] : in.schedules[s].schemes) schemes[value] = scheme;
    const auto [loads, stores] = list_values(kernel);
    for (NodeId load : loads)
      if (stores.count(load)) schemes[load] = Scheme::kGlobal;
    for (const PlannedChain& chain : kernel.chains)
      for (NodeId value : chain.in_shared) schemes[value] = Scheme::kRegional;
    for (int s : kernel.stages()) {
      for (const PersistentValue& persistent : in.schedules[s].persistent)
        if (!persistent.is_of_stage) schemes[persistent.value] = Scheme::kGlobal;
    }
    for (const auto& [value, scheme] : schemes)
      out.schemes.push_back({name_of(value), to_string(scheme)});
  }

  std::string name_of(NodeId value) const {
    return std::string(info(in.graph[value]).name) + " %" + std::to_string(value.value());
  }

  void add_persistent(const PlannedKernel& kernel, ReportedKernel& out) const {
    for (int s : kernel.stages()) {
      for (const PersistentValue& persistent : in.schedules[s].persistent) {
        const std::string name = name_of(persistent.value);
        const int64_t bytes = accessed_elements(in.graph, in.schedules[s], persistent.value) *
                              element_bytes(in.graph, persistent.value);
        if (!persistent.is_filled) {
          const Home& home = persistent.home;
          const char* where =
              persistent.is_of_stage ? " between loops" : " across the grid barrier";
          const int64_t saved = persistent.is_of_stage ? bytes : 0;
          put(out.persistent,
              {name, to_string(home) + where, saved, home.registers, home.shared_bytes});
          continue;
        }
        for (ReportedPersistent& known : out.persistent)
          if (known.value == name) known.bytes += bytes;
      }
    }
  }

  // What is neither written to memory nor read from there.
  void add_buffers(const PlannedKernel& kernel, ReportedKernel& out) const {
    for (const PlannedChain& chain : kernel.chains) {
      for (const BlockBuffer& buffer : in.schedules[chain.first].buffers) {
        const int bytes = element_bytes(in.graph, buffer.value);
        put(out.persistent,
            {name_of(buffer.value), "shared memory across the block barrier",
             hint_bytes(in.graph, buffer.value) * 2, 0, static_cast<int>(buffer.size()) * bytes});
      }
    }
  }

  // Each distinct buffer once: what one phase stores and the next loads counts as written.
  void add_bytes(const PlannedKernel& kernel, ReportedKernel& out) const {
    const auto [loads, stores] = list_values(kernel);
    for (int s : kernel.stages())
      out.bytes_planned += planned_bytes(in.graph, in.plan.stages[s], in.schedules[s]);
    for (NodeId load : loads) out.bytes_read += stores.count(load) ? 0 : held_bytes(load);
    for (NodeId store : stores)
      out.bytes_written += hint_bytes(in.graph, stored_part(in.graph, store));
  }

  ReportedKernel kernel(size_t k) const {
    const PlannedKernel& planned = in.plan.kernels[k];
    const KernelSource& source = in.sources[k];
    ReportedKernel out{.name = source.name, .text = source.text, .policy = in.plan.policy};
    add_ops(nodes_of(in.plan, static_cast<int>(k)), out);
    add_schemes(planned, out);
    add_persistent(planned, out);
    add_buffers(planned, out);
    for (int s : planned.stages())
      for (const TiledLoad& tile : in.schedules[s].tiles)
        put(out.tiles, {name_of(tile.value), tile.rows, tile_bytes(in.graph, tile)});
    add_bytes(planned, out);
    for (const Dim& blocks : source.phases)
      out.grid = std::max(out.grid, in.graph.symbols.hint(blocks));
    out.block = source.threads;
    out.shared_bytes = source.shared_bytes;
    out.predicted_us = estimate_kernel_us(in.graph, in.plan.stages, planned,
                                          pick_schedules(in.schedules, planned), in.worker_threads);
    return out;
  }

  ReportedCall call(NodeId id) const {
    const Node& node = in.graph[id];
    ReportedCall out{node.name, node.origin.location, 0, 0};
    const bool is_part = writes_at_indices(node.name);  // of its first operand
    std::set<NodeId> operands(node.inputs.begin() + is_part, node.inputs.end());
    for (NodeId input : operands)
      if (in.graph[input].type.dtype != DType::kOpaque) out.bytes_read += held_bytes(input);
    if (is_part) out.bytes_written = hint_bytes(in.graph, node.inputs.back());
    if (is_part) return out;
    if (node.type.dtype != DType::kOpaque) out.bytes_written += hint_bytes(in.graph, id);
    for (int n = 0; n < in.graph.size(); ++n) {
      const Node& get = in.graph.nodes[n];
      if (get.op == OpKind::k_get && get.inputs[0] == id && get.type.dtype != DType::kOpaque)
        out.bytes_written += hint_bytes(in.graph, NodeId(n));
    }
    return out;
  }

  // Every op a kernel of its own: operands in, result out; views move nothing.
  int64_t unfused_bytes() const {
    int64_t total = 0;
    for (NodeId node : stitched) {
      const Family kind = family(in.graph[node]);
      if (kind == Family::kView || kind == Family::kSource) continue;
      for (NodeId input : read_operands(in.graph[node])) total += held_bytes(input);
      total += hint_bytes(in.graph, stored_part(in.graph, node));
    }
    return total;
  }

  // What no plan can avoid: each stored value once, each value read from outside the scope once.
  // A scope is what runs between two library calls; values passed between its kernels are ours.
  int64_t compulsory_bytes() const {
    int64_t total = 0;
    std::set<NodeId> made;
    std::map<NodeId, int64_t> read;  // elements; a stage may hold a load that it needs none of
    const Demands demands = find_demands(in.graph);
    for (const PlanStep& step : in.plan.steps) {
      if (step.call.valid()) {
        made.clear();
        read.clear();
        continue;
      }
      for (int s : in.plan.kernels[step.kernel].stages()) {
        const PlannedStage& stage = in.plan.stages[s];
        for (NodeId load : stage.loads) {
          if (made.count(load)) continue;
          const int64_t elements = accessed_elements(in.graph, in.schedules[s], load);
          int64_t& known = read[load];
          total += std::max<int64_t>(0, elements - known) * element_bytes(in.graph, load);
          known = std::max(known, elements);
        }
        for (NodeId store : stage.stores) {
          made.insert(store);
          const NodeId part = stored_part(in.graph, store);
          if (demands.is_demanded[store.index()]) total += hint_bytes(in.graph, part);
        }
      }
    }
    return total;
  }
};

}  // namespace

Report make_report(const ReportInputs& inputs) {
  Reporter reporter{inputs};
  for (const PlannedStage& stage : inputs.plan.stages)
    reporter.stitched.insert(stage.nodes.begin(), stage.nodes.end());
  Report report{.target = inputs.device.name, .device = inputs.device.derived};
  for (size_t k = 0; k < inputs.plan.kernels.size(); ++k)
    report.kernels.push_back(reporter.kernel(k));
  for (const PlanStep& step : inputs.plan.steps)
    if (step.call.valid()) report.library_calls.push_back(reporter.call(step.call));
  for (size_t m = 0; m < inputs.plan.in_place.size(); ++m) {
    if (inputs.plan.in_place[m]) continue;
    const int64_t bytes = hint_bytes(inputs.graph, inputs.graph.mutations[m].value);
    report.library_calls.push_back({"aten.copy_.default", "", bytes, bytes});
  }
  for (const Cut& cut : inputs.plan.cuts) {
    const std::string edge = reporter.name_of(cut.from) + " -> " + reporter.name_of(cut.to);
    report.cuts.push_back({edge, cut.reason.why, cut.reason.remedy, cut.reason.rule});
  }
  for (const ReportedKernel& kernel : report.kernels) {
    report.bytes_touched += kernel.bytes_read + kernel.bytes_written;
    report.bytes_planned += kernel.bytes_planned;
  }
  for (const ReportedCall& call : report.library_calls)
    report.bytes_touched += call.bytes_read + call.bytes_written;
  report.bytes_unfused = reporter.unfused_bytes();
  report.bytes_compulsory = reporter.compulsory_bytes();
  report.stitched_ops = static_cast<int>(reporter.stitched.size());
  return report;
}

void add_binaries(Report& report, const std::vector<Binary>& binaries) {
  for (size_t k = 0; k < binaries.size(); ++k) {
    const Binary& binary = binaries[k];
    ReportedKernel& kernel = report.kernels[k];
    kernel.registers = binary.registers;
    kernel.spill_bytes = binary.spill_bytes;
    kernel.stack_bytes = binary.stack_bytes;
    kernel.shared_bytes = std::max(kernel.shared_bytes, binary.shared_bytes);
    kernel.compile_ms = binary.compile_ms;
    kernel.from_cache = binary.from_cache;
  }
}

}  // namespace stitch
