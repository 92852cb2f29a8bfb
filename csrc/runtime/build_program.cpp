#include "runtime/build_program.h"

#include <algorithm>
#include <array>
#include <unordered_map>

#include "base/words.h"
#include "jit/host_compiler.h"
#include "runtime/driver.h"

namespace stitch {
namespace {

// The operands that hold indices, whose dimensions are in `ints`; segments have theirs checked.
std::span<const NodeId> index_operands(const Node& node) {
  const std::span<const NodeId> inputs = node.inputs;
  const bool has_start = node.op == OpKind::k_slice_scatter || node.op == OpKind::k_write_slice;
  if (node.op == OpKind::k_index || node.op == OpKind::k_gather) return inputs.subspan(1);
  if (combines_at_indices(info(node)) || (has_start && inputs.size() == 3))
    return inputs.subspan(2);
  return {};
}

bool reads_at_indices(const Node& node) {
  return !index_operands(node).empty() || combines_segments(info(node));
}

bool asserts(const Node& node) { return is_assertion(info(node)); }

constexpr std::array<std::pair<KernelFailure, bool (*)(const Node&)>, 3> kFailures = {
    {{KernelFailure::kIndexOutOfRange, reads_at_indices},
     {KernelFailure::kDivisionByZero,
      [](const Node& node) { return divides_integers(info(node), node.type.dtype); }},
     {KernelFailure::kAssertionFailed, asserts}}};

// The ops of a kernel that may fail in one way, as the user wrote them.
std::string name_ops(const Graph& graph, const StitchPlan& plan, int kernel,
                     bool (*may_fail)(const Node&)) {
  std::vector<std::string> names;
  for (const NodeId id : nodes_of(plan, kernel)) {
    const Node& node = graph[id];
    if (!may_fail(node)) continue;
    const std::string& op = node.origin.op.empty() ? info(node).name : node.origin.op;
    add_once(names, (asserts(node) ? node.name + " in " : "") + op +
                        (node.origin.location.empty() ? "" : " at " + node.origin.location));
  }
  return join(names, " or ");
}

void check_indexed(const Graph& graph, const StitchPlan& plan, int kernel, LaunchStep& step) {
  bool names_row = false, names_element = false;
  for (const NodeId id : nodes_of(plan, kernel)) {
    const Node& node = graph[id];
    if (!reads_at_indices(node)) continue;
    const auto [op, type] = std::tie(node.origin.op, node.type);
    const bool is_element = op.starts_with("aten.gather.") || op.starts_with("aten.scatter") ||
                            (op.starts_with("aten.index_add.") && type.rank() > node.ints[0] + 1) ||
                            (op.starts_with("aten.index_select.") && node.ints[0] == 1);
    (is_element ? names_element : names_row) = true;
    Dim indices = 1;
    for (const NodeId operand : index_operands(node))
      indices = indices * element_count(graph[operand].type.shape);
    for (size_t i = 0; i < index_operands(node).size(); ++i) {
      const Dim& rows = graph[node.inputs[0]].type.shape[node.ints[i]];
      if (!rows.is_constant() || rows.is(0)) step.indexed.push_back({rows, indices});
    }
  }
  step.failures.raises_runtime_error = names_element && !names_row;
}

int64_t call_row(Program& program, const Node& node) {
  if (node.integer != kMadeCall) return node.integer;
  program.made_calls.push_back(node);
  return -static_cast<int64_t>(program.made_calls.size());
}

void mark_addressed(Program& program) {
  const auto mark = [&](BufferId id) { program.buffers[id.index()].is_addressed = true; };
  for (const Step& step : program.steps) {
    if (const auto* launch = std::get_if<LaunchStep>(&step))
      std::ranges::for_each(launch->pointers, mark, &LaunchPointer::buffer);
    if (const auto* copy = std::get_if<CopyStep>(&step)) mark(copy->from);
  }
  for (const Buffer& buffer : program.buffers)
    if (buffer.base.valid()) mark(buffer.base);
}

struct ProgramBuilder {
  const Graph& graph;
  const StitchPlan& plan;
  Program program = {};
  int flags = 0;                      // of the launches so far
  std::vector<bool> is_written = {};  // by buffer
  // By mutation: nothing is left to copy.
  std::vector<bool> is_in_place = std::vector<bool>(graph.mutations.size());
  // By node:
  std::vector<BufferId> buffer = std::vector<BufferId>(graph.size());  // invalid: not materialised
  std::vector<bool> is_returned = std::vector<bool>(graph.size());     // it or a view of it
  std::vector<bool> is_replaced = is_returned;     // an input that the call gives other contents
  std::vector<bool> is_stored_over = is_returned;  // by a call, if that is the last to use it
  std::unordered_map<NodeId, BufferId> snapshots = {};  // contents before the call

