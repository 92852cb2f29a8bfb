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

// What `id` is, perhaps wider.
NodeId skip_widening(const Graph& graph, NodeId id) {
  id = skip_views(graph, id);
  const bool is_wider = graph[id].op == OpKind::k_cast && !is_narrow(graph, id);
  return is_wider ? skip_views(graph, graph[id].inputs[0]) : id;
}

// A value less what was found of its rows, or of it in 16 bits by what computes in f32 (norms).
bool centers(const Graph& graph, const Node& node) {
  const NodeId a = skip_widening(graph, node.inputs[0]), b = skip_widening(graph, node.inputs[1]);
  if (!is_narrow(graph, a) || !is_narrow(graph, b) || compares_with_number(graph, node))
    return false;
  return info(node.type.dtype).bytes > 2 || hint_elements(graph, a) != hint_elements(graph, b);
}

// A sum divided, perhaps cast.
bool is_mean(const Graph& graph, NodeId id) {
  const Node& node = graph[skip_views(graph, id)];
  if (node.op == OpKind::k_cast) return is_mean(graph, node.inputs[0]);
  return node.op == OpKind::k_div && graph[skip_views(graph, node.inputs[0])].op == OpKind::k_sum;
}

bool depends_on_bits(const Graph& graph, NodeId id) {
  const Node& node = graph[id];
  switch (node.op) {
    case OpKind::k_cast:  // an extreme that is found in f32, as norms do it, and saved in 16 bits
      return is_narrow(graph, id) && is_extreme(graph[skip_views(graph, node.inputs[0])]);
    case OpKind::k_sub:
      return centers(graph, node);
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
  std::vector<bool> leads(graph.size()), kept(graph.size()), rounded;
  for (const NodeId id : find_kept(graph)) kept[skip_views(graph, id).index()] = true;
  for (int i = graph.size() - 1; i >= 0; --i) {
    const Node& node = graph.nodes[i];
    if (family(node) == Family::kLibrary) continue;  // its operands are in memory
    if ((leads[i] || node.op == OpKind::k_reciprocal) && is_narrow(graph, NodeId(i))) {
      rounded.resize(graph.size());
      rounded[i] = true;
    }
    if (!leads[i] && !depends_on_bits(graph, NodeId(i)) && !(kept[i] && is_mean(graph, NodeId(i))))
      continue;
    for (const NodeId input : node.inputs) leads[input.index()] = true;
  }
  return rounded;
}

}  // namespace stitch
