#include "analysis/iteration_space.h"

#include <unordered_map>

#include "analysis/index_walk.h"
#include "analysis/storage.h"

namespace stitch {
namespace {

// One dimension as seen from a root: its atoms, or nothing where the access is irregular.
using SeenDim = std::optional<AtomList>;
using SeenDims = std::vector<SeenDim>;

SeenDims regular(const std::vector<AtomList>& dims) { return {dims.begin(), dims.end()}; }

bool all_regular(const SeenDims& dims) {
  return std::ranges::all_of(dims, [](const SeenDim& d) { return d.has_value(); });
}

// Does a reader take its operand at its own index along `dim`?
bool is_same_index(const Node& node, size_t operand, int dim) {
  if (node.op == OpKind::k_pad) return node.dims[dim].is(0);
  const bool is_other = dim != node.ints[0];
  if (node.op == OpKind::k_cat) return is_other;
  if (node.op == OpKind::k_gather) return operand == 1 || is_other;
  // What replaces parts of the first; the order and the offsets of segments are data.
  return operand == 0 || (operand == 1 && is_other);
}

struct Tracer {
  const Graph& graph;
  const LoadsOfRoots& loads_of_roots;
  Spaces& spaces;
  std::map<NodeId, int> root_at = {};  // positions of roots
  int current = 0;                     // of the root that is traced
  // What is traced are the elements that a segment takes, at its positions.
  struct Taken {
    NodeId sorting_index;  // invalid: it is not
    SeenDim row;
    Dim rows;
  };
  Taken taken = {};
  std::vector<bool> combines = std::vector<bool>(spaces.roots.size());  // by root: segments
  std::set<SeenDims> seen_alike = {};
  std::set<std::pair<NodeId, const SeenDims*>> visited = {};
  std::unordered_map<NodeId, const SeenDims*> leaves = {};  // loads, and what no value goes into

  Verdict trace_root(int root) {
    current = root;
    visited.clear();
    const RootSpace& space = spaces.roots[current];
    const Node& node = graph[space.root];
    const SeenDims& dims = keep(regular(space.dims));
    if (family(node) == Family::kReduce) return trace(node.inputs[0], dims);
    if (family(node) != Family::kWriter) return trace_operands(space.root, dims);
    Verdict verdict = trace(node.inputs[1], dims);
    if (!verdict || node.inputs.size() == 2) return verdict;
    return trace(node.inputs[2], broadcast_dims(graph[node.inputs[2]].type, dims));
  }

  // Joins spaces of equal extents that share nothing: such roots simply share a loop.
  void join_independent() {
    for (size_t i = 1; i < spaces.roots.size(); ++i) {
      for (size_t j = 0; j < i; ++j) {
        const RootSpace &a = spaces.roots[j], &b = spaces.roots[i];
        const auto extent = [&](const AtomList& dim) { return spaces.atoms.product(dim); };
        if (a.reduced != b.reduced || !std::ranges::equal(a.dims, b.dims, {}, extent, extent))
          continue;
        if (try_unify(a.dims, regular(b.dims))) break;
      }
    }
  }

  // One address for all that are equal: most values are seen alike.
  const SeenDims& keep(SeenDims dims) { return *seen_alike.insert(std::move(dims)).first; }

  // They are at first, and after changes that are kept; what is not yet traced has its own atoms.
  bool spaces_are_sound() const {
    const auto traced = spaces.roots.begin() + current + 1;
    return std::none_of(spaces.roots.begin(), traced, [&](const RootSpace& space) {
      return spaces.atoms.have_repeats(space.dims);
    });
  }

  static const AtomList& atoms_of(const AtomList& dim) { return dim; }
  static const AtomList& atoms_of(const SeenDim& dim) { return *dim; }

  // The first dimensions are regular, a root's own or as they were seen.
  template <typename Dims>
  bool are_same(const Dims& dims, const SeenDims& seen) const {
    return std::equal(dims.begin(), dims.end(), seen.begin(),
                      [&](const auto& own, const SeenDim& other) {
                        return !other || spaces.atoms.are_same(atoms_of(own), *other);
                      });
  }

  template <typename Dims>
  bool try_unify(const Dims& dims, const SeenDims& seen) {
    if (are_same(dims, seen)) return true;
    Atoms saved = spaces.atoms;
    bool agree = true;
    for (size_t d = 0; agree && d < dims.size(); ++d)
      agree = !seen[d] || spaces.atoms.unify(atoms_of(dims[d]), *seen[d]);
    if (agree && spaces_are_sound()) return true;
    spaces.atoms = std::move(saved);
    return false;
  }

  int find_root(NodeId node) const {
    const auto at = root_at.find(node);
    return at == root_at.end() ? -1 : at->second;
  }

