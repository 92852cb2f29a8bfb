#include "analysis/rounded_values.h"

namespace stitch {
namespace {

bool is_narrow(const Graph& graph, NodeId id) {
  const DTypeInfo& type = info(graph[id].type.dtype);
  return type.is_float && type.bytes == 2;
}

bool is_extreme(const Node& node) {
  return node.op == OpKind::k_amax || node.op == OpKind::k_amin || is_arg_reduction(node);
}

// Above or below a number, most values stay where they are.
bool compares_with_number(const Graph& graph, const Node& node) {
  const auto is_number = [&](NodeId id) {
    return graph[skip_views(graph, id)].op == OpKind::k_full;
  };
  return is_number(node.inputs[0]) || is_number(node.inputs[1]);
}

bool decides_by_equality(const Graph& graph, NodeId id) {
  const Node& node = graph[id];
  switch (node.op) {
    case OpKind::k_cast:  // an extreme that is found in f32, as norms do it, and saved in 16 bits
      return is_narrow(graph, id) && is_extreme(graph[skip_views(graph, node.inputs[0])]);
    case OpKind::k_lt:
    case OpKind::k_le:
    case OpKind::k_gt:
    case OpKind::k_ge:
      if (compares_with_number(graph, node)) return false;
      [[fallthrough]];
    case OpKind::k_eq:
    case OpKind::k_ne:
      return is_narrow(graph, node.inputs[0]);
    default:
      return is_extreme(node) && is_narrow(graph, node.inputs[0]);
  }
}

}  // namespace

std::vector<bool> find_rounded(const Graph& graph) {
  std::vector<bool> leads(graph.size()), rounded;
  for (int i = graph.size() - 1; i >= 0; --i) {
    const Node& node = graph.nodes[i];
    if (family(node) == Family::kLibrary) continue;  // its operands are in memory
    if (leads[i] && is_narrow(graph, NodeId(i))) {
      rounded.resize(graph.size());
      rounded[i] = true;
    }
    if (!leads[i] && !decides_by_equality(graph, NodeId(i))) continue;
    for (const NodeId input : node.inputs) leads[input.index()] = true;
  }
  return rounded;
}

}  // namespace stitch
