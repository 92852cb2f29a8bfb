// ValueLowering's loads: from memory, through tiles, of what threads keep on chip; random numbers.

#include "codegen/load_ahead.h"
#include "codegen/lower_values.h"
#include "stage/block_ranges.h"
#include "stage/persistent_values.h"
#include "stage/tiles.h"

namespace stitch {

// What is left of an offset at the tile's first element, but for the block's place.
static IndexExpr without_axes(const StageSchedule& schedule, const IndexVars& vars,
                              const TiledLoad& tile) {
  IndexExpr rest{tile.offset.constant, {}};
  for (const auto& [var, coefficient] : tile.offset.terms) {
    const AtomId atom(vars[var].payload);
    const bool is_inside = std::ranges::any_of(std::array{tile.along, tile.across}, [&](int axis) {
      return std::ranges::count(schedule.axes[axis].axis.atoms, atom) > 0;
    });
    if (!is_inside) rest.terms.add(var, coefficient);
  }
  return rest;
}

// Neighbours whose random numbers come from one counter; 0 of what draws none.
static int counted_together(OpKind op) {
  const bool is_coarse = op == OpKind::k_coarse_random || op == OpKind::k_coarse_least;
  return is_coarse ? 8 : op == OpKind::k_random || op == OpKind::k_random_least ? 4 : 0;
}

// Where the vector's lanes are open.
int ValueLowering::vector_axis(const IndexExpr& offset) const {
  if (!segments_.empty()) return -1;
  const int axis = find_vector_axis(schedule_, vars, offset);
  if (axis < 0) return -1;
  return scopes_.axis_depth(axis, true) == scopes_.axis_depth(axis) ? -1 : axis;
}

bool ValueLowering::is_overwritten(NodeId load) const {
  return std::ranges::any_of(lowered_.pointers, [&](const KernelArgument& argument) {
    auto found = options_.stored_over.find(argument.value);
    return argument.is_store && found != options_.stored_over.end() && found->second == load;
  });
}

std::string ValueLowering::inside_axes(const IndexExpr& offset) const {
  std::set<int> ragged;
  for (VarId var : vars.leaves_of({&offset, 1})) {
    const int axis = vars[var].is_atom() ? scopes_.axis_of_atom(vars[var].payload) : -1;
    if (axis >= 0 && !schedule_.axes[axis].is_exact) ragged.insert(axis);
  }
  return join(ragged, " & ", [](int axis) { return concat("ok", axis); });
}

Scalar ValueLowering::place_of(NodeId value, const IndexExpr& offset, int without_vector) {
  const BlockBuffer* buffer = find_buffer(schedule_, value);
  if (!buffer) return scopes_.print(offset, vars, values, without_vector);
  std::optional<IndexExpr> placed = offset;
  if (buffer->pitch > buffer->length)
    placed = pad_rows(schedule_, offset, buffer->length, buffer->pitch);
  STITCH_CHECK(placed, "an access of a buffer leaves the rows it was checked for");
  Scalar at = scopes_.print(*placed, vars, values, without_vector);
  at.text += " - block * " + std::to_string(buffer->size());
  return at;
}

Handle ValueLowering::load_vector(NodeId value, const IndexExpr& offset, int axis, int guard) {
  const TensorType& type = graph_[value].type;
  const int width = schedule_.axes[axis].vector();
  const auto [known, is_new] = vectors_.try_emplace({value, offset, guard});
  if (is_new) {
    const int p = pointer(value, false);
    align(p, width * info(type.dtype).bytes);
    Scalar at = place_of(value, offset, axis);
    const std::string vec = vector_type(type.dtype, width);
    const std::string address = "p" + std::to_string(p) + " + (" + at.text + ")";
    const bool by_owner = !owner.empty() && is_overwritten(value);
    const std::string& condition = by_owner ? owner : values[guard].text;
    const std::string loaded_text =
        by_owner || guard != 0 ? concat("load_vec_if<", width, ">(", condition, ", ", address, ")")
                               : concat("load_vec<", width, ">(", address, ")");
    const int depth = std::max(at.depth, values[guard].depth);
    const PersistentValue* persistent = persistent_of(value, by_owner);
    known->second = persistent ? load_persistent(*persistent, vec, loaded_text, depth)
                               : let(vec, loaded_text, depth);
    scopes_.open[depth].statements.back().may_go_ahead =
        !persistent && !by_owner && guard == 0 && width * info(type.dtype).bytes == kAheadBytes;
  }
  return lane_of(known->second, axis, type.dtype);
}

Handle ValueLowering::lane_of(Handle vector, int axis, DType dtype) {
  const int lane = scopes_.loop_of(axis, Level::kVector);
  const std::string element = values[vector].text + ".v[" + scopes_.loop_name(lane) + "]";
  return let(info(dtype).register_name, in_register(dtype, element), scopes_.depth_of_loop(lane));
}

Handle ValueLowering::load(NodeId value, const IndexExpr& offset, int guard) {
  const TensorType& type = graph_[value].type;
  const TiledLoad* tile = find_tile(schedule_, value, offset);
  const bool by_owner = !owner.empty() && is_overwritten(value);
  if (tile && guard == 0 && !by_owner) return load_tiled(*tile);
  std::string condition = by_owner ? owner : "";
  for (size_t d = 0; d < type.shape.size(); ++d) {
    // The load may stand ahead of the loop over this extent, which may be 0.
    const bool moves = !type.strides[d].is(0), is_known = type.shape[d].is_constant();
    if (!type.shape[d].is(0) && (moves || is_known)) continue;
    condition += (condition.empty() ? "(" : " & (") + scopes_.size(type.shape[d]) + " > 0)";
  }
  const int axis = vector_axis(offset);
  const bool is_of_lanes = axis >= 0 && values[guard].depth >= scopes_.axis_depth(axis);
  if (axis >= 0 && (by_owner ? guard == 0 : condition.empty() && !is_of_lanes))
    return load_vector(value, offset, axis, guard);
  const std::string base = "p" + std::to_string(pointer(value, false));
  const Scalar at = place_of(value, offset);
  const int depth = std::max(at.depth, values[guard].depth);
  const auto require = [&](const std::string& text) {
    if (!text.empty()) condition = text + (condition.empty() ? "" : " & " + condition);
  };
  if (guard != 0) require(values[guard].text);
  if (skips_past_end) require(inside_axes(offset));
  std::string loaded = condition.empty()
                           ? base + "[" + at.text + "]"
                           : "load_if(" + condition + ", " + base + ", " + at.text + ")";
  if (const PersistentValue* persistent = persistent_of(value, by_owner))
    loaded = values[load_persistent(*persistent, info(type.dtype).device_name, loaded, depth)].text;
  return let(info(type.dtype).register_name, in_register(type.dtype, loaded), depth);
}

// Tiles (stage/tiles.h): a block fills its tile once for each index of the axes that the
// tile does not hold, then reads elements across it.

void ValueLowering::fill_tile(const TiledLoad& tile, const std::string& name, int depth) {
  const DType dtype = graph_[tile.value].type.dtype;
  const std::string type = info(dtype).device_name;
  const std::string first = scopes_.print(without_axes(schedule_, vars, tile), vars, values).text;
  const std::string stride =
      scopes_.print(axis_coefficient(schedule_, vars, tile.offset, tile.across));
  const int p = pointer(tile.value, false);
  const std::string step = tile.step > 1 ? " * " + std::to_string(tile.step) : "";
  std::string sizes = std::to_string(tile.pitch);
  if (schedule_.device->is_cuda) {
    const std::string at = concat("(shared + ", tile.shared_offset, ")");
    scopes_.append(depth, Statement::var(type + "*", name, "reinterpret_cast<" + type + "*>" + at));
    const int64_t across = schedule_.axes[tile.across].tile().value();
    sizes += concat(", ", across, ", ", tile.vector, ", ", schedule_.threads);
    align(p, tile.vector * info(dtype).bytes);
  } else {
    sizes += ", " + std::to_string(tile.step);
    scopes_.append(depth, Statement::array(type, name, tile.rows * tile.pitch));
  }
  // Sizes are numbered as they are met.
  const std::string last = scopes_.block_end(tile.across);
  const std::string ends = scopes_.block_end(tile.along) + ", " + last;
  const std::string across = scopes_.block_begin(tile.across);
  const std::string from = concat("p", p, " + (", first, " + ", scopes_.block_begin(tile.along),
                                  step, " + (", across, ") * ", stride, ")");
  scopes_.append(depth, Statement::call(concat("fill_tile<", sizes, ">(", name, ", ", from, ", ",
                                               stride, ", ", ends, ")")));
}

Handle ValueLowering::load_tiled(const TiledLoad& tile) {
  const DType dtype = graph_[tile.value].type.dtype;
  auto known = tiles_.find(&tile);
  if (known == tiles_.end()) {
    const int depth = scopes_.print(without_axes(schedule_, vars, tile), vars, values).depth;
    known = tiles_.emplace(&tile, add({scopes_.fresh(), depth})).first;
    fill_tile(tile, values[known->second].text, depth);
  }
  const Scalar filled = values[known->second];
  const Scalar row = scopes_.axis_in_block(tile.along);
  const int width = schedule_.axes[tile.across].vector();
  const bool is_vector =
      scopes_.axis_depth(tile.across) > scopes_.axis_depth(tile.across, true) && width > 1;
  const Scalar at = scopes_.axis_in_block(tile.across, is_vector);
  const std::string place = row.text + " * " + std::to_string(tile.pitch) + " + " + at.text;
  const int depth = std::max({filled.depth, row.depth, at.depth});
  if (!is_vector) {
    const std::string element = filled.text + "[" + place + "]";
    return let(info(dtype).register_name, in_register(dtype, element), depth);
  }
  const auto [vector, is_new] = vectors_.try_emplace({tile.value, tile.offset, 0});
  if (is_new) {
    const std::string loaded = concat("load_vec<", width, ">(", filled.text, " + (", place, "))");
    vector->second = let(vector_type(dtype, width), loaded, depth);
  }
  return lane_of(vector->second, tile.across, dtype);
}

// Persistent values: put on chip where they are first met, taken from there later.

// What only owners load first is of no use to the other threads.
const PersistentValue* ValueLowering::persistent_of(NodeId value, bool by_owner) {
  const PersistentValue* persistent = find_persistent(schedule_, value);
  if (!persistent || passed_over_.count(value)) return nullptr;
  if (!by_owner || !persistent->is_of_stage || held_.count(value)) return persistent;
  passed_over_.insert(value);
  return nullptr;
}

Handle ValueLowering::load_persistent(const PersistentValue& persistent, const std::string& type,
                                      const std::string& loaded, int depth) {
  const std::string held = take_persistent(persistent, type, loaded);
  const bool is_first = held_.insert(persistent.value).second;
  if (!is_first) return let(type, held, depth);
  std::vector<Statement>& statements = scopes_.open[depth].statements;
  if (persistent.is_filled) {
    put_persistent(persistent, loaded, "!has_" + array_of(persistent), statements);
    return let(type, held, depth);
  }
  const Handle fresh = let(type, loaded, depth);
  put_persistent(persistent, values[fresh].text, "", statements);
  return fresh;
}

// "shared + 4096, i0" : where the access's slot is.
std::string ValueLowering::slot_of(const PersistentValue& persistent, const std::string& at) const {
  const Home& home = persistent.home;
  const std::string slot = home.in_registers == 0 ? at : concat(at, " - ", home.in_registers);
  return concat("shared + ", home.shared_offset, ", ", slot);
}

std::string ValueLowering::take_persistent(const PersistentValue& persistent,
                                           const std::string& type,
                                           const std::string& loaded) const {
  const Home& home = persistent.home;
  const std::string at = scopes_.position(persistent.loops).text;
  const std::pair<int64_t, std::string> places[] = {
      {home.in_registers, "from_registers<" + type + ">(" + array_of(persistent) + "[" + at + "])"},
      {home.in_shared, "take_slot<" + type + ", " + std::to_string(schedule_.threads) + ">(" +
                           slot_of(persistent, at) + ")"},
      {home.in_memory, loaded}};
  std::string text;
  int64_t end = 0;
  for (const auto& [accesses, place] : places) {
    end += accesses;
    if (accesses == 0) continue;
    text += end < persistent.accesses ? concat(at, " < ", end, " ? ", place, " : ") : place;
  }
  return text;
}

void ValueLowering::put_persistent(const PersistentValue& persistent, const std::string& text,
                                   const std::string& predicate,
                                   std::vector<Statement>& statements) const {
  const Home& home = persistent.home;
  const std::string at = scopes_.position(persistent.loops).text;
  const int64_t end = home.in_registers + home.in_shared;
  const std::string border = concat(at, " < ", home.in_registers);
  auto only = [&](std::string condition) {
    if (home.in_memory > 0) condition += concat(condition.empty() ? "" : " && ", at, " < ", end);
    return condition + (condition.empty() || predicate.empty() ? "" : " && ") + predicate;
  };
  if (home.in_registers > 0)
    statements.push_back(Statement::assign(array_of(persistent) + "[" + at + "]",
                                           "to_registers(" + text + ")",
                                           only(home.in_shared > 0 ? border : "")));
  if (home.in_shared > 0) {
    const std::string put = "put_slot<" + std::to_string(schedule_.threads) + ">(" +
                            slot_of(persistent, at) + ", " + text + ")";
    statements.push_back(
        Statement::call(put, only(home.in_registers > 0 ? "!(" + border + ")" : "")));
  }
}

bool ValueLowering::keeps_in_registers_over(int loop) const {
  return std::ranges::any_of(schedule_.persistent, [&](const PersistentValue& persistent) {
    return persistent.home.in_registers > 0 && std::ranges::count(persistent.loops, loop) > 0;
  });
}

// Neighbours share a counter, which is computed once: on a GPU where they are the lanes of a
// vector, told by its first and the lane; on a host for all of a row, where a loop walks along the
// stream. The index is the last operand.
std::string ValueLowering::draw(const Node& node, const std::vector<Handle>& operands,
                                const std::string& arguments, int depth) {
  const int together = counted_together(node.op);
  if (together == 0) return {};
  const auto index = indices_.find(operands.back());
  const bool is_place = index != indices_.end();
  const auto text = [&](Handle operand) { return values[operand].text; };
  if (!schedule_.device->is_cuda) {
    const std::vector<Handle> stream(operands.end() - 3, operands.end() - 1);
    const bool is_fixed = values[stream[0]].depth == 0 && values[stream[1]].depth == 0;
    const Handle place =
        is_place ? add(scopes_.print(index->second, vars, values)) : operands.back();
    Statement word = Statement::let("u32", scopes_.fresh(),
                                    concat("draw_word<", together, ">(", join(stream, ", ", text),
                                           ", i64(", text(place), "))"));
    if (is_place && is_fixed) word.by_rows_along = contiguous_axis(index->second, depth);
    const std::string name = word.name;
    scopes_.append(depth, std::move(word));
    return operands.size() == 3 ? "to_uniform(" + name + ")"
                                : "(" + name + " >= u32(" + text(operands[0]) + "))";
  }
  const int axis = is_place ? vector_axis(index->second) : -1;
  if (axis < 0 || schedule_.axes[axis].vector() % 4 != 0)
    return concat(info(node).function, "(", arguments, ")");
  const std::string first = scopes_.print(index->second, vars, values, axis).text;
  std::string lane = scopes_.loop_name(axis, Level::kVector);
  if (schedule_.axes[axis].vector() % together != 0)
    lane = concat("i32((", first, ") & 4) + ", lane);
  const std::vector<Handle> others(operands.begin(), operands.end() - 1);
  return concat(info(node).function, "(", join(others, ", ", text), ", i64(", first, "), ", lane,
                ")");
}

}  // namespace stitch