  BufferId add_buffer(Buffer made) {
    program.buffers.push_back(std::move(made));
    is_written.push_back(false);
    return BufferId(static_cast<int64_t>(program.buffers.size()) - 1);
  }

  BufferId add_buffer(Buffer::Kind kind, NodeId node) {
    return add_buffer({kind, graph[node].type, -1, BufferId(), 0});
  }

  // Of a value whose memory this program makes: what the slab has is known before anything runs.
  Buffer::Kind kind_of(NodeId node) const {
    const TensorType& type = graph[node].type;
    const auto is_late = [&](const Dim& dim) { return !rows_of(graph.symbols, dim).empty(); };
    const bool stands_apart = is_returned[node.index()] || is_stored_over[node.index()] ||
                              hint_bytes(graph, node) > kMostInSlab ||
                              std::ranges::any_of(type.shape, is_late) ||
                              std::ranges::any_of(type.strides, is_late);
    return stands_apart ? Buffer::Kind::kFresh : Buffer::Kind::kSlab;
  }

  void mark_ends() {
    for (const GraphOutput& output : graph.outputs)
      if (output.kind == GraphOutput::Kind::kTensor)
        is_returned[storage_base(graph, output.node).index()] = true;
    for (const Mutation& mutation : graph.mutations)
      if (mutation.input != mutation.value) is_replaced[mutation.input.index()] = true;
    for (const Node& node : graph.nodes)
      if (may_store_over(node)) is_stored_over[storage_base(graph, node.inputs[0]).index()] = true;
  }

  bool may_store_over(const Node& call) const {
    return call.op == OpKind::k_library && is_blas_call(call.name) && call.inputs.size() == 3 &&
           graph[call.inputs[0]].type == call.type;
  }

  void place_inputs() {
    for (size_t i = 0; i < graph.inputs.size(); ++i) {
      const BufferId id = add_buffer(Buffer::Kind::kArgument, graph.inputs[i]);
      program.buffers[id.index()].index = graph.input_positions[i];
      buffer[graph.inputs[i].index()] = id;
      is_written[id.index()] = true;
    }
  }

  // A value that only replaces an input of the same layout is stored there, once per value.
  void place_mutations() {
    for (size_t i = 0; i < graph.mutations.size(); ++i) {
      const Mutation& mutation = graph.mutations[i];
      is_in_place[i] = mutation.input == mutation.value;
      if (is_in_place[i] || i >= plan.in_place.size() || !plan.in_place[i]) continue;
      const int value = mutation.value.index();
      if (is_returned[value] || buffer[value].valid()) continue;
      if (graph[mutation.input].type != graph[mutation.value].type) continue;
      buffer[value] = buffer[mutation.input.index()];
      for (const NodeId store : find_stores(graph, mutation.value))
        buffer[store.index()] = buffer[value];
      program.stored_arguments.push_back(buffer[value]);
      is_in_place[i] = true;
    }
  }

