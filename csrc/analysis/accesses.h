// Accesses: which elements a kernel's roots read and write, as offsets over atoms; and Axes, the
// atoms that can be walked as one loop.
#pragma once

#include <ranges>

#include "analysis/index_walk.h"
#include "analysis/iteration_space.h"

namespace stitch {

struct Access {
  NodeId value;
  NodeId root;  // in whose loops it happens
  IndexExpr offset;
  bool is_store = false, is_guarded = false;
  bool in_segment = false;  // once for each position of a segment
};

struct Evaluation {
  NodeId value;
  int index;                // of Accesses::indices
  bool is_guarded = false;  // only where some condition holds
  bool in_segment = false;  // once for each position of a segment
  friend auto operator<=>(const Evaluation&, const Evaluation&) = default;
};

struct Accesses {
  IndexVars vars;
  std::vector<Access> list;
  std::vector<IndexExpr> other_uses;                    // indices used as values
  std::map<NodeId, std::vector<Condition>> conditions;  // of each root, where values are chosen
  std::vector<Index> indices;                           // that values are evaluated at, each once
  std::vector<std::set<VarId>> leaves;                  // of each of these
  // root -> what it evaluates or loads (not itself), ascending, each in the order it comes to it
  std::map<NodeId, std::vector<Evaluation>> evaluated;
};

// Loops over a product of atoms, outermost first; one atom is in exactly one axis.
struct Axis {
  AtomList atoms;
  Dim extent = 1;
  friend bool operator==(const Axis&, const Axis&) = default;
};

Index index_from_atoms(const Atoms& atoms, const std::vector<AtomList>& dims, IndexVars& vars);
// The payload of an arg reduction: the flat index over its reduced dims.
IndexExpr reduced_index(const Atoms& atoms, const RootSpace& space, const Index& iterated);

Accesses find_accesses(const Graph& graph, const Spaces& spaces, const LoadsOfRoots& loads,
                       const std::set<NodeId>& stores);
// The first of the value; nullptr: there is none.
inline const Access* find_access(const Accesses& accesses, NodeId value, bool is_store) {
  for (const Access& access : accesses.list)
    if (access.value == value && access.is_store == is_store) return &access;
  return nullptr;
}
// Where a root evaluates or loads the value; empty: nowhere.
inline std::span<const Evaluation> evaluations_of(const Accesses& accesses, NodeId root,
                                                  NodeId value) {
  return std::ranges::equal_range(accesses.evaluated.at(root), value, {}, &Evaluation::value);
}
// Calls work(evaluations) for each value of a root's.
template <class Work>
void for_each_value(std::span<const Evaluation> evaluated, const Work& work) {
  for (size_t begin = 0, end = 0; begin < evaluated.size(); begin = end) {
    while (end < evaluated.size() && evaluated[end].value == evaluated[begin].value) ++end;
    work(evaluated.subspan(begin, end - begin));
  }
}
// Whether a root, or what one evaluates or loads, is such a node.
template <class Predicate>
bool evaluates_any(const Accesses& accesses, Predicate is_such) {
  return std::ranges::any_of(accesses.evaluated, [&](const auto& of) {
    return is_such(of.first) || std::ranges::any_of(of.second, is_such, &Evaluation::value);
  });
}
// Every expression in which an atom's coefficient matters.
std::vector<IndexExpr> list_uses(const Accesses& accesses);

// Joins neighbouring atoms whose coefficients are proportional in every access.
std::vector<Axis> find_axes(const Spaces& spaces, const Accesses& accesses);

}  // namespace stitch
