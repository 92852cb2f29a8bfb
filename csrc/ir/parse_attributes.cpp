#include "ir/parse_attributes.h"

#include <algorithm>

#include "base/nearest.h"
#include "ops/op_rules.h"

namespace stitch {
namespace {

// Reads attributes by name and forgets them; what is left at the end is an error.
struct AttributeSource {
  NodeDraft& draft;
  int& symbol_count;
  std::vector<std::string> known;  // names that were asked for

  std::optional<std::string> take(const std::string& name) {
    known.push_back(name);
    const auto found = draft.attributes.find(name);
    if (found == draft.attributes.end()) return std::nullopt;
    std::string value = found->second;
    draft.attributes.erase(found);
    return value;
  }

  std::optional<std::vector<Dim>> take_dims(const std::string& name) {
    const auto value = take(name);
    if (!value) return std::nullopt;
    TextReader reader{*value};
    return read_dims(reader, '[', ']', symbol_count);
  }

  std::optional<Dim> take_dim(const std::string& name) {
    const auto value = take(name);
    if (!value) return std::nullopt;
    TextReader reader{*value};
    return read_dim(reader, symbol_count);
  }

  std::optional<std::vector<int64_t>> take_ints(const std::string& name) {
    const auto dims = take_dims(name);
    if (!dims) return std::nullopt;
    std::vector<int64_t> ints;
    for (const Dim& dim : *dims) ints.push_back(dim.value());
    return ints;
  }
};

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
  if (const auto dim = source.take_dim("dim"))
    source.draft.node.ints = wrap({dim->value()}, rank_of_operand(source.draft));
}

void take_start_and_step(AttributeSource& source) {
  if (!source.draft.node.dims.empty()) return;
  const Dim start = source.take_dim("start").value_or(0);
  const Dim step = source.take_dim("step").value_or(1);
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
  const auto count = source.take_dim("count");
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
  const auto integer = to_integer(*value);
  const auto number = to_number(*value);
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
  if (const auto size = source.take_dim("size")) source.draft.node.dims = {*size};
  take_value(source);
}

void complete_iota(AttributeSource& source) {
  take_start_and_step(source);
  if (const auto count = source.take_dim("count")) source.draft.node.type.shape = {*count};
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

void take_written_type(NodeDraft& draft) {
  if (!draft.written) return;
  TensorType& type = draft.node.type;
  type.dtype = draft.written->dtype;
  type.shape = draft.written->shape.value_or(std::vector<Dim>{});
  type.strides = draft.written->strides.value_or(contiguous_strides(type.shape));
}

std::string read_value_text(TextReader& reader) {
  if (reader.peek() == '"') return reader.quoted();
  const size_t start = reader.position;
  int depth = 0;
  while (reader.position < reader.text.size()) {
    const char c = reader.text[reader.position];
    if (depth == 0 && (c == ',' || c == '}')) break;
    depth += (c == '[' || c == '(') - (c == ']' || c == ')');
    ++reader.position;
  }
  std::string value(reader.text.substr(start, reader.position - start));
  std::erase(value, ' ');
  return value;
}

}  // namespace

std::map<std::string, std::string> read_attributes(TextReader& reader) {
  std::map<std::string, std::string> attributes;
  if (!reader.take('{')) return attributes;
  if (reader.take('}')) return attributes;
  do {
    const std::string key = reader.word();
    if (key.empty()) reader.fail("the name of an attribute");
    attributes[key] = reader.take('=') ? read_value_text(reader) : "";
  } while (reader.take(','));
  reader.expect('}');
  return attributes;
}

void complete_draft(NodeDraft& draft, int& symbol_count) {
  AttributeSource source{draft, symbol_count, {}};
  Node& node = draft.node;
  take_written_type(draft);
  if (const auto name = source.take("name")) node.name = *name;
  if (const auto ints = source.take_ints("ints")) node.ints = *ints;
  if (const auto dims = source.take_dims("dims")) node.dims = *dims;
  if (const auto text = source.take("number")) {
    const auto number = to_number(*text);
    if (!number) throw UserError("found number=" + *text + ", expected a floating value");
    node.number = *number;
  }
  if (const auto text = source.take("integer")) {
    const auto integer = to_integer(*text);
    if (!integer) throw UserError("found integer=" + *text + ", expected a 64-bit integer");
    node.integer = *integer;
  }
  if (info(node).family == Family::kReduce) complete_reduce(source);
  if (combines_segments(info(node)) || combines_at_indices(info(node))) take_axis(source);
  for (const Completion& completion : kCompletions)
    if (completion.op == node.op) completion.complete(source);
  if (draft.attributes.empty()) return;
  const std::string& unknown = draft.attributes.begin()->first;
  throw UserError(std::string(info(node).name) + " has no attribute '" + unknown +
                  "'; did you mean '" + nearest_name(unknown, source.known) + "'?");
}

}  // namespace stitch
