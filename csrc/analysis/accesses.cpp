#include "analysis/accesses.h"

#include <unordered_map>

namespace stitch {
namespace {

class AccessSink : public WalkSink {
 public:
  AccessSink(const Graph& graph, Accesses& out) : graph_(graph), out_(out) {}

  void begin_root(NodeId root, const std::vector<bool>& is_load) {
    root_ = root;
    evaluated_ = &out_.evaluated[root];
    is_load_ = &is_load;
    known_.clear();
  }

  std::optional<Handle> find(NodeId value, const Index& index, int guard) override {
    const auto entry = known_.find(value);
    if (entry == known_.end()) return std::nullopt;
    const std::vector<Evaluation>& evaluations = evaluated_->at(value);
    for (const Known& known : entry->second)
      if (known.guard == guard && evaluations[known.evaluation].index == index) return known.handle;
    return std::nullopt;
  }
  void remember(NodeId value, const Index& index, int guard, Handle handle) override {
    std::vector<Evaluation>& evaluations = (*evaluated_)[value];
    Evaluation own{index, guard != 0, open_segments_ > 0};
    // Each condition evaluates it again.
    auto at = guard != 0 ? evaluations.end() : std::ranges::find(evaluations, own);
    if (at == evaluations.end()) at = evaluations.insert(at, std::move(own));
    known_[value].push_back({at - evaluations.begin(), guard, handle});
  }
  bool is_load(NodeId value) override { return (*is_load_)[value.index()]; }
  Handle load(NodeId value, const IndexExpr& offset, int guard) override {
    out_.list.push_back({value, root_, offset, false, guard != 0, open_segments_ > 0});
    return next_++;
  }
  Handle reduced(NodeId, const Index&) override { return next_++; }
  Handle constant(const Node&) override { return next_++; }
  Handle from_index(DType, const IndexExpr& index) override {
    out_.other_uses.push_back(index);
    return next_++;
  }
  Handle pointwise(NodeId, const std::vector<Handle>&, int) override { return next_++; }
  IndexExpr checked_index(NodeId, Handle value, const Dim& extent, int) override {
    return known_index(value, extent);
  }
  IndexExpr known_index(Handle value, const Dim& extent) override {
    return index_of(vars.value(value, extent));
  }
  int begin_guard(const Condition& condition, int) override {
    out_.conditions[root_].push_back(condition);
    return next_++;
  }
  Handle choose(int, Handle, Handle, DType) override { return next_++; }
  IndexExpr begin_segment(const Segment& segment) override {
    ++open_segments_;
    const NodeId order = graph_[segment.node].inputs[2];
    return index_of(vars.value(next_++, graph_[order].type.shape[0]));
  }
  Handle end_segment(const Segment&, Handle) override {
    --open_segments_;
    return next_++;
  }

 private:
  struct Known {
    std::ptrdiff_t evaluation;  // whose index it is
    int guard;
    Handle handle;
  };

  const Graph& graph_;
  const std::vector<bool>* is_load_ = nullptr;
  Accesses& out_;
  NodeId root_;
  std::map<NodeId, std::vector<Evaluation>>* evaluated_ = nullptr;  // of the root
  int next_ = 1, open_segments_ = 0;
  std::unordered_map<NodeId, std::vector<Known>> known_;
};

}  // namespace

std::vector<IndexExpr> list_uses(const Accesses& accesses) {
  std::vector<IndexExpr> uses = accesses.other_uses;
  for (const Access& access : accesses.list) uses.push_back(access.offset);
  for (const auto& [root, conditions] : accesses.conditions)
    for (const Condition& condition : conditions) uses.push_back(condition.index);
  for (VarId var = 0; var < accesses.vars.count(); ++var)
    uses.push_back(accesses.vars[var].operand);
  return uses;
}

Index index_from_atoms(const Atoms& atoms, const std::vector<AtomList>& dims, IndexVars& vars) {
  Index index(dims.size());
  for (size_t d = 0; d < dims.size(); ++d) {
    Dim stride = 1;
    for (size_t a = dims[d].size(); a-- > 0;) {
      const Dim& size = atoms.size(dims[d][a]);
      index[d] = index[d] + index_of(vars.atom(dims[d][a].index(), size)) * stride;
      stride = stride * size;
    }
  }
  return index;
}

IndexExpr reduced_index(const Atoms& atoms, const RootSpace& space, const Index& iterated) {
  Index indices;
  DimList extents;
  for (size_t d = 0; d < space.dims.size(); ++d) {
    if (!space.reduced[d]) continue;
    indices.push_back(iterated[d]);
    extents.push_back(atoms.product(space.dims[d]));
  }
  return flatten(indices, extents);
}

Accesses find_accesses(const Graph& graph, const Spaces& spaces, const LoadsOfRoots& loads,
                       const std::set<NodeId>& stores) {
  Accesses out;
  AccessSink sink(graph, out);
  for (size_t r = 0; r < spaces.roots.size(); ++r) {
    const RootSpace& space = spaces.roots[r];
    sink.begin_root(space.root, *loads[r]);
    Index iterated = index_from_atoms(spaces.atoms, space.dims, sink.vars);
    walk_root(graph, sink, space.root, iterated);
    const bool is_scatter = combines_at_indices(info(graph[space.root]));
    Index own = is_scatter ? iterated : index_from_atoms(spaces.atoms, kept_dims(space), sink.vars);
    if (stores.count(space.root)) {
      const IndexExpr offset = stored_offset(graph, sink, space.root, own);
      out.list.push_back({space.root, space.root, offset, true, false, false});
    }
    if (is_arg_reduction(graph[space.root]))
      out.other_uses.push_back(reduced_index(spaces.atoms, space, iterated));
  }
  out.vars = sink.vars;
  return out;
}

std::vector<Axis> find_axes(const Spaces& spaces, const Accesses& accesses) {
  IndexVars vars = accesses.vars;
  std::vector<IndexExpr> uses = list_uses(accesses);
  std::vector<Axis> axes;
  std::set<AtomId> placed;
  auto can_join = [&](AtomId outer, AtomId inner) {
    for (const RootSpace& space : spaces.roots)
      if (role_of(space, outer) != role_of(space, inner)) return false;
    VarId o = vars.atom(outer.index(), spaces.atoms.size(outer));
    VarId i = vars.atom(inner.index(), spaces.atoms.size(inner));
    for (const IndexExpr& use : uses)
      if (use.terms.coefficient(o) != use.terms.coefficient(i) * spaces.atoms.size(inner))
        return false;
    return true;
  };
  for (const RootSpace& space : spaces.roots) {
    size_t open = axes.size();  // an axis of this space that may still grow
    for (AtomId atom : space.dims | std::views::join) {
      const bool is_new = placed.insert(atom).second;
      if (is_new && open < axes.size() && can_join(axes[open].atoms.back(), atom)) {
        axes[open].atoms.push_back(atom);
        axes[open].extent = axes[open].extent * spaces.atoms.size(atom);
        continue;
      }
      open = axes.size();
      if (is_new) axes.push_back({{atom}, spaces.atoms.size(atom)});
    }
  }
  return axes;
}

}  // namespace stitch
