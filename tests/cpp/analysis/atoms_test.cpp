#include "analysis/atoms.h"

#include "support/symbols.h"

#include <gtest/gtest.h>

namespace stitch {
namespace {

std::vector<std::string> sizes(const Atoms& atoms, const AtomList& list) {
  std::vector<std::string> sizes;
  for (AtomId atom : atoms.leaves(list)) sizes.push_back(to_string(atoms.size(atom)));
  return sizes;
}

using Sizes = std::vector<std::string>;

struct Flat {
  Atoms atoms;
  std::vector<AtomList> dims;
  AtomList all;

  explicit Flat(const std::vector<Dim>& shape) {
    for (const Dim& extent : shape) {
      dims.push_back(atoms.make(extent));
      all.insert(all.end(), dims.back().begin(), dims.back().end());
    }
  }
};

TEST(Atoms, AnExtentOfOneHasNone) {
  Atoms atoms;
  EXPECT_TRUE(atoms.make(1).empty());
  EXPECT_EQ(atoms.make(7).size(), 1u);
  EXPECT_EQ(atoms.make(0).size(), 1u);
}

TEST(Atoms, RegroupSplitsWhereAnExtentEnds) {
  Flat x({8704, 17});
  const auto grouped = x.atoms.regroup(x.all, {64, 8, 17, 17});
  ASSERT_TRUE(grouped.has_value());
  EXPECT_EQ(sizes(x.atoms, (*grouped)[0]), Sizes{"64"});
  EXPECT_EQ(sizes(x.atoms, (*grouped)[1]), Sizes{"8"});
  EXPECT_EQ(sizes(x.atoms, (*grouped)[2]), Sizes{"17"});
  EXPECT_EQ(sizes(x.atoms, x.dims[0]), (Sizes{"64", "8", "17"}));
  EXPECT_EQ(sizes(x.atoms, x.dims[1]), Sizes{"17"});
  EXPECT_NE((*grouped)[2], (*grouped)[3]) << "equal extents are not the same atom";
}

TEST(Atoms, RegroupMergesWithoutSplitting) {
  Flat x({4, 6, 5});
  const auto grouped = x.atoms.regroup(x.all, {24, 1, 5});
  ASSERT_TRUE(grouped.has_value());
  EXPECT_EQ((*grouped)[0], (AtomList{x.dims[0][0], x.dims[1][0]}));
  EXPECT_TRUE((*grouped)[1].empty());
}

TEST(Atoms, RegroupRefusesWhatDoesNotRefine) {
  Flat misaligned({4, 6});
  EXPECT_FALSE(misaligned.atoms.regroup(misaligned.all, {6, 4}).has_value());
  Flat prime({7});
  EXPECT_FALSE(prime.atoms.regroup(prime.all, {7, 2}).has_value());
  Flat longer({8});
  EXPECT_FALSE(longer.atoms.regroup(longer.all, {2, 2}).has_value());
}

TEST(Atoms, RegroupDividesSymbols) {
  Flat x({s0 * Dim(64), s1});
  const auto grouped = x.atoms.regroup(x.all, {s0, 16, Dim(4) * s1});
  ASSERT_TRUE(grouped.has_value());
  EXPECT_EQ(sizes(x.atoms, (*grouped)[0]), Sizes{"s0"});
  EXPECT_EQ(sizes(x.atoms, (*grouped)[2]), (Sizes{"4", "s1"}));
  EXPECT_EQ(x.atoms.product((*grouped)[2]), Dim(4) * s1);
}

TEST(Atoms, RegroupSwapsSymbolsOnlyInsideOneAtom) {
  Flat whole({s0 * s1});
  EXPECT_TRUE(whole.atoms.regroup(whole.all, {s1, s0}).has_value());
  Flat apart({s0, s1});
  EXPECT_FALSE(apart.atoms.regroup(apart.all, {s1, s0}).has_value());
  Flat sum({s0 + Dim(1)});
  EXPECT_FALSE(sum.atoms.regroup(sum.all, {s0, 1}).has_value());
}

TEST(Atoms, UnifyMakesBothListsTheSame) {
  Atoms atoms;
  const AtomList one = atoms.make(24), outer = atoms.make(4), inner = atoms.make(6);
  const AtomList two{outer[0], inner[0]};
  ASSERT_TRUE(atoms.unify(one, two));
  EXPECT_EQ(atoms.leaves(one), atoms.leaves(two));
  EXPECT_EQ(sizes(atoms, one), (Sizes{"4", "6"}));
}

TEST(Atoms, UnifySplitsBothSides) {
  Atoms atoms;
  const AtomList left{atoms.make(12)[0], atoms.make(2)[0]};
  const AtomList right{atoms.make(4)[0], atoms.make(6)[0]};
  ASSERT_TRUE(atoms.unify(left, right));
  EXPECT_EQ(atoms.leaves(left), atoms.leaves(right));
  EXPECT_EQ(sizes(atoms, left), (Sizes{"4", "3", "2"}));
}

TEST(Atoms, UnifyRefusesMisalignedAndUnequalLists) {
  Atoms atoms;
  EXPECT_FALSE(
      atoms.unify({atoms.make(4)[0], atoms.make(6)[0]}, {atoms.make(6)[0], atoms.make(4)[0]}));
  EXPECT_FALSE(atoms.unify(atoms.make(6), atoms.make(12)));
  EXPECT_FALSE(atoms.unify(atoms.make(s0), atoms.make(s1)));
  EXPECT_FALSE(atoms.unify(atoms.make(3), {}));
}

TEST(Atoms, ASplitReachesEveryAtomJoinedBefore) {
  Atoms atoms;
  const AtomList a = atoms.make(12), b = atoms.make(12), c = atoms.make(12);
  ASSERT_TRUE(atoms.unify(a, b));
  ASSERT_TRUE(atoms.unify(b, c));
  ASSERT_TRUE(atoms.regroup(c, {3, 4}).has_value());
  EXPECT_EQ(sizes(atoms, a), (Sizes{"3", "4"}));
  EXPECT_EQ(atoms.leaves(a), atoms.leaves(b));
  EXPECT_EQ(atoms.leaves(b), atoms.leaves(c));
  EXPECT_TRUE(atoms.unify(a, c)) << "a list is the same as itself";
}

TEST(Atoms, SymbolicListsUnifyByDivision) {
  Atoms atoms;
  const AtomList flat = atoms.make(s0 * s1 * Dim(8));
  const AtomList dims{atoms.make(s0)[0], atoms.make(s1)[0], atoms.make(8)[0]};
  ASSERT_TRUE(atoms.unify(flat, dims));
  EXPECT_EQ(sizes(atoms, flat), (Sizes{"s0", "s1", "8"}));
}

}  // namespace
}  // namespace stitch
