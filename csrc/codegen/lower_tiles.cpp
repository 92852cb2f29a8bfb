// Loads through tiles (schedule/stage_tiles.h): a block fills its tile once for each index of the
// axes that the tile does not hold, then reads elements across it.
#include <algorithm>
#include <array>

#include "codegen/lower_values.h"
#include "schedule/map_axes.h"

namespace stitch {
namespace {

// What is left of an offset at the tile's first element, but for the block's place.
IndexExpr without_axes(const StageSchedule& schedule, const IndexVars& vars,
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

}  // namespace

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
    const std::string place =
        "reinterpret_cast<" + type + "*>(shared + " + std::to_string(tile.shared_offset) + ")";
    scopes_.append(depth, Statement::var(type + "*", name, place));
    sizes += ", " + std::to_string(schedule_.axes[tile.across].tile.value()) + ", " +
             std::to_string(tile.vector) + ", " + std::to_string(schedule_.threads);
    align(p, tile.vector * info(dtype).bytes);
  } else {
    sizes += ", " + std::to_string(tile.step);
    scopes_.append(depth, Statement::array(type, name, tile.rows * tile.pitch));
  }
  const std::string fill = "fill_tile<" + sizes + ">(" + name + ", p" + std::to_string(p) + " + (" +
                           first + " + " + scopes_.block_begin(tile.along) + step + " + (" +
                           scopes_.block_begin(tile.across) + ") * " + stride + "), " + stride +
                           ", " + scopes_.block_end(tile.along) + ", " +
                           scopes_.block_end(tile.across) + ")";
  scopes_.append(depth, Statement::call(fill));
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
  const int width = schedule_.axes[tile.across].vector;
  const bool is_vector =
      scopes_.axis_depth(tile.across) > scopes_.axis_depth(tile.across, true) && width > 1;
  const Scalar at = scopes_.axis_in_block(tile.across, is_vector);
  const std::string place = row.text + " * " + std::to_string(tile.pitch) + " + " + at.text;
  const int depth = std::max({filled.depth, row.depth, at.depth});
  if (!is_vector) {
    const std::string element = filled.text + "[" + place + "]";
    return let(info(dtype).register_name, in_register(dtype, element), depth);
  }
  auto vector = vectors_.find({tile.value, tile.offset});
  if (vector == vectors_.end()) {
    const std::string loaded =
        "load_vec<" + std::to_string(width) + ">(" + filled.text + " + (" + place + "))";
    const Handle made = let(vector_type(dtype, width), loaded, depth);
    vector = vectors_.emplace(std::pair(tile.value, tile.offset), made).first;
  }
  return lane_of(vector->second, tile.across, dtype);
}

}  // namespace stitch
