#include "ir/builder.h"

namespace stitch {
namespace {

std::string describe(const Graph& graph, int position) {
  const Node& node = graph.nodes[position];
  std::string text = "%" + std::to_string(position) + " = " + info(node).name;
  if (!node.origin.op.empty()) text += " (from " + node.origin.op;
  if (!node.origin.location.empty()) text += " at " + node.origin.location;
  return node.origin.op.empty() ? text : text + ")";
}

TensorType inferred_type(const Graph& graph, int position) {
  try {
    return infer_type(graph, graph.nodes[position]);
  } catch (const InternalError&) {
    throw;
  } catch (const Error& error) {
    throw InternalError("node " + describe(graph, position) + " is malformed: " + error.what());
  }
}

void verify_node(const Graph& graph, int position) {
  const Node& node = graph.nodes[position];
  for (NodeId input : node.inputs)
    STITCH_CHECK(input.valid() && input.value() < position,
                 "node " << describe(graph, position) << " reads %" << input
                         << "; operands come before their users");
  const TensorType type = inferred_type(graph, position);
  STITCH_CHECK(type == node.type, "node " << describe(graph, position) << " has type "
                                          << to_string(node.type) << ", its operands give "
                                          << to_string(type));
  if (node.op != OpKind::k_get) return;
  STITCH_CHECK(graph[node.inputs[0]].op == OpKind::k_library && node.ints.size() == 1,
               "node " << describe(graph, position) << " must read one result of a library call");
}

void verify_value(const Graph& graph, NodeId id, const char* role) {
  STITCH_CHECK(id.valid() && id.value() < graph.size(),
               role << " %" << id << " is not one of " << graph.size() << " nodes");
}

void verify_interface(const Graph& graph) {
  for (size_t i = 0; i < graph.inputs.size(); ++i) {
    verify_value(graph, graph.inputs[i], "input");
    const Node& node = graph[graph.inputs[i]];
    STITCH_CHECK(node.op == OpKind::k_input && node.integer == static_cast<int64_t>(i),
                 "input " << i << " of the graph is not the node that says so");
  }
  STITCH_CHECK(graph.input_positions.size() == graph.inputs.size(),
               graph.inputs.size()
                   << " inputs have " << graph.input_positions.size() << " argument positions");
  for (const GraphOutput& output : graph.outputs) {
    if (output.kind == GraphOutput::Kind::kTensor) verify_value(graph, output.node, "output");
    STITCH_CHECK(!output.is_final || graph[output.node].op == OpKind::k_input,
                 "%" << output.node << " is returned as the call leaves it, but is no input");
  }
  for (const Mutation& mutation : graph.mutations) {
    verify_value(graph, mutation.input, "mutated input");
    verify_value(graph, mutation.value, "stored value");
    const TensorType &to = graph[mutation.input].type, &from = graph[mutation.value].type;
    STITCH_CHECK(graph[mutation.input].op == OpKind::k_input,
                 "%" << mutation.input << " is mutated but is no input");
    STITCH_CHECK(to.dtype == from.dtype && to.shape == from.shape,
                 "%" << mutation.value << " : " << to_string(from) << " is stored into %"
                     << mutation.input << " : " << to_string(to));
  }
}

}  // namespace

void verify_graph(const Graph& graph) {
  for (int i = 0; i < graph.size(); ++i) verify_node(graph, i);
  verify_interface(graph);
  find_definers(graph);
}

}  // namespace stitch
