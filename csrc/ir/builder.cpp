#include "ir/builder.h"

#include <bit>
#include <tuple>

namespace stitch {
namespace {

// Two nodes are equal when their contents are; origins do not count.
bool are_equal(const Node& a, const Node& b) {
  const auto contents = [](const Node& node) {
    return std::tie(node.op, node.integer, node.inputs, node.ints, node.dims, node.type, node.name);
  };
  const auto bits = [](const Node& node) { return std::bit_cast<uint64_t>(node.number); };
  return contents(a) == contents(b) && bits(a) == bits(b);
}

// FNV-1a, of whole numbers in place of bytes.
size_t hash_of(const Node& node) {
  uint64_t hash = static_cast<uint64_t>(node.op);
  const auto add = [&](uint64_t number) { hash = (hash ^ number) * 0x100000001b3; };
  add(std::bit_cast<uint64_t>(node.number));
  add(node.integer);
  for (NodeId input : node.inputs) add(input.value());
  for (int64_t value : node.ints) add(value);
  for (const DimList* dims : {&node.dims, &node.type.shape})
    for (const Dim& dim : *dims) add(dim.is_constant() ? dim.value() : 0);
  return hash ^ (hash >> 32);
}

std::vector<int64_t> wrap_axes(std::vector<int64_t> axes, int rank) {
  for (int64_t& axis : axes)
    if (axis < 0) axis += rank;
  return axes;
}

std::vector<int64_t> sorted_axes(std::vector<int64_t> axes, int rank) {
  axes = wrap_axes(std::move(axes), rank);
  std::ranges::sort(axes);
  return axes;
}

}  // namespace

// An op along one dimension: the attributes that it shares with its like.
Node Builder::along(OpKind op, NodeList inputs, int64_t dim, const DimList& dims,
                    bool from_end) const {
  const int rank = inputs.empty() ? 0 : graph_[inputs[0]].type.rank();
  const std::vector<int64_t> axes = wrap_axes({dim}, rank);
  return {.op = op, .inputs = std::move(inputs), .ints = axes, .dims = dims, .integer = !from_end};
}

NodeId Builder::add(Node node) {
  node.type = infer_type(graph_, node);
  if (node.origin.op.empty() && node.origin.location.empty()) node.origin = origin_;
  return share(std::move(node));
}

NodeId Builder::share(SharedNode shared) {
  const Node& node = shared;
  const NodeId id(graph_.size());
  if (share_ && node.op != OpKind::k_input && !may_call(node) && node.op != OpKind::k_layout) {
    const size_t hash = hash_of(node);
    for (auto [made, end] = made_.equal_range(hash); made != end; ++made)
      if (are_equal(graph_[made->second], node)) return made->second;
    made_.emplace(hash, id);
  }
  if (may_write_operands(node)) made_.clear();
  if (node.op == OpKind::k_input) graph_.inputs.push_back(id);
  graph_.nodes.push_back(std::move(shared));
  return id;
}

NodeId Builder::full(DType dtype, double number, int64_t integer) {
  const TensorType type = {.dtype = dtype};
  if (!is_integral(dtype)) return add({.op = OpKind::k_full, .number = number, .type = type});
  if (dtype == DType::kBool) integer = integer != 0;
  return add({.op = OpKind::k_full, .integer = integer, .type = type});
}

NodeId Builder::random(NodeId seed, int64_t stream, DimList shape, bool coarse) {
  const auto word = [&](int64_t i) { return reshape(slice(seed, 0, i, 1, 1), {}); };
  const NodeId from = pointwise(OpKind::k_add, {word(1), full(DType::kI64, 0, stream)});
  const NodeId line = iota(DType::kI64, element_count(shape), 0, 1);
  return pointwise(coarse ? OpKind::k_coarse_random : OpKind::k_random,
                   {word(0), from, reshape(line, std::move(shape))});
}

NodeId Builder::reduce(OpKind op, NodeId x, std::vector<int64_t> axes, DType dtype, bool keepdim) {
  STITCH_CHECK(info(op).family == Family::kReduce, info(op).name << " is not a reduction");
  if (axes.empty()) axes = count_to<int64_t>(graph_[x].type.rank());
  axes = sorted_axes(std::move(axes), graph_[x].type.rank());
  const NodeId result = add({.op = op, .inputs = {x}, .ints = axes, .type = {.dtype = dtype}});
  return keepdim ? reshape(result, with_ones(graph_[x].type.shape, axes)) : result;
}

NodeId Builder::permute(NodeId x, std::vector<int64_t> order) {
  order = wrap_axes(std::move(order), graph_[x].type.rank());
  return add({.op = OpKind::k_permute, .inputs = {x}, .ints = std::move(order)});
}

NodeId Builder::slice(NodeId x, int64_t dim, const Dim& start, const Dim& count, const Dim& step) {
  Node node = along(OpKind::k_slice, {x}, dim, {start, step});
  node.type.shape = graph_[x].type.shape;
  const int64_t axis = node.ints[0];
  if (axis >= 0 && axis < graph_[x].type.rank()) node.type.shape[axis] = count;
  return add(std::move(node));
}

NodeId Builder::max_of_windows(NodeId x, const DimList& shape, const std::array<int, 2>& window,
                               const std::array<int, 2>& dilation,
                               const std::array<int, 2>& stride) {
  NodeId result;
  const auto column = std::ssize(shape) - 1, row = column - 1;
  for (int i = 0; i < window[0]; ++i) {
    const NodeId rows = slice(x, row, i * dilation[0], shape[row], stride[0]);
    for (int j = 0; j < window[1]; ++j) {
      const NodeId part = slice(rows, column, j * dilation[1], shape[column], stride[1]);
      result = result.valid() ? pointwise(OpKind::k_maximum, {result, part}) : part;
    }
  }
  return result;
}

NodeId Builder::put_masked(NodeId x, int64_t dim, NodeId mask, NodeId values) {
  const DimList shape = graph_[x].type.shape, covered = graph_[mask].type.shape;
  const auto end = static_cast<std::ptrdiff_t>(dim + covered.size());
  const bool fits =
      end <= std::ssize(shape) && std::equal(covered.begin(), covered.end(), shape.begin() + dim);
  if (!fits) throw UnsupportedError("a mask of other sizes than what it covers");
  DimList one = shape, each = shape, inside(shape.size(), 1);
  one.erase(one.begin() + dim, one.begin() + end);
  one.insert(one.begin() + dim, 1);
  std::fill(each.begin() + dim, each.begin() + end, 1);
  std::ranges::copy(covered, inside.begin() + dim);
  if (!broadcasts_to(graph_[values].type.shape, one))
    throw UnsupportedError("values that are not one for all that the mask covers");
  if (graph_[values].type.shape != one) values = expand(values, one);
  return pointwise(OpKind::k_select, {reshape(mask, inside), reshape(values, each), x});
}

NodeId Builder::flip(NodeId x, std::vector<int64_t> axes) {
  axes = sorted_axes(std::move(axes), graph_[x].type.rank());
  return add({.op = OpKind::k_flip, .inputs = {x}, .ints = std::move(axes)});
}

NodeId Builder::pad(NodeId x, DimList before, DimList shape, double number, int64_t integer) {
  Node node{.op = OpKind::k_pad, .inputs = {x}, .dims = std::move(before)};
  node.type.shape = std::move(shape);
  if (is_integral(graph_[x].type.dtype))
    node.integer = integer;
  else
    node.number = number;
  return add(std::move(node));
}

NodeId Builder::index(NodeId x, const NodeList& indices, std::vector<int64_t> dims, bool from_end) {
  dims = wrap_axes(std::move(dims), graph_[x].type.rank());
  NodeList inputs = {x};
  inputs.insert(inputs.end(), indices.begin(), indices.end());
  return add({.op = OpKind::k_index, .inputs = inputs, .ints = dims, .integer = !from_end});
}

NodeList Builder::library(Node call, const std::vector<TensorType>& results, bool several) {
  STITCH_CHECK(several || results.size() <= 1,
               call.name << " has " << results.size() << " results but is said to yield one");
  const bool yields_value = !several && results.size() == 1;
  call.op = OpKind::k_library;
  call.type = yields_value ? results[0] : TensorType{DType::kOpaque};
  const NodeId id = add(std::move(call));
  if (!several) return {id};
  NodeList values;
  for (size_t i = 0; i < results.size(); ++i)
    values.push_back(read_result(id, static_cast<int64_t>(i), results[i]));
  return values;
}

NodeId Builder::copy(const Node& node, NodeList inputs) {
  if (node.op == OpKind::k_cast && graph_[inputs.at(0)].type.dtype == node.type.dtype)
    return inputs[0];
  Node result = node;
  result.inputs = std::move(inputs);
  return add(std::move(result));
}

}  // namespace stitch
