#include "rewrite/write_in_place.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "analysis/view_alias.h"
#include "ops/library_effects.h"
#include "ops/made_calls.h"
#include "ops/op_rules.h"
#include "rewrite/constants.h"
#include "rewrite/rebuild_graph.h"

namespace stitch {
namespace {

// The part of x at which a chain of slice_scatters puts `source`.
struct Window {
  NodeId source, start;            // start: an operand, where the graph has no number for it
  std::vector<int64_t> start_dim;  // of the operand
  int64_t integer = 0;             // of the node that has it; see counts_from_end
  std::vector<Dim> dims;           // start and step of each dimension
};

// Is a value, or a view of it, returned as it was?
bool is_returned(const Graph& graph, NodeId id) {
  return std::any_of(graph.outputs.begin(), graph.outputs.end(), [&](const GraphOutput& output) {
    const bool is_old = output.kind == GraphOutput::Kind::kTensor && !output.is_final;
    return is_old && storage_base(graph, output.node) == id;
  });
}

bool is_mutated_once(const Graph& graph, const Mutation& mutation) {
  return std::count_if(graph.mutations.begin(), graph.mutations.end(), [&](const Mutation& other) {
           return storage_base(graph, other.value) == mutation.value ||
                  storage_base(graph, other.value) == mutation.input ||
                  other.input == mutation.input;
         }) == 1;
}

bool is_same_slice(const Node& a, const Node& b) { return a.ints == b.ints && a.dims == b.dims; }

struct WindowFinder {
  const Graph& graph;
  std::vector<std::vector<NodeId>> users = find_users(graph);
  std::vector<bool> is_demanded = find_demanded(graph);  // outputs, mutations, bases of such views

  std::vector<Dim> longer_extents(NodeId id) const {
    std::vector<Dim> extents = graph[id].type.shape;
    std::erase_if(extents, [](const Dim& extent) { return extent.is(1); });
    return extents;
  }

