#include "ir/graph.h"

#include "base/words.h"

namespace stitch {
namespace {

// As lines name them, in the order of Symbol::Kind.
constexpr std::array kSymbolKinds = {"input", "floordiv", "mod", "min", "max"};

std::string name_of(NodeId id) { return "%" + std::to_string(id.value()); }

// The shortest text that reads back as the same double.
std::string shortest(double number) {
  std::array<char, 32> buffer;
  const auto result = std::to_chars(buffer.data(), buffer.data() + buffer.size(), number);
  return std::string(buffer.data(), result.ptr);
}

bool holds_number(const Node& node) {
  return (node.op == OpKind::k_full && node.dims.empty()) || node.op == OpKind::k_pad ||
         (node.op == OpKind::k_library && node.integer == kMadeCall);
}

std::string attributes(const Node& node) {
  std::vector<std::string> parts;
  if (!node.name.empty())
    parts.push_back((std::ostringstream() << "name=" << std::quoted(node.name)).str());
  if (!node.ints.empty()) parts.push_back("ints=[" + join(node.ints, ",") + "]");
  if (!node.dims.empty()) parts.push_back("dims=" + to_string(node.dims));
  const bool integral = is_integral(node.type.dtype);
  if (holds_number(node) && !integral) parts.push_back("number=" + shortest(node.number));
  const bool reads_indices = family(node) == Family::kReader || family(node) == Family::kWriter;
  const bool has_integer = (holds_number(node) && integral) || may_call(node) || keeps_digits(node);
  if (has_integer || (reads_indices && !counts_from_end(node) && node.op != OpKind::k_pad))
    parts.push_back("integer=" + std::to_string(node.integer));
  return parts.empty() ? "" : "{" + join(parts, ", ") + "}";
}

// "%7 = add(%5, %6) : f32[8,s0]  # aten.add.Tensor model.py:31"
std::string print_node(NodeId id, const Node& node) {
  std::string text = name_of(id) + " = " + info(node).name;
  if (info(node).arity != 0) text += "(" + join(node.inputs, ", ", name_of) + ")";
  text += attributes(node) + " : " + to_string(node.type);
  if (node.origin.op.empty() && node.origin.location.empty()) return text;
  text += "  # " + (node.origin.op.empty() ? "-" : node.origin.op);
  return node.origin.location.empty() ? text : text + " " + node.origin.location;
}

std::string print_symbol(const Symbol& symbol) {
  const std::string kind = kSymbolKinds[static_cast<size_t>(symbol.kind)];
  const std::string pair = to_string(symbol.left) + "," + to_string(symbol.right);
  const std::string hint = ") hint " + std::to_string(symbol.hint);
  if (is_late(symbol)) return concat("result(", row_of(symbol), ",", pair, hint);
  if (symbol.kind != Symbol::Kind::kInput) return kind + "(" + pair + hint;
  return concat(kind, "(", symbol.input, hint, symbol.is_positive ? "" : " unbounded");
}

std::string print_output(const GraphOutput& output) {
  if (output.kind == GraphOutput::Kind::kTensor)
    return (output.is_final ? "final " : "") + name_of(output.node);
  return output.kind == GraphOutput::Kind::kInteger ? "int " + to_string(output.integer) : "none";
}

}  // namespace

Symbol::Kind symbol_kind(const std::string& name) {
  const auto found = std::ranges::find(kSymbolKinds, name);
  if (found != kSymbolKinds.end()) return static_cast<Symbol::Kind>(found - kSymbolKinds.begin());
  throw UserError("a size cannot be '" + name + "' of others; did you mean '" +
                  nearest_name(name, kSymbolKinds) + "'?");
}

std::string to_string(const Graph& graph) {
  std::string text;
  for (size_t i = 0; i < graph.symbols.symbols.size(); ++i)
    text += concat(i == 0 ? "symbols s" : ", s", i, " = ", print_symbol(graph.symbols.symbols[i]));
  if (!text.empty()) text += "\n";
  text += concat("arguments ", graph.argument_count, " tensors [", join(graph.input_positions, ","),
                 "] integers [", join(graph.integer_positions, ","), "]\n");
  for (int i = 0; i < graph.size(); ++i) text += print_node(NodeId(i), graph.nodes[i]) + "\n";
  for (const Mutation& mutation : graph.mutations)
    text += "mutate " + name_of(mutation.input) + " <- " + name_of(mutation.value) + "\n";
  return text + "outputs (" + join(graph.outputs, ", ", print_output) + ")\n";
}

}  // namespace stitch
