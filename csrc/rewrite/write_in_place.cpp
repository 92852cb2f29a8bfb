#include "rewrite/rewrite_graph.h"

#include <ranges>

#include "analysis/storage.h"
#include "rewrite/constants.h"
#include "rewrite/rebuild_graph.h"

namespace stitch {
namespace {

// The part of x that a slice_scatter replaces, of x or of a slice of a slice of it.
struct Window {
  NodeId link = {};  // the slice_scatter
  NodeId base = {};  // x, or the slice of a slice of it, that it is a part of
  Node write = {};   // of what it puts there, and of the start where the graph has no number for it

  NodeId source() const { return write.inputs[0]; }
};

// How an input comes to its new value.
struct Writes {
  std::vector<Window> windows;       // the last one first
  NodeList links;                    // all slice_scatters between
  std::map<NodeId, NodeId> bases;    // of x, slices that are put back and what links make of them
  std::map<NodeId, NodeId> parents;  // by slice: the base that it is put back into
};

// Is a value, or a view of it, returned as it was?
bool is_returned(const Graph& graph, NodeId id) {
  return std::ranges::any_of(graph.outputs, [&](const GraphOutput& output) {
    return output.is_old() && storage_base(graph, output.node) == id;
  });
}

bool is_mutated_once(const Graph& graph, const Mutation& mutation) {
  const auto meets = [&](const Mutation& other) {
    const NodeId base = storage_base(graph, other.value);
    return base == mutation.value || base == mutation.input || other.input == mutation.input;
  };
  return std::ranges::count_if(graph.mutations, meets) == 1;
}

struct WindowFinder {
  const Graph& graph;
  std::vector<NodeList> users = find_users(graph);
  std::vector<bool> is_demanded = find_demanded(graph);  // outputs, mutations, bases of such views

  // Is the value for what `link` stores, element by element, and for nothing else?
  bool leads_only_to(NodeId id, NodeId link) const {
    if (is_demanded[id.index()]) return false;
    const TensorType& stored = graph[graph[link].inputs[1]].type;
    if (without_ones(graph[id].type.shape) != without_ones(stored.shape)) return false;
    return std::ranges::all_of(users[id.index()], [&](NodeId reader) {
      if (reader == link) return true;
      const bool keeps_order =
          family(graph[reader]) == Family::kPointwise || graph[reader].op == OpKind::k_reshape;
      return keeps_order && leads_only_to(reader, link);
    });
  }

  // Does `reader` take the very elements of `base` that `scatter` replaces?
  bool reads_window(const Node& reader, NodeId base, const Node& scatter) const {
    if (reader.inputs[0] != base || reader.ints != scatter.ints) return false;
    if (scatter.inputs.size() == 2)
      return reader.op == OpKind::k_slice && reader.dims == scatter.dims;
    return reader.op == OpKind::k_index &&
           storage_base(graph, reader.inputs[1]) == storage_base(graph, scatter.inputs[2]);
  }

  // Narrows the window to what `scatter` replaces of it.
  bool narrow(const Node& scatter, Node& window) const {
    const int64_t dim = scatter.ints[0];
    if (scatter.inputs.size() == 3) {
      const TensorType& start = graph[scatter.inputs[2]].type;
      if (!window.ints.empty() || !element_count(start.shape).is(1)) return false;
      if (!window.dims[2 * dim].is(0) || !window.dims[2 * dim + 1].is(1)) return false;
      window.inputs.push_back(scatter.inputs[2]);
      window.ints = {dim};
      window.integer = scatter.integer;
    } else {
      if (window.ints == scatter.ints) return false;
      Dim &start = window.dims[2 * dim], &step = window.dims[2 * dim + 1];
      start = start + scatter.dims[0] * step;
      step = scatter.dims[1] * step;
    }
    window.inputs[0] = scatter.inputs[1];
    window.origin = scatter.origin;
    return true;
  }