  // Is the value for what `link` stores, element by element, and for nothing else?
  bool leads_only_to(NodeId id, NodeId link) const {
    if (is_demanded[id.index()]) return false;
    if (longer_extents(id) != longer_extents(graph[link].inputs[1])) return false;
    const std::vector<NodeId>& readers = users[id.index()];
    return std::all_of(readers.begin(), readers.end(), [&](NodeId reader) {
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

  // All that reads `base`: the link itself, the slice that the next link is into, and what the new
  // elements are computed from.
  bool is_left_alone(NodeId base, NodeId link, NodeId slice) const {
    const std::vector<NodeId>& readers = users[base.index()];
    return std::all_of(readers.begin(), readers.end(), [&](NodeId reader) {
      if (reader == link || reader == slice) return true;
      return reads_window(graph[reader], base, graph[link]) && leads_only_to(reader, link);
    });
  }

  // One link: what `scatter` puts into `base`, with the slice of `base` that `source` continues.
  bool add_link(const Node& scatter, Window& window) const {
    const int64_t dim = scatter.ints[0];
    if (scatter.inputs.size() == 3) {
      const TensorType& start = graph[scatter.inputs[2]].type;
      if (window.start.valid() || !element_count(start.shape).is(1)) return false;
      if (!window.dims[2 * dim].is(0) || !window.dims[2 * dim + 1].is(1)) return false;
      window.start = scatter.inputs[2];
      window.start_dim = {dim};
      window.integer = scatter.integer;
    } else {
      if (window.start_dim == std::vector<int64_t>{dim}) return false;
      Dim &start = window.dims[2 * dim], &step = window.dims[2 * dim + 1];
      start = start + scatter.dims[0] * step;
      step = scatter.dims[1] * step;
    }
    window.source = scatter.inputs[1];
    return true;
  }

  std::optional<Window> find(const Mutation& mutation) const {
    const Node* scatter = &graph[mutation.value];
    if (scatter->op != OpKind::k_slice_scatter || scatter->inputs[0] != mutation.input) return {};
    if (is_returned(graph, mutation.input) || is_returned(graph, mutation.value)) return {};
    if (!is_mutated_once(graph, mutation)) return {};
    const TensorType& memory = graph[mutation.input].type;
    Window window;
    for (int d = 0; d < memory.rank(); ++d) {
      // Elements that share a place, which only a value without elements may be written in.
      if (memory.strides[d].is(0) && !memory.shape[d].is(1)) return {};
      window.dims.push_back(0);
      window.dims.push_back(1);
    }
    NodeId base = mutation.input, link = mutation.value;
    if (!add_link(*scatter, window)) return {};
    // x[a:b, i] = src: the inner slice_scatter is into the slice that the outer one puts back.
    while (true) {
      const Node& inner = graph[window.source];
      const bool continues = scatter->inputs.size() == 2 && inner.op == OpKind::k_slice_scatter &&
                             graph[inner.inputs[0]].op == OpKind::k_slice &&
                             graph[inner.inputs[0]].inputs[0] == base &&
                             is_same_slice(graph[inner.inputs[0]], *scatter);
      const NodeId slice = continues ? inner.inputs[0] : NodeId();
      if (!is_left_alone(base, link, slice)) return {};
      if (!continues) return window;
      base = slice;
      link = window.source;
      scatter = &inner;
      if (!add_link(inner, window)) return {};
    }
  }
};

struct PartFinder {
  const Graph& graph;
  std::vector<std::vector<NodeId>> users = find_users(graph);
  std::vector<bool> is_demanded = find_demanded(graph);

  bool is_read_from_memory(NodeId id) const {
    const std::vector<NodeId>& readers = users[id.index()];
    return std::all_of(readers.begin(), readers.end(), [&](NodeId reader) {
      const Node& node = graph[reader];
      if (node.op == OpKind::k_library) return !may_write_operands(node.name);
      return is_plain_view(node) && is_read_from_memory(reader);
    });
  }

  bool is_mutation(NodeId id) const {
    return std::any_of(graph.mutations.begin(), graph.mutations.end(),
                       [&](const Mutation& one) { return storage_base(graph, one.value) == id; });
  }

  // Whether evaluating one of the values evaluates a reduction.
  bool reduces(const std::vector<NodeId>& values) const {
    std::set<NodeId> visited(values.begin(), values.end());
    std::vector<NodeId> stack = values;
    while (!stack.empty()) {
      const Node& node = graph[stack.back()];
      stack.pop_back();
      if (family(node) == Family::kReduce) return true;
      if (family(node) == Family::kLibrary) continue;
      for (NodeId input : read_operands(node)) {
        if (visited.insert(input).second) stack.push_back(input);
      }
    }
    return false;
  }

  bool can_be_joined(NodeId id) const {
    const Node& node = graph[id];
    return node.op == OpKind::k_cat && node.type.strides == contiguous_strides(node.type.shape) &&
           (is_demanded[id.index()] || !users[id.index()].empty()) && !is_mutation(id) &&
           is_read_from_memory(id) && reduces(node.inputs);
  }
};

NodeId join_parts(Builder& b, const RewriteSite& site) {
  const TensorType& type = site.node.type;
  const size_t dim = site.node.ints[0];
  const NodeId memory = b.with_strides(expand_to(b, b.full(type.dtype, 0, 0), type.shape),
                                       contiguous_strides(type.shape));
  std::vector<NodeId> parts;
  Dim start = 0;
  for (NodeId part : site.inputs) {
    const Dim extent = b[part].type.shape[dim];
    if (extent.is(0)) continue;
    Node write;
    write.op = OpKind::k_write_slice;
    write.origin = site.node.origin;
    for (size_t d = 0; d < type.shape.size(); ++d) {
      write.dims.push_back(d == dim ? start : Dim(0));
      write.dims.push_back(1);
    }
    parts.push_back(b.copy(write, {memory, part}));
    start = start + extent;
  }
  return b.library(std::string(kJoin), kMadeCall, parts, {type}, false)[0];
}

}  // namespace

Graph write_joined_parts(const Graph& graph) {
  const auto is_cat = [](const Node& node) { return node.op == OpKind::k_cat; };
  if (std::none_of(graph.nodes.begin(), graph.nodes.end(), is_cat)) return graph;
  const PartFinder finder{graph};
  std::set<const Node*> joined;
  for (int n = 0; n < graph.size(); ++n) {
    if (finder.can_be_joined(NodeId(n))) joined.insert(&graph.nodes[n]);
  }
  if (joined.empty()) return graph;
  return rebuild_graph(graph, [&](Builder& b, const RewriteSite& site) {
    return joined.count(&site.node) ? join_parts(b, site) : NodeId();
  });
}

Graph write_in_place(const Graph& graph) {
  const WindowFinder finder{graph};
  std::map<const Node*, Window> windows;
  for (const Mutation& mutation : graph.mutations) {
    if (auto window = finder.find(mutation)) windows[&graph[mutation.value]] = *window;
  }
  if (windows.empty()) return graph;
  // Nodes of both graphs: operands are looked up by what the frame made of them.
  std::vector<NodeId> made(graph.nodes.size());
  return rebuild_graph(graph, [&](Builder& b, const RewriteSite& site) {
    for (size_t i = 0; i < site.inputs.size(); ++i)
      made[site.node.inputs[i].index()] = site.inputs[i];
    const auto found = windows.find(&site.node);
    if (found == windows.end()) return NodeId();
    const Window& window = found->second;
    Node node;
    node.op = OpKind::k_write_slice;
    node.dims = window.dims;
    node.ints = window.start_dim;
    node.integer = window.integer;
    std::vector<NodeId> inputs = {site.inputs[0], made[window.source.index()]};
    if (window.start.valid()) inputs.push_back(made[window.start.index()]);
    node.origin = site.node.origin;
    return b.copy(node, std::move(inputs));
  });
}

}  // namespace stitch
