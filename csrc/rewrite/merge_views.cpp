#include "rewrite/rewrite_graph.h"

#include "rewrite/constants.h"
#include "rewrite/rebuild_graph.h"

namespace stitch {
namespace {

// `longer` is `shape` with extents of 1 in front.
bool adds_leading_ones(const DimList& shape, const DimList& longer) {
  if (longer.size() < shape.size()) return false;
  const auto lead = longer.end() - std::ssize(shape);
  return std::equal(lead, longer.end(), shape.begin()) &&
         std::all_of(longer.begin(), lead, [](const Dim& extent) { return extent.is(1); });
}

NodeId merge_reshape(Builder& b, const Node& node, NodeId x) {
  while (b[x].op == OpKind::k_reshape) x = b[x].inputs[0];
  return b[x].type.shape == node.type.shape ? x : b.reshape(x, node.type.shape);
}

NodeId merge_permute(Builder& b, const Node& node, NodeId x) {
  std::vector<int64_t> order = node.ints;
  while (b[x].op == OpKind::k_permute) {
    for (int64_t& d : order) d = b[x].ints[d];
    x = b[x].inputs[0];
  }
  if (std::ranges::is_sorted(order)) return x;
  std::vector<int64_t> long_ones = order;  // dimensions that are not of extent 1
  std::erase_if(long_ones, [&](int64_t d) { return b[x].type.shape[d].is(1); });
  return std::ranges::is_sorted(long_ones) ? merge_reshape(b, node, x) : b.permute(x, order);
}

NodeId merge_expand(Builder& b, const Node& node, NodeId x) {
  const auto is_subsumed = [&] {
    const Node& inner = b[x];
    if (inner.op == OpKind::k_expand) return true;
    return inner.op == OpKind::k_reshape &&
           adds_leading_ones(b[inner.inputs[0]].type.shape, inner.type.shape);
  };
  while (is_subsumed()) x = b[x].inputs[0];
  if (b[x].type.shape == node.type.shape) return x;
  if (without_ones(b[x].type.shape) == without_ones(node.type.shape))
    return merge_reshape(b, node, x);
  return b.expand(x, node.type.shape);
}

NodeId merge_slice(Builder& b, const Node& node, NodeId x) {
  Dim start = node.dims[0], step = node.dims[1];
  const int64_t dim = node.ints[0];
  while (b[x].op == OpKind::k_slice && b[x].ints[0] == dim) {
    start = b[x].dims[0] + start * b[x].dims[1];
    step = step * b[x].dims[1];
    x = b[x].inputs[0];
  }
  return b.slice(x, dim, start, node.type.shape[dim], step);
}

NodeId merge_flip(Builder& b, const Node& node, NodeId x) {
  std::vector<int64_t> axes = node.ints;
  for (; b[x].op == OpKind::k_flip; x = b[x].inputs[0]) {
    const std::vector<int64_t> outer = std::exchange(axes, {});
    std::ranges::set_symmetric_difference(outer, b[x].ints, std::back_inserter(axes));
  }
  std::erase_if(axes, [&](int64_t d) { return b[x].type.shape[d].is(1); });
  return axes.empty() ? x : b.flip(x, std::move(axes));
}

constexpr OpRow<NodeId (*)(Builder& b, const Node& node, NodeId x)> kMerges[] = {
    {OpKind::k_reshape, merge_reshape}, {OpKind::k_permute, merge_permute},
    {OpKind::k_expand, merge_expand},   {OpKind::k_slice, merge_slice},
    {OpKind::k_flip, merge_flip},
};

NodeId merge_view(Builder& b, const RewriteSite& site) {
  if (!is_plain_view(site.node)) return {};
  const NodeId full = skip_views(b.graph(), site.inputs[0]);
  if (b[full].op == OpKind::k_full) return expand_to(b, full, site.node.type.shape);
  const auto merge = find_function(kMerges, site.node.op);
  return merge ? merge(b, site.node, site.inputs[0]) : NodeId();
}

}  // namespace

Graph merge_views(const Graph& graph) { return rebuild_graph(graph, merge_view); }

}  // namespace stitch