  // One memory for all that writes parts of it.
  void place_joins() {
    for (int i = 0; i < graph.size(); ++i) {
      const Node& node = graph.nodes[i];
      if (!is_join(node) || buffer[i].valid()) continue;
      STITCH_CHECK(graph[graph[node.inputs[0]].inputs[0]].op != OpKind::k_input,
                   "value " << i << " is written in parts, but not where the rest of it is");
      buffer[i] = add_buffer(kind_of(NodeId(i)), NodeId(i));
      for (const NodeId part : node.inputs) buffer[part.index()] = buffer[i];
    }
  }

  void place_stores() {
    const std::set<NodeId> on_chip = find_shared_values(plan);
    for (const Stage& stage : plan.stages) {
      for (const NodeId node : stage.stores) {
        if (on_chip.count(node)) continue;
        BufferId& id = buffer[node.index()];
        if (id.valid()) continue;
        STITCH_CHECK(stored_part(graph, node) == node,
                     "value " << node << " is written in part, but not where the rest of it is");
        id = add_buffer(kind_of(node), node);
      }
    }
  }

  void place_results() {
    std::vector<bool> is_used = mark_nodes(graph, find_kept(graph));
    for (const Node& node : graph.nodes)
      for (const NodeId input : node.inputs) is_used[input.index()] = true;
    for (int i = 0; i < graph.size(); ++i) {
      const Node& node = graph.nodes[i];
      if (family(node) != Family::kLibrary || is_join(node) || !is_used[i]) continue;
      buffer[i] = add_buffer(Buffer::Kind::kResult, NodeId(i));
    }
  }

  void place_aliases() {
    for (const Alias& alias : plan.aliases) {
      const BufferId base = buffer[alias.base.index()];
      STITCH_CHECK(base.valid(), "value " << alias.node << " is planned as a view of value "
                                          << alias.base << ", which is not in memory");
      buffer[alias.node.index()] =
          add_buffer({Buffer::Kind::kAlias, graph[alias.node].type, -1, base, alias.offset});
    }
  }

  // The buffer of a value that is about to be read.
  BufferId use(NodeId node) const {
    const BufferId id = buffer[node.index()];
    STITCH_CHECK(id.valid(), "value " << node << " (" << info(graph[node]).name
                                      << ") is read from memory, but nothing stores it");
    STITCH_CHECK(is_written[memory_of(program, id).index()],
                 "value " << node << " is read before anything stores it");
    return id;
  }

  void start_writing(BufferId id, BufferId over = BufferId()) {
    const bool is_fresh = program.buffers[id.index()].kind == Buffer::Kind::kFresh;
    if (is_fresh && !is_written[id.index()]) program.steps.emplace_back(AllocateStep{id, over});
    is_written[id.index()] = true;
  }

  // What is read after the mutations is copied before anything runs.
  void take_snapshot(NodeId node) {
    if (!is_replaced[storage_base(graph, node).index()] || snapshots.count(node)) return;
    const BufferId to = add_buffer(Buffer::Kind::kFresh, node);
    start_writing(to);
    program.steps.emplace_back(CopyStep{use(node), to});
    snapshots[node] = to;
  }

  void take_snapshots() {
    for (const GraphOutput& output : graph.outputs)
      if (output.is_old()) take_snapshot(output.node);
    for (size_t i = 0; i < graph.mutations.size(); ++i)
      if (!is_in_place[i]) take_snapshot(graph.mutations[i].value);
  }

  BufferId use_at_end(NodeId node) {
    const auto snapshot = snapshots.find(node);
    return snapshot == snapshots.end() ? use(node) : snapshot->second;
  }

  void emit_launch(const KernelSource& source, int kernel) {
    LaunchStep step{kernel};
    for (const KernelArgument& argument : source.pointers) {
      const BufferId id = argument.is_store ? buffer[argument.value.index()] : use(argument.value);
      if (argument.is_store) {
        STITCH_CHECK(id.valid(), "kernel " << source.name << " stores value " << argument.value
                                           << ", which the plan does not store");
        const auto over = plan.stored_over.find(argument.value);
        start_writing(id, over != plan.stored_over.end() ? use(over->second) : BufferId());
      }
      const NodeId part = stored_part(graph, argument.value);
      const TensorType& type = graph[part].type;
      step.pointers.push_back({id, part != argument.value});
      step.bytes = step.bytes + element_count(type.shape) * info(type.dtype).bytes;
    }
    if (source.may_fail) {
      step.flag = flags++;
      step.failures.kernel = source.name;
      check_indexed(graph, plan, kernel, step);
      for (const auto& [failure, may_fail] : kFailures)
        step.failures.ops[static_cast<size_t>(failure)] = name_ops(graph, plan, kernel, may_fail);
    }
    program.steps.emplace_back(std::move(step));
  }

