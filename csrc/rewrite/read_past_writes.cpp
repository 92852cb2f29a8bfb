#include "rewrite/rewrite_graph.h"

#include "rewrite/rebuild_graph.h"

namespace stitch {
namespace {

// What a slice takes, or a slice_scatter at a known place replaces, along the node's dimension.
Strip strip_of(const Node& node, const TensorType& part) {
  return {node.dims[0], node.dims[1], part.shape[node.ints[0]]};
}

bool replaces_strip(const Node& node) {
  return node.op == OpKind::k_slice_scatter && node.inputs.size() == 2;
}

NodeId write_over(Builder& b, const RewriteSite& site) {
  const Node& before = b[site.inputs[0]];
  if (site.inputs.size() != 2 || !replaces_strip(before) || before.ints != site.node.ints)
    return {};
  const Strip written = strip_of(site.node, b[site.inputs[1]].type);
  if (written != strip_of(before, b[before.inputs[1]].type)) return {};
  return b.slice_scatter(before.inputs[0], site.inputs[1], site.node.ints[0], written.start,
                         written.step);
}

// Where dimension `dim` of `from` is in `to`, if they differ in dimensions of extent 1 alone.
std::optional<int64_t> find_dim(const DimList& from, const DimList& to, int64_t dim) {
  if (from[dim].is(1) || without_ones(from) != without_ones(to)) return std::nullopt;
  size_t left = without_ones({from.begin(), from.begin() + dim}).size();
  for (size_t d = 0; d < to.size(); ++d)
    if (!to[d].is(1) && left-- == 0) return static_cast<int64_t>(d);
  return std::nullopt;
}

NodeId reshaped(Builder& b, NodeId x, const DimList& shape);

// `x` in `whole`, where it is a slice_scatter into a view of a value of that shape.
NodeId write_through_view(Builder& b, NodeId x, const DimList& whole) {
  const Node scatter = b[x];
  if (scatter.op != OpKind::k_slice_scatter) return {};
  const Node view = b[scatter.inputs[0]];
  if (view.op != OpKind::k_reshape || b[view.inputs[0]].type.shape != whole) return {};
  const auto dim = find_dim(view.type.shape, whole, scatter.ints[0]);
  if (!dim) return {};
  DimList part = whole;
  part[*dim] = b[scatter.inputs[1]].type.shape[scatter.ints[0]];
  const NodeId source = reshaped(b, scatter.inputs[1], part);
  if (scatter.inputs.size() == 2)
    return b.slice_scatter(view.inputs[0], source, *dim, scatter.dims[0], scatter.dims[1]);
  const NodeId start = b.reshape(scatter.inputs[2], DimList(whole.size(), 1));
  return b.slice_scatter(view.inputs[0], source, *dim, start, scatter.integer == 0);
}

NodeId reshaped(Builder& b, NodeId x, const DimList& shape) {
  while (b[x].op == OpKind::k_reshape) x = b[x].inputs[0];
  const NodeId through = write_through_view(b, x, shape);
  return through.valid() ? through : b.reshape(x, shape);
}

// Views come last: a slice of a view is a view of a slice.
NodeId slice_through_view(Builder& b, const RewriteSite& site) {
  const Node view = b[site.inputs[0]];
  if (view.op != OpKind::k_reshape) return {};
  const auto dim = find_dim(view.type.shape, b[view.inputs[0]].type.shape, site.node.ints[0]);
  if (!dim) return {};
  const Strip strip = strip_of(site.node, site.node.type);
  const NodeId part = b.slice(view.inputs[0], *dim, strip.start, strip.count, strip.step);
  return reshaped(b, part, site.node.type.shape);
}

NodeId read_slice(Builder& b, const RewriteSite& site) {
  const int64_t dim = site.node.ints[0];
  const Strip read = strip_of(site.node, site.node.type);
  NodeId from = site.inputs[0];
  while (replaces_strip(b[from]) && b[from].ints[0] == dim) {
    const Strip written = strip_of(b[from], b[b[from].inputs[1]].type);
    if (read == written) return b[from].inputs[1];
    if (!are_apart(read, written)) break;
    from = b[from].inputs[0];
  }
  if (from == site.inputs[0]) return slice_through_view(b, site);
  return b.slice(from, dim, read.start, read.count, read.step);
}

using Site = const RewriteSite&;
constexpr OpRow<NodeId (*)(Builder& b, Site site)> kRules[] = {
    {OpKind::k_slice, read_slice},
    {OpKind::k_slice_scatter, write_over},
    {OpKind::k_reshape,
     [](Builder& b, Site site) { return reshaped(b, site.inputs[0], site.node.type.shape); }},
};

}  // namespace

Graph read_past_writes(const Graph& graph) {
  const std::vector<bool> is_demanded = find_demanded(graph);
  return rebuild_graph(graph, [&](Builder& b, const RewriteSite& site) {
    const auto rule = find_function(kRules, site.node.op);
    // What is in memory anyhow is read there: the value before may be replaced by then.
    return rule && !is_demanded[site.node.inputs[0].index()] ? rule(b, site) : NodeId();
  });
}

}  // namespace stitch
