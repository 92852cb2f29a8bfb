#include "codegen/lower_reductions.h"

#include "stage/place_values.h"
#include "stage/reduction_arrays.h"

namespace stitch {

static bool assigns(const std::vector<Statement>& body, const std::string& name) {
  return std::ranges::any_of(body, [&](const Statement& statement) {
    return statement.name == name || assigns(statement.body, name);
  });
}

// The operator of OpenMP's reduction clause for a device function.
static const char* clause_of(const std::string& functor) {
  static const std::map<std::string, const char*> clauses = {
      {"Sum", "+"}, {"Prod", "*"}, {"Max", "max"}, {"Min", "min"}, {"All", "&"}, {"Any", "|"}};
  return clauses.at(functor);
}

std::string ReductionLowering::accumulator_type(NodeId root) const {
  const Node& node = graph[root];
  if (!is_arg_reduction(node)) return info(node.type.dtype).register_name;
  return concat(scopes.has_short_indices ? "Indexed32<" : "Indexed<",
                info(graph[node.inputs[0]].type.dtype).register_name, ">");
}

int ReductionLowering::lanes_of(NodeId root) const {
  using enum Level;
  const std::vector<int> path = path_to(schedule, root);
  const LoopSpec& spec = schedule.loops[schedule.blocks[path.back()].loop];
  // The first terms are then a chunk's.
  const bool is_cut = std::ranges::any_of(path, [&](int block) {
    const int loop = schedule.blocks[block].loop;
    return loop >= 0 && schedule.loops[loop].level == kChunk &&
           reduces_loop(schedule, space_of(schedule, root), loop);
  });
  const Dim lanes = schedule.axes[spec.axis].count(kAlong);
  if (spec.level != kStrip || is_cut || !lanes.is_at_most(kVectorBytes)) return 0;
  return (lanes.value() & (lanes.value() - 1)) == 0 ? static_cast<int>(lanes.value()) : 0;
}

std::string ReductionLowering::at(const Accumulator& level, const std::string& name) const {
  if (!level.lane.empty()) return name + "[" + level.lane + "]";
  if (level.blocks.empty()) return name;
  return name + "[" + scopes.position(array_loops(schedule, level.blocks)).text + "]";
}

void ReductionLowering::open_level(NodeId root, int block, bool is_partial) {
  const bool is_wide = !is_partial && is_cascaded(graph, schedule, space_of(schedule, root));
  // Terms made of narrower loads were rounded far above what a sum in f64 drops.
  const bool is_exact = is_wide && accumulator_type(root) == "f64" &&
                        std::ranges::any_of(schedule.accesses.list, [&](const Access& access) {
                          return access.root == root && !access.is_store &&
                                 graph[access.value].type.dtype == DType::kF64;
                        });
  Accumulator level{.name = scopes.fresh(), .opened_by = block, .is_wide = is_wide};
  level.type = is_wide ? "f64" : accumulator_type(root);
  if (is_exact) level.rest = scopes.fresh();
  level.blocks = kept_blocks_below(schedule, root, block);
  const int lanes = is_wide && level.blocks.empty() ? lanes_of(root) : 0;
  level.is_vectorised = level.blocks.empty() && lanes == 0 && is_vectorised_loop(block) &&
                        !is_arg_reduction(graph[root]);
  if (level.is_vectorised && level.type == "bool") level.type = "i32";
  const std::string identity = functor(root) + "::identity<" + level.type + ">()";
  const int depth = scopes.depth();
  std::vector<std::string> names{level.name};
  if (!level.rest.empty()) names.push_back(level.rest);
  if (lanes > 0) {
    const int leaf = path_to(schedule, root).back();
    level.lane = scopes.loop_name(schedule.blocks[schedule.blocks[leaf].parent].loop);
    for (const std::string& name : names)
      scopes.append(depth, Statement::var("LaneSums<" + std::to_string(lanes) + ">", name, "{}"));
  } else if (level.blocks.empty()) {
    for (const std::string& name : names)
      scopes.append(depth, Statement::var(level.type, name, identity));
    const bool keeps_nan = functor(root) == "Max" || functor(root) == "Min";
    if (level.is_vectorised && keeps_nan && info(graph[root].type.dtype).is_float) {
      level.nan_flag = scopes.fresh();
      scopes.append(depth, Statement::var("i32", level.nan_flag, "0"));
    }
  } else {
    const int64_t count = array_length(schedule, array_loops(schedule, level.blocks)).value();
    for (const std::string& name : names)
      scopes.append(depth, Statement::array(level.type, name, count));
    reopen(level.blocks, [&] {
      for (const std::string& name : names) scopes.assign(this->at(level, name), identity);
    });
  }
  levels[root].push_back(level);
}

NodeList ReductionLowering::reduced_below(int block) const {
  NodeList found = roots_below(schedule, block);
  std::erase_if(found, [&](NodeId root) {
    return family(graph[root]) != Family::kReduce ||
           !reduces_loop(schedule, space_of(schedule, root), schedule.blocks[block].loop);
  });
  return found;
}

NodeList ReductionLowering::open_levels(int block) {
  NodeList opened;
  for (NodeId root : reduced_below(block)) {
    const bool is_strip = is_strip_of_sum(root, block);
    const bool has_lanes = !levels[root].empty() && !levels[root].back().lane.empty();
    if (levels[root].empty() || (is_vectorised_loop(block) && !has_lanes) || is_strip) {
      open_level(root, block, is_strip);
      opened.push_back(root);
    }
    if (find_carry(graph, schedule, root, block) == 0) continue;
    open_level(root, block, true);
    opened.push_back(root);
  }
  return opened;
}

void ReductionLowering::carry_over(const NodeList& opened, int block) {
  for (NodeId root : std::set<NodeId>(opened.begin(), opened.end())) {
    const int trips = find_carry(graph, schedule, root, block);
    if (trips == 0) continue;
    const std::vector<Accumulator>& stack = levels[root];
    const Accumulator &inner = stack.back(), &outer = stack[stack.size() - 2];
    const std::string last = std::to_string(trips - 1);
    const std::string is_full =
        "(" + scopes.loop_name(schedule.blocks[block].loop) + " & " + last + ") == " + last;
    reopen(inner.blocks, [&] {
      auto replace = [&](const Accumulator& level, const std::string& value) {
        scopes.assign(at(level), is_full + " ? " + value + " : " + at(level));
      };
      replace(outer, functor(root) + "::apply(" + at(outer) + ", " + at(inner) + ")");
      replace(inner, functor(root) + "::identity<" + inner.type + ">()");
    });
  }
}

bool ReductionLowering::is_strip_of_sum(NodeId root, int block) const {
  const auto stack = levels.find(root);
  return is_written_out(schedule, schedule.blocks[block].loop) && stack != levels.end() &&
         !stack->second.empty() && stack->second.back().is_wide;
}

NodeList ReductionLowering::open_cascade(int block) {
  if (schedule.loops[schedule.blocks[block].loop].level != Level::kChunk) return {};
  NodeList cascaded = reduced_below(block);
  std::erase_if(cascaded, [&](NodeId root) {
    return !is_cascaded(graph, schedule, space_of(schedule, root));
  });
  for (NodeId root : cascaded) open_level(root, block, true);
  return cascaded;
}

std::string ReductionLowering::result_of(NodeId root, const Accumulator& level) const {
  const auto whole = [&](const std::string& name) {
    return level.lane.empty() ? at(level, name) : "add_lanes(" + name + ")";
  };
  if (!level.rest.empty()) return "join_sum(" + whole(level.name) + ", " + whole(level.rest) + ")";
  if (level.nan_flag.empty()) return whole(level.name);
  return "(" + level.nan_flag + " ? quiet_nan<" + accumulator_type(root) + ">() : " + at(level) +
         ")";
}

void ReductionLowering::combine_into(NodeId root, const Accumulator& level,
                                     const std::string& value, const std::string& type,
                                     const char* how) {
  const std::string target = at(level), term = in_type(level.type, value, type);
  const std::string sum = level.rest.empty() ? target : target + ", " + at(level, level.rest);
  const std::string both = "(" + sum + ", " + term + ")";
  if (level.rest.empty())
    scopes.assign(target, concat(functor(root), "::", how, both));
  else
    scopes.append(Statement::call("add_exactly" + both));
}

void ReductionLowering::close_levels(const NodeList& opened) {
  NodeList last;  // whose results are complete then
  for (NodeId root : opened)
    if (levels[root].size() == 1)
      last.push_back(root);
    else
      close_level(root);
  // Threads combine equal scalars in one step: s_3 and s_4 as an array of two.
  const auto is_scalar = [&](NodeId root) {
    return levels[root][0].blocks.empty() && reduced_threads(root) != 0;
  };
  const auto agree = [&](NodeId a, NodeId b) {
    return is_scalar(a) && is_scalar(b) && functor(a) == functor(b) &&
           levels[a][0].type == levels[b][0].type && reduced_threads(a) == reduced_threads(b);
  };
  for (auto first = last.begin(), end = first; first != last.end(); first = end) {
    end = std::find_if_not(first + 1, last.end(), [&](NodeId id) { return agree(*first, id); });
    if (end - first == 1)
      close_level(*first);
    else
      close_together({first, end});
  }
}

void ReductionLowering::close_level(NodeId root) {
  const Accumulator inner = levels[root].back();
  levels[root].pop_back();
  const bool is_array = levels[root].empty() && !inner.blocks.empty() && reduced_threads(root) != 0;
  if (is_array)
    combine_each(root, inner.name, inner.type,
                 *array_length(schedule, array_loops(schedule, inner.blocks)));
  reopen(inner.blocks, [&] {
    const std::string result = result_of(root, inner);
    if (is_array) return finish_element(root, result, inner.type);
    if (levels[root].empty()) return combine_element(root, result, inner.type);
    combine_into(root, levels[root].back(), result, inner.type);
  });
}

void ReductionLowering::close_together(const NodeList& roots) {
  const std::string name = scopes.fresh(), type = levels[roots[0]][0].type;
  scopes.append(Statement::array(type, name, std::ssize(roots)));
  const auto element = [&](size_t i) { return concat(name, "[", i, "]"); };
  for (size_t i = 0; i < roots.size(); ++i)
    scopes.assign(element(i), result_of(roots[i], levels[roots[i]][0]));
  combine_each(roots[0], name, type, std::ssize(roots));
  for (size_t i = 0; i < roots.size(); ++i) {
    levels[roots[i]].pop_back();
    finish_element(roots[i], element(i), type);
  }
}

// Do a thread's elements follow each other in the order of their indices?
bool ReductionLowering::ascends(const RootSpace& space, const IndexExpr& flat) const {
  int axes = 0;
  for (int a = 0; a < std::ssize(schedule.axes); ++a) {
    if (role_of(space, schedule.axes[a].axis) != Role::kReduced) continue;
    ++axes;
    if (!axis_coefficient(schedule, values.vars, flat, a).is(1)) return false;
  }
  return axes == 1 && walks_atoms_alone(values.vars, flat);
}

void ReductionLowering::accumulate(NodeId root, const Scalar& value) {
  std::string text = value.text;
  const char* how = "apply";
  const std::string type = accumulator_type(root);
  const RootSpace& space = space_of(schedule, root);
  if (is_arg_reduction(graph[root])) {
    const Atoms& atoms = schedule.spaces.atoms;
    const Index index = index_from_atoms(atoms, space.dims, values.vars);
    const IndexExpr flat = reduced_index(atoms, space, index);
    const Scalar place = scopes.print(flat, values.vars, values.values);
    const char* index_type = scopes.has_short_indices ? "i32" : "i64";
    text = concat(type, "{", text, ", ", index_type, "(", place.text, ")}");
    if (ascends(space, flat)) how = "next";
  }
  // False in threads past the end of a reduced axis, which have its last elements or none.  What is
  // combined again changes sums and products alone.
  const bool adds_up = functor(root) == "Sum" || functor(root) == "Prod";
  std::string inside;
  for (size_t a = 0; a < schedule.axes.size(); ++a) {
    const MappedAxis& mapped = schedule.axes[a];
    if (mapped.is_exact || role_of(space, mapped.axis) != Role::kReduced) continue;
    if (mapped.axis.extent.is_constant() && !values.skips_past_end && !adds_up) continue;
    inside += (inside.empty() ? "ok" : " & ok") + std::to_string(a);
  }
  if (!inside.empty())
    text = "(" + inside + ") ? " + text + " : " + functor(root) + "::identity<" + type + ">()";
  if (levels[root].empty()) return combine_element(root, text, type);
  const Accumulator& level = levels[root].back();
  const std::string target = at(level);
  if (level.type == "i32" && type == "bool")
    return scopes.assign(target, target + " " + clause_of(functor(root)) + " i32(" + text + ")");
  if (level.nan_flag.empty()) return combine_into(root, level, text, type, how);
  // The form that reduction(max:) and reduction(min:) vectorise; NaN is noted beside it.
  const char* than = functor(root) == "Max" ? " < " : " > ";
  scopes.assign(target, target + than + text + " ? " + text + " : " + target);
  scopes.assign(level.nan_flag, level.nan_flag + " | i32(" + text + " != " + text + ")");
}

void ReductionLowering::declare_homes(int block) {
  for (const RootSpace& space : schedule.spaces.roots) {
    const NodeId root = space.root;
    if (family(graph[root]) != Family::kReduce || home_block(schedule, root) != block) continue;
    OnChip home{scopes.fresh(), {}, scopes.depth()};
    home.loops = array_loops(schedule, kept_blocks_below(schedule, root, block));
    // What is stored is rounded, and so is it for all that is made of it, here or where it is read.
    const bool is_wide =
        is_cascaded(graph, schedule, space) && !std::ranges::count(stage.stores, root);
    const std::string& type = home.type = is_wide ? "f64" : values.register_type(root);
    const int64_t count = array_length(schedule, home.loops).value();
    scopes.append(home.loops.empty() ? Statement::var(type, home.name)
                                     : Statement::array(type, home.name, count));
    values.on_chip[root] = home;
  }
}

std::string ReductionLowering::exchange(unsigned threads, const std::string& type) const {
  if (threads >> kLaneBits == 0) return concat("static_cast<", type, "*>(0)");  // no warps meet
  const int first = schedule.bounds.persistent_shared_bytes;
  return concat("reinterpret_cast<", type, "*>(shared", first > 0 ? concat(" + ", first) : "", ")");
}

void ReductionLowering::combine_each(NodeId root, const std::string& array, const std::string& type,
                                     int64_t count) {
  const unsigned mask = reduced_threads(root);
  const int slots = exchange_slots(schedule, space_of(schedule, root));
  const std::string call =
      concat("all_reduce_each<", functor(root), ", ", mask, "u, ", schedule.threads, ", ", count,
             slots > 1 ? concat(", ", slots) : "", ">(", array, ", ", exchange(mask, type), ")");
  scopes.append({.kind = Statement::Kind::kReduce, .name = array, .expr = call});
}

void ReductionLowering::combine_element(NodeId root, const std::string& partial,
                                        const std::string& type) {
  const unsigned mask = reduced_threads(root);
  if (mask == 0) return finish_element(root, partial, type);
  const std::string name = scopes.fresh();
  scopes.append({Statement::Kind::kReduce, type, name,
                 concat("all_reduce<", functor(root), ", ", mask, "u, ", schedule.threads, ">(",
                        type, "(", partial, "), ", exchange(mask, type), ")")});
  finish_element(root, name, type);
}

void ReductionLowering::finish_element(NodeId root, std::string result, std::string type) {
  const RootSpace& space = space_of(schedule, root);
  const std::string own = values.register_type(root);
  if (is_arg_reduction(graph[root])) {
    result = "(" + result + ").index";
    type = own;
  }
  if (auto home = values.on_chip.find(root); home != values.on_chip.end())
    scopes.assign(values.element(home->second).text, in_type(home->second.type, result, type));
  if (std::ranges::count(stage.stores, root)) {
    const Index index = index_from_atoms(schedule.spaces.atoms, kept_dims(space), values.vars);
    values.store(root, element_offset(graph[root].type, index), in_type(own, result, type),
                 scopes.depth(), store_predicate(space));
  }
}

std::string ReductionLowering::store_predicate(const RootSpace& space) const {
  std::vector<std::string> conditions;
  for (size_t a = 0; a < schedule.axes.size(); ++a) {
    const MappedAxis& mapped = schedule.axes[a];
    const std::string id = std::to_string(a);
    const Role role = role_of(space, mapped.axis);
    if (role == Role::kKept && !mapped.is_exact) conditions.push_back("ok" + id);
    if (role == Role::kAbsent && mapped.in_grid()) conditions.push_back("(g" + id + " == 0)");
  }
  // Replicated along every thread bit that is not one of its kept axes': the first thread stores.
  const unsigned kept = thread_bits(schedule, space, Role::kKept);
  const unsigned replicated = static_cast<unsigned>(schedule.threads - 1) & ~kept;
  if (replicated != 0) conditions.push_back(concat("((tid() & ", replicated, ") == 0)"));
  return join(conditions, " & ");
}

std::string ReductionLowering::simd_pragma(int block, const std::vector<Statement>& body) const {
  std::map<std::string, std::vector<std::string>> clauses;  // operator -> names
  for (const auto& [report, flag] : values.collected())
    if (assigns(body, flag)) clauses["|"].push_back(flag);
  for (const auto& [root, stack] : levels) {
    if (stack.empty() || stack.back().opened_by != block) continue;
    const Accumulator& level = stack.back();
    if (is_arg_reduction(graph[root]) || !level.blocks.empty()) return "";
    if (!level.is_vectorised) continue;
    clauses[clause_of(functor(root))].push_back(level.name);
    if (!level.rest.empty()) clauses["+"].push_back(level.rest);
    if (!level.nan_flag.empty()) clauses["|"].push_back(level.nan_flag);
  }
  std::string text = "omp simd";
  for (const auto& [op, names] : clauses)
    text += concat(" reduction(", op, ":", join(names, ","), ")");
  return "_Pragma(\"" + text + "\")";
}

bool ReductionLowering::uses_array_loop(int loop) const {
  const auto is_over = [&](int block) { return schedule.blocks[block].loop == loop; };
  return std::ranges::any_of(
      levels | std::views::values | std::views::join,
      [&](const Accumulator& level) { return std::ranges::any_of(level.blocks, is_over); });
}

bool ReductionLowering::takes_positions_along(int block) const {
  const int loop = schedule.blocks[block].loop;
  return std::ranges::any_of(schedule.spaces.roots, [&](const RootSpace& space) {
    if (!combines_at_indices(info(graph[space.root]))) return false;
    const std::vector<int> path = path_to(schedule, space.root);
    return std::ranges::count(path, block) > 0 && reduces_loop(schedule, space, loop);
  });
}

void ReductionLowering::begin_scatters(int block) {
  for (const RootSpace& space : schedule.spaces.roots) {
    const bool is_scatter = combines_at_indices(info(graph[space.root]));
    if (is_scatter && find_reduced_block(schedule, space.root) == block)
      begin_scatter(space.root, kept_blocks_below(schedule, space.root, block));
  }
}

void ReductionLowering::begin_scatter(NodeId root, const std::vector<int>& kept_blocks) {
  const Node& node = graph[root];
  STITCH_CHECK(!schedule.device->is_cuda, "scatters are combined by one thread of a block");
  STITCH_CHECK(graph[skip_views(graph, node.inputs[0])].op == OpKind::k_full,
               "what a scatter begins with is no constant");
  const Dim& rows = node.type.shape[node.ints[0]];
  const Handle end = values.add({scopes.print(rows), 0}), first = values.add({"0", 0});
  const Handle row = values.open_segment(first, end, scopes.depth());
  Index index = index_from_atoms(schedule.spaces.atoms, space_of(schedule, root).dims, values.vars);
  index[node.ints[0]] = values.as_index(row, rows);
  reopen(kept_blocks, [&] {
    const Handle initial = walk(graph, values, node.inputs[0], index);
    const Scalar at = scopes.print(element_offset(node.type, index), values.vars, values.values);
    store_at(root, at, values.values[initial]);
  });
  values.close_segment();
}

void ReductionLowering::scatter(NodeId root, const IndexExpr& offset, const Scalar& element) {
  if (find_reduced_block(schedule, root) < 0) begin_scatter(root, {});
  const Scalar at = scopes.print(offset, values.vars, values.values);
  const std::string text =
      concat(functor(root), "::apply(", place(root, at), ", ", element.text, ")");
  store_at(root, at, {text, element.depth});
}

void ReductionLowering::store_at(NodeId root, const Scalar& at, const Scalar& value) {
  const DTypeInfo& dtype = info(graph[root].type.dtype);
  STITCH_CHECK(std::string(dtype.device_name) == dtype.register_name,
               "a scatter combines what registers do not hold: " << dtype.name);
  const int depth = std::max({at.depth, value.depth, scopes.depth()});
  scopes.append(depth, Statement::assign(place(root, at), value.text,
                                         store_predicate(space_of(schedule, root))));
}

}  // namespace stitch
