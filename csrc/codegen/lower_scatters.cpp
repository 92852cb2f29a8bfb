#include "codegen/lower_scatters.h"

#include <algorithm>

#include "schedule/build_loops.h"
#include "schedule/reduction_arrays.h"

namespace stitch {

bool ScatterLowering::takes_positions_along(int block) const {
  const int loop = schedule.blocks[block].loop;
  return std::ranges::any_of(schedule.spaces.roots, [&](const RootSpace& space) {
    if (!combines_at_indices(info(graph[space.root]))) return false;
    const std::vector<int> path = path_to(schedule, space.root);
    return std::ranges::count(path, block) > 0 && reduces_loop(schedule, space, loop);
  });
}

int ScatterLowering::find_first_block(NodeId root) const {
  const RootSpace& space = space_of(schedule, root);
  const std::vector<int> path = path_to(schedule, root);
  const auto first = std::ranges::find_if(path, [&](int block) {
    const int loop = schedule.blocks[block].loop;
    return loop >= 0 && reduces_loop(schedule, space, loop);
  });
  return first == path.end() ? -1 : *first;
}

void ScatterLowering::begin_below(int block) {
  for (const RootSpace& space : schedule.spaces.roots) {
    const bool is_scatter = combines_at_indices(info(graph[space.root]));
    if (is_scatter && find_first_block(space.root) == block)
      begin(space.root, kept_blocks_below(schedule, space.root, block));
  }
}

std::string ScatterLowering::place(NodeId root, const Scalar& at) const {
  return "p" + std::to_string(values.pointer(root, true)) + "[" + at.text + "]";
}

void ScatterLowering::begin(NodeId root, const std::vector<int>& kept_blocks) {
  const Node& node = graph[root];
  STITCH_CHECK(!schedule.device->is_cuda, "scatters are combined by one thread of a block");
  STITCH_CHECK(graph[skip_views(graph, node.inputs[0])].op == OpKind::k_full,
               "what a scatter begins with is no constant");
  const Dim& rows = node.type.shape[node.ints[0]];
  const Handle end = values.add({scopes.print(rows), 0}), first = values.add({"0", 0});
  const Handle row = values.open_segment(first, end, scopes.depth());
  Index index = index_from_atoms(schedule.spaces.atoms, space_of(schedule, root).dims, values.vars);
  index[node.ints[0]] = index_of(values.vars.value(row, rows));
  reductions.reopen(kept_blocks, [&] {
    const Handle initial = walk(graph, values, node.inputs[0], index);
    const Scalar at = scopes.print(element_offset(node.type, index), values.vars, values.values);
    store(root, at, values.values[initial]);
  });
  values.close_segment();
}

void ScatterLowering::combine(NodeId root, const IndexExpr& offset, const Scalar& element) {
  if (find_first_block(root) < 0) begin(root, {});
  const Scalar at = scopes.print(offset, values.vars, values.values);
  const std::string text = std::string(info(graph[root]).function) + "::apply(" + place(root, at) +
                           ", " + element.text + ")";
  store(root, at, {text, element.depth});
}

void ScatterLowering::store(NodeId root, const Scalar& at, const Scalar& value) {
  const DTypeInfo& dtype = info(graph[root].type.dtype);
  STITCH_CHECK(std::string(dtype.device_name) == dtype.register_name,
               "a scatter combines what registers do not hold: " << dtype.name);
  const int depth = std::max({at.depth, value.depth, scopes.depth()});
  scopes.append(depth, Statement::store(place(root, at), value.text,
                                        reductions.store_predicate(space_of(schedule, root))));
}

}  // namespace stitch
