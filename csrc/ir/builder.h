// The only way to make nodes: infers types, hash-conses.
//
// Equal nodes become one node, except inputs, library calls, `layout` (each is a copy of its own)
// and what reads a value before and after a call that may write it.  The origin of the first one
// stays.  Errors: UserError for what is wrong, UnsupportedError for what symbols leave open.
#pragma once

#include <unordered_map>

#include "ir/graph.h"

namespace stitch {

class Builder {
 public:
  // `share` = false keeps equal nodes apart: text is read back node by node.
  explicit Builder(SymbolTable symbols = {}, bool share = true) : share_(share) {
    graph_.symbols = std::move(symbols);
  }

  // Every node made from here on comes from this op of the user's.
  void set_origin(Origin origin) { origin_ = std::move(origin); }

  NodeId input(std::string name, TensorType type) {
    const int64_t place = std::ssize(graph_.inputs);
    return add({.op = OpKind::k_input, .integer = place, .type = type, .name = std::move(name)});
  }
  NodeId full(DType dtype, double number, int64_t integer);  // 0-d; exact integer for integrals
  NodeId size_value(DType dtype, const Dim& size) {  // 0-d; the number is the size at run time
    if (size.is_constant()) return full(dtype, static_cast<double>(size.value()), size.value());
    return add({.op = OpKind::k_full, .dims = {size}, .type = {.dtype = dtype}});
  }
  NodeId iota(DType dtype, const Dim& count, const Dim& start, const Dim& step) {
    return add({.op = OpKind::k_iota, .dims = {start, step}, .type = {dtype, {count}}});
  }
  // The value of `condition`, bool; where it is false the call fails with the message.
  NodeId assert_true(NodeId condition, std::string message) {
    return add({.op = OpKind::k_assert_true, .inputs = {condition}, .name = std::move(message)});
  }
  // One stream of uniform numbers; `seed` is i64[2]: the key, and where streams are counted from.
  // `coarse`: numbers that are compared with a probability (device/stitch/random.cuh).
  NodeId random(NodeId seed, int64_t stream, DimList shape, bool coarse);
  // Operands broadcast; they must have one dtype already (`select`: the first is bool).
  // `dtype`: of an op whose operands do not tell.
  NodeId pointwise(OpKind op, const NodeList& inputs, DType dtype = DType::kF32) {
    STITCH_CHECK(info(op).family == Family::kPointwise && op != OpKind::k_cast,
                 info(op).name << " is not made by Builder::pointwise");
    return add({.op = op, .inputs = inputs, .type = {.dtype = dtype}});
  }
  // x itself when it has the dtype; `rounds`: see keeps_digits.
  NodeId cast(NodeId x, DType dtype, bool rounds = true) {
    if (graph_[x].type.dtype == dtype) return x;
    const bool keeps = !rounds && info(dtype).is_float && info(dtype).bytes < 4;
    return add({.op = OpKind::k_cast, .inputs = {x}, .integer = keeps, .type = {.dtype = dtype}});
  }
  // Axes in any order, negative allowed, empty = all.  `dtype`: of the result of sum, prod,
  // sum_sq_dev.  Argmax over several axes numbers them row-major.
  NodeId reduce(OpKind op, NodeId x, std::vector<int64_t> axes, DType dtype, bool keepdim);
  NodeId reshape(NodeId x, DimList shape) {
    return add({.op = OpKind::k_reshape, .inputs = {x}, .type = {.shape = std::move(shape)}});
  }
  NodeId permute(NodeId x, std::vector<int64_t> order);
  NodeId expand(NodeId x, DimList shape) {
    return add({.op = OpKind::k_expand, .inputs = {x}, .type = {.shape = std::move(shape)}});
  }
  NodeId slice(NodeId x, int64_t dim, const Dim& start, const Dim& count, const Dim& step);
  NodeId flip(NodeId x, std::vector<int64_t> axes);
  NodeId cat(const NodeList& parts, int64_t dim) { return add(along(OpKind::k_cat, parts, dim)); }
  NodeId pad(NodeId x, DimList before, DimList shape, double number, int64_t integer);
  // `from_end`, here and below: negative indices count from there, else they are out of range.
  NodeId index(NodeId x, const NodeList& indices, std::vector<int64_t> dims, bool from_end = true);
  NodeId gather(NodeId x, NodeId index, int64_t dim, bool from_end = true) {
    return add(along(OpKind::k_gather, {x, index}, dim, {}, from_end));
  }
  NodeId slice_scatter(NodeId x, NodeId source, int64_t dim, const Dim& start, const Dim& step) {
    return add(along(OpKind::k_slice_scatter, {x, source}, dim, {start, step}));
  }
  // `start` holds integers; it and the source have extent 1 along `dim`.
  NodeId slice_scatter(NodeId x, NodeId source, int64_t dim, NodeId start, bool from_end = true) {
    return add(along(OpKind::k_slice_scatter, {x, source, start}, dim, {0, 1}, from_end));
  }
  // Of each window over the last two axes; windows fit.
  NodeId max_of_windows(NodeId x, const DimList& shape, const std::array<int, 2>& window,
                        const std::array<int, 2>& dilation, const std::array<int, 2>& stride);
  // x where the mask, of the axes from `dim` on, is false; of values one for all that it covers.
  NodeId put_masked(NodeId x, int64_t dim, NodeId mask, NodeId values);
  // `op`: one that combines segments, or a scatter; see ops/ops.def for the operands.
  NodeId combine_rows(OpKind op, const NodeList& inputs, int64_t dim, bool from_end = true) {
    STITCH_CHECK(combines_segments(info(op)) || combines_at_indices(info(op)),
                 info(op).name << " combines no rows");
    return add(along(op, inputs, dim, {}, from_end));
  }
  // `op`: a put of ops/ops.def; `call` of the name is what eager runs, `type` what it yields.
  NodeId put(OpKind op, const NodeList& inputs, std::vector<int64_t> ints, std::string name,
             int64_t call, TensorType type) {
    STITCH_CHECK(is_put(info(op)), info(op).name << " is no put");
    return add(
        {.op = op, .inputs = inputs, .ints = ints, .integer = call, .type = type, .name = name});
  }
  // One node per result of `call`; one that has one result yields one node and no `get`.
  NodeList library(Node call, const std::vector<TensorType>& results, bool several);
  // A call that the core makes (kMadeCall).
  NodeId made_call(std::string name, const NodeList& inputs, const TensorType& type) {
    return library({.inputs = inputs, .integer = kMadeCall, .name = name}, {type}, false)[0];
  }
  NodeId read_result(NodeId call, int64_t position, TensorType type) {  // of a call with several
    return add(
        {.op = OpKind::k_get, .inputs = {call}, .ints = {position}, .type = std::move(type)});
  }
  // A copy of `node` with other inputs (already in this builder): what rewrites use.  The type is
  // inferred again; what the operands leave open is taken from `node.type` (infer_type).
  NodeId copy(const Node& node, NodeList inputs);
  // `node` of another graph itself, whose operands have equal numbers and types in this one.
  NodeId share(SharedNode node);
  // The strides a value gets where it is materialised, when not contiguous.
  NodeId with_strides(NodeId x, DimList strides) {
    return add({.op = OpKind::k_layout, .inputs = {x}, .type = {.strides = std::move(strides)}});
  }
  NodeId with_layout(NodeId x, DimList strides) {  // x itself where it has them
    return graph_[x].type.strides == strides ? x : with_strides(x, std::move(strides));
  }

  void output(GraphOutput output) { graph_.outputs.push_back(std::move(output)); }
  void mutate(NodeId input, NodeId value) { graph_.mutations.push_back({input, value}); }

  const Node& operator[](NodeId id) const { return graph_[id]; }
  Graph& graph() { return graph_; }
  Graph finish() {
    verify_graph(graph_);
    return std::move(graph_);
  }

 private:
  Node along(OpKind op, NodeList inputs, int64_t dim, const DimList& dims = {},
             bool from_end = true) const;
  NodeId add(Node node);
  bool share_ = true;
  Graph graph_;
  Origin origin_;
  std::unordered_multimap<size_t, NodeId> made_;  // hash-consing: by the hash of the content
};

// The type of a node from its op, its attributes and the types of its operands in the graph.
//
// What the operands do not determine is read from `node.type`, the declared type: the dtype where
// the op's rule is kExplicit, the shape of reshape, expand and pad, the extent of a slice or iota,
// the strides of a layout, everything of an input or library result.  The builder takes the answer
// as the node's type; the verifier compares.
TensorType infer_type(const Graph& graph, const Node& node);

}  // namespace stitch
