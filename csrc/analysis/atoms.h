// Atoms: the common refinement of all shapes that views and pointwise ops link in one kernel.
//
// A dimension is a list of atoms, outermost first, whose sizes multiply to its extent (extent 1 has
// none).  [8704,17] viewed as [64,8,17,17] gives atoms 64, 8, 17', 17''.  Unifying two dimensions
// splits and joins atoms until both lists are the same; what does not refine is refused and the
// caller treats that edge as an irregular access (DESIGN.md 3).
#pragma once

#include "base/ids.h"
#include "ops/dim.h"

namespace stitch {

struct AtomTag;
using AtomId = Id<AtomTag>;
using AtomList = std::vector<AtomId>;

class Atoms {
 public:
  AtomList make(const Dim& size) {  // one atom, or none for extent 1
    if (size.is(1)) return {};
    atoms_.push_back({size, {}, {}, {}});
    return {AtomId(count() - 1)};
  }
  const Dim& size(AtomId atom) const { return atoms_[find(atom).index()].size; }
  Dim product(const AtomList& list) const {
    Dim product = 1;
    for (AtomId atom : list) product = product * size(atom);
    return product;
  }
  // The list in terms of atoms that are neither joined into another nor split.
  AtomList leaves(const AtomList& list) const;
  // Cuts a flat list into dimensions of the given extents, splitting atoms where it must; nothing
  // where an extent boundary falls inside an atom that does not divide.
  std::optional<std::vector<AtomList>> regroup(const AtomList& flat, const DimList& extents);
  // Are both known to be the same?  True only where unify() has nothing to do.
  bool are_same(const AtomList& left, const AtomList& right) const {
    return std::ranges::equal(left, right, [&](AtomId a, AtomId b) { return find(a) == find(b); });
  }
  // Makes both lists the same; false, and nothing changed that matters, where they do not refine.
  bool unify(const AtomList& left, const AtomList& right);
  // Whether an atom is in two of the lists, or in one twice.
  bool have_repeats(const std::vector<AtomList>& lists) const;
  int count() const { return static_cast<int>(atoms_.size()); }

 private:
  struct Atom {
    Dim size;
    AtomId joined;        // the atom this one is the same as
    AtomId outer, inner;  // the two parts it was split into
  };
  AtomId find(AtomId atom) const {
    while (atoms_[atom.index()].joined.valid()) atom = atoms_[atom.index()].joined;
    return atom;
  }
  bool split(AtomId leaf, Dim inner_size);  // by value: splitting moves the atoms
  void append_leaves(AtomId atom, AtomList& out) const;

  std::vector<Atom> atoms_;
};

}  // namespace stitch
