#include "rewrite/rebuild_graph.h"
#include "rewrite/rewrite_graph.h"

namespace stitch {
namespace {

struct Sum {
  NodeId product, added;  // invalid: it is none, or stays
};

struct SumFinder {
  const Graph& graph;
  std::vector<NodeList> users = find_users(graph);
  std::vector<bool> is_kept = mark_nodes(graph, find_kept(graph));
  std::vector<Sum> sums = std::vector<Sum>(graph.size());  // by node

  bool is_call(NodeId id) const {
    return is_blas_call(graph[id].name) || sums[id.index()].product.valid();
  }

  // The call, or the sum that becomes one, whose result `id` is, reshaped, and nobody else reads.
  NodeId find_call(NodeId id) const {
    const auto has_one_reader = [&] {
      return users[id.index()].size() == 1 && !is_kept[id.index()];
    };
    while (has_one_reader() && graph[id].op == OpKind::k_reshape) id = graph[id].inputs[0];
    return has_one_reader() && is_call(id) ? id : NodeId();
  }

  Sum find_sum(NodeId sum) const {
    const Node& node = graph[sum];
    const TensorType& type = node.type;
    if (node.op != OpKind::k_add || type.strides != contiguous_strides(type.shape)) return {};
    for (const NodeId input : node.inputs)
      if (graph[input].type.shape != type.shape) return {};
    for (const int at : {1, 0}) {
      const NodeId product = find_call(node.inputs[at]), to = node.inputs[1 - at];
      const NodeId call = find_call(to);
      if (!product.valid() || !is_blas_call(graph[product].name)) continue;
      if (graph[product].inputs.size() != 2) continue;
      if (call.valid() || is_left_for(sum, to, product)) return {product, call.valid() ? call : to};
    }
    return {};
  }

  // The product depends on it, and on all others that read it: it lies in memory, for the sum.
  bool is_left_for(NodeId sum, NodeId id, NodeId product) const {
    if (is_materialised(graph[id]) || is_kept[id.index()]) return false;
    std::vector<bool> is_before = mark_nodes(graph, NodeList{product});
    for (int n = product.index(); n > id.index(); --n)
      if (is_before[n])
        for (NodeId input : graph.nodes[n]->inputs) is_before[input.index()] = true;
    const auto is_operand = [&](NodeId input) { return storage_base(graph, input) == id; };
    return is_before[id.index()] && std::ranges::none_of(graph[product].inputs, is_operand) &&
           std::ranges::all_of(users[id.index()], [&](NodeId reader) {
             return reader == sum || is_before[reader.index()];
           });
  }

  // A kernel that reads it adds on its way.
  bool is_for_calls(NodeId id) const {
    return std::ranges::all_of(users[id.index()], [&](NodeId reader) {
      if (is_plain_view(graph[reader])) return is_for_calls(reader);
      return graph[reader].op == OpKind::k_library || sums[reader.index()].product.valid();
    });
  }
};

}  // namespace

Graph add_in_products(const Graph& graph, bool rounds_products) {
  SumFinder finder{graph};
  if (std::ranges::any_of(graph.nodes, writes_operands)) return graph;
  for (int n = 0; n < graph.size(); ++n)
    if (!rounds_products || element_bytes(graph, NodeId(n)) != 2)
      finder.sums[n] = finder.find_sum(NodeId(n));
  for (const Mutation& mutation : graph.mutations) finder.sums[mutation.value.index()] = {};
  for (int n = graph.size(); n-- > 0;)
    if (!finder.is_for_calls(NodeId(n))) finder.sums[n] = {};
  return rebuild_graph(graph, [&](Builder& b, const RewriteSite& site) {
    const auto [product, added] = finder.sums[site.id.index()];
    if (!product.valid()) return NodeId();
    const Node call = b[site.made[product.index()]];
    const char* name = call.type.rank() == 2 ? "aten.addmm.default" : "aten.baddbmm.default";
    const NodeId to = b.reshape(site.made[added.index()], call.type.shape);
    const NodeId sum = b.made_call(name, {to, call.inputs[0], call.inputs[1]}, call.type);
    return b.reshape(sum, site.node.type.shape);
  });
}

}  // namespace stitch
