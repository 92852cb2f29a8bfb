#include "report.h"

#include <iomanip>

#include "analysis/storage.h"
#include "base/words.h"
#include "compilation.h"
#include "stage/tiles.h"

namespace stitch {
namespace {

// A value has one row: its last.
template <class Row>
void put(std::vector<Row>& rows, const Row& row) {
  const auto known = std::ranges::find(rows, row.value, &Row::value);
  *(known == rows.end() ? rows.insert(known, row) : known) = row;
}

// Attention is traced as what CPUs call; a plan for a GPU names what GPUs call: the flash kernel
// takes 16 bits, heads of up to 256 and no mask.
std::string name_call(const Compilation& c, const Node& node) {
  const std::string on_host = "flash_attention_for_cpu";
  const size_t at = node.name.find(on_host);
  if (!c.device.is_cuda || at == std::string::npos) return node.name;
  const bool is_backward = node.name.find("backward") != std::string::npos;
  const TensorType& query = c.graph[node.inputs[is_backward ? 1 : 0]].type;
  const bool is_masked = node.inputs.size() > (is_backward ? 6 : 3);
  const bool is_small = query.dtype == DType::kBF16 || query.dtype == DType::kF16;
  const bool fits = is_small && !is_masked && c.graph.symbols.hint(query.shape.back()) <= 256;
  return std::string(node.name).replace(at, on_host.size(),
                                        fits ? "flash_attention" : "efficient_attention");
}

struct Reporter {
  const Compilation& c;
  std::set<NodeId> stitched = {};  // what kernels evaluate

  // Bytes of the elements an op touches: an expanded tensor holds fewer than it shows.
  int64_t held_bytes(NodeId id) const {
    const TensorType& type = c.graph[id].type;
    int64_t elements = 1;
    for (int d = 0; d < type.rank(); ++d)
      if (!type.strides[d].is(0)) elements *= c.graph.symbols.hint(type.shape[d]);
    return elements * info(type.dtype).bytes;
  }

  void add_ops(const NodeList& nodes, ReportedKernel& out) const {
    for (NodeId node : nodes) {
      const auto& [op, location, position] = c.graph[node].origin;
      add_once(out.ops, {op.empty() ? info(c.graph[node]).name : op, location});
    }
  }

  // Loads and stores of values in memory.
  std::array<std::set<NodeId>, 2> list_values(const PlannedKernel& kernel) const {
    const std::set<NodeId> on_chip = find_shared_values(c.plan);
    std::set<NodeId> loads, stores;
    for (const Stage* stage : stages_of(c.plan, kernel)) {
      loads.insert(stage->loads.begin(), stage->loads.end());
      stores.insert(stage->stores.begin(), stage->stores.end());
    }
    for (std::set<NodeId>* values : {&loads, &stores})
      std::erase_if(*values, [&](NodeId value) { return on_chip.contains(value); });
    return {loads, stores};
  }

  // Values that pass a grid barrier are the global ones.
  void add_schemes(const PlannedKernel& kernel, ReportedKernel& out) const {
    std::map<NodeId, Scheme> schemes;
    for (int s : kernel.stages())
      for (const auto& [value, scheme] : c.plan.schedules[s].schemes) schemes[value] = scheme;
    const auto [loads, stores] = list_values(kernel);
    for (NodeId load : loads)
      if (stores.count(load)) schemes[load] = Scheme::kGlobal;
    for (const PlannedBlocks& blocks : kernel.blocks())
      for (NodeId value : blocks.in_shared) schemes[value] = Scheme::kRegional;
    for (int s : kernel.stages())
      for (const PersistentValue& persistent : c.plan.schedules[s].persistent)
        if (!persistent.is_of_stage) schemes[persistent.value] = Scheme::kGlobal;
    for (const auto& [value, scheme] : schemes)
      out.schemes.emplace_back(name_of(value), to_string(scheme));
  }