  void emit_call(NodeId call) {
    CallStep step{.call = call_row(program, graph[call])};
    const Node& node = graph[call];
    for (const NodeId input : node.inputs) step.inputs.push_back(use(input));
    step.stores_over = may_store_over(node);
    for (int i = call.index() + 1; i < graph.size(); ++i) {
      const Node& node = graph.nodes[i];
      if (node.op != OpKind::k_get || node.inputs[0] != call) continue;
      const size_t position = node.ints.at(0);
      if (step.outputs.size() <= position) step.outputs.resize(position + 1);
      step.outputs[position] = buffer[i];
    }
    // Read through `get` nodes, the call has no value of its own.
    if (step.outputs.empty() && buffer[call.index()].valid())
      step.outputs.push_back(buffer[call.index()]);
    for (const BufferId id : step.outputs)
      if (id.valid()) is_written[id.index()] = true;
    program.steps.emplace_back(std::move(step));
  }

  void emit_mutations() {
    for (size_t i = 0; i < graph.mutations.size(); ++i) {
      if (is_in_place[i]) continue;
      const auto& [input, value] = graph.mutations[i];
      program.steps.emplace_back(CopyStep{use_at_end(value), buffer[input.index()]});
    }
  }

  void emit_outputs() {
    for (const GraphOutput& output : graph.outputs) {
      ProgramOutput result{output.kind, BufferId(), output.integer};
      if (output.kind == GraphOutput::Kind::kTensor)
        result.buffer = output.is_final ? use(output.node) : use_at_end(output.node);
      program.outputs.push_back(std::move(result));
    }
  }
};

}  // namespace

void load_kernels(Program& program, const std::vector<Binary>& binaries) {
  for (size_t i = 0; i < program.sources.size(); ++i) {
    const KernelSource& source = program.sources[i];
    LoadedKernel& kernel = program.kernels.emplace_back();
    kernel.entry = program.on_cuda
                       ? load_function(binaries[i].bytes, source.name, source.shared_bytes)
                       : load_host_function(binaries[0].bytes, source.name);
    if (source.phases.size() > 1)
      kernel.resident_blocks =
          count_resident_blocks(kernel.entry, source.name, source.threads, source.shared_bytes);
  }
}

Program build_program(const Graph& graph, const StitchPlan& plan,
                      const std::vector<KernelSource>& sources, bool on_cuda) {
  STITCH_CHECK(plan.kernels.size() == sources.size(),
               plan.kernels.size() << " kernels are planned, " << sources.size() << " written");
  ProgramBuilder builder{graph, plan};
  builder.mark_ends();
  Program& program = builder.program;
  program.on_cuda = on_cuda;
  program.sources = sources;
  program.argument_count = graph.argument_count;
  program.integer_positions = graph.integer_positions;
  program.symbols = graph.symbols;
  program.symbols.assumptions = list_assumptions(graph.symbols, sources);
  builder.place_inputs();
  builder.place_mutations();
  builder.place_joins();
  builder.place_stores();
  builder.place_results();
  builder.place_aliases();
  builder.take_snapshots();
  for (const PlanStep& step : plan.steps)
    if (step.call.valid())
      builder.emit_call(step.call);
    else
      builder.emit_launch(sources[step.kernel], step.kernel);
  builder.emit_mutations();
  builder.emit_outputs();
  mark_addressed(program);
  assign_slots(program);
  insert_releases(program);
  return std::move(builder.program);
}

}  // namespace stitch
