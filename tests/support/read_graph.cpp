#include "support/read_graph.h"

#include <algorithm>

#include "base/words.h"
#include "support/parse_graph.h"

namespace stitch {
namespace {

std::optional<Dim> take_dim(AttributeSource& source, const std::string& name) {
  const auto value = source.take(name);
  if (!value) return std::nullopt;
  TextReader reader{*value};
  return read_dim(reader, source.symbol_count);
}

int rank_of_operand(const NodeDraft& draft) {
  return draft.operands.empty() ? 0 : draft.operands[0].rank();
}

std::vector<int64_t> wrap(std::vector<int64_t> axes, int rank) {
  for (int64_t& axis : axes)
    if (axis < 0) axis += rank;
  return axes;
}

void take_axes(AttributeSource& source, const char* name) {
  if (const auto axes = source.take_ints(name))
    source.draft.node.ints = wrap(*axes, rank_of_operand(source.draft));
}

void take_axis(AttributeSource& source) {
  if (const auto dim = take_dim(source, "dim"))
    source.draft.node.ints = wrap({dim->value()}, rank_of_operand(source.draft));
}

void take_start_and_step(AttributeSource& source) {
  if (!source.draft.node.dims.empty()) return;
  const Dim start = take_dim(source, "start").value_or(0);
  const Dim step = take_dim(source, "step").value_or(1);
  source.draft.node.dims = {start, step};
}

void complete_reduce(AttributeSource& source) {
  NodeDraft& draft = source.draft;
  take_axes(source, "axes");
  std::vector<int64_t>& axes = draft.node.ints;
  if (axes.empty())
    for (int d = 0; d < rank_of_operand(draft); ++d) axes.push_back(d);
  std::sort(axes.begin(), axes.end());
  draft.keepdim = source.take("keepdim").has_value();
  if (draft.operands.empty()) return;
  if (!draft.written)
    draft.node.type.dtype =
        is_integral(draft.operands[0].dtype) ? DType::kI64 : draft.operands[0].dtype;
  draft.kept_shape = draft.operands[0].shape;
  for (int64_t axis : axes)
    if (axis >= 0 && axis < draft.operands[0].rank()) draft.kept_shape[axis] = 1;
}

void complete_slice(AttributeSource& source) {
  NodeDraft& draft = source.draft;
  take_axis(source);
  take_start_and_step(source);
  const auto count = take_dim(source, "count");
  if (draft.operands.empty() || draft.node.ints.empty() || (draft.written && draft.written->shape))
    return;
  draft.node.type.shape = draft.operands[0].shape;
  const int64_t axis = draft.node.ints[0];
  if (!count) throw UserError("slice needs count=, or a full type");
  if (axis >= 0 && axis < rank_of_operand(draft)) draft.node.type.shape[axis] = *count;
}

void take_value(AttributeSource& source) {
  const auto value = source.take("value");
  if (!value) return;
  const auto integer = to_number(*value);
  const auto number = to_number<double>(*value);
  if (!integer && !number) throw UserError("found the value '" + *value + "', expected a number");
  if (is_integral(source.draft.node.type.dtype)) {
    source.draft.node.integer = integer ? *integer : static_cast<int64_t>(*number);
  } else {
    source.draft.node.number = *number;
  }
}

void take_shape(AttributeSource& source) {
  if (const auto shape = source.take_dims("shape")) source.draft.node.type.shape = *shape;
}

void complete_pad(AttributeSource& source) {
  if (const auto before = source.take_dims("before")) source.draft.node.dims = *before;
  if (!source.draft.operands.empty()) source.draft.node.type.dtype = source.draft.operands[0].dtype;
  take_shape(source);
  take_value(source);
}

void complete_full(AttributeSource& source) {
  if (const auto size = take_dim(source, "size")) source.draft.node.dims = {*size};
  take_value(source);
}

void complete_iota(AttributeSource& source) {
  take_start_and_step(source);
  if (const auto count = take_dim(source, "count")) source.draft.node.type.shape = {*count};
}

void complete_layout(AttributeSource& source) {
  NodeDraft& draft = source.draft;
  if (const auto strides = source.take_dims("strides")) draft.node.type.strides = *strides;
  if (draft.node.type.strides.empty() && !draft.operands.empty())
    draft.node.type.strides = contiguous_strides(draft.operands[0].shape);
}

struct Completion {
  OpKind op;
  void (*complete)(AttributeSource& source);
};
constexpr Completion kCompletions[] = {
    {OpKind::k_full, complete_full},
    {OpKind::k_iota, complete_iota},
    {OpKind::k_reshape, take_shape},
    {OpKind::k_expand, take_shape},
    {OpKind::k_permute, [](AttributeSource& source) { take_axes(source, "order"); }},
    {OpKind::k_slice, complete_slice},
    {OpKind::k_flip, [](AttributeSource& source) { take_axes(source, "axes"); }},
    {OpKind::k_layout, complete_layout},
    {OpKind::k_cat, take_axis},
    {OpKind::k_pad, complete_pad},
    {OpKind::k_index, [](AttributeSource& source) { take_axes(source, "axes"); }},
    {OpKind::k_gather, take_axis},
    {OpKind::k_slice_scatter,
     [](AttributeSource& source) {
       take_axis(source);
       take_start_and_step(source);
     }},
};

void complete(AttributeSource& source) {
  const Node& node = source.draft.node;
  if (info(node).family == Family::kReduce) complete_reduce(source);
  if (combines_segments(info(node)) || combines_at_indices(info(node))) take_axis(source);
  for (const Completion& completion : kCompletions)
    if (completion.op == node.op) completion.complete(source);
}

}  // namespace

Graph read_graph(std::string_view text) { return parse_graph(text, complete); }

}  // namespace stitch
