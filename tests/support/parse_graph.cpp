#include "support/parse_graph.h"

#include <algorithm>
#include <unordered_map>

#include "base/words.h"
#include "ir/builder.h"

namespace stitch {
namespace {

constexpr int64_t kDefaultHint = 64;

struct Parser {
  Shorthand shorthand;
  Builder builder{SymbolTable{}, false};
  std::unordered_map<std::string, NodeId> values = {};  // by name, without '%'
  int symbol_count = 0;                                 // s0 .. of what was read so far
  bool declares_symbols = false;
};

// Symbols that no line declares are inputs of the graph.
void add_symbols_in_use(Parser& parser) {
  SymbolTable& table = parser.builder.graph().symbols;
  const int declared = static_cast<int>(table.symbols.size());
  if (parser.declares_symbols && parser.symbol_count > declared)
    throw UserError("found the symbol s" + std::to_string(parser.symbol_count - 1) +
                    ", which the `symbols` line does not declare");
  for (int i = declared; i < parser.symbol_count; ++i) table.add_input(i, kDefaultHint);
}

NodeId read_value(const Parser& parser, TextReader& reader) {
  reader.expect('%');
  const std::string name = reader.word();
  const auto found = parser.values.find(name);
  if (found == parser.values.end())
    throw UserError("found %" + name + ", which no line above defines");
  return found->second;
}

// A number, true, false or a size as an operand.
NodeId literal_operand(Parser& parser, const std::string& text, DType dtype) {
  if (text == "true" || text == "false")
    return parser.builder.full(dtype, text == "true", text == "true");
  if (const auto integer = to_number(text))
    return parser.builder.full(dtype, static_cast<double>(*integer), *integer);
  if (const auto number = to_number<double>(text))
    return parser.builder.full(dtype, *number, static_cast<int64_t>(*number));
  TextReader reader{text};
  const Dim size = read_dim(reader, parser.symbol_count);
  add_symbols_in_use(parser);
  return parser.builder.size_value(dtype, size);
}

NodeId read_call(Parser& parser, TextReader& reader, const std::string& name, const Origin& origin);

bool starts_call(const TextReader& reader) {
  TextReader ahead = reader;
  const std::string word = ahead.word();
  if (word.empty() || std::isdigit(static_cast<unsigned char>(word[0]))) return false;
  return ahead.peek() == '(' || ahead.peek() == '{';
}

std::vector<NodeId> read_operands(Parser& parser, TextReader& reader, OpKind op,
                                  const Origin& origin) {
  std::vector<NodeId> operands;
  std::vector<std::pair<size_t, std::string>> literals;
  read_list(reader, '(', ')', [&] {
    if (reader.peek() == '%') {
      operands.push_back(read_value(parser, reader));
    } else if (starts_call(reader)) {
      operands.push_back(read_call(parser, reader, "", origin));
    } else {
      literals.emplace_back(operands.size(), reader.text_before(",)"));
      if (literals.back().second.empty()) reader.fail("an operand: %name, a number or a call");
      operands.emplace_back();
    }
  });
  if (literals.empty()) return operands;
  const size_t first = info(op).type_rule == TypeRule::kSecond ? 1 : 0;
  const auto typed = std::find_if(operands.begin() + std::min(first, operands.size()),
                                  operands.end(), [](NodeId id) { return id.valid(); });
  const DType dtype = typed == operands.end() ? DType::kF32 : parser.builder[*typed].type.dtype;
  for (const auto& [position, text] : literals)
    operands[position] = literal_operand(parser, text, dtype);
  return operands;
}

void check_written_type(const WrittenType& written, const TensorType& type) {
  TensorType expected{written.dtype, written.shape.value_or(type.shape),
                      written.strides.value_or(type.strides)};
  if (expected != type)
    throw UserError("found the type " + to_string(expected) + ", the operands give " +
                    to_string(type));
}

// {key=value, flag}, or nothing.
std::map<std::string, std::string> read_attributes(TextReader& reader) {
  std::map<std::string, std::string> attributes;
  if (reader.peek() != '{') return attributes;
  read_list(reader, '{', '}', [&] {
    const std::string key = reader.word();
    if (key.empty()) reader.fail("the name of an attribute");
    std::string& value = attributes[key] = "";
    if (reader.take('=')) value = reader.peek() == '"' ? reader.quoted() : reader.text_before(",}");
  });
  return attributes;
}

// Fills node.ints, dims, number, integer, name and the declared type from what was written, then
// what `shorthand` reads.  UserError for an attribute that the op does not have.
void complete_draft(NodeDraft& draft, int& symbol_count, Shorthand shorthand) {
  AttributeSource source{draft, symbol_count, {}};
  Node& node = draft.node;
  if (draft.written) {
    node.type =
        contiguous_type(draft.written->dtype, draft.written->shape.value_or(std::vector<Dim>{}));
    if (draft.written->strides) node.type.strides = *draft.written->strides;
  }
  if (const auto name = source.take("name")) node.name = *name;
  if (const auto ints = source.take_ints("ints")) node.ints = *ints;
  if (const auto dims = source.take_dims("dims")) node.dims = *dims;
  if (const auto text = source.take("number")) {
    const auto number = to_number<double>(*text);
    if (!number) throw UserError("found number=" + *text + ", expected a floating value");
    node.number = *number;
  }
  if (const auto text = source.take("integer")) {
    const auto integer = to_number(*text);
    if (!integer) throw UserError("found integer=" + *text + ", expected a 64-bit integer");
    node.integer = *integer;
  }
  if (shorthand) shorthand(source);
  if (draft.attributes.empty()) return;
  const std::string& unknown = draft.attributes.begin()->first;
  throw UserError(std::string(info(node).name) + " has no attribute '" + unknown +
                  "'; did you mean '" + nearest_name(unknown, source.known) + "'?");
}

// op(operands){attributes} : type
NodeId read_call(Parser& parser, TextReader& reader, const std::string& name,
                 const Origin& origin) {
  Builder& builder = parser.builder;
  NodeDraft draft;
  draft.node.op = op_from_name(reader.word());
  draft.node.origin = origin;
  builder.set_origin(origin);
  const bool is_input = draft.node.op == OpKind::k_input;
  if (info(draft.node).arity != 0 || reader.peek() == '(')
    draft.node.inputs = read_operands(parser, reader, draft.node.op, origin);
  for (NodeId input : draft.node.inputs) draft.operands.push_back(builder[input].type);
  draft.attributes = read_attributes(reader);
  if (reader.take(':')) draft.written = read_type(reader, parser.symbol_count);
  complete_draft(draft, parser.symbol_count, parser.shorthand);
  add_symbols_in_use(parser);
  NodeId id;
  if (is_input) {
    if (!draft.written || !draft.written->shape) reader.fail("':' and the type of the input");
    const bool is_number = to_number(name).has_value();
    id = builder.input(draft.node.name.empty() && !is_number ? name : draft.node.name,
                       draft.node.type);
  } else {
    id = builder.copy(draft.node, draft.node.inputs);
  }
  if (draft.keepdim) id = builder.reshape(id, draft.kept_shape);
  if (draft.written) check_written_type(*draft.written, builder[id].type);
  return id;
}

Origin read_origin(std::string_view& line) {
  bool in_string = false;
  for (size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '"' && (i == 0 || line[i - 1] != '\\')) in_string = !in_string;
    if (in_string || line[i] != '#') continue;
    TextReader comment{line.substr(i + 1)};
    line = line.substr(0, i);
    comment.peek();
    const size_t start = comment.position;
    const size_t space = std::min(comment.text.find(' ', start), comment.text.size());
    Origin origin{std::string(comment.text.substr(start, space - start)), ""};
    comment.position = space;
    comment.peek();
    origin.location = comment.text.substr(comment.position);
    if (origin.op == "-") origin.op.clear();
    return origin;
  }
  return {};
}

void read_symbols(Parser& parser, TextReader& reader) {
  parser.declares_symbols = true;
  std::vector<Symbol>& symbols = parser.builder.graph().symbols.symbols;
  do {
    if (reader.word() != "s" + std::to_string(symbols.size()))
      reader.fail("symbols in order: s" + std::to_string(symbols.size()));
    reader.expect('=');
    const std::string word = reader.word();
    const bool is_result = word == "result";
    Symbol symbol;
    symbol.kind = symbol_kind(is_result ? "input" : word);
    reader.expect('(');
    if (symbol.kind == Symbol::Kind::kInput) {
      symbol.input = static_cast<int>(read_integer(reader));
      if (is_result) symbol.input = -1 - symbol.input;
    }
    if (is_result) reader.expect(',');
    if (is_result || symbol.kind != Symbol::Kind::kInput) {
      symbol.left = read_dim(reader, parser.symbol_count);
      reader.expect(',');
      symbol.right = read_dim(reader, parser.symbol_count);
    }
    reader.expect(')');
    add_symbols_in_use(parser);
    symbol.hint = reader.take("hint") ? read_integer(reader) : kDefaultHint;
    const bool is_argument = symbol.kind == Symbol::Kind::kInput && !is_result;
    symbol.is_positive = is_argument && !reader.take("unbounded");
    symbols.push_back(symbol);
  } while (reader.take(','));
}

std::vector<int> read_positions(TextReader& reader) {
  int no_symbols = 0;
  std::vector<int> positions;
  for (const Dim& dim : read_dims(reader, '[', ']', no_symbols))
    positions.push_back(static_cast<int>(dim.value()));
  return positions;
}

void read_arguments(Graph& graph, TextReader& reader) {
  graph.argument_count = static_cast<int>(read_integer(reader));
  if (!reader.take("tensors")) reader.fail("tensors [positions]");
  graph.input_positions = read_positions(reader);
  if (!reader.take("integers")) reader.fail("integers [positions]");
  graph.integer_positions = read_positions(reader);
}

GraphOutput read_output(Parser& parser, TextReader& reader) {
  if (reader.take("none")) return {};
  if (reader.take("final"))
    return {GraphOutput::Kind::kTensor, read_value(parser, reader), 0, true};
  if (!reader.take("int")) return {GraphOutput::Kind::kTensor, read_value(parser, reader), 0};
  GraphOutput output{GraphOutput::Kind::kInteger, {}, read_dim(reader, parser.symbol_count)};
  add_symbols_in_use(parser);
  return output;
}

void read_line(Parser& parser, std::string_view line) {
  const Origin origin = read_origin(line);
  TextReader reader{line};
  if (reader.peek() == '\0') return;
  if (reader.take('%')) {
    const std::string name = reader.word();
    reader.expect('=');
    const NodeId id = read_call(parser, reader, name, origin);
    if (!parser.values.emplace(name, id).second)
      throw UserError("found a second definition of %" + name);
  } else if (reader.take("mutate")) {
    const NodeId input = read_value(parser, reader);
    if (!reader.take("<-")) reader.fail("'<-'");
    parser.builder.mutate(input, read_value(parser, reader));
  } else if (reader.take("outputs")) {
    read_list(reader, '(', ')', [&] { parser.builder.output(read_output(parser, reader)); });
  } else if (reader.take("symbols")) {
    read_symbols(parser, reader);
  } else if (reader.take("arguments")) {
    read_arguments(parser.builder.graph(), reader);
  } else {
    reader.fail("'%name = op(..)', symbols, arguments, mutate or outputs");
  }
  if (reader.peek() != '\0') reader.fail("the end of the line");
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

void number_arguments(Graph& graph) {
  int integers = 0;
  for (const Symbol& symbol : graph.symbols.symbols)
    integers = std::max(integers, symbol.input + 1);
  for (size_t i = 0; i < graph.inputs.size(); ++i)
    graph.input_positions.push_back(graph.argument_count++);
  for (int i = 0; i < integers; ++i) graph.integer_positions.push_back(graph.argument_count++);
}

Graph parse_graph(std::string_view text, Shorthand shorthand) {
  Parser parser{shorthand};
  for (int number = 1; !text.empty(); ++number) {
    const size_t end = std::min(text.find('\n'), text.size());
    ErrorContext context("while reading line " + std::to_string(number) + " of the graph text");
    read_line(parser, text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  if (parser.builder.graph().argument_count == 0) number_arguments(parser.builder.graph());
  return parser.builder.finish();
}

}  // namespace stitch
