// Transposes: loads contiguous along an axis that lanes do not walk come through tiles on chip.
//
// In: axes that are not mapped yet, then mapped ones.  Out: the two axes of the tiles, and the
// loads that have one.  A tile holds every element that its block needs of two axes, at one index
// of the others: blocks divide both, or hold the whole of an axis that is reduced.
#pragma once

#include "stage/map_axes.h"

namespace stitch {

// Threads of a block on a GPU that share a tile, where nothing asks for more.
inline constexpr int kTileThreads = 256;

struct TileAxes {
  int across = -1;  // lanes walk it
  int along = -1;   // the loads are contiguous along it
};

// The innermost axis: most bytes are contiguous along it, or would be by way of tiles.  With the
// axis that tiles would be contiguous along, if there are any.
TileAxes find_inner_axes(const Graph& graph, const StageSchedule& schedule,
                         const std::vector<AxisFacts>& facts, const std::vector<int>& group);

// Indices of a block along and across, for tiles that fit on chip together; none where no tile
// does.  `across` is the whole axis where it is reduced.
struct TileShape {
  int64_t along = 0, across = 0;
};
std::optional<TileShape> shape_tiles(const Graph& graph, const StageSchedule& schedule,
                                     const std::vector<AxisFacts>& facts, const TileAxes& axes);

// Fills schedule.tiles, once the axes are mapped.
void place_tiles(const Graph& graph, const TileAxes& axes, StageSchedule& schedule);

inline int64_t tile_bytes(const Graph& graph, const TiledLoad& tile) {
  return tile.rows * tile.pitch * element_bytes(graph, tile.value);
}

// Gives tiles their places in a block's shared memory, behind what reductions use; drops those of
// persistent values, and all where blocks that must be resident together have not the room.
void reserve_tiles(const Graph& graph, StageSchedule& schedule);

// The tile of an access, if it has one; nullptr otherwise.
inline const TiledLoad* find_tile(const StageSchedule& schedule, NodeId value,
                                  const IndexExpr& offset) {
  for (const TiledLoad& tile : schedule.tiles)
    if (tile.value == value && tile.offset == offset) return &tile;
  return nullptr;
}

}  // namespace stitch
