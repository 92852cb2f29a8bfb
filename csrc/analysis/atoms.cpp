#include "analysis/atoms.h"

namespace stitch {

void Atoms::append_leaves(AtomId atom, AtomList& out) const {
  atom = find(atom);
  const Atom& node = atoms_[atom.index()];
  if (!node.outer.valid()) return out.push_back(atom);
  append_leaves(node.outer, out);
  append_leaves(node.inner, out);
}

AtomList Atoms::leaves(const AtomList& list) const {
  AtomList out;
  out.reserve(list.size());
  for (AtomId atom : list) append_leaves(atom, out);
  return out;
}

bool Atoms::split(AtomId leaf, Dim inner_size) {
  auto outer_size = divide_exact(size(leaf), inner_size);
  if (!outer_size || outer_size->is(1) || inner_size.is(1)) return false;
  const AtomId outer = make(*outer_size)[0], inner = make(inner_size)[0];
  Atom& node = atoms_[find(leaf).index()];
  node.outer = outer;
  node.inner = inner;
  return true;
}

std::optional<std::vector<AtomList>> Atoms::regroup(const AtomList& flat, const DimList& extents) {
  // Innermost dimension first: row-major grouping is decided by products of trailing atoms.
  AtomList pending = leaves(flat);
  std::vector<AtomList> dims(extents.size());
  for (size_t d = extents.size(); d-- > 0;) {
    Dim missing = extents[d];
    while (!missing.is(1)) {
      if (pending.empty()) return std::nullopt;
      AtomId atom = pending.back();
      if (auto rest = divide_exact(missing, size(atom))) {
        dims[d].push_back(atom);
        pending.pop_back();
        missing = *rest;
      } else if (split(atom, missing)) {
        pending.pop_back();
        for (AtomId part : leaves({atom})) pending.push_back(part);
      } else {
        return std::nullopt;
      }
    }
    std::ranges::reverse(dims[d]);
  }
  return pending.empty() ? std::optional(std::move(dims)) : std::nullopt;
}

bool Atoms::have_repeats(const std::vector<AtomList>& lists) const {
  AtomList all;
  all.reserve(8);
  for (const AtomList& list : lists)
    for (AtomId atom : list) append_leaves(atom, all);
  std::ranges::sort(all);
  return std::ranges::adjacent_find(all) != all.end();
}

bool Atoms::unify(const AtomList& left, const AtomList& right) {
  if (are_same(left, right)) return true;
  AtomList a = leaves(left), b = leaves(right);
  while (!a.empty() && !b.empty()) {
    AtomId x = a.back(), y = b.back();
    if (size(x) == size(y)) {
      if (x != y) atoms_[find(y).index()].joined = x;
      a.pop_back();
      b.pop_back();
    } else if (!split(x, size(y)) && !split(y, size(x))) {
      return false;
    }
    // Joining and splitting may have renamed what is still pending.
    a = leaves(a);
    b = leaves(b);
  }
  return a.empty() && b.empty();
}

}  // namespace stitch
