#include "analysis/index_expr.h"

#include "support/symbols.h"

#include <gtest/gtest.h>

#include <set>

namespace stitch {
namespace {

IndexExpr constant(int64_t value) { return {Dim(value), {}}; }

// Three digits i, j, k over the given extents.
struct Digits {
  IndexVars vars;
  IndexExpr i, j, k;
  Digits(const Dim& a, const Dim& b, const Dim& c)
      : i(index_of(vars.atom(0, a))), j(index_of(vars.atom(1, b))), k(index_of(vars.atom(2, c))) {}

  IndexVar::Kind kind_of(const IndexExpr& expr) const {
    return vars[expr.terms.begin()->first].kind;
  }
};

TEST(IndexExpr, TermsThatCancelAreGone) {
  Digits d(8, 6, 4);
  EXPECT_EQ(d.i - d.i, IndexExpr{});
  EXPECT_EQ((d.i + d.j * Dim(2)) - d.j * Dim(2), d.i);
  EXPECT_EQ(d.i * Dim(0), IndexExpr{});
  EXPECT_TRUE((constant(3) + constant(4)).is_constant());
}

TEST(IndexExpr, TermsAreEqualInWhateverOrderTheyCame) {
  Digits d(8, 6, 4);
  const IndexExpr sum = d.k * Dim(3) + (d.i * s0 + d.j);
  EXPECT_EQ(sum, d.i * s0 + (d.j + d.k * Dim(3)));
  EXPECT_EQ(sum.terms.size(), 3u);
  EXPECT_EQ(sum.terms.coefficient(d.k.terms.begin()->first), Dim(3));
  EXPECT_FALSE((sum - d.j).terms.contains(d.j.terms.begin()->first));
}

TEST(IndexExpr, FlattenIsRowMajor) {
  Digits d(5, 6, 4);
  EXPECT_EQ(flatten({d.i, d.j, d.k}, {5, 6, 4}), d.i * Dim(24) + d.j * Dim(4) + d.k);
  EXPECT_EQ(flatten({d.i, d.j}, {s0, s1}), d.i * s1 + d.j);
  EXPECT_EQ(flatten({}, {}), IndexExpr{});
}

TEST(IndexExpr, AnAtomHasOneVariable) {
  IndexVars vars;
  EXPECT_EQ(vars.atom(3, 8), vars.atom(3, 8));
  EXPECT_NE(vars.atom(3, 8), vars.atom(4, 8));
  EXPECT_EQ(vars.value(7, 100), vars.value(7, 100));
}

TEST(IndexExpr, DivisionByAnyTrailingProductSimplifies) {
  Digits d(5, 6, 4);
  const IndexExpr flat = flatten({d.i, d.j, d.k}, {5, 6, 4});
  EXPECT_EQ(d.vars.divide(flat, 24), d.i);
  EXPECT_EQ(d.vars.remainder(flat, 24), d.j * Dim(4) + d.k);
  EXPECT_EQ(d.vars.divide(flat, 4), d.i * Dim(6) + d.j);
  EXPECT_EQ(d.vars.remainder(flat, 4), d.k);
  EXPECT_EQ(d.vars.divide(flat, 1), flat);
  EXPECT_EQ(d.vars.remainder(flat, 1), IndexExpr{});
  EXPECT_EQ(d.vars.divide(flat, 120), IndexExpr{});
  EXPECT_EQ(d.vars.remainder(flat, 120), flat);
  EXPECT_EQ(d.vars.count(), 3) << "nothing opaque was made";
}

TEST(IndexExpr, MixedRadixNeedsEveryDigitToFit) {
  Digits d(8, 6, 4);
  const IndexExpr overlapping = d.i + d.j;  // up to 12
  EXPECT_EQ(d.vars.divide(overlapping, 13), IndexExpr{});
  const IndexExpr quotient = d.vars.divide(overlapping, 12);
  EXPECT_EQ(d.kind_of(quotient), IndexVar::Kind::kQuotient);
  EXPECT_EQ(d.kind_of(d.vars.remainder(overlapping, 12)), IndexVar::Kind::kRemainder);
}

TEST(IndexExpr, ConstantsCarryOnlyWhereTheyMust) {
  Digits d(8, 6, 4);
  EXPECT_EQ(d.vars.divide(d.i * Dim(6) + constant(7), 6), d.i + constant(1));
  EXPECT_EQ(d.vars.remainder(d.i * Dim(6) + constant(7), 6), constant(1));
  EXPECT_EQ(d.vars.divide(d.i * Dim(10) + d.j + constant(4), 10), d.i);
  // j + 1 reaches 6: a carry.
  EXPECT_EQ(d.kind_of(d.vars.divide(d.i * Dim(6) + d.j + constant(1), 6)),
            IndexVar::Kind::kQuotient);
  EXPECT_EQ(d.vars.divide(constant(17), 5), constant(3));
  EXPECT_EQ(d.vars.remainder(constant(17), 5), constant(2));
}

TEST(IndexExpr, FlippedDigitsAreNotTakenForSmallOnes) {
  Digits d(8, 6, 4);
  const IndexExpr flipped_outer = (constant(7) - d.i) * Dim(6) + d.j;
  EXPECT_EQ(d.vars.divide(flipped_outer, 6), constant(7) - d.i);
  const IndexExpr flipped_inner = d.i * Dim(6) + constant(5) - d.j;
  EXPECT_EQ(d.kind_of(d.vars.remainder(flipped_inner, 6)), IndexVar::Kind::kRemainder);
  // i*6 - 1 is below a multiple of 6: the quotient is not i.
  EXPECT_EQ(d.kind_of(d.vars.divide(d.i * Dim(6) - constant(1), 6)), IndexVar::Kind::kQuotient);
}

TEST(IndexExpr, EqualOpaqueExpressionsAreOneVariable) {
  Digits d(8, 6, 4);
  const IndexExpr sum = d.i + d.j;
  EXPECT_EQ(d.vars.divide(sum, 5), d.vars.divide(sum, 5));
  EXPECT_NE(d.vars.divide(sum, 5), d.vars.divide(sum, 4));
  EXPECT_NE(d.vars.divide(sum, 5), d.vars.remainder(sum, 5));
}

TEST(IndexExpr, ARemainderIsADigitOfItsOwn) {
  Digits d(8, 6, 4);
  const IndexExpr digit = d.vars.remainder(d.i + d.j, 5);
  EXPECT_EQ(d.vars.divide(d.k * Dim(5) + digit, 5), d.k);
}

TEST(IndexExpr, OnlyWholeUnitsAreDivided) {
  Digits d(4, 2, 4096);  // row i, part j, element k, a part earlier
  const IndexExpr part = d.i * Dim(2) + d.j + constant(-1);
  const IndexExpr flat = part * Dim(4096) + d.k;
  EXPECT_EQ(d.vars.divide(flat, 8192), d.vars.divide(part, 2));
  EXPECT_EQ(d.vars.remainder(flat, 8192), d.vars.remainder(part, 2) * Dim(4096) + d.k);
  const Units units = d.vars.find_units(flat, {4096, 8192});
  EXPECT_EQ(units.unit, Dim(4096));
  EXPECT_EQ(units.count, part);
  EXPECT_EQ(units.rest, d.k);
  // Elements that pass into the next part leave nothing to take out.
  EXPECT_EQ(d.vars.find_units(flat + constant(1), {8192}).unit, Dim(1));
  EXPECT_EQ(d.vars.find_units(flat, {4097}).unit, Dim(1));
}

TEST(IndexExpr, RowsThatAreReadBackwardsAreNoUnits) {
  Digits d(2, s0, 4);
  const IndexExpr flat = (constant(1) - d.i) * s0 + d.j;  // [2, s0], its rows flipped
  EXPECT_FALSE(d.vars.is_below(d.i * (Dim(0) - s0), s0));
  EXPECT_FALSE(d.vars.is_below(flat, s0 * Dim(2)));
  const Units units = d.vars.find_units(flat, {s0, s0 * Dim(2)});
  EXPECT_EQ(units.unit, Dim(1));
  EXPECT_EQ(units.count, flat);
}

TEST(IndexExpr, WithinAPartItsIndexIsADigit) {
  Digits d(64, 48, 4);  // row i, column j of a cat whose part [40, 48) has 8 columns
  const IndexExpr part = d.j + constant(-40), flat = d.i * Dim(8) + part;
  const IndexExpr outside = d.vars.divide(flat, 8);
  EXPECT_EQ(d.kind_of(outside), IndexVar::Kind::kQuotient);
  d.vars.assume(part, 8);
  EXPECT_EQ(d.vars.divide(flat, 8), d.i);
  EXPECT_EQ(d.vars.remainder(flat, 8), part);
  EXPECT_EQ(d.vars.remainder(flat * Dim(2) + constant(1), 16), part * Dim(2) + constant(1));
  EXPECT_EQ(d.vars.divide(flat + d.k * Dim(4096), 512), d.k * Dim(8) + d.vars.divide(flat, 512));
  // What leaves the part is as unknown as it was.
  EXPECT_EQ(d.kind_of(d.vars.divide(flat + constant(1), 8)), IndexVar::Kind::kQuotient);
  d.vars.forget();
  EXPECT_EQ(d.vars.divide(flat, 8), outside);
}

TEST(IndexExpr, OfPartsInPartsTheInnermostCounts) {
  Digits d(64, 48, 4);
  const IndexExpr outer = d.j + constant(-32), inner = d.j + constant(-40);
  d.vars.assume(outer, 16);
  d.vars.assume(inner, 8);
  EXPECT_EQ(d.vars.divide(d.i * Dim(8) + inner, 8), d.i);
  EXPECT_EQ(d.vars.divide(d.i * Dim(16) + outer, 16), d.i) << "8 more than a number below 8";
  d.vars.forget();
  EXPECT_EQ(d.vars.divide(d.i * Dim(16) + outer, 16), d.i);
  d.vars.forget();
}

TEST(IndexExpr, SymbolicExtentsDivideByStructure) {
  Digits d(s0, s1, 4);
  const IndexExpr flat = flatten({d.i, d.j, d.k}, {s0, s1, 4});
  EXPECT_EQ(d.vars.divide(flat, 4), d.i * s1 + d.j);
  EXPECT_EQ(d.vars.divide(flat, s1 * Dim(4)), d.i);
  EXPECT_EQ(d.vars.remainder(flat, s1 * Dim(4)), d.j * Dim(4) + d.k);
  EXPECT_EQ(d.kind_of(d.vars.divide(flat, s0)), IndexVar::Kind::kQuotient)
      << "s0 and s1 need not divide one another";
}

TEST(IndexExpr, ValuesReadFromMemoryAreBelowTheirExtent) {
  IndexVars vars;
  const IndexExpr row = index_of(vars.value(0, 100)), column = index_of(vars.atom(0, 16));
  EXPECT_EQ(vars.divide(row * Dim(16) + column, 16), row);
  const IndexExpr unknown = index_of(vars.value(1, 0));
  EXPECT_NE(vars.remainder(unknown, 16), unknown);
}

TEST(IndexExpr, LeavesAreSeenThroughQuotients) {
  Digits d(8, 6, 4);
  const IndexExpr expr = d.vars.divide(d.i + d.j, 5) * Dim(3) + d.k;
  EXPECT_EQ(d.vars.leaves_of({&expr, 1}),
            (std::set<VarId>{d.vars.atom(0, 8), d.vars.atom(1, 6), d.vars.atom(2, 4)}));
}

}  // namespace
}  // namespace stitch
