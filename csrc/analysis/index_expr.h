// IndexExpr: one index inside a kernel, linear over variables with known ranges.
//
// Variables are loop atoms, values read from memory, and quotients or remainders that did not
// simplify.  Division by a reshape's extents simplifies exactly when the atoms are refined enough,
// so a regular view costs no arithmetic and an irregular one is still right.
#pragma once

#include <initializer_list>
#include <span>
#include <utility>

#include "ops/dim.h"

namespace stitch {

using VarId = int32_t;

// Few, and copied often: a map would allocate for each.
class IndexTerms {
 public:
  using Term = std::pair<VarId, Dim>;

  IndexTerms() = default;
  IndexTerms(std::initializer_list<Term> terms) : terms_(terms) {}

  auto begin() const { return terms_.begin(); }
  auto end() const { return terms_.end(); }
  size_t size() const { return terms_.size(); }
  bool empty() const { return terms_.empty(); }
  bool contains(VarId var) const { return !coefficient(var).is(0); }
  Dim coefficient(VarId var) const {  // 0 where it does not appear
    const auto at = std::ranges::lower_bound(terms_, var, {}, &Term::first);
    return at == terms_.end() || at->first != var ? Dim(0) : at->second;
  }
  void add(VarId var, const Dim& coefficient);
  friend bool operator==(const IndexTerms&, const IndexTerms&) = default;
  friend bool operator<(const IndexTerms& a, const IndexTerms& b) { return a.terms_ < b.terms_; }

 private:
  std::vector<Term> terms_;  // ascending, coefficients never zero
};

struct IndexExpr {
  Dim constant = 0;
  IndexTerms terms;

  bool is_constant() const { return terms.empty(); }
  void add(const IndexExpr& other, const Dim& times);
  friend bool operator==(const IndexExpr&, const IndexExpr&) = default;
  friend bool operator<(const IndexExpr& a, const IndexExpr& b) {
    return a.terms == b.terms ? a.constant < b.constant : a.terms < b.terms;
  }
};

IndexExpr operator+(IndexExpr a, const IndexExpr& b);
IndexExpr operator*(const IndexExpr& a, const Dim& factor);
inline IndexExpr operator-(const IndexExpr& a, const IndexExpr& b) { return a + b * Dim(-1); }

struct IndexVar {
  enum class Kind { kAtom, kValue, kQuotient, kRemainder } kind;
  Dim extent;         // the variable lies in [0, extent); 0 when unknown
  int payload = -1;   // kAtom: the atom; kValue: the sink's handle
  IndexExpr operand;  // kQuotient, kRemainder: operand / divisor, operand % divisor
  Dim divisor;

  bool is_atom() const { return kind == Kind::kAtom; }
  bool is_value() const { return kind == Kind::kValue; }
};

// a = count * unit + rest, where rest lies in [0, unit): x0 * 8192 + x1 * 4096 + x2 - 4096 counts
// x0 * 2 + x1 - 1 units of 4096 and a rest of x2 where x2 is below 4096.
struct Units {
  Dim unit;
  IndexExpr count, rest;
};

class IndexVars {
 public:
  VarId atom(int atom, const Dim& extent) {
    return find_or_add({IndexVar::Kind::kAtom, extent, atom, {}, {}});
  }
  VarId value(int handle, const Dim& extent) {
    return find_or_add({IndexVar::Kind::kValue, extent, handle, {}, {}});
  }
  IndexExpr divide(const IndexExpr& a, const Dim& divisor);     // a >= 0
  IndexExpr remainder(const IndexExpr& a, const Dim& divisor);  // a >= 0
  // With the digits of one number put together again: a / 4 * 512 + a % 4 * 128 is a * 128.
  IndexExpr join_digits(IndexExpr a) const;
  // From here to forget(), 0 <= a < extent: x0 * 8 + x1 - 8, in a part of a cat, by 8 is x0.
  void assume(const IndexExpr& a, const Dim& extent) {
    assumed_.push_back(find_or_add({IndexVar::Kind::kRemainder, extent, -1, a, extent}));
  }
  void forget() { assumed_.pop_back(); }
  // Certainly 0 <= a < bound.
  bool is_below(const IndexExpr& a, const Dim& bound) const;
  // By the largest unit that is a coefficient of `a` and divides all of `whole`; else by 1.
  Units find_units(const IndexExpr& a, std::initializer_list<Dim> whole) const;
  const IndexVar& operator[](VarId var) const { return vars_[var]; }
  // A walk with other handles begins: its values are none of those that are known.
  void forget_values() {
    for (IndexVar& var : vars_)
      if (var.kind == IndexVar::Kind::kValue) var.payload = -1;
  }
  // All atoms and values that the index depends on, through quotients too.
  std::set<VarId> leaves_of(std::span<const IndexExpr> index) const;
  int count() const { return static_cast<int>(vars_.size()); }

 private:
  VarId find_or_add(IndexVar var);
  // With what is assumed as one variable, and with what the variable stands for again.
  IndexExpr gather(IndexExpr a) const;
  IndexExpr spread(const IndexExpr& a) const;
  std::vector<IndexVar> vars_;
  std::vector<VarId> assumed_;  // remainders that are their operand
};

inline IndexExpr index_of(VarId var) { return {0, {{var, Dim(1)}}}; }
// Every term of the offset is an atom's: it depends on no data, and divides no index.
inline bool walks_atoms_alone(const IndexVars& vars, const IndexExpr& offset) {
  return std::ranges::all_of(offset.terms,
                             [&](const auto& term) { return vars[term.first].is_atom(); });
}
// Row-major flat index of `indices` in a tensor of `shape`.
IndexExpr flatten(const std::vector<IndexExpr>& indices, const DimList& shape);

}  // namespace stitch
