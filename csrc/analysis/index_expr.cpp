#include "analysis/index_expr.h"

namespace stitch {

void IndexTerms::add(VarId var, const Dim& coefficient) {
  if (coefficient.is(0)) return;
  const auto at = std::ranges::lower_bound(terms_, var, {}, &Term::first);
  if (at == terms_.end() || at->first != var) {
    terms_.insert(at, {var, coefficient});
  } else {
    at->second = at->second + coefficient;
    if (at->second.is(0)) terms_.erase(at);
  }
}

void IndexExpr::add(const IndexExpr& other, const Dim& times) {
  if (times.is(0)) return;
  constant = constant + other.constant * times;
  for (const auto& [var, coefficient] : other.terms) terms.add(var, coefficient * times);
}

IndexExpr operator+(IndexExpr a, const IndexExpr& b) {
  a.add(b, 1);
  return a;
}

IndexExpr operator*(const IndexExpr& a, const Dim& factor) {
  IndexExpr product;
  product.add(a, factor);
  return product;
}

IndexExpr flatten(const std::vector<IndexExpr>& indices, const DimList& shape) {
  IndexExpr flat;
  Dim stride = 1;
  for (size_t d = shape.size(); d-- > 0;) {
    flat.add(indices[d], stride);
    stride = stride * shape[d];
  }
  return flat;
}

VarId IndexVars::find_or_add(IndexVar var) {
  for (VarId v = 0; v < count(); ++v) {
    const IndexVar& have = vars_[v];
    const bool is_same = have.kind == var.kind && have.payload == var.payload &&
                         have.operand == var.operand && have.divisor == var.divisor;
    if (is_same) return v;
  }
  vars_.push_back(std::move(var));
  return count() - 1;
}

// Mixed radix: with terms sorted from the smallest coefficient, each partial sum stays below the
// next coefficient, so the whole lies below (top coefficient) * (top extent).
bool IndexVars::is_below(const IndexExpr& a, const Dim& bound) const {
  auto fits = [](const Dim& low, const Dim& high) {
    if (low == high) return true;
    if (low.is_constant() && high.is_constant()) return low.value() <= high.value();
    return is_divisible(high, low);  // extents are positive: a divisor is no larger
  };
  std::vector<std::pair<Dim, Dim>> radix;  // coefficient, extent
  for (const auto& [var, coefficient] : a.terms) {
    if (vars_[var].extent.is(0) || may_be_negative(coefficient)) return false;
    radix.push_back({coefficient, vars_[var].extent});
  }
  if (!a.constant.is_constant() || a.constant.value() < 0) return false;
  bool is_static = bound.is_constant();
  int64_t top = a.constant.value();
  for (const auto& [coefficient, extent] : radix) {
    is_static = is_static && coefficient.is_constant() && extent.is_constant();
    if (is_static) top += coefficient.value() * (extent.value() - 1);
  }
  if (is_static) return top < bound.value();
  std::ranges::stable_sort(radix, [&](const auto& x, const auto& y) {
    return !(x.first == y.first) && fits(x.first, y.first);
  });
  Dim limit = a.constant + Dim(1);
  for (const auto& [coefficient, extent] : radix) {
    if (!fits(limit, coefficient)) return false;
    limit = coefficient * extent;
  }
  return fits(limit, bound);
}

// Splits a into (multiple of the divisor) / divisor and the rest.
static std::pair<IndexExpr, IndexExpr> split_multiple(const IndexExpr& a, const Dim& divisor) {
  IndexExpr quotient, rest;
  for (const auto& [var, coefficient] : a.terms)
    if (auto q = divide_exact(coefficient, divisor))
      quotient.terms.add(var, *q);
    else
      rest.terms.add(var, coefficient);
  if (auto q = divide_exact(a.constant, divisor)) {
    quotient.constant = *q;
  } else if (a.constant.is_constant() && divisor.is_constant() && a.constant.value() >= 0) {
    quotient.constant = a.constant.value() / divisor.value();
    rest.constant = a.constant.value() % divisor.value();
  } else {
    rest.constant = a.constant;
  }
  return {quotient, rest};
}

Units IndexVars::find_units(const IndexExpr& a, std::initializer_list<Dim> whole) const {
  Units best{1, a, {}};
  for (const auto& [var, unit] : a.terms) {
    const auto holds_unit = [&](const Dim& dim) { return is_divisible(dim, unit); };
    const bool divides = !unit.is(1) && std::ranges::all_of(whole, holds_unit);
    if (!divides || may_be_negative(unit) || is_divisible(best.unit, unit)) continue;
    auto [count, rest] = split_multiple(a, unit);
    if (is_below(rest, unit)) best = {unit, count, rest};
  }
  return best;
}

IndexExpr IndexVars::gather(IndexExpr a) const {
  for (size_t i = assumed_.size(); i-- > 0;) {
    const IndexExpr& part = vars_[assumed_[i]].operand;
    if (part.is_constant()) continue;
    const auto& [var, step] = *part.terms.begin();
    const auto times = divide_exact(a.terms.coefficient(var), step);
    if (!times || times->is(0)) continue;
    const IndexExpr rest = a - part * *times;
    const bool is_whole = std::ranges::none_of(
        part.terms, [&](const IndexTerms::Term& term) { return rest.terms.contains(term.first); });
    if (is_whole) a = rest + index_of(assumed_[i]) * *times;
  }
  return a;
}

IndexExpr IndexVars::spread(const IndexExpr& a) const {
  if (assumed_.empty()) return a;
  IndexExpr out{a.constant, {}};
  for (const auto& [var, coefficient] : a.terms) {
    const bool is_assumed = std::ranges::count(assumed_, var) > 0;
    out = out + (is_assumed ? vars_[var].operand : index_of(var)) * coefficient;
  }
  return out;
}

IndexExpr IndexVars::divide(const IndexExpr& a, const Dim& divisor) {
  if (divisor.is(1)) return a;
  if (divisor.is(0)) return {};  // an empty axis: never evaluated
  const IndexExpr gathered = gather(a);
  auto [quotient, rest] = split_multiple(gathered, divisor);
  if (is_below(rest, divisor)) return spread(quotient);
  const Units units = find_units(gathered, {divisor});
  IndexVar var{IndexVar::Kind::kQuotient, 0, -1, spread(units.count),
               *divide_exact(divisor, units.unit)};
  return index_of(find_or_add(std::move(var)));
}

IndexExpr IndexVars::remainder(const IndexExpr& a, const Dim& divisor) {
  if (divisor.is(1)) return {};
  if (divisor.is(0)) return a;  // keeps what reads there inside the loops that never run
  const IndexExpr gathered = gather(a);
  auto [quotient, rest] = split_multiple(gathered, divisor);
  if (is_below(rest, divisor)) return spread(rest);
  const Units units = find_units(gathered, {divisor});
  const Dim count = *divide_exact(divisor, units.unit);
  IndexVar var{IndexVar::Kind::kRemainder, count, -1, spread(units.count), count};
  return index_of(find_or_add(std::move(var))) * units.unit + spread(units.rest);
}

IndexExpr IndexVars::join_digits(IndexExpr a) const {
  for (auto lower = a.terms.begin(); lower != a.terms.end();) {
    const IndexVar& digit = vars_[lower->first];
    const auto upper = std::ranges::find_if(a.terms, [&](const IndexTerms::Term& term) {
      const IndexVar& var = vars_[term.first];
      return var.kind == IndexVar::Kind::kQuotient && var.divisor == digit.divisor &&
             var.operand == digit.operand && term.second == lower->second * digit.divisor;
    });
    if (digit.kind != IndexVar::Kind::kRemainder || upper == a.terms.end()) {
      ++lower;
      continue;
    }
    const IndexExpr digits =
        index_of(lower->first) * lower->second + index_of(upper->first) * upper->second;
    a = a - digits + digit.operand * lower->second;
    lower = a.terms.begin();
  }
  return a;
}

std::set<VarId> IndexVars::leaves_of(std::span<const IndexExpr> index) const {
  std::set<VarId> leaves;
  for (const IndexExpr& expr : index)
    for (const auto& [var, coefficient] : expr.terms) {
      const IndexVar& info = vars_[var];
      if (info.is_atom() || info.is_value())
        leaves.insert(var);
      else
        leaves.merge(leaves_of({&info.operand, 1}));
    }
  return leaves;
}

}  // namespace stitch
