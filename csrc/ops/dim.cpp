#include "ops/dim.h"

#include "base/error.h"
#include "base/words.h"

namespace stitch {
namespace {

// a + b or a * b.
int64_t checked(int64_t a, char op, int64_t b) {
  int64_t result = 0;
  if (op == '+' ? __builtin_add_overflow(a, b, &result) : __builtin_mul_overflow(a, b, &result))
    throw UnsupportedError("a size overflows 64 bits: " + std::to_string(a) + " " + op + " " +
                           std::to_string(b) + "; use a smaller tensor");
  return result;
}

int64_t floor_divide(int64_t a, int64_t b) {
  if (b == 0) throw UserError("a size is divided by zero; the divisor of a size must be positive");
  const int64_t quotient = a / b;
  return quotient - (a % b != 0 && (a < 0) != (b < 0));
}

int64_t apply(Symbol::Kind kind, int64_t left, int64_t right) {
  if (kind == Symbol::Kind::kFloorDiv) return floor_divide(left, right);
  if (kind == Symbol::Kind::kModulo) return left - floor_divide(left, right) * right;
  if (kind == Symbol::Kind::kMin) return std::min(left, right);
  if (kind == Symbol::Kind::kMax) return std::max(left, right);
  throw InternalError("a symbol that is an input has no operands");
}

bool is_known(const Dim& dim, const std::vector<int64_t>& values) {
  if (dim.is_constant()) return true;
  for (const auto& [monomial, factor] : dim.terms())
    for (SymbolId id : monomial)
      if (values.at(id) == kUnknown) return false;
  return true;
}

// The result when no new symbol is needed.
std::optional<Dim> simplify(Symbol::Kind kind, const Dim& left, const Dim& right) {
  if (left.is_constant() && right.is_constant())
    return Dim(apply(kind, left.value(), right.value()));
  if (kind == Symbol::Kind::kMin || kind == Symbol::Kind::kMax)
    return left == right ? std::optional(left) : std::nullopt;
  // (2 s0 + 1) / 2 is s0, and 1 is left.
  Dim rest = 0;
  if (right.is_constant() && right.value() > 0) {
    const Dim::Terms terms = left.terms();
    const auto constant = terms.find(Dim::Monomial{});
    if (constant != terms.end())
      rest = apply(Symbol::Kind::kModulo, constant->second, right.value());
  }
  const std::optional<Dim> quotient = divide_exact(left - rest, right);
  if (!quotient) return std::nullopt;
  return kind == Symbol::Kind::kFloorDiv ? *quotient : rest;
}

}  // namespace

Dim Dim::from_terms(Terms terms) {
  std::erase_if(terms, [](const auto& term) { return term.second == 0; });
  if (terms.empty()) return Dim(0);
  if (terms.size() == 1 && terms.begin()->first.empty()) return Dim(terms.begin()->second);
  Dim dim;
  dim.terms_ = std::make_shared<const Terms>(std::move(terms));
  return dim;
}

int64_t Dim::value() const {
  STITCH_CHECK(is_constant(), "the size " << to_string(*this) << " is not a constant");
  return constant_;
}

Dim operator+(const Dim& a, const Dim& b) {
  if (!a.terms_ && !b.terms_) return Dim(checked(a.constant_, '+', b.constant_));
  Dim::Terms sum = a.terms();
  for (const auto& [monomial, factor] : b.terms())
    sum[monomial] = checked(sum[monomial], '+', factor);
  return Dim::from_terms(std::move(sum));
}

Dim operator*(const Dim& a, const Dim& b) {
  if (!a.terms_ && !b.terms_) return Dim(checked(a.constant_, '*', b.constant_));
  if (a.is(1)) return b;
  if (b.is(1)) return a;
  Dim::Terms product;
  const Dim::Terms right = b.terms();
  for (const auto& [a_monomial, a_factor] : a.terms())
    for (const auto& [b_monomial, b_factor] : right) {
      Dim::Monomial symbols;
      std::ranges::merge(a_monomial, b_monomial, std::back_inserter(symbols));
      int64_t& factor = product[symbols];
      factor = checked(factor, '+', checked(a_factor, '*', b_factor));
    }
  return Dim::from_terms(std::move(product));
}

bool operator==(const Dim& a, const Dim& b) {
  if (!a.terms_ || !b.terms_) return !a.terms_ && !b.terms_ && a.constant_ == b.constant_;
  return a.terms_ == b.terms_ || *a.terms_ == *b.terms_;
}

bool operator<(const Dim& a, const Dim& b) {
  if (a.terms_ && b.terms_) return *a.terms_ < *b.terms_;
  return !a.terms_ && (b.terms_ || a.constant_ < b.constant_);
}

Dim magnitude(const Dim& dim) {
  Dim sum = 0;
  for (const auto& [monomial, factor] : dim.terms())
    sum = sum + Dim::product(monomial, std::abs(factor));
  return sum;
}

std::optional<Dim> divide_exact(const Dim& a, const Dim& b) {
  if (b.is(0)) return std::nullopt;
  if (b.is(1)) return a;
  if (a.is_constant() && b.is_constant()) {
    if (a.value() % b.value() != 0) return std::nullopt;
    return Dim(a.value() / b.value());
  }
  // Division of polynomials: the leading term of what remains must be a multiple of b's.
  const Dim::Terms divisor = b.terms();
  const auto& [divisor_monomial, divisor_factor] = *divisor.begin();
  Dim quotient(0), rest = a;
  while (!rest.is(0)) {
    const Dim::Terms terms = rest.terms();
    const auto& [monomial, factor] = *terms.begin();
    const bool divides = std::ranges::includes(monomial, divisor_monomial);
    if (!divides || factor % divisor_factor != 0) return std::nullopt;
    Dim::Monomial symbols;
    std::ranges::set_difference(monomial, divisor_monomial, std::back_inserter(symbols));
    const Dim step = Dim::product(std::move(symbols), factor / divisor_factor);
    quotient = quotient + step;
    rest = rest - step * b;
  }
  return quotient;
}

Dim SymbolTable::find_or_add(Symbol symbol) {
  const auto is_same = [&](const Symbol& known) {
    return known.kind == symbol.kind && known.input == symbol.input && known.left == symbol.left &&
           known.right == symbol.right;
  };
  const auto at = std::ranges::find_if(symbols, is_same) - symbols.begin();
  if (at == std::ssize(symbols)) symbols.push_back(std::move(symbol));
  return Dim::symbol(static_cast<SymbolId>(at));
}

Dim SymbolTable::add_input(int input, int64_t hint, bool is_positive) {
  return find_or_add({Symbol::Kind::kInput, input, 0, 0, hint, is_positive});
}

Dim SymbolTable::add_opaque(Symbol::Kind kind, const Dim& left, const Dim& right) {
  if (const std::optional<Dim> known = simplify(kind, left, right)) return *known;
  if (kind == Symbol::Kind::kMax && left.is_at_most(1) && !may_be_empty(right, *this)) return right;
  return find_or_add({kind, -1, left, right, apply(kind, hint(left), hint(right))});
}

Dim SymbolTable::as_multiple(const Dim& symbol, int64_t divisor) {
  const size_t known = symbols.size();
  const Dim quotient = add_opaque(Symbol::Kind::kFloorDiv, symbol, divisor);
  if (symbols.size() > known) symbols.back().is_positive = !may_be_empty(symbol, *this);
  return Dim(divisor) * quotient;
}

int64_t SymbolTable::hint(const Dim& dim) const {
  return dim.is_constant() ? dim.value() : stitch::evaluate(dim, hints());
}

std::vector<int64_t> SymbolTable::evaluate(const std::vector<int64_t>& integer_inputs) const {
  std::vector<int64_t> values;
  values.reserve(symbols.size());
  for (const Symbol& symbol : symbols) {
    if (symbol.kind != Symbol::Kind::kInput || is_late(symbol)) {
      values.push_back(kUnknown);
      continue;
    }
    STITCH_CHECK(symbol.input < std::ssize(integer_inputs),
                 "symbol s" << values.size() << " is integer argument " << symbol.input << " of "
                            << integer_inputs.size());
    values.push_back(integer_inputs[symbol.input]);
  }
  complete(*this, values);
  return values;
}

bool SymbolTable::holds(const std::vector<int64_t>& values) const {
  return std::ranges::all_of(assumptions, [&](const Assumption& assumption) {
    return stitch::evaluate(assumption.value, values) <= assumption.most;
  });
}

bool may_be_empty(const Dim& extent, const SymbolTable& table) {
  if (extent.is_constant()) return extent.value() <= 0;
  bool is_positive = false;
  for (const auto& [monomial, coefficient] : extent.terms()) {
    bool all_positive = true;
    for (const SymbolId id : monomial) {
      const Symbol& symbol = table.symbols[id];
      all_positive &= symbol.is_positive;
      if (symbol.kind == Symbol::Kind::kInput && !symbol.is_positive) return true;
    }
    if (coefficient < 0) return true;
    is_positive |= all_positive;
  }
  return !is_positive;
}

std::set<int> rows_of(const SymbolTable& table, const Dim& dim) {
  std::set<int> rows;
  if (dim.is_constant()) return rows;
  for (const auto& [monomial, factor] : dim.terms())
    for (SymbolId id : monomial) {
      const Symbol& symbol = table.symbols.at(id);
      if (is_late(symbol)) rows.insert(row_of(symbol));
      if (symbol.kind == Symbol::Kind::kInput) continue;
      rows.merge(rows_of(table, symbol.left));
      rows.merge(rows_of(table, symbol.right));
    }
  return rows;
}

void complete(const SymbolTable& table, std::vector<int64_t>& values) {
  for (size_t i = 0; i < values.size(); ++i) {
    const Symbol& symbol = table.symbols[i];
    if (values[i] != kUnknown || symbol.kind == Symbol::Kind::kInput) continue;
    if (!is_known(symbol.left, values) || !is_known(symbol.right, values)) continue;
    values[i] = apply(symbol.kind, evaluate(symbol.left, values), evaluate(symbol.right, values));
  }
}

int64_t evaluate(const Dim& dim, const std::vector<int64_t>& symbol_values) {
  if (dim.is_constant()) return dim.value();
  int64_t sum = 0;
  for (const auto& [monomial, factor] : dim.terms()) {
    int64_t product = factor;
    for (SymbolId id : monomial) {
      STITCH_CHECK(id >= 0 && id < std::ssize(symbol_values) && symbol_values[id] != kUnknown,
                   "symbol s" << id << " of " << to_string(dim) << " has no value yet");
      product = checked(product, '*', symbol_values[id]);
    }
    sum = checked(sum, '+', product);
  }
  return sum;
}

std::string to_string(const Dim& dim) {
  if (dim.is_constant()) return std::to_string(dim.value());
  std::string text;
  for (const auto& [monomial, factor] : dim.terms()) {
    auto factors = map_to_vector(monomial, [](SymbolId id) { return "s" + std::to_string(id); });
    const uint64_t magnitude = factor < 0 ? 0 - static_cast<uint64_t>(factor) : factor;
    if (factors.empty() || magnitude != 1) factors.push_back(std::to_string(magnitude));
    text += (factor < 0 ? "-" : text.empty() ? "" : "+") + join(factors, "*");
  }
  return text;
}

}  // namespace stitch
