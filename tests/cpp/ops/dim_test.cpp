#include "ops/dim.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "support/symbols.h"

namespace stitch {
namespace {

TEST(Dim, ConstantsStayPlainIntegers) {
  EXPECT_TRUE((Dim(3) * Dim(4) + Dim(2)).is(14));
  EXPECT_TRUE((s0 - s0).is(0));
  EXPECT_TRUE((s0 + Dim(5) - s0).is_constant());
}

TEST(Dim, EqualPolynomialsAreEqualHoweverTheyWereBuilt) {
  EXPECT_EQ((s0 + Dim(1)) * (s0 - Dim(1)), s0 * s0 - Dim(1));
  EXPECT_EQ(s0 * s1, s1 * s0);
  EXPECT_NE(s0, s1);
  EXPECT_NE(s0, Dim(0));
}

TEST(Dim, OrderIsStrictAndPutsConstantsFirst) {
  EXPECT_TRUE(Dim(100) < s0);
  EXPECT_FALSE(s0 < Dim(100));
  EXPECT_TRUE((s0 < s1) != (s1 < s0));
  EXPECT_FALSE(s0 < s0);
}

TEST(Dim, PrintsProductsFirstAndTheConstantLast) {
  EXPECT_EQ(to_string(s0 * Dim(64) + Dim(1)), "s0*64+1");
  EXPECT_EQ(to_string(Dim(3) - s0), "-s0+3");
  EXPECT_EQ(to_string(s0 * s1 * Dim(-2) + s1), "-s0*s1*2+s1");
  EXPECT_EQ(to_string(Dim(-7)), "-7");
}

TEST(DivideExact, DividesPolynomialsWithoutRemainder) {
  EXPECT_EQ(divide_exact(s0 * s1 * Dim(12), s1 * Dim(4)), s0 * Dim(3));
  EXPECT_EQ(divide_exact(s0 * s0 - Dim(1), s0 + Dim(1)), s0 - Dim(1));
  EXPECT_EQ(divide_exact(s0 * s1 + s1 * s1, s0 + s1), s1);
  EXPECT_EQ(divide_exact(Dim(0), s0), Dim(0));
}

TEST(DivideExact, RefusesWhatMayLeaveARemainder) {
  EXPECT_FALSE(divide_exact(s0, Dim(2)));
  EXPECT_FALSE(divide_exact(s0 + Dim(1), s0));
  EXPECT_FALSE(divide_exact(s0, s1));
  EXPECT_FALSE(divide_exact(Dim(7), Dim(2)));
  EXPECT_FALSE(divide_exact(Dim(7), Dim(0)));
  EXPECT_FALSE(divide_exact(Dim(1), s0));
}

TEST(IsDivisible, NeedsEveryTermToBeAMultiple) {
  EXPECT_TRUE(is_divisible(s0 * Dim(8) + Dim(16), 8));
  EXPECT_FALSE(is_divisible(s0 * Dim(8) + Dim(4), 8));
  EXPECT_TRUE(is_divisible(Dim(0), 8));
  EXPECT_FALSE(is_divisible(Dim(8), 0));
}

TEST(Dim, OverflowIsAnErrorAndNoWrongSize) {
  EXPECT_THROW(Dim(int64_t{1} << 62) * Dim(4), UnsupportedError);
  EXPECT_THROW(s0 * Dim(int64_t{1} << 62) * Dim(4), UnsupportedError);
}

TEST(Dim, ValueOfASymbolIsAnInternalError) { EXPECT_THROW(s0.value(), InternalError); }

TEST(SymbolTable, EvaluatesSymbolsInOrderWithFloorSemantics) {
  SymbolTable table;
  const Dim n = table.add_input(0, 10);
  const Dim half = table.add_opaque(Symbol::Kind::kFloorDiv, n, 2);
  const Dim rest = table.add_opaque(Symbol::Kind::kModulo, n - Dim(9), 4);
  const Dim least = table.add_opaque(Symbol::Kind::kMin, half, 3);
  EXPECT_EQ(table.hint(half * Dim(2) + rest), 11);
  const auto values = table.evaluate({7});
  EXPECT_EQ(evaluate(half, values), 3);
  EXPECT_EQ(evaluate(rest, values), 2);  // (-2) mod 4, as Python has it
  EXPECT_EQ(evaluate(least, values), 3);
  EXPECT_EQ(evaluate(n * n - half, values), 46);
}

TEST(SymbolTable, GivesEqualExpressionsOneSymbol) {
  SymbolTable table;
  const Dim n = table.add_input(0, 10);
  EXPECT_EQ(table.add_input(0, 10), n);
  EXPECT_EQ(table.add_opaque(Symbol::Kind::kFloorDiv, n, 2),
            table.add_opaque(Symbol::Kind::kFloorDiv, n, 2));
  EXPECT_EQ(table.symbols.size(), 2u);
}

TEST(SymbolTable, KnowsResultsThatNeedNoSymbol) {
  SymbolTable table;
  const Dim n = table.add_input(0, 10);
  EXPECT_EQ(table.add_opaque(Symbol::Kind::kFloorDiv, n * Dim(6), 3), n * Dim(2));
  EXPECT_EQ(table.add_opaque(Symbol::Kind::kModulo, n * Dim(6), 3), Dim(0));
  EXPECT_EQ(table.add_opaque(Symbol::Kind::kFloorDiv, -7, 2), Dim(-4));
  EXPECT_EQ(table.add_opaque(Symbol::Kind::kFloorDiv, n * Dim(2) + Dim(1), 2), n);
  EXPECT_EQ(table.add_opaque(Symbol::Kind::kModulo, n * Dim(2) + Dim(1), 2), Dim(1));
  EXPECT_EQ(table.add_opaque(Symbol::Kind::kFloorDiv, n * Dim(8) - Dim(3), 4), n * Dim(2) - Dim(1));
  EXPECT_EQ(table.add_opaque(Symbol::Kind::kModulo, n * Dim(8) - Dim(3), 4), Dim(1));
  EXPECT_EQ(table.add_opaque(Symbol::Kind::kMax, n, n), n);
  EXPECT_EQ(table.add_opaque(Symbol::Kind::kMax, 1, n * Dim(4)), n * Dim(4));
  const Dim any = table.add_input(1, 10, false);
  EXPECT_NE(table.add_opaque(Symbol::Kind::kMax, 1, any), any);
}

TEST(SymbolTable, AMultipleIsItsDivisorTimesAQuotientThatIsPositiveWithIt) {
  SymbolTable table;
  const Dim n = table.add_input(0, 320), any = table.add_input(1, 64, false);
  EXPECT_EQ(table.as_multiple(n, 1), n);
  const Dim whole = table.as_multiple(n, 32);
  EXPECT_EQ(divide_exact(whole, 32), table.add_opaque(Symbol::Kind::kFloorDiv, whole, 32));
  EXPECT_EQ(evaluate(whole, table.evaluate({96, 64})), 96);
  EXPECT_FALSE(may_be_empty(whole, table));
  EXPECT_TRUE(may_be_empty(table.as_multiple(any, 8), table));
}

TEST(SymbolTable, ADivisorOfZeroIsAUserError) {
  SymbolTable table;
  const Dim n = table.add_input(0, 10), m = table.add_input(1, 3);
  table.add_opaque(Symbol::Kind::kFloorDiv, n, m);
  EXPECT_THROW(table.evaluate({7, 0}), UserError);
}

}  // namespace
}  // namespace stitch
