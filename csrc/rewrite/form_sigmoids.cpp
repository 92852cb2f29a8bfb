#include <cmath>

#include "analysis/precision.h"
#include "rewrite/constants.h"
#include "rewrite/rebuild_graph.h"
#include "rewrite/rewrite_graph.h"

namespace stitch {
namespace {

// x * number; of what is no such product the number is 1.
struct Scaled {
  NodeId x;
  double number;
};

Scaled find_scaled(Builder& b, NodeId id) {
  const Node& node = b[id];
  for (int i = 0; i < 2 && node.op == OpKind::k_mul; ++i)
    if (const auto number = constant_of(b.graph(), node.inputs[i]))
      return {node.inputs[1 - i], number->number};
  return {id, 1};
}

NodeId form_sigmoid(Builder& b, const RewriteSite& site, const Graph& graph) {
  const DType dtype = site.node.type.dtype;
  const auto twice = [&](NodeId x) {
    const auto [base, number] = find_scaled(b, x);
    return b.pointwise(OpKind::k_mul, {base, b.full(dtype, 2 * number, 0)});
  };
  for (int i : {0, 1}) {
    const Node& tanh = graph[site.node.inputs[i]];
    const auto one = constant_of(b.graph(), site.inputs[1 - i]);
    if (tanh.op != OpKind::k_tanh || !one || one->number != 1) continue;
    return twice(b.pointwise(OpKind::k_sigmoid, {twice(site.made[tanh.inputs[0].index()])}));
  }
  return {};
}

// (x * c) * (y * d), where c * d is 1 and no digit is lost by either.
NodeId cancel_factors(Builder& b, const RewriteSite& site) {
  const Scaled l = find_scaled(b, site.inputs[0]), r = find_scaled(b, site.inputs[1]);
  int exponent = 0;
  if (l.number * r.number != 1 || std::frexp(l.number, &exponent) != 0.5) return {};
  return b.pointwise(OpKind::k_mul, {l.x, r.x});
}

}  // namespace

Graph form_sigmoids(const Graph& graph) {
  const std::set<NodeId> rounded = find_rounded(graph);
  return rebuild_graph(graph, [&](Builder& b, const RewriteSite& site) -> NodeId {
    const bool is_f32 = info(site.node.type.dtype).register_name == std::string("f32");
    if (!is_f32 || rounded.contains(site.id)) return {};
    if (site.node.op == OpKind::k_add) return form_sigmoid(b, site, graph);
    return site.node.op == OpKind::k_mul ? cancel_factors(b, site) : NodeId();
  });
}

}  // namespace stitch