  // The slice that `value`, put back by `link`, is made of by slice_scatters.
  NodeId find_slice(NodeId value, const Node& link) const {
    if (graph[value].op != OpKind::k_slice_scatter || link.inputs.size() != 2) return {};
    while (graph[value].op == OpKind::k_slice_scatter) value = graph[value].inputs[0];
    const Node& slice = graph[value];
    const bool is_put_back =
        slice.op == OpKind::k_slice && slice.ints == link.ints && slice.dims == link.dims;
    return is_put_back ? value : NodeId();
  }

  // The slice_scatters that lead from `base` to `value`; `frame` is what `base` is of x.
  bool find_writes(NodeId value, NodeId base, Window frame, Writes& writes) const {
    writes.bases[base] = frame.base = base;
    for (NodeId link = value; link != base; link = graph[link].inputs[0]) {
      if (graph[link].op != OpKind::k_slice_scatter) return false;
      if (link != value) writes.bases[link] = base;
      Window window = frame;
      if (!narrow(graph[link], window.write)) return false;
      window.link = link;
      writes.links.push_back(link);
      // x[a:b, i] = src: the inner slice_scatters are into the slice that the outer one puts back.
      const NodeId slice = find_slice(window.source(), graph[link]);
      if (!slice.valid()) {
        writes.windows.push_back(window);
        continue;
      }
      writes.parents[slice] = base;
      if (!find_writes(window.source(), slice, window, writes)) return false;
    }
    return true;
  }

  // Are the slices of what they are put back into, and of nothing else?
  bool are_own_slices(const Writes& writes) const {
    return std::ranges::all_of(writes.parents, [&](const auto& put_back) {
      const auto of = writes.bases.find(graph[put_back.first].inputs[0]);
      return of != writes.bases.end() && of->second == put_back.second;
    });
  }

  // Whether `reader` of a base's value is a write, or takes what one replaces to compute it anew.
  bool is_of(NodeId reader, NodeId value, const Writes& writes) const {
    if (std::ranges::count(writes.links, reader) || writes.parents.contains(reader)) return true;
    return std::ranges::any_of(writes.windows, [&](const Window& window) {
      return window.base == writes.bases.at(value) &&
             reads_window(graph[reader], value, graph[window.link]) &&
             leads_only_to(reader, window.link);
    });
  }

  // Do they not meet, along a dimension?
  bool are_apart_in_some_dim(const Window& a, const Window& b) const {
    const auto strip_of = [&](const Window& window, int64_t d) {
      const DimList& dims = window.write.dims;
      return Strip{dims[2 * d], dims[2 * d + 1], graph[window.source()].type.shape[d]};
    };
    for (int64_t d = 0; 2 * d < std::ssize(a.write.dims); ++d) {
      if (contains(a.write.ints, d) || contains(b.write.ints, d)) continue;
      if (are_apart(strip_of(a, d), strip_of(b, d))) return true;
    }
    return false;
  }

  // Nothing where the input is stored whole.
  std::optional<Writes> find(const Mutation& mutation) const {
    if (is_returned(graph, mutation.input) || is_returned(graph, mutation.value)) return {};
    if (!is_mutated_once(graph, mutation)) return {};
    const TensorType& memory = graph[mutation.input].type;
    if (element_count(memory.shape).is(0)) return {};  // nothing is written at all
    Window whole{.write = {.op = OpKind::k_write_slice, .inputs = {NodeId()}}};
    for (int d = 0; d < memory.rank(); ++d) {
      if (memory.strides[d].is(0) && !memory.shape[d].is(1)) return {};  // elements share places
      whole.write.dims.insert(whole.write.dims.end(), {0, 1});
    }
    Writes writes;
    if (!find_writes(mutation.value, mutation.input, whole, writes)) return {};
    if (writes.links.empty() || !are_own_slices(writes)) return {};
    for (size_t i = 0; i < writes.windows.size(); ++i)
      for (size_t j = 0; j < i; ++j)
        if (!are_apart_in_some_dim(writes.windows[i], writes.windows[j])) return {};
    for (const auto& [value, base] : writes.bases) {
      if (value != mutation.input && is_demanded[value.index()]) return {};
      for (NodeId reader : users[value.index()])
        if (!is_of(reader, value, writes)) return {};
    }
    return writes;
  }
};

struct PartFinder {
  const Graph& graph;
  std::vector<NodeList> users = find_users(graph);
  std::vector<bool> is_demanded = find_demanded(graph);

