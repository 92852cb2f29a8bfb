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

  Sum find_sum(const Node& node) const {
    const TensorType& type = node.type;
    if (node.op != OpKind::k_add || type.strides != contiguous_strides(type.shape)) return {};
    for (const NodeId input : node.inputs)
      if (graph[input].type.shape != type.shape) return {};
    const NodeId first = find_call(node.inputs[0]), second = find_call(node.inputs[1]);
    if (!first.valid() || !second.valid()) return {};
    const auto is_product = [&](NodeId id) {
      return is_blas_call(graph[id].name) && graph[id].inputs.size() == 2;
    };
    return is_product(second) ? Sum{second, first} : is_product(first) ? Sum{first, second} : Sum();
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
      finder.sums[n] = finder.find_sum(graph.nodes[n]);
  for (const Mutation& mutation : graph.mutations) finder.sums[mutation.value.index()] = {};
  for (int n = graph.size(); n-- > 0;)
    if (!finder.is_for_calls(NodeId(n))) finder.sums[n] = {};
  return rebuild_graph(graph, [&](Builder& b, const RewriteSite& site) {
    const auto [product, added] = finder.sums[site.id.index()];
    if (!product.valid()) return NodeId();
    const Node call = b[site.made[product.index()]];
    const char* name = call.type.rank() == 2 ? "aten.addmm.default" : "aten.baddbmm.default";
    const NodeId to = b.reshape(site.made[added.index()], call.type.shape);
    return b.reshape(
        b.library(name, kMadeCall, {to, call.inputs[0], call.inputs[1]}, {call.type}, false)[0],
        site.node.type.shape);
  });
}

}  // namespace stitch
