#include "stage/map_axes.h"

#include "stage/build_loops.h"

namespace stitch {
namespace {

constexpr int64_t kMostPieces = 8;  // a longer axis is worth its threads

using FixedAtoms = std::map<int, int64_t>;  // atom -> index

struct GoneAtom {
  int atom;
  int64_t coefficient, extent;
};

// Atoms of one dimension that are gone in `read`, at the positions that make up for its constant:
// coefficients are those of a row-major index, so the largest takes as much as it can.  One that is
// known at run time is the largest.  An atom of extent 0 has no position.
bool fix_atoms(const IndexVars& vars, const IndexExpr& made, const IndexExpr& read,
               FixedAtoms& fixed) {
  Dim moved = read.constant - made.constant;
  std::vector<GoneAtom> gone;
  for (const auto& [var, coefficient] : made.terms) {
    if (read.terms.contains(var)) continue;
    const IndexVar& atom = vars[var];
    if (!atom.is_atom() || !atom.extent.is_constant() || atom.extent.value() == 0) return false;
    if (!coefficient.is_constant()) {
      int64_t index = 0;
      while (index < std::min(atom.extent.value(), kMostPieces) && !moved.is_constant()) {
        moved = moved - coefficient;
        ++index;
      }
      if (index == atom.extent.value()) return false;
      fixed.try_emplace(atom.payload, index);
      continue;
    }
    if (coefficient.value() <= 0) return false;
    gone.push_back({atom.payload, coefficient.value(), atom.extent.value()});
  }
  if (!moved.is_constant()) return false;
  std::ranges::sort(gone, std::greater(), &GoneAtom::coefficient);
  int64_t left = moved.value();
  for (const GoneAtom& atom : gone) {
    const int64_t index = std::clamp<int64_t>(left / atom.coefficient, 0, atom.extent - 1);
    fixed.try_emplace(atom.atom, index);
    left -= index * atom.coefficient;
  }
  return left == 0;
}

// `expr` with the atoms at their indices; nothing where it depends on them, or on data, otherwise.
std::optional<IndexExpr> substitute(const IndexVars& vars, const IndexExpr& expr,
                                    const FixedAtoms& fixed) {
  IndexExpr out{expr.constant, {}};
  for (const auto& [var, coefficient] : expr.terms) {
    const IndexVar& info = vars[var];
    if (info.is_value()) return std::nullopt;
    if (info.is_atom()) {
      auto at = fixed.find(info.payload);
      out = out + (at == fixed.end() ? index_of(var) : IndexExpr{at->second, {}}) * coefficient;
      continue;
    }
    for (VarId leaf : vars.leaves_of({&info.operand, 1})) {
      const bool is_atom = vars[leaf].is_atom();
      if (!is_atom || fixed.count(vars[leaf].payload)) return std::nullopt;
    }
    out = out + index_of(var) * coefficient;
  }
  return out;
}

// An axis is fixed when all of its atoms are.
std::optional<FixedAxes> join_atoms(const StageSchedule& schedule, const FixedAtoms& fixed) {
  FixedAxes axes;
  for (int a = 0; a < std::ssize(schedule.axes); ++a) {
    size_t found = 0;
    int64_t index = 0;
    const AtomList& atoms = schedule.axes[a].axis.atoms;
    for (AtomId atom : atoms) {
      auto at = fixed.find(atom.index());
      if (at == fixed.end()) continue;
      ++found;
      index = index * schedule.spaces.atoms.size(atom).value() + at->second;
    }
    if (found == 0) continue;
    if (found != atoms.size()) return std::nullopt;
    axes[a] = index;
  }
  return axes;
}

// The short axes that `reduction` reduces and `reader` reads a common value at fixed indices of.
void add_piece_axes(const Graph& graph, const StageSchedule& schedule, NodeId reduction,
                    NodeId reader, std::set<int>& pieces) {
  const Accesses& accesses = schedule.accesses;
  const std::vector<Evaluation>& all_read = accesses.evaluated.at(reader);
  auto first = all_read.begin();
  for (const auto& [value, made, is_guarded, in_segment] : accesses.evaluated.at(reduction)) {
    while (first != all_read.end() && first->value < value) ++first;
    for (auto read = first; read != all_read.end() && read->value == value; ++read) {
      if (read->index == made || family(graph[value]) == Family::kSource) continue;
      if (evaluations_of(accesses, reduction, value).size() != 1) continue;
      auto fixed = find_fixed_axes(schedule, accesses.vars, accesses.indices[made],
                                   accesses.indices[read->index]);
      if (!fixed) continue;
      for (const auto& [a, index] : *fixed) {
        const Axis& axis = schedule.axes[a].axis;
        const bool is_reduced = role_of(space_of(schedule, reduction), axis) == Role::kReduced;
        if (is_reduced && axis.extent.is_at_most(kMostPieces)) pieces.insert(a);
      }
    }
  }
}

// The axes along which `value` holds states, where it does.
void add_state_axes(const Graph& graph, const StageSchedule& schedule, const IndexVars& vars,
                    NodeId value, const Index& index, std::set<int>& pieces) {
  if (!holds_states(graph, graph[value])) return;
  const IndexExpr& along = index[graph[value].ints[0]];
  for (int a = 0; a < std::ssize(schedule.axes); ++a)
    if (axis_coefficient(schedule, vars, along, a).is(1)) pieces.insert(a);
}

}  // namespace

std::optional<FixedAxes> find_fixed_axes(const StageSchedule& schedule, const IndexVars& vars,
                                         const Index& made, const Index& read) {
  if (made.size() != read.size()) return std::nullopt;
  const auto is_known = [&](const IndexExpr& index) { return walks_atoms_alone(vars, index); };
  if (made == read && std::ranges::all_of(made, is_known)) return FixedAxes();
  FixedAtoms fixed;
  for (size_t d = 0; d < made.size(); ++d)
    if (!fix_atoms(vars, made[d], read[d], fixed)) return std::nullopt;
  for (size_t d = 0; d < made.size(); ++d)
    if (substitute(vars, made[d], fixed) != read[d]) return std::nullopt;
  return join_atoms(schedule, fixed);
}

std::set<int> find_piece_axes(const Graph& graph, const StageSchedule& schedule) {
  std::set<int> pieces;
  for (const auto& [reader, reductions] : schedule.spaces.depends)
    for (NodeId reduction : reductions) add_piece_axes(graph, schedule, reduction, reader, pieces);
  IndexVars vars = schedule.accesses.vars;
  for (const RootSpace& space : schedule.spaces.roots) {
    const Index own = index_from_atoms(schedule.spaces.atoms, space.dims, vars);
    add_state_axes(graph, schedule, vars, space.root, own, pieces);
    for (const Evaluation& at : schedule.accesses.evaluated.at(space.root))
      add_state_axes(graph, schedule, vars, at.value, schedule.accesses.indices[at.index], pieces);
  }
  return pieces;
}

}  // namespace stitch
