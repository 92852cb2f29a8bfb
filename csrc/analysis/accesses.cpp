#include "analysis/accesses.h"

namespace stitch {
namespace {

class AccessSink : public WalkSink {
 public:
  AccessSink(const Graph& graph, Accesses& out) : out_(out), last_known_(graph.size(), -1) {}

  void begin_root(NodeId root, const std::vector<bool>& is_load) {
    root_ = root;
    is_load_ = &is_load;
    for (const Known& known : known_) last_known_[known.evaluation.value.index()] = -1;
    known_.clear();
  }
  void end_root() {
    out_.evaluated[root_] = map_to_vector(known_, &Known::evaluation);
    std::ranges::stable_sort(out_.evaluated[root_], {}, &Evaluation::value);
  }

  std::optional<Handle> find(NodeId value, const Index& index, int guard) override {
    for (int at = last_known_[value.index()]; at >= 0; at = known_[at].before)
      if (known_[at].guard == guard && out_.indices[known_[at].evaluation.index] == index)
        return known_[at].handle;
    return std::nullopt;
  }
  void remember(NodeId value, const Index& index, int guard, Handle handle) override {
    const Evaluation own{value, number(index), guard != 0, open_segments_ > 0};
    int& last = last_known_[value.index()];
    for (int at = last; at >= 0 && guard == 0; at = known_[at].before)
      if (known_[at].evaluation == own) return;  // but each condition evaluates it again
    known_.push_back({own, guard, std::exchange(last, static_cast<int>(known_.size())), handle});
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
  Handle checked_index(NodeId, Handle value, const Dim&, int) override { return value; }
  Handle known_index(Handle value) override { return value; }
  int begin_guard(const Condition& condition, int) override {
    out_.conditions[root_].push_back(condition);
    return next_++;
  }
  Handle choose(int, Handle, Handle, DType) override { return next_++; }
  Handle begin_segment(const Segment&) override {
    ++open_segments_;
    return next_++;
  }
  Handle end_segment(const Segment&, Handle) override {
    --open_segments_;
    return next_++;
  }

 private:
  struct Known {
    Evaluation evaluation;
    int guard, before;  // the one before of the same value; -1: none
    Handle handle;
  };

  int number(const Index& index) {
    if (last_number_ >= 0 && out_.indices[last_number_] == index) return last_number_;
    const auto [entry, is_new] = numbers_.try_emplace(index, std::ssize(out_.indices));
    if (is_new) out_.indices.push_back(index);
    if (is_new) out_.leaves.push_back(vars.leaves_of(index));
    return last_number_ = entry->second;
  }

  const std::vector<bool>* is_load_ = nullptr;
  Accesses& out_;
  NodeId root_;
  int next_ = 1, open_segments_ = 0, last_number_ = -1;
  std::vector<Known> known_;      // of the root
  std::vector<int> last_known_;   // by value; -1: none
  std::map<Index, int> numbers_;  // of Accesses::indices
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
      index[d].add(index_of(vars.atom(dims[d][a].index(), size)), stride);
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
    sink.end_root();
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