  bool is_read_from_memory(NodeId id) const {
    return std::ranges::all_of(users[id.index()], [&](NodeId reader) {
      const Node& node = graph[reader];
      if (node.op == OpKind::k_library) return !may_write_operands(node);
      return is_plain_view(node) && is_read_from_memory(reader);
    });
  }

  // Whether evaluating the value evaluates a reduction.
  bool reduces(NodeId id) const {
    const auto is_call = [&](NodeId value) { return family(graph[value]) == Family::kLibrary; };
    const auto is_reduced = [&](NodeId value) { return family(graph[value]) == Family::kReduce; };
    return std::ranges::any_of(find_cone(graph, id, is_call).nodes, is_reduced);
  }

  bool can_be_joined(NodeId id) const {
    const Node& node = graph[id];
    const auto is_in = [&](const Mutation& one) { return storage_base(graph, one.value) == id; };
    return node.op == OpKind::k_cat && node.type.strides == contiguous_strides(node.type.shape) &&
           (is_demanded[id.index()] || !users[id.index()].empty()) &&
           std::ranges::none_of(graph.mutations, is_in) && is_read_from_memory(id) && reduces(id);
  }
};

NodeId join_parts(Builder& b, const RewriteSite& site) {
  const TensorType& type = site.node.type;
  const size_t dim = site.node.ints[0];
  const NodeId memory = b.with_strides(expand_to(b, b.full(type.dtype, 0, 0), type.shape),
                                       contiguous_strides(type.shape));
  NodeList parts;
  Dim start = 0;
  for (NodeId part : site.inputs) {
    const Dim extent = b[part].type.shape[dim];
    if (extent.is(0)) continue;
    Node write{.op = OpKind::k_write_slice, .origin = site.node.origin};
    for (size_t d = 0; d < type.shape.size(); ++d)
      write.dims.insert(write.dims.end(), {d == dim ? start : Dim(0), 1});
    parts.push_back(b.copy(write, {memory, part}));
    start = start + extent;
  }
  return b.made_call(std::string(kJoin), parts, type);
}

}  // namespace

Graph write_joined_parts(const Graph& graph) {
  const PartFinder finder{graph};
  std::set<NodeId> joined;
  for (int n = 0; n < graph.size(); ++n)
    if (finder.can_be_joined(NodeId(n))) joined.insert(NodeId(n));
  if (joined.empty()) return graph;
  return rebuild_graph(graph, [&](Builder& b, const RewriteSite& site) {
    return joined.contains(site.id) ? join_parts(b, site) : NodeId();
  });
}

Graph write_in_place(const Graph& graph) {
  const WindowFinder finder{graph};
  std::map<NodeId, std::vector<Window>> found;  // by the new value
  std::set<NodeId> links;                       // between it and the old one
  for (const Mutation& mutation : graph.mutations) {
    const std::optional<Writes> writes = finder.find(mutation);
    if (!writes) continue;
    found[mutation.value] = writes->windows;
    links.insert(writes->links.begin(), writes->links.end());
  }
  if (found.empty()) return graph;
  return rebuild_graph(graph, [&](Builder& b, const RewriteSite& site) {
    if (!links.contains(site.id)) return NodeId();
    // Until all are stored the others read the old value, where nothing is replaced before.
    const NodeId memory = site.inputs[0];
    if (!found.contains(site.id)) return memory;
    NodeList writes;
    for (const Window& window : std::views::reverse(found[site.id])) {
      NodeList inputs = {memory};
      for (NodeId input : window.write.inputs) inputs.push_back(site.made[input.index()]);
      writes.push_back(b.copy(window.write, std::move(inputs)));
    }
    if (writes.size() == 1) return writes[0];
    return b.made_call(std::string(kJoin), writes, b[memory].type);
  });
}

}  // namespace stitch
