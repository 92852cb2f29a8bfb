// A tensor extent, stride or offset: an integer polynomial over symbols.
//
// Constants stay plain integers; a symbolic Dim is a canonical sum of monomials, so equality of
// extents, exact division and divisibility are decided by structure alone (DESIGN.md 3: "product
// equality and divisibility are facts on symbols").  A size that is no product of symbols (s // 2)
// is an opaque symbol that the SymbolTable knows how to evaluate.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "base/lists.h"
#include "base/round_up.h"

namespace stitch {

using SymbolId = int32_t;

class Dim {
 public:
  // Symbols of one product, sorted, repeated for powers; empty for the constant term.
  using Monomial = std::vector<SymbolId>;
  // Products of many symbols first, the constant last: as people write them, and in an order that
  // products respect.
  struct Leads {
    bool operator()(const Monomial& a, const Monomial& b) const {
      return a.size() != b.size() ? a.size() > b.size() : a < b;
    }
  };
  using Terms = std::map<Monomial, int64_t, Leads>;

  Dim(int64_t value = 0) : constant_(value) {}  // NOLINT: integers are extents
  static Dim symbol(SymbolId id) { return product({id}, 1); }
  static Dim product(Monomial symbols, int64_t factor) {
    return from_terms({{std::move(symbols), factor}});
  }

  bool is_constant() const { return !terms_; }
  // The value of a constant; InternalError for a symbolic Dim.
  int64_t value() const;
  bool is(int64_t value) const { return !terms_ && constant_ == value; }
  bool is_at_most(int64_t value) const { return !terms_ && constant_ <= value; }  // and constant
  Terms terms() const {
    return terms_ ? *terms_ : constant_ == 0 ? Terms{} : Terms{{Monomial{}, constant_}};
  }

  friend Dim operator+(const Dim& a, const Dim& b);
  friend Dim operator*(const Dim& a, const Dim& b);
  friend Dim operator-(const Dim& a, const Dim& b) { return a + Dim(-1) * b; }
  friend bool operator==(const Dim& a, const Dim& b);
  friend bool operator<(const Dim& a, const Dim& b);  // an order for containers, not for sizes
  static auto serialize(auto& archive, Dim& dim) {    // base/archive.h
    Terms terms = dim.terms();
    const auto result = archive(terms);
    dim = from_terms(std::move(terms));
    return result;
  }

 private:
  static Dim from_terms(Terms terms);
  int64_t constant_ = 0;
  std::shared_ptr<const Terms> terms_;  // null for a constant
};

using DimList = std::vector<Dim>;

// The same sum with all its factors positive: |a + b| <= |a| + |b|.
Dim magnitude(const Dim& dim);

// Whether signs leave it open that it is below zero: of -s0, as of rows read backwards, of s0 - 1.
inline bool may_be_negative(const Dim& dim) {
  if (dim.is_constant()) return dim.value() < 0;
  return std::ranges::any_of(dim.terms(), [](const auto& term) { return term.second < 0; });
}

// a / b where no value of the symbols leaves a remainder, else nothing.
std::optional<Dim> divide_exact(const Dim& a, const Dim& b);
inline bool is_divisible(const Dim& a, const Dim& b) { return divide_exact(a, b).has_value(); }

// Where a symbol's value comes from when a program runs.
struct Symbol {
  enum class Kind { kInput, kFloorDiv, kModulo, kMin, kMax };
  Kind kind = Kind::kInput;
  int input = -1;            // kInput: position among the integer arguments of the graph
  Dim left, right;           // operands of the other kinds
  int64_t hint = 1;          // value in the example inputs: guides choices, never correctness
  bool is_positive = false;  // the caller's guards say so; a number that the user gives is any
};

// `value` is at most `most`: what a program takes for granted and each call checks.
struct Assumption {
  Dim value;
  int64_t most = 0;
  friend bool operator==(const Assumption&, const Assumption&) = default;
};

// Symbols in the order in which they are evaluated: operands come first.
struct SymbolTable {
  // What may be assumed of calls besides what types say: nothing, that offsets fit in 32 bits as
  // those at the hints do, or that all sizes are of the hints' class (ir/assume_sizes.h).
  enum class Nearness { kAny, kSmall, kClass };

  std::vector<Symbol> symbols;
  Nearness nearness = Nearness::kAny;
  std::vector<Assumption> assumptions = {};

  Dim add_input(int input, int64_t hint, bool is_positive = true);
  Dim add_opaque(Symbol::Kind kind, const Dim& left, const Dim& right);
  Dim find_or_add(Symbol symbol);  // one with the same origin is the same
  // divisor * (symbol / divisor), for a symbol that is a multiple of it.
  Dim as_multiple(const Dim& symbol, int64_t divisor);
  Dim divide_up(const Dim& value, const Dim& unit) {  // the quotient, rounded up
    if (const std::optional<Dim> exact = divide_exact(value, unit)) return *exact;
    return add_opaque(Symbol::Kind::kFloorDiv, value + unit - Dim(1), unit);
  }
  int64_t hint(const Dim& dim) const;
  std::vector<int64_t> hints() const { return map_to_vector(symbols, &Symbol::hint); }
  // Values of all symbols from the integer arguments of one call.
  std::vector<int64_t> evaluate(const std::vector<int64_t>& integer_inputs) const;
  bool holds(const std::vector<int64_t>& values) const;  // all assumptions
};

bool may_be_empty(const Dim& extent, const SymbolTable& symbols);

// Sizes that only a library call knows: the rows of a result, the number that a tensor holds.
//
// Such a symbol is an input whose `input` is -1 - row, the row of the call that defines it; `left`
// says which of the call's results, `right` which extent of it, -1 for the number that it holds.
// Symbols that are made of late ones are late.  Values are filled in as calls run.

// The value of a symbol whose call has not run yet.
inline constexpr int64_t kUnknown = INT64_MIN;

inline Dim add_late(SymbolTable& table, int row, int result, int dimension, int64_t hint) {
  return table.find_or_add({Symbol::Kind::kInput, -1 - row, result, dimension, hint});
}
inline bool is_late(const Symbol& symbol) {
  return symbol.kind == Symbol::Kind::kInput && symbol.input < 0;
}
inline int row_of(const Symbol& symbol) { return -1 - symbol.input; }
// The rows of the calls that `dim` waits for.
std::set<int> rows_of(const SymbolTable& table, const Dim& dim);
// Evaluates what operands have become known for.
void complete(const SymbolTable& table, std::vector<int64_t>& values);

int64_t evaluate(const Dim& dim, const std::vector<int64_t>& symbol_values);
std::string to_string(const Dim& dim);  // "4096", "s0*64+1"

}  // namespace stitch
