#include "ir/builder.h"

#include "base/words.h"

namespace stitch {
namespace {

using Operands = std::vector<const TensorType*>;
// `x`: the first operand, or what the node declares where it has none.
using InferType = TensorType (*)(const Node& node, const TensorType& x, const Operands& operands);

template <class... Parts>
[[noreturn]] void reject(const Node& node, const Parts&... parts) {
  throw UserError(concat(info(node).name, " ", parts...));
}

void require_rank(const Node& node, const TensorType& type, int rank) {
  if (type.rank() != rank) reject(node, "found ", type, " where rank ", rank, " is needed");
}

// Positions of dimensions must be distinct, ascending unless `any_order`, and in range.
void check_axes(const Node& node, int rank, bool any_order) {
  std::vector<bool> seen(rank, false);
  int64_t last = -1;
  for (int64_t axis : node.ints) {
    if (axis < 0 || axis >= rank)
      reject(node, "found dimension ", axis, "; allowed are 0 to ", rank - 1);
    if (seen[axis] || (!any_order && axis < last))
      reject(node, "found dimension ", axis, " twice or out of order");
    seen[axis] = true;
    last = axis;
  }
}

// The one dimension that the op works along.
int only_axis(const Node& node, int rank) {
  if (node.ints.size() != 1) reject(node, "needs exactly one dimension in `ints`");
  check_axes(node, rank, false);
  return static_cast<int>(node.ints[0]);
}

TensorType take_declared(const Node& node, const TensorType&, const Operands&) {
  TensorType type = node.type;
  if (type.strides.size() != type.shape.size()) type.strides = contiguous_strides(type.shape);
  return type;
}

TensorType infer_full(const Node& node, const TensorType&, const Operands&) {
  require_rank(node, node.type, 0);
  if (node.dims.size() > 1) reject(node, "takes one number or one size");
  return contiguous_type(node.type.dtype, {});
}

TensorType infer_iota(const Node& node, const TensorType&, const Operands&) {
  require_rank(node, node.type, 1);
  if (node.dims.size() != 2) reject(node, "needs dims = {start, step}");
  if (node.type.dtype == DType::kBool) reject(node, "found dtype bool; it counts in numbers");
  return contiguous_type(node.type.dtype, node.type.shape);
}

TensorType infer_pointwise(const Node& node, const TensorType&, const Operands& operands) {
  std::vector<DType> dtypes;
  DimList shape;
  for (const TensorType* operand : operands) {
    dtypes.push_back(operand->dtype);
    if (operand->shape != shape) shape = broadcast_shape(shape, operand->shape);
  }
  return contiguous_type(result_dtype(info(node), dtypes, node.type.dtype), std::move(shape));
}

TensorType infer_reduce(const Node& node, const TensorType& x, const Operands&) {
  check_axes(node, x.rank(), false);
  if (node.ints.empty() && x.rank() > 0) reject(node, "needs the axes it reduces");
  const DType dtype = result_dtype(info(node), {x.dtype}, node.type.dtype);
  if (dtype == DType::kBool && x.dtype != DType::kBool)
    reject(node, "found an operand of ", info(x.dtype).name,
           "; it must be bool: compare with 0 first");
  DimList shape;
  for (int64_t d = 0; d < x.rank(); ++d)
    if (!contains(node.ints, d)) shape.push_back(x.shape[d]);
  return contiguous_type(dtype, std::move(shape));
}

TensorType infer_reshape(const Node& node, const TensorType& x, const Operands&) {
  const DimList& shape = node.type.shape;
  require_equal(element_count(shape), element_count(x.shape), "reshape of ", x, " to ", shape);
  const auto strides = view_strides(x.shape, x.strides, shape);
  return {x.dtype, shape, strides ? *strides : contiguous_strides(shape)};
}

TensorType infer_permute(const Node& node, const TensorType& x, const Operands&) {
  check_axes(node, x.rank(), true);
  if (std::ssize(node.ints) != x.rank()) reject(node, "needs every dimension of ", x, " once");
  TensorType type{x.dtype, {}, {}};
  for (int64_t d : node.ints) {
    type.shape.push_back(x.shape[d]);
    type.strides.push_back(x.strides[d]);
  }
  return type;
}

TensorType infer_expand(const Node& node, const TensorType& x, const Operands&) {
  const DimList& shape = node.type.shape;
  const int lead = static_cast<int>(shape.size()) - x.rank();
  if (lead < 0) reject(node, "of ", x, " to the lower rank of ", shape);
  for (int d = 0; d < x.rank(); ++d)
    if (!x.shape[d].is(1))
      require_equal(x.shape[d], shape[lead + d], "expand of ", x, " to ", shape);
  return {x.dtype, shape, expand_strides(x.shape, x.strides, shape)};
}

TensorType infer_slice(const Node& node, const TensorType& x, const Operands&) {
  const int dim = only_axis(node, x.rank());
  require_rank(node, node.type, x.rank());
  if (node.dims.size() != 2) reject(node, "needs dims = {start, step}");
  const Dim &start = node.dims[0], &step = node.dims[1], &count = node.type.shape[dim];
  if (step.is_constant() && step.value() < 1) reject(node, "found a step below 1");
  if (start.is_constant() && start.value() < 0)
    reject(node, "found the start ", start, "; count it from the front");
  const Dim last = start + (count - Dim(1)) * step, beyond = last - x.shape[dim];
  if (!count.is(0) && beyond.is_constant() && beyond.value() >= 0)
    reject(node, "reads index ", last, " of ", x, " along dimension ", dim);
  TensorType type = x;
  type.shape[dim] = count;
  type.strides[dim] = x.strides[dim] * step;
  return type;
}

TensorType infer_flip(const Node& node, const TensorType& x, const Operands&) {
  check_axes(node, x.rank(), false);
  return contiguous_type(x.dtype, x.shape);
}

TensorType infer_layout(const Node& node, const TensorType& x, const Operands&) {
  TensorType type = x;
  if (node.type.strides.size() != type.shape.size())
    reject(node, "needs one stride per dimension of ", type);
  type.strides = node.type.strides;
  return type;
}

// Equal extents along all dimensions but one.
void require_equal_but(int dim, const TensorType& found, const TensorType& expected,
                       const char* what) {
  for (int d = 0; d < expected.rank(); ++d)
    if (d != dim) require_equal(found.shape[d], expected.shape[d], what);
}

TensorType infer_cat(const Node& node, const TensorType& x, const Operands& operands) {
  if (operands.empty()) reject(node, "needs at least one operand");
  const int dim = only_axis(node, x.rank());
  DimList shape = x.shape;
  for (size_t i = 1; i < operands.size(); ++i) {
    const TensorType& part = *operands[i];
    require_rank(node, part, x.rank());
    if (part.dtype != x.dtype)
      reject(node, "found operands of ", info(x.dtype).name, " and ", info(part.dtype).name,
             "; insert a cast");
    require_equal_but(dim, part, x, "cat");
    shape[dim] = shape[dim] + part.shape[dim];
  }
  return contiguous_type(x.dtype, std::move(shape));
}

TensorType infer_pad(const Node& node, const TensorType& x, const Operands&) {
  require_rank(node, node.type, x.rank());
  if (std::ssize(node.dims) != x.rank())
    reject(node, "needs dims = {before of each dimension of ", x, "}");
  return contiguous_type(x.dtype, node.type.shape);
}

void require_index(const Node& node, const TensorType& index) {
  if (!info(index.dtype).is_integer)
    throw UnsupportedError(concat(info(node).name, " found indices of ", info(index.dtype).name,
                                  "; stitched are integer indices"));
}

TensorType infer_index(const Node& node, const TensorType& x, const Operands& operands) {
  if (operands.size() < 2 || node.ints.size() + 1 != operands.size())
    reject(node, "needs one index per dimension in `ints`");
  check_axes(node, x.rank(), false);
  DimList common;
  for (size_t i = 1; i < operands.size(); ++i) {
    require_index(node, *operands[i]);
    common = broadcast_shape(common, operands[i]->shape);
  }
  const int64_t first = node.ints.front(), last = node.ints.back();
  const bool adjacent = last - first + 1 == std::ssize(node.ints);
  DimList shape;
  if (!adjacent) shape = common;
  for (int64_t d = 0; d < x.rank(); ++d) {
    if (adjacent && d == first) shape.insert(shape.end(), common.begin(), common.end());
    if (!contains(node.ints, d)) shape.push_back(x.shape[d]);
  }
  return contiguous_type(x.dtype, std::move(shape));
}

TensorType infer_gather(const Node& node, const TensorType& x, const Operands& operands) {
  const TensorType& index = *operands[1];
  only_axis(node, x.rank());
  require_index(node, index);
  require_rank(node, index, x.rank());
  return contiguous_type(x.dtype, index.shape);
}

// What replaces a part of x, or is combined with it: of its rank and dtype.
void require_alike(const Node& node, const TensorType& source, const TensorType& x) {
  require_rank(node, source, x.rank());
  if (source.dtype != x.dtype)
    reject(node, "found a source of ", info(source.dtype).name, " for ", info(x.dtype).name,
           "; insert a cast");
}

void require_source(const Node& node, const Operands& operands) {
  if (operands.size() != 2 && operands.size() != 3) reject(node, "takes 2 or 3 operands");
  require_alike(node, *operands[1], *operands[0]);
}

// The operand that is the start along `dim`: one index for each row of the source.
void require_start(const Node& node, const Operands& operands, int dim) {
  if (operands.size() == 2) return;
  const TensorType &source = *operands[1], &start = *operands[2];
  require_index(node, start);
  require_rank(node, start, source.rank());
  require_equal(source.shape[dim], 1, "a source whose start is an operand");
  if (!broadcasts_to(start.shape, source.shape))
    reject(node, "found a start of ", start, " for a source of ", source);
}

TensorType infer_slice_scatter(const Node& node, const TensorType& x, const Operands& operands) {
  require_source(node, operands);
  const int dim = only_axis(node, x.rank());
  if (node.dims.size() != 2) reject(node, "needs dims = {start, step}");
  require_equal_but(dim, *operands[1], x, "slice_scatter");
  require_start(node, operands, dim);
  return contiguous_type(x.dtype, x.shape);
}

TensorType infer_segments(const Node& node, const TensorType& x, const Operands& operands) {
  const TensorType& source = *operands[1];
  const TensorType &order = *operands[2], &offsets = *operands[3];
  require_alike(node, source, x);
  const int dim = only_axis(node, x.rank());
  require_equal_but(dim, source, x, "segments");
  for (const TensorType* places : {&order, &offsets}) {
    require_index(node, *places);
    require_rank(node, *places, 1);
  }
  require_equal(order.shape[0], source.shape[dim], "the order of segments");
  require_equal(offsets.shape[0], x.shape[dim] + Dim(1), "the offsets of segments");
  return contiguous_type(x.dtype, x.shape);
}

TensorType infer_scatter(const Node& node, const TensorType& x, const Operands& operands) {
  require_source(node, operands);
  const TensorType &source = *operands[1], &index = *operands[2];
  require_equal_but(only_axis(node, x.rank()), source, x, "a scatter");
  require_index(node, index);
  require_rank(node, index, x.rank());
  if (!broadcasts_to(index.shape, source.shape))
    reject(node, "found indices ", index, " for a source of ", source);
  return contiguous_type(x.dtype, x.shape);
}

// The operands behind the first three are those of a call, which takes anything.
TensorType infer_put(const Node& node, const TensorType& x, const Operands& operands) {
  if (operands.size() < 3 || node.ints.size() < 4)
    reject(node, "needs x, a source and an index, and four integers");
  const TensorType &source = *operands[1], &index = *operands[2];
  require_alike(node, source, x);
  require_index(node, index);
  const int64_t dim = node.ints[0];
  if (dim < 0 || dim >= x.rank()) reject(node, "found dimension ", dim);
  const bool is_line = index.rank() == 1;
  if (!is_line) require_rank(node, index, x.rank());
  if (is_line)
    require_equal(index.shape[0], source.shape[dim], "a put");
  else
    require_equal_but(-1, index, source, "a put");
  const TensorType type = take_declared(node, x, operands);
  if (type.dtype != x.dtype || type.shape != x.shape)
    reject(node, "is declared ", type, " for an x of ", x);
  return type;
}

TensorType infer_write_slice(const Node& node, const TensorType& x, const Operands& operands) {
  require_source(node, operands);
  if (node.dims.size() != 2 * x.shape.size())
    reject(node, "needs dims = {start, step of each dimension of ", x, "}");
  if (node.ints.size() + 2 != operands.size()) reject(node, "needs the dimension of its start");
  check_axes(node, x.rank(), false);
  if (operands.size() == 3) {
    require_start(node, operands, static_cast<int>(node.ints[0]));
    require_equal(element_count(operands[2]->shape), 1, "the start of a written slice");
  }
  return x;
}

// Ops whose type is no matter of their kind alone.
constexpr OpRow<InferType> kRules[] = {
    {OpKind::k_full, infer_full},
    {OpKind::k_iota, infer_iota},
    {OpKind::k_reshape, infer_reshape},
    {OpKind::k_permute, infer_permute},
    {OpKind::k_expand, infer_expand},
    {OpKind::k_slice, infer_slice},
    {OpKind::k_flip, infer_flip},
    {OpKind::k_layout, infer_layout},
    {OpKind::k_cat, infer_cat},
    {OpKind::k_pad, infer_pad},
    {OpKind::k_index, infer_index},
    {OpKind::k_gather, infer_gather},
    {OpKind::k_slice_scatter, infer_slice_scatter},
    {OpKind::k_write_slice, infer_write_slice},
};

InferType rule_of_kind(const OpInfo& op) {
  if (combines_segments(op)) return infer_segments;
  if (combines_at_indices(op)) return infer_scatter;
  if (is_put(op)) return infer_put;
  if (op.family == Family::kPointwise) return infer_pointwise;
  if (op.family == Family::kReduce) return infer_reduce;
  return op.family == Family::kInput || op.family == Family::kLibrary ? take_declared : nullptr;
}

}  // namespace

TensorType infer_type(const Graph& graph, const Node& node) {
  const OpInfo& op = info(node);
  const Operands operands =
      map_to_vector(node.inputs, [&](NodeId input) { return &graph[input].type; });
  if (op.arity >= 0 && std::ssize(operands) != op.arity)
    reject(node, "found ", operands.size(), " operands, takes ", op.arity);
  if (op.family != Family::kLibrary)
    for (const TensorType* operand : operands)
      if (operand->dtype == DType::kOpaque)
        throw UnsupportedError(std::string(op.name) +
                               " found a value that kernels cannot read (complex, quantised or "
                               "sparse); only library calls take those");
  const InferType own = find_function(kRules, node.op), infer = own ? own : rule_of_kind(op);
  STITCH_CHECK(infer, "op " << op.name << " has no type rule");
  TensorType type = infer(node, operands.empty() ? node.type : *operands[0], operands);
  if (type.dtype == DType::kOpaque && op.family != Family::kLibrary && op.family != Family::kInput)
    reject(node, "found the dtype opaque, which only inputs and library results have");
  return type;
}

}  // namespace stitch