  // A reduction computed in this kernel: its reader must follow its kept atoms exactly.
  Verdict read_reduction(NodeId node, int producer, const SeenDims& dims) {
    spaces.depends[spaces.roots[current].root].insert(node);
    const std::vector<AtomList> kept = kept_dims(spaces.roots[producer]);
    auto refuse = [&](int rule, const char* why) {
      return Verdict::no(rule, info(graph[node]).name + std::string(" of ") +
                                   graph[node].origin.op + " is read " + why);
    };
    if (!all_regular(dims)) return refuse(kRuleOtherIndices, "at other indices than it is made at");
    if (are_same(kept, dims)) return Verdict::yes();
    for (size_t d = 0; d < kept.size(); ++d)
      if (!spaces.atoms.unify(kept[d], *dims[d]))
        return refuse(kRuleOtherIndices, "in a grouping that does not refine");
    if (spaces_are_sound()) return Verdict::yes();
    return refuse(kRuleDiagonal, "along two dimensions at once");
  }

  // Does a value with these dimensions have one element for each iteration of the root?
  bool covers_root(const SeenDims& dims) const {
    if (!all_regular(dims)) return false;
    size_t own = 0, seen = 0;
    for (const AtomList& dim : spaces.roots[current].dims) own += spaces.atoms.leaves(dim).size();
    for (const SeenDim& dim : dims) seen += spaces.atoms.leaves(*dim).size();
    return own == seen;
  }

  Verdict trace(NodeId id, const SeenDims& dims) {
    if (!visited.insert({id, &dims}).second) return Verdict::yes();
    const Node& node = graph[id];
    const bool is_load = (*loads_of_roots[current])[id.index()];
    if (is_load || family(node) == Family::kSource || moves_elements(node)) {
      const auto [seen, is_first] = leaves.try_emplace(id, &dims);
      if (!is_first && seen->second != &dims && all_regular(*seen->second))
        try_unify(*seen->second, dims);  // sharing it is a preference, not a need
    }
    if (is_load) {
      const int maker = find_root(id);  // in another stage
      const bool is_pointwise = maker >= 0 && family(node) != Family::kReduce;
      if (is_pointwise && all_regular(dims)) try_unify(spaces.roots[maker].dims, dims);
      return Verdict::yes();
    }
    if (family(node) == Family::kWriter) return Verdict::no(kRuleWritten);
    if (combines_segments(info(node)) && !covers_root(dims))
      return Verdict::no(kRuleOtherIndices, "segments would be combined again for each reader");
    const int producer = find_root(id);
    if (producer >= 0 && family(node) == Family::kReduce) return read_reduction(id, producer, dims);
    if (producer >= 0 && all_regular(dims) && try_unify(spaces.roots[producer].dims, dims) &&
        is_known(producer)) {
      const std::set<NodeId>& read = spaces.depends.at(spaces.roots[producer].root);
      spaces.depends[spaces.roots[current].root].insert(read.begin(), read.end());
      return Verdict::yes();
    }
    return trace_operands(id, dims);
  }

  // What is read as a root is, at the same indices, was traced with that root: again for each
  // reader a kernel of many roots would take quadratic time.  Segments are combined for readers
  // that cover them (covers_root), rows are taken for one reader.
  bool is_known(int producer) const {
    return producer < current && loads_of_roots[producer] == loads_of_roots[current] &&
           !combines[producer] && !taken.sorting_index.valid();
  }

  Verdict trace_operands(NodeId id, const SeenDims& dims) {
    const Node& node = graph[id];
    if (combines_segments(info(node))) combines[current] = true;
    const Taken outer = taken;
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      const SeenDims& seen = operand_dims(node, i, dims);
      if (combines_segments(info(node)) && i == 1) {
        const int64_t dim = node.ints[0];
        taken = {find_sorting_index(graph, node), dims[dim], node.type.shape[dim]};
      } else if (family(node) != Family::kPointwise) {
        taken = {};  // other elements than those of the segment
      }
      Verdict verdict = trace(node.inputs[i], seen);
      taken = outer;
      if (!verdict) return verdict;
    }
    return Verdict::yes();
  }

  // A unit dimension of the operand has no atoms.
  const SeenDims& broadcast_dims(const TensorType& operand, const SeenDims& dims) {
    SeenDims out;
    const SeenDims& seen = broadcast(operand, dims, std::move(out), SeenDim(std::in_place));
    return &seen == &dims ? dims : keep(std::move(out));
  }

