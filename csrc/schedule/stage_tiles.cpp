#include "schedule/stage_tiles.h"

#include <algorithm>
#include <map>

namespace stitch {
namespace {

constexpr int64_t kFewestIndices = 8;  // of both axes: a tile of fewer saves no access
// Measured on one core, 64 MB of every element size, extents a power of two and prime: a kilobyte
// along and 128 elements across cost 1.2 to 1.8 times a copy, 64 by 64 elements up to 2.5, strided
// accesses 5 to 300 times.
constexpr int64_t kMostAlong = 256, kMostAcross = 128;
// Rows that one tile stores far from each other should each be this long, or be few.
constexpr int64_t kShortRowBytes = 512;
constexpr int64_t kLineBytes = 64;
// Of all tiles: within a core's L2 cache, on its stack.
constexpr int64_t kHostTileBytes = 320 << 10;

// Read without conditions, every term an atom: its place in a tile is known without looking.
bool can_be_tiled(const StageSchedule& schedule, const Access& access) {
  if (access.is_store || access.is_guarded || access.in_segment) return false;
  const IndexTerms& terms = access.offset.terms;
  return std::all_of(terms.begin(), terms.end(), [&](const auto& term) {
    return schedule.accesses.vars[term.first].kind == IndexVar::Kind::kAtom;
  });
}

Dim coefficient(const StageSchedule& schedule, const Access& access, int axis) {
  return axis_coefficient(schedule, schedule.accesses.vars, access.offset, axis);
}

std::vector<const Access*> tiled_accesses(const StageSchedule& schedule, const TileAxes& axes) {
  std::vector<const Access*> found;
  for (const Access& access : schedule.accesses.list) {
    if (!can_be_tiled(schedule, access)) continue;
    if (!coefficient(schedule, access, axes.along).is(1)) continue;
    if (coefficient(schedule, access, axes.across).is(0)) continue;
    const bool is_known = std::any_of(found.begin(), found.end(), [&](const Access* other) {
      return other->value == access.value && other->offset == access.offset;
    });
    if (!is_known) found.push_back(&access);
  }
  return found;
}

// Blocks divide the axis along, so every root must keep it or do little without it; what reduces
// must have both axes, or blocks would repeat its work.
bool can_have_tiles(const StageSchedule& schedule, const std::vector<AxisFacts>& facts,
                    const TileAxes& axes) {
  const AxisFacts &along = facts[axes.along], &across = facts[axes.across];
  if (!along.is_eligible || std::min(along.extent, across.extent) < kFewestIndices) return false;
  if (std::any_of(facts.begin(), facts.end(), [](const auto& fact) { return fact.is_piece; })) {
    return false;  // a piece's loop is inside that of the axis across
  }
  if (!across.is_eligible && !schedule.axes[axes.across].axis.extent.is_constant()) return false;
  for (const RootSpace& space : schedule.spaces.roots) {
    if (space.reduced_atoms.empty()) continue;
    for (int axis : {axes.along, axes.across}) {
      if (role_of(space, schedule.axes[axis].axis) == Role::kAbsent) return false;
    }
  }
  return true;
}

// Rows a cache line apart in the sets of the cache, each beginning a line.
int64_t host_pitch(int64_t across, int bytes) {
  const int64_t line = kLineBytes / bytes;
  return (across + line - 1) / line * line + line;
}

// Do the rows that a tile stores lie apart, each a short one?
bool stores_short_rows(const Graph& graph, const StageSchedule& schedule,
                       const std::vector<AxisFacts>& facts, const TileAxes& axes) {
  const Axis& across = schedule.axes[axes.across].axis;
  return std::any_of(schedule.accesses.list.begin(), schedule.accesses.list.end(),
                     [&](const Access& access) {
                       if (!access.is_store || !coefficient(schedule, access, axes.across).is(1))
                         return false;
                       const Dim step = coefficient(schedule, access, axes.along);
                       const int64_t bytes =
                           facts[axes.across].extent * info(graph[access.value].type.dtype).bytes;
                       return !step.is(0) && !(step == across.extent) && bytes < kShortRowBytes;
                     });
}

}  // namespace

TileAxes find_inner_axes(const Graph& graph, const StageSchedule& schedule,
                         const std::vector<AxisFacts>& facts, const std::vector<int>& group) {
  std::map<std::pair<int, int>, double> tiled;  // across, along -> bytes
  for (const Access& access : schedule.accesses.list) {
    if (!can_be_tiled(schedule, access)) continue;
    std::vector<int> along, across;
    for (int axis : group) {
      const Dim step = coefficient(schedule, access, axis);
      if (!step.is(0)) (step.is(1) ? along : across).push_back(axis);
    }
    if (along.size() != 1) continue;
    const double bytes = accessed_bytes(graph, schedule, access);
    for (int axis : across) tiled[{axis, along.front()}] += bytes;
  }
  std::map<int, std::pair<double, int>> best;  // across -> bytes, along
  for (const auto& [axes, bytes] : tiled) {
    const TileAxes found{axes.first, axes.second};
    if (bytes <= best[found.across].first || !can_have_tiles(schedule, facts, found)) continue;
    if (shape_tiles(graph, schedule, facts, found)) best[found.across] = {bytes, found.along};
  }
  TileAxes inner;
  double most = -1;
  for (int axis : group) {
    const auto at = best.find(axis);
    const bool has_tiles = at != best.end() && at->second.first > 0;
    const double bytes = facts[axis].unit_stride_bytes + (has_tiles ? at->second.first : 0);
    if (bytes <= most) continue;
    most = bytes;
    inner = {axis, has_tiles ? at->second.second : -1};
  }
  return inner;
}

std::optional<TileShape> shape_tiles(const Graph& graph, const StageSchedule& schedule,
                                     const std::vector<AxisFacts>& facts, const TileAxes& axes) {
  const std::vector<const Access*> accesses = tiled_accesses(schedule, axes);
  int widest = 1;
  for (const Access* access : accesses) {
    widest = std::max(widest, info(graph[access->value].type.dtype).bytes);
  }
  const bool is_whole = !facts[axes.across].is_eligible;
  TileShape shape{kMostAlong,
                  is_whole ? schedule.axes[axes.across].axis.extent.value() : kMostAcross};
  bool sums_outside = false;  // into arrays as large as a tile
  for (size_t a = 0; a < facts.size(); ++a) {
    sums_outside |= !facts[a].is_eligible && static_cast<int>(a) != axes.across;
  }
  const int64_t line = kLineBytes / widest;
  if (sums_outside || stores_short_rows(graph, schedule, facts, axes)) shape.along = line;
  const int64_t row_bytes =
      static_cast<int64_t>(accesses.size()) * host_pitch(shape.across, widest) * widest;
  while (shape.along > line && shape.along * row_bytes > kHostTileBytes) shape.along /= 2;
  if (shape.along * row_bytes > kHostTileBytes) return std::nullopt;
  return shape;
}

void place_tiles(const Graph& graph, const TileAxes& axes, StageSchedule& schedule) {
  for (const Access* access : tiled_accesses(schedule, axes)) {
    const int64_t rows = schedule.axes[axes.along].tile.value();
    const int64_t across = schedule.axes[axes.across].tile.value();
    const int bytes = info(graph[access->value].type.dtype).bytes;
    schedule.tiles.push_back(
        {access->value, access->offset, axes.along, axes.across, rows, host_pitch(across, bytes)});
  }
}

const TiledLoad* find_tile(const StageSchedule& schedule, NodeId value, const IndexExpr& offset) {
  for (const TiledLoad& tile : schedule.tiles) {
    if (tile.value == value && tile.offset == offset) return &tile;
  }
  return nullptr;
}

}  // namespace stitch
