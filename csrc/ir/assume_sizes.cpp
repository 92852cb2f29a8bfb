#include "ir/assume_sizes.h"

#include <bit>

#include "ir/builder.h"

namespace stitch {
namespace {

using Nearness = SymbolTable::Nearness;

constexpr int64_t kUnit = 8;           // elements of 16 bits in the widest access of a thread
constexpr int64_t kPieceUnit = 16;     // rows of a piece, or pieces
constexpr int64_t kUnits = 8;          // of a long row, in which whole blocks are its pieces
constexpr int64_t kLongRow = 1 << 16;  // elements, which many blocks reduce
constexpr int64_t kSmallShare = 16;    // of the largest value's elements

int64_t find_piece_unit(int64_t extent) {
  if (extent < kLongRow) return kPieceUnit;
  return static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(extent))) / kUnits;
}

// Extents that vectors lie along, or pieces of reductions, of large values, and units for them.
std::vector<std::pair<Dim, int64_t>> find_extents(const Graph& graph) {
  std::vector<int64_t> elements;
  for (int i = 0; i < graph.size(); ++i) elements.push_back(hint_elements(graph, NodeId(i)));
  const int64_t largest = elements.empty() ? 0 : *std::ranges::max_element(elements);
  std::vector<std::pair<Dim, int64_t>> found;
  for (int i = 0; i < graph.size(); ++i) {
    const Node& node = graph.nodes[i];
    const bool reduces = family(node) == Family::kReduce;
    const NodeId large = reduces ? node.inputs[0] : NodeId(i);
    const TensorType& type = graph[large].type;
    if (elements[large.index()] < largest / kSmallShare) continue;
    const bool is_cut =
        reduces && elements[large.index()] / std::max<int64_t>(1, elements[i]) >= kLongRow;
    for (int d = 0; d < type.rank(); ++d) {
      const bool is_contiguous = type.strides[d].is(1);
      if (reduces && std::ranges::count(node.ints, d) > 0 && (is_cut || !is_contiguous))
        found.emplace_back(type.shape[d], find_piece_unit(graph.symbols.hint(type.shape[d])));
      else if (is_contiguous)
        found.emplace_back(type.shape[d], kUnit);
    }
  }
  return found;
}

Dim substitute(const Dim& dim, const std::map<SymbolId, Dim>& values) {
  if (dim.is_constant()) return dim;
  Dim sum = 0;
  for (const auto& [monomial, factor] : dim.terms()) {
    Dim product = factor;
    for (const SymbolId id : monomial)
      product = product * (values.contains(id) ? values.at(id) : Dim::symbol(id));
    sum = sum + product;
  }
  return sum;
}

// Whose multiple is asked for: of (s + a) / c it is s, c times.  Halves of 16 k elements have 8 k.
std::pair<SymbolId, int64_t> find_asked(const SymbolTable& symbols, SymbolId id, int64_t unit) {
  const Symbol& symbol = symbols.symbols[id];
  Dim::Terms terms = symbol.left.terms();
  terms.erase(Dim::Monomial{});
  const bool is_alone = terms.size() == 1 && terms.begin()->first.size() == 1;
  if (symbol.kind != Symbol::Kind::kFloorDiv || !symbol.right.is_constant() || !is_alone)
    return {id, unit};
  return {terms.begin()->first[0], unit * symbol.right.value()};
}

// Of the symbols that were `given`, those that are made of others in `values` are made of these.
void derive_symbols(const SymbolTable& given, SymbolTable& table, std::map<SymbolId, Dim>& values) {
  for (size_t s = 0; s < given.symbols.size(); ++s) {
    const Symbol& symbol = given.symbols[s];
    const Dim left = substitute(symbol.left, values), right = substitute(symbol.right, values);
    if (symbol.kind == Symbol::Kind::kInput || left == symbol.left) continue;
    values[static_cast<SymbolId>(s)] = table.add_opaque(symbol.kind, left, right);
  }
}

bool may_assume(const SymbolTable& symbols, Nearness least, const Dim& dim) {
  return symbols.nearness >= least && rows_of(symbols, dim).empty();
}

}  // namespace

Graph assume_units(const Graph& graph) {
  if (graph.symbols.nearness < Nearness::kClass) return graph;
  Graph out = graph;
  std::map<SymbolId, Dim> values;
  std::map<SymbolId, int64_t> units;
  const std::vector<std::pair<Dim, int64_t>> extents = find_extents(graph);
  for (const auto& [extent, wanted] : extents)
    for (const auto& [monomial, factor] : extent.terms())
      for (const SymbolId id : monomial) {
        const auto [asked, unit] = find_asked(graph.symbols, id, wanted);
        units[asked] = std::max(units[asked], unit);
      }
  for (const auto& [extent, wanted] : extents) {
    const Dim::Terms terms = extent.terms();
    if (terms.size() != 1 || is_divisible(substitute(extent, values), wanted)) continue;
    const auto& [monomial, factor] = *terms.begin();
    for (size_t i = monomial.size(); i-- > 0;) {
      const SymbolId id = find_asked(graph.symbols, monomial[i], wanted).first;
      const Dim whole = Dim::symbol(id);
      const int64_t hint = graph.symbols.hint(whole), most = find_piece_unit(hint);
      const int64_t unit = std::gcd(hint, std::min(units.at(id), most));
      if (unit < kUnit || values.contains(id) ||
          !may_assume(graph.symbols, Nearness::kClass, whole))
        continue;
      values[id] = out.symbols.as_multiple(whole, unit);
      out.symbols.assumptions.push_back({whole - values[id], 0});
      derive_symbols(graph.symbols, out.symbols, values);
      break;
    }
  }
  if (values.empty()) return out;
  for (SharedNode& shared : out.nodes) {
    Node node = shared;
    for (DimList* dims : {&node.dims, &node.type.shape, &node.type.strides})
      for (Dim& dim : *dims) dim = substitute(dim, values);
    node.type = infer_type(out, node);  // passes share nodes as they are
    shared = std::move(node);
  }
  return out;
}

std::optional<Assumption> assume_few_trips(const SymbolTable& symbols, const Dim& extent,
                                           int64_t step, int64_t most_trips) {
  if (!may_assume(symbols, Nearness::kClass, extent)) return std::nullopt;
  const int64_t hint = std::max<int64_t>(1, symbols.hint(extent));
  const auto quarter = static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(hint))) / 4;
  const int64_t most = round_up(hint, std::max(step, quarter / step * step));
  return most / step <= most_trips ? std::optional(Assumption{extent, most}) : std::nullopt;
}

std::optional<Assumption> assume_small(const SymbolTable& symbols, const Dim& largest) {
  if (!may_assume(symbols, Nearness::kSmall, largest)) return std::nullopt;
  if (symbols.hint(largest) > INT32_MAX) return std::nullopt;
  return Assumption{largest, INT32_MAX};
}

SymbolTable with_hints(SymbolTable table, const std::vector<int64_t>& integers) {
  const std::vector<int64_t> values = table.evaluate(integers);
  for (size_t i = 0; i < values.size(); ++i)
    if (values[i] != kUnknown) table.symbols[i].hint = values[i];
  return table;
}

}  // namespace stitch