  const SeenDims& operand_dims(const Node& node, size_t operand, const SeenDims& dims) {
    const TensorType& type = graph[node.inputs[operand]].type;
    if (family(node) == Family::kPointwise || node.op == OpKind::k_expand)
      return broadcast_dims(type, dims);
    return keep(family(node) == Family::kView ? view_operand_dims(node, type, dims)
                                              : reader_operand_dims(node, operand, type, dims));
  }

  SeenDims view_operand_dims(const Node& node, const TensorType& type, const SeenDims& dims) {
    SeenDims out(type.rank());
    if (node.op == OpKind::k_reshape) {
      if (!all_regular(dims)) return out;
      AtomList flat;
      for (const SeenDim& d : dims) flat.insert(flat.end(), d->begin(), d->end());
      const auto grouped = spaces.atoms.regroup(flat, type.shape);
      return grouped ? regular(*grouped) : out;
    }
    for (int d = 0; d < type.rank(); ++d)
      if (node.op == OpKind::k_permute)
        out[node.ints[d]] = dims[d];
      else if (node.op == OpKind::k_layout || std::ranges::count(node.ints, d) == 0)
        out[d] = dims[d];  // of a slice or a flip those whose indices do not move
    return out;
  }

  SeenDims reader_operand_dims(const Node& node, size_t operand, const TensorType& type,
                               const SeenDims& dims) {
    SeenDims out(type.rank());
    if (node.op == OpKind::k_index) {  // loads by data: nothing to share but a segment's own row
      if (operand == 0 && reads_own_row(node, type)) {
        out = dims;
        out[node.ints[0]] = taken.row;
      }
      return out;
    }
    if (node.op == OpKind::k_slice_scatter && operand == 2) return broadcast_dims(type, dims);
    if (node.op == OpKind::k_cat) refine_parts(node, dims, out);
    for (int d = 0; d < type.rank() && d < std::ssize(dims); ++d)
      if (type.shape[d] == node.type.shape[d] && is_same_index(node, operand, d)) out[d] = dims[d];
    return out;
  }

  bool reads_own_row(const Node& node, const TensorType& type) const {
    return taken.sorting_index.valid() && node.ints.size() == 1 &&
           graph[node.inputs[1]].type.rank() == 1 && type.shape[node.ints[0]] == taken.rows &&
           skip_reshapes(graph, node.inputs[1]) == taken.sorting_index;
  }

  // A cat of equal parts: its dimension becomes atoms [parts, part].
  void refine_parts(const Node& node, const SeenDims& dims, SeenDims& out) {
    const Dim extent = equal_part(graph, node);
    const int64_t dim = node.ints[0];
    if (extent.is(0) || !dims[dim]) return;
    const Dim count = std::ssize(node.inputs);
    if (auto pieces = spaces.atoms.regroup(*dims[dim], {count, extent})) out[dim] = (*pieces)[1];
  }
};

RootSpace make_space(const Graph& graph, NodeId root, Atoms& atoms) {
  RootSpace space{root, {}, {}, {}, {}};
  const Node& node = graph[root];
  const bool combines = family(node) == Family::kReduce || combines_at_indices(info(node));
  const TensorType& type = graph[iterated_value(graph, root)].type;
  for (int d = 0; d < type.rank(); ++d) {
    space.dims.push_back(atoms.make(type.shape[d]));
    space.reduced.push_back(combines && std::ranges::find(node.ints, d) != node.ints.end());
  }
  return space;
}

}  // namespace

std::vector<AtomList> kept_dims(const RootSpace& space) {
  std::vector<AtomList> kept;
  for (size_t d = 0; d < space.dims.size(); ++d)
    if (!space.reduced[d]) kept.push_back(space.dims[d]);
  return kept;
}

SpacesOrNot find_spaces(const Graph& graph, const NodeList& roots, const LoadsOfRoots& loads) {
  SpacesOrNot result;
  Spaces& spaces = result.spaces;
  for (NodeId root : roots) {
    spaces.roots.push_back(make_space(graph, root, spaces.atoms));
    spaces.depends[root] = {};
  }
  Tracer tracer{graph, loads, spaces};
  for (size_t i = 0; i < roots.size(); ++i) tracer.root_at[roots[i]] = static_cast<int>(i);
  for (size_t i = 0; i < roots.size(); ++i) {
    result.verdict = tracer.trace_root(static_cast<int>(i));
    if (!result.verdict) return result;
  }
  tracer.join_independent();
  for (RootSpace& space : spaces.roots) {
    for (size_t d = 0; d < space.dims.size(); ++d) {
      space.dims[d] = spaces.atoms.leaves(space.dims[d]);
      AtomList& side = space.reduced[d] ? space.reduced_atoms : space.kept_atoms;
      side.insert(side.end(), space.dims[d].begin(), space.dims[d].end());
    }
  }
  return result;
}

}  // namespace stitch
