#include "rewrite/rewrite_graph.h"

#include "rewrite/rebuild_graph.h"

namespace stitch {
namespace {

bool covers(const Builder& b, NodeId whole, const Node& part) {
  return part.dims[0].is(0) && part.dims[1].is(1) && part.type.shape == b[whole].type.shape;
}

NodeId drop_layout(Builder& b, const RewriteSite& site) {
  const NodeId x = site.inputs[0];
  const Node& base = b[storage_base(b.graph(), x)];
  // Parts that are stored in an argument (write_in_place) have no memory that could be returned.
  const bool is_argument = family(base) == Family::kWriter || is_join(base);
  const bool same_strides = b[x].type.strides == site.node.type.strides && !is_argument;
  return same_strides || !site.strides_matter ? x : NodeId();
}

// One that takes all, or a part of a cat out again.
NodeId drop_slice(Builder& b, const RewriteSite& site) {
  const Node &slice = site.node, &cat = b[site.inputs[0]];
  if (covers(b, site.inputs[0], slice)) return site.inputs[0];
  if (cat.op != OpKind::k_cat || cat.ints != slice.ints || !slice.dims[1].is(1)) return {};
  Dim start = 0;
  for (NodeId part : cat.inputs) {
    const Dim& extent = b[part].type.shape[slice.ints[0]];
    if (start == slice.dims[0] && extent == slice.type.shape[slice.ints[0]]) return part;
    start = start + extent;
  }
  return {};
}

// Parts without elements contribute nothing.
NodeId drop_cat(Builder& b, const RewriteSite& site) {
  const int64_t dim = site.node.ints[0];
  NodeList parts = site.inputs;
  std::erase_if(parts, [&](NodeId part) { return b[part].type.shape[dim].is(0); });
  if (parts.size() == 1) return parts[0];
  return parts.empty() || parts.size() == site.inputs.size() ? NodeId() : b.cat(parts, dim);
}

NodeId drop_pad(Builder& b, const RewriteSite& site) {
  const NodeId x = site.inputs[0];
  const auto is_zero = [](const Dim& before) { return before.is(0); };
  const bool adds_nothing =
      b[x].type.shape == site.node.type.shape && std::ranges::all_of(site.node.dims, is_zero);
  return adds_nothing ? x : NodeId();
}

NodeId drop_slice_scatter(Builder& b, const RewriteSite& site) {
  if (site.inputs.size() != 2) return {};
  const Node &node = site.node, &source = b[site.inputs[1]];
  // x[i] += y stores what it has stored once more.
  const bool puts_back = source.op == OpKind::k_slice && source.inputs[0] == site.inputs[0] &&
                         source.ints == node.ints && source.dims == node.dims;
  return puts_back ? site.inputs[0] : covers(b, site.inputs[1], node) ? site.inputs[1] : NodeId();
}

constexpr OpRow<NodeId (*)(Builder& b, const RewriteSite& site)> kDrops[] = {
    {OpKind::k_layout, drop_layout},
    {OpKind::k_slice, drop_slice},
    {OpKind::k_cat, drop_cat},
    {OpKind::k_pad, drop_pad},
    {OpKind::k_slice_scatter, drop_slice_scatter},
};

NodeId drop_copy(Builder& b, const RewriteSite& site) {
  const auto drop = find_function(kDrops, site.node.op);
  return drop ? drop(b, site) : NodeId();
}

}  // namespace

Graph remove_copies(const Graph& graph) { return rebuild_graph(graph, drop_copy); }

}  // namespace stitch
