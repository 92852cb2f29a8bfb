// Graph: the one intermediate form between import and planning.
//
// Nodes are in topological order and never change once built (ir/builder.h makes them).  A node
// yields one value; a library call that yields several is read through `get` nodes.  Semantics:
//  * pointwise operands have the node's shape or broadcast to it (right aligned, extent 1);
//  * 16-bit floats compute in f32 registers and round where a value is stored or a `cast` says so;
//  * a view never copies; where its value is materialised it gets the strides of its type;
//  * reductions drop the axes they reduce (keepdim is a reshape).
#pragma once

#include <span>

#include "base/ids.h"
#include "ops/library_calls.h"
#include "ops/op.h"

namespace stitch {

struct NodeTag;
using NodeId = Id<NodeTag>;
using NodeList = std::vector<NodeId>;

// Where the user wrote an op: "model.py:31" and the op as the framework names it.
struct Origin {
  std::string op;        // "aten.add.Tensor"
  std::string location;  // "model.py:31", may be empty
  int position = -1;     // of the op in the graph that was imported; not part of the text form
};

// Meaning of `ints` and `dims` per op is documented in its row of ops.def.
struct Node {
  OpKind op{};
  NodeList inputs = {};
  std::vector<int64_t> ints = {};
  DimList dims = {};
  double number = 0;    // full, pad, iota: floating value; library: see ops/library_calls.h
  int64_t integer = 0;  // full, pad: exact value when the dtype is integral; see below
  TensorType type = {};
  std::string name = {};  // library: the operator, "aten.mm.default"; input: its name in text
  Origin origin = {};
};

// Nodes never change, so graphs share those that a rewrite leaves as they are.
struct SharedNode : std::shared_ptr<const Node> {
  SharedNode(Node node = {}) : shared_ptr(std::make_shared<Node>(std::move(node))) {}  // NOLINT
  operator const Node&() const { return **this; }                                      // NOLINT
  static auto serialize(auto& archive, SharedNode& shared) {  // base/archive.h
    Node node = shared;
    const auto result = archive(node);
    shared = std::move(node);
    return result;
  }
};

// One value the graph returns: a tensor, an integer that depends on symbols, or nothing.
struct GraphOutput {
  enum class Kind { kTensor, kInteger, kNone } kind = Kind::kNone;
  NodeId node;
  Dim integer;
  bool is_final = false;  // `node` is an input, returned as the call leaves it

  bool is_old() const { return kind == Kind::kTensor && !is_final; }  // as before the mutations
};

// A value stored into a graph input after every read of it (a trailing copy_).
struct Mutation {
  NodeId input, value;
};

struct Graph {
  std::vector<SharedNode> nodes;
  NodeList inputs;                     // tensor inputs, in call order
  std::vector<int> input_positions;    // their positions among all arguments of the call
  std::vector<int> integer_positions;  // positions of the integer arguments (symbols)
  int argument_count = 0;
  std::vector<GraphOutput> outputs;
  std::vector<Mutation> mutations;
  SymbolTable symbols;

