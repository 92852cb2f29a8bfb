// Iteration spaces: over which atoms each root of a kernel iterates, and which it reduces.
//
// One call looks at the roots of a candidate kernel together, because sharing loops is a property
// of the set.  Unification is per use (honesty rule 1): where it would put an atom twice into one
// space, or a root is read at other indices than it is made at, it is refused: a kernel cut.
#pragma once

#include "analysis/atoms.h"
#include "ir/graph.h"

namespace stitch {

struct RootSpace {
  NodeId root;
  std::vector<AtomList> dims;  // of the value iterated: a reduction's operand, else the root
  std::vector<bool> reduced;   // per dim
  // Derived, in terms of leaves:
  AtomList kept_atoms, reduced_atoms;
};

enum class Role { kAbsent, kKept, kReduced };
inline Role role_of(const RootSpace& space, AtomId leaf) {
  if (std::ranges::count(space.reduced_atoms, leaf)) return Role::kReduced;
  return std::ranges::count(space.kept_atoms, leaf) ? Role::kKept : Role::kAbsent;
}

// The dims of the root's own value.
std::vector<AtomList> kept_dims(const RootSpace& space);

struct Spaces {
  Atoms atoms;
  std::vector<RootSpace> roots;                // in the order given
  std::map<NodeId, std::set<NodeId>> depends;  // each root -> reductions in the kernel it reads
};

inline const RootSpace& space_of(const Spaces& spaces, NodeId root) {
  const RootSpace* found = find_by(spaces.roots, root, &RootSpace::root);
  STITCH_CHECK(found, "%" << root << " is no root of its kernel");
  return *found;
}

// Whether it reads its operands at other indices than its own, permuted or regrouped ones.
inline bool moves_elements(const Node& node) {
  return family(node) == Family::kReader || node.op == OpKind::k_slice || node.op == OpKind::k_flip;
}

// By root, for all roots of a stage the same: by node, whether it is read from memory.
using LoadsOfRoots = std::vector<const std::vector<bool>*>;

struct SpacesOrNot {
  Spaces spaces;
  Verdict verdict;
};

// Roots in topological order: their reductions are consumed on chip, every other materialised value
// is read from memory.  Of several stages, what one stores is a load of another.
SpacesOrNot find_spaces(const Graph& graph, const NodeList& roots, const LoadsOfRoots& loads);

}  // namespace stitch