  std::string name_of(NodeId value) const {
    return std::string(info(c.graph[value]).name) + " %" + std::to_string(value.value());
  }

  void add_persistent(const PlannedKernel& kernel, ReportedKernel& out) const {
    for (int s : kernel.stages()) {
      for (const PersistentValue& persistent : c.plan.schedules[s].persistent) {
        const std::string name = name_of(persistent.value);
        const auto bytes = static_cast<int64_t>(
            (1 - persistent.share_in_memory()) *
            static_cast<double>(accessed_elements(c.graph, c.plan.schedules[s], persistent.value) *
                                element_bytes(c.graph, persistent.value)));
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
    for (const PlannedBlocks& blocks : kernel.blocks()) {
      for (const BlockBuffer& buffer : c.plan.schedules[blocks.stages[0]].buffers) {
        const int bytes = element_bytes(c.graph, buffer.value);
        put(out.persistent,
            {name_of(buffer.value), "shared memory across the block barrier",
             hint_bytes(c.graph, buffer.value) * 2, 0, static_cast<int>(buffer.size()) * bytes});
      }
    }
  }

  // Parts at several places add up to the whole at most; which rows data choose is not known.
  int64_t read_bytes(const PlannedKernel& kernel, NodeId load) const {
    double elements = 0;
    for (int s : kernel.stages()) {
      const IndexVars& vars = c.plan.schedules[s].accesses.vars;
      std::vector<IndexExpr> offsets;
      for (const Access& access : c.plan.schedules[s].accesses.list) {
        if (access.value != load || std::ranges::count(offsets, access.offset) > 0) continue;
        offsets.push_back(access.offset);
        const auto own = count_elements(c.graph, vars, access.offset);
        if (!own) return held_bytes(load);
        elements += *own;
      }
    }
    return std::min(held_bytes(load),
                    static_cast<int64_t>(elements) * element_bytes(c.graph, load));
  }

  // Each distinct buffer once: what one phase stores and the next loads counts as written.
  void add_bytes(const PlannedKernel& kernel, ReportedKernel& out) const {
    const auto [loads, stores] = list_values(kernel);
    for (int s : kernel.stages())
      out.bytes_planned += planned_bytes(c.graph, c.plan.stages[s], c.plan.schedules[s]);
    for (NodeId load : loads) out.bytes_read += stores.count(load) ? 0 : read_bytes(kernel, load);
    for (NodeId store : stores)
      out.bytes_written += hint_bytes(c.graph, stored_part(c.graph, store));
  }

  ReportedKernel kernel(size_t k) const {
    const PlannedKernel& planned = c.plan.kernels[k];
    const KernelSource& source = c.sources[k];
    ReportedKernel out{.name = source.name, .text = source.text, .policy = c.plan.policy};
    add_ops(nodes_of(c.plan, static_cast<int>(k)), out);
    add_schemes(planned, out);
    add_persistent(planned, out);
    add_buffers(planned, out);
    for (int s : planned.stages())
      for (const TiledLoad& tile : c.plan.schedules[s].tiles)
        put(out.tiles, {name_of(tile.value), tile.rows, tile_bytes(c.graph, tile)});
    add_bytes(planned, out);
    for (const Dim& blocks : source.phases)
      out.grid = std::max(out.grid, c.graph.symbols.hint(blocks));
    out.block = source.threads;
    out.shared_bytes = source.shared_bytes;
    out.predicted_us = planned.us;
    return out;
  }

  ReportedCall call(NodeId id) const {
    const Node& node = c.graph[id];
    ReportedCall out{name_call(c, node), node.origin.location, 0, 0};
    const bool is_part = writes_at_indices(node.name);  // of its first operand
    for (NodeId input : std::set<NodeId>(node.inputs.begin() + is_part, node.inputs.end()))
      if (c.graph[input].type.dtype != DType::kOpaque) out.bytes_read += held_bytes(input);
    if (is_part) out.bytes_written = hint_bytes(c.graph, node.inputs.back());
    if (is_part) return out;
    if (node.type.dtype != DType::kOpaque) out.bytes_written += hint_bytes(c.graph, id);
    for (int n = 0; n < c.graph.size(); ++n) {
      const Node& get = c.graph.nodes[n];
      if (get.op == OpKind::k_get && get.inputs[0] == id && get.type.dtype != DType::kOpaque)
        out.bytes_written += hint_bytes(c.graph, NodeId(n));
    }
    return out;
  }

  // Every op a kernel of its own: operands in, result out; views move nothing.
  int64_t unfused_bytes() const {
    int64_t total = 0;
    for (NodeId node : stitched) {
      const Family kind = family(c.graph[node]);
      if (kind == Family::kView || kind == Family::kSource) continue;
      for (NodeId input : read_operands(c.graph[node])) total += held_bytes(input);
      total += hint_bytes(c.graph, stored_part(c.graph, node));
    }
    return total;
  }

  // What no plan can avoid: each stored value once, each value read from outside the scope once.
  // A scope is what runs between two library calls; values passed between its kernels are ours.
  int64_t compulsory_bytes() const {
    int64_t total = 0;
    std::set<NodeId> made;
    std::map<NodeId, int64_t> read;  // elements; a stage may hold a load that it needs none of
    const Demands demands = find_demands(c.graph);
    for (const PlanStep& step : c.plan.steps) {
      if (step.call.valid()) {
        made.clear();
        read.clear();
        continue;
      }
      for (int s : c.plan.kernels[step.kernel].stages()) {
        const Stage& stage = c.plan.stages[s];
        for (NodeId load : stage.loads) {
          if (made.count(load)) continue;
          const int64_t elements = accessed_elements(c.graph, c.plan.schedules[s], load);
          int64_t& known = read[load];
          total += std::max<int64_t>(0, elements - known) * element_bytes(c.graph, load);
          known = std::max(known, elements);
        }
        for (NodeId store : stage.stores) {
          made.insert(store);
          const NodeId part = stored_part(c.graph, store);
          if (demands.is_demanded[store.index()]) total += hint_bytes(c.graph, part);
        }
      }
    }
    return total;
  }
};

// "s0*64 <= 2048"; "s1 = s2*8", kept as s1 - s2*8 <= 0, since what is left over is not negative.
std::string to_string(const Assumption& assumption) {
  const Dim::Terms terms = assumption.value.terms();
  const auto part = std::ranges::find_if(terms, [](const auto& term) { return term.second < 0; });
  if (assumption.most != 0 || part == terms.end())
    return concat(to_string(assumption.value), " <= ", assumption.most);
  const Dim multiple = Dim::symbol(part->first.front()) * Dim(-part->second);
  return to_string(assumption.value + multiple) + " = " + to_string(multiple);
}

// By characters of UTF-8, which the user's files may be named in.
std::string pad(std::string text, size_t width) {
  const size_t shown = std::ranges::count_if(text, [](char byte) { return (byte & 0xC0) != 0x80; });
  return text.append(width - std::min(width, shown), ' ');
}

void print(std::ostream& out, const ReportedKernel& kernel) {
  using std::setw;
  out << '\n'
      << pad(kernel.name.substr(0, 47), 48) << setw(9) << kernel.grid << " x "
      << pad(std::to_string(kernel.block), 4) << setw(8)
      << (kernel.registers < 0 ? "-" : std::to_string(kernel.registers)) << setw(8)
      << kernel.spill_bytes << setw(8) << kernel.shared_bytes << setw(8)
      << (kernel.bytes_read + kernel.bytes_written) / 1e6 << std::setprecision(1) << setw(8)
      << kernel.predicted_us << std::setprecision(2) << "  " << kernel.policy;
  for (const ReportedOp& op : kernel.ops) out << "\n    " << op.op << ' ' << op.location;
  const ReportedTime& time = kernel.time;
  if (time.us >= 0)
    out << "\n    " << time.us << " us by the clock"
        << (time.launches > 1 ? " in " + std::to_string(time.launches) + " launches" : "")
        << ", bound by " << time.bound << ": " << std::setprecision(1)
        << time.instructions_per_16_bytes << " instructions for 16 bytes, " << std::setprecision(2)
        << time.resident_threads << " resident threads, limited by " << time.limited_by;
  for (const std::string& sentence : time.assumptions) out << "\n    assumed: " << sentence;
  for (const ReportedPersistent& kept : kernel.persistent)
    out << "\n    " << kept.value << " in " << kept.home << ": " << kept.registers
        << " registers a thread, " << kept.shared_bytes << " bytes a block";
  for (const ReportedTile& tile : kernel.tiles)
    out << "\n    " << tile.value << " through tiles on chip: " << tile.rows << " rows, "
        << tile.bytes << " bytes a block";
}

}  // namespace

Report make_report(const Compilation& c) {
  Reporter reporter{c};
  for (const Stage& stage : c.plan.stages)
    reporter.stitched.insert(stage.nodes.begin(), stage.nodes.end());
  Report report{.target = c.device.name, .device = c.device.derived};
  for (const Assumption& assumption : list_assumptions(c.graph.symbols, c.sources))
    report.assumed_sizes.push_back(to_string(assumption));
  for (size_t k = 0; k < c.plan.kernels.size(); ++k) report.kernels.push_back(reporter.kernel(k));
  for (const PlanStep& step : c.plan.steps)
    if (step.call.valid()) report.library_calls.push_back(reporter.call(step.call));
  for (size_t m = 0; m < c.plan.in_place.size(); ++m) {
    if (c.plan.in_place[m]) continue;
    const int64_t bytes = hint_bytes(c.graph, c.graph.mutations[m].value);
    report.library_calls.push_back({"aten.copy_.default", "", bytes, bytes});
  }
  for (const Cut& cut : c.plan.cuts) {
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

void Report::add(const Report& graph) {
  if (graphs++ == 0) {
    target = graph.target;
    device = graph.device;
  }
  kernels.insert(kernels.end(), graph.kernels.begin(), graph.kernels.end());
  library_calls.insert(library_calls.end(), graph.library_calls.begin(), graph.library_calls.end());
  cuts.insert(cuts.end(), graph.cuts.begin(), graph.cuts.end());
  for (const std::string& assumed : graph.assumed_sizes) add_once(assumed_sizes, assumed);
  for (auto bytes : {&Report::bytes_touched, &Report::bytes_planned, &Report::bytes_unfused,
                     &Report::bytes_compulsory})
    this->*bytes += graph.*bytes;
}

std::string to_string(const Report& report) {
  std::ostringstream out;
  out << std::fixed << std::setprecision(2) << "plan for "
      << (report.graphs ? report.target : "None") << ": " << report.kernels.size() << " kernels, "
      << report.library_calls.size() << " library calls, " << report.graph_breaks()
      << " graph breaks\n"
      << (report.device.empty() ? "" : report.device + "\n");
  for (const std::string& assumed : report.assumed_sizes) out << "if " << assumed << '\n';
  out << pad("kernel", 48) << "    grid x block    regs  spills  shared      MB      us  policy";
  for (const ReportedKernel& kernel : report.kernels) print(out, kernel);
  for (const ReportedCall& call : report.library_calls)
    out << '\n'
        << pad(call.name + ' ' + call.location, 88) << std::setw(8)
        << (call.bytes_read + call.bytes_written) / 1e6;
  for (const ReportedCut& cut : report.cuts)
    out << "\ncut " << cut.edge << ": rule " << cut.rule << ", " << cut.words << ' ' << cut.remedy;
  out << "\nMB: touched " << report.bytes_touched / 1e6 << ", planned "
      << report.bytes_planned / 1e6 << ", unfused " << report.bytes_unfused / 1e6 << ", compulsory "
      << report.bytes_compulsory / 1e6;
  return out.str();
}

}  // namespace stitch
