// Loads through tiles (schedule/stage_tiles.h): a block fills its tile once for each index of the
// axes that the tile does not hold, then reads elements across it.
#include <algorithm>

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
    const bool is_inside =
        std::any_of(schedule.axes.begin(), schedule.axes.end(), [&](const MappedAxis& mapped) {
          const auto at = &mapped - schedule.axes.data();
          const AtomList& atoms = mapped.axis.atoms;
          return (at == tile.along || at == tile.across) &&
                 std::find(atoms.begin(), atoms.end(), atom) != atoms.end();
        });
    if (!is_inside) rest.terms.add(var, coefficient);
  }
  return rest;
}

}  // namespace

Handle ValueLowering::load_tiled(const TiledLoad& tile) {
  const DType dtype = graph_[tile.value].type.dtype;
  auto known = tiles_.find(&tile);
  if (known == tiles_.end()) {
    const std::string name = scopes_.fresh(), type = info(dtype).device_name;
    const Scopes::Printed first = scopes_.print(without_axes(schedule_, vars, tile), vars, values);
    const std::string stride =
        scopes_.print(axis_coefficient(schedule_, vars, tile.offset, tile.across));
    const std::string address = "p" + std::to_string(pointer(tile.value, false)) + " + (" +
                                first.text + " + " + scopes_.block_begin(tile.along) + " + (" +
                                scopes_.block_begin(tile.across) + ") * " + stride + ")";
    const std::string fill = "fill_tile<" + std::to_string(tile.pitch) + ">(" + name + ", " +
                             address + ", " + stride + ", " + scopes_.block_end(tile.along) + ", " +
                             scopes_.block_end(tile.across) + ")";
    scopes_.append(
        first.depth,
        {Statement::Kind::kArray, type, name, "", "", "", "", tile.rows * tile.pitch, {}});
    scopes_.append(first.depth, {Statement::Kind::kCall, "", "", fill, "", "", "", 0, {}});
    values.push_back({name, first.depth});
    known = tiles_.emplace(&tile, static_cast<Handle>(values.size()) - 1).first;
  }
  const Scalar filled = values[known->second];
  const Scalar row = scopes_.axis_in_block(tile.along), at = scopes_.axis_in_block(tile.across);
  const std::string element =
      filled.text + "[" + row.text + " * " + std::to_string(tile.pitch) + " + " + at.text + "]";
  return let(info(dtype).register_name, in_register(dtype, element),
             std::max({filled.depth, row.depth, at.depth}));
}

}  // namespace stitch