  const Node& operator[](NodeId id) const { return nodes[id.index()]; }
  int size() const { return static_cast<int>(nodes.size()); }
};

inline const OpInfo& info(const Node& node) { return info(node.op); }
inline Family family(const Node& node) { return info(node.op).family; }

// Of what reads or writes at indices: negative ones are places from the end, not out of range.
inline bool counts_from_end(const Node& node) { return node.integer == 0; }

// A cast to 16 bits, not the user's: rounded in memory, as other ops' results, not inside a kernel.
inline bool keeps_digits(const Node& node) {
  return node.op == OpKind::k_cast && node.integer != 0;
}

inline bool may_call(const Node& node) { return may_call(info(node)); }
inline bool is_put(const Node& node) { return is_put(info(node)); }

// Graph inputs and library results are memory to begin with.
inline bool is_materialised(const Node& node) {
  return family(node) == Family::kInput || family(node) == Family::kLibrary;
}

// What evaluating a node reads: of a writer not the memory that it stores into.
inline std::span<const NodeId> read_operands(const Node& node) {
  const std::span<const NodeId> inputs = node.inputs;
  return family(node) == Family::kWriter ? inputs.subspan(1) : inputs;
}
// What `id` is a view of, or a view of a view; itself where it is none.
inline NodeId skip_views(const Graph& graph, NodeId id) {
  while (family(graph[id]) == Family::kView) id = graph[id].inputs[0];
  return id;
}
// What runs to make `id`: of a result of a call the call.
inline NodeId maker_of(const Graph& graph, NodeId id) {
  return graph[id].op == OpKind::k_get ? graph[id].inputs[0] : id;
}
// Yields places, numbered row-major over the reduced axes.
inline bool is_arg_reduction(const Node& node) {
  return node.op == OpKind::k_argmax || node.op == OpKind::k_argmin;
}

// Whether a library call has an effect of ops/library_calls.h.
inline bool has_effects(const Node& node) {
  return node.op == OpKind::k_library && node.ints.size() == 1;
}
// A call, or the one that eager runs for a put, may write its operands.
inline bool may_write_operands(const Node& node) {
  return is_put(node) ? node.ints.size() > 4 : has_effects(node) && node.ints[0] == kWritesOperands;
}
// A library node that nothing runs for; see kJoin.
inline bool is_join(const Node& node) { return node.op == OpKind::k_library && node.name == kJoin; }
// What is stored where `id` is wanted in memory: itself, or the parts that it joins.
inline NodeList find_stores(const Graph& graph, NodeId id) {
  return is_join(graph[id]) ? graph[id].inputs : NodeList{id};
}

// By node: is it one of these?
inline std::vector<bool> mark_nodes(const Graph& graph, std::span<const NodeId> ids) {
  std::vector<bool> is_marked(graph.nodes.size());
  for (const NodeId id : ids) is_marked[id.index()] = true;
  return is_marked;
}

// What a call of the graph leaves behind: the tensors that it returns, then what its inputs become.
NodeList find_kept(const Graph& graph);

// users[n]: the nodes that read n, ascending, each once per use.
std::vector<NodeList> find_users(const Graph& graph);

// By node: library calls that it waits for without reading their results, those that define its
// sizes; of a library call its `dims` count too, the sizes among its arguments.  InternalError
// where a size is used that no call above defines.
std::vector<NodeList> find_definers(const Graph& graph);

// Strides of views, as eager's TensorImpl computes them, and which views are mere aliases: the same
// memory with other sizes, strides and offset.  Symbolic extents count as larger than 1.

// The strides with which `new_shape` reads the elements of a tensor in row-major order without
// moving them, or nothing where that takes a copy.  Dimensions of extent 1 hold nothing up.
std::optional<DimList> view_strides(const DimList& shape, const DimList& strides,
                                    const DimList& new_shape);
// Broadcast dimensions get stride 0.  `new_shape` must be one that `shape` broadcasts to.
DimList expand_strides(const DimList& shape, const DimList& strides, const DimList& new_shape);
// Elements from the start of a view's operand to the start of the view, or nothing where the view
// moves elements (flip, a reshape that no strides express) or is a copy by intent (layout).
std::optional<Dim> view_offset(const Graph& graph, NodeId view);
// The value in whose memory `id` lies, or itself.
inline NodeId storage_base(const Graph& graph, NodeId id) {
  while (family(graph[id]) == Family::kView && view_offset(graph, id)) id = graph[id].inputs[0];
  return id;
}

// As text, one line per node; tests/support/parse_graph.h documents the form and reads it.
std::string to_string(const Graph& graph);
Symbol::Kind symbol_kind(const std::string& name);  // as the text has it; UserError for another

// Checks every invariant: operands before users, ranks, axes, dtypes and strides as the rules give
// them, outputs and mutations that exist.  InternalError naming the node and the user's op.
void verify_graph(const Graph& graph);

inline int element_bytes(const Graph& graph, NodeId id) { return info(graph[id].type.dtype).bytes; }
// Of a dense value, by the hints of its sizes; never negative.
inline int64_t hint_elements(const Graph& graph, NodeId id) {
  return std::max<int64_t>(0, graph.symbols.hint(element_count(graph[id].type.shape)));
}
inline int64_t hint_bytes(const Graph& graph, NodeId id) {
  return hint_elements(graph, id) * element_bytes(graph, id);
}

// An edge along which two values do not share a kernel, or a library call, and why.
struct Cut {
  NodeId from, to;
  Verdict reason;
};

}  // namespace stitch
