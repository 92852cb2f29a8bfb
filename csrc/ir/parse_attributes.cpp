#include "ir/parse_attributes.h"

#include "base/nearest.h"

namespace stitch {
namespace {

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

std::optional<std::string> AttributeSource::take(const std::string& name) {
  known.push_back(name);
  const auto found = draft.attributes.find(name);
  if (found == draft.attributes.end()) return std::nullopt;
  std::string value = found->second;
  draft.attributes.erase(found);
  return value;
}

std::optional<std::vector<Dim>> AttributeSource::take_dims(const std::string& name) {
  const auto value = take(name);
  if (!value) return std::nullopt;
  TextReader reader{*value};
  return read_dims(reader, '[', ']', symbol_count);
}

std::optional<std::vector<int64_t>> AttributeSource::take_ints(const std::string& name) {
  const auto dims = take_dims(name);
  if (!dims) return std::nullopt;
  std::vector<int64_t> ints;
  for (const Dim& dim : *dims) ints.push_back(dim.value());
  return ints;
}

std::map<std::string, std::string> read_attributes(TextReader& reader) {
  std::map<std::string, std::string> attributes;
  if (reader.peek() != '{') return attributes;
  read_list(reader, '{', '}', [&] {
    const std::string key = reader.word();
    if (key.empty()) reader.fail("the name of an attribute");
    attributes[key] = reader.take('=') ? read_value_text(reader) : "";
  });
  return attributes;
}

void complete_draft(NodeDraft& draft, int& symbol_count, Shorthand shorthand) {
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
  if (shorthand) shorthand(source);
  if (draft.attributes.empty()) return;
  const std::string& unknown = draft.attributes.begin()->first;
  throw UserError(std::string(info(node).name) + " has no attribute '" + unknown +
                  "'; did you mean '" + nearest_name(unknown, source.known) + "'?");
}

}  // namespace stitch
