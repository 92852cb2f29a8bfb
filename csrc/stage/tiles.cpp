#include "stage/tiles.h"

#include "stage/persistent_values.h"

namespace stitch {
namespace {

constexpr int64_t kFewestIndices = 8;  // of both axes: a tile of fewer saves no access
// Measured on one core, 64 MB of every element size, extents a power of two and prime: a kilobyte
// along and 128 elements across cost 1.2 to 1.8 times a copy, 64 by 64 elements up to 2.5, strided
// accesses 5 to 300 times.
constexpr int64_t kMostAlong = 256, kMostAcross = 128;
// Rows that one tile stores far from each other should each be this long, or be few.
constexpr int64_t kShortRowBytes = 512;
constexpr int64_t kHostLineBytes = 64;
// Of all tiles: within a core's L2 cache, on its stack.
constexpr int64_t kHostTileBytes = 320 << 10;

// On a GPU: whole sectors are read along, 64 elements across are 16 lanes of 16 bytes.
constexpr int64_t kCudaSide = 64, kCudaRows = 32;
constexpr int64_t kStaticSharedBytes = 48 << 10;

constexpr int64_t kMostStep = 4;
// Elements from index to index along an axis on which a load has tiles: 1 where it is contiguous,
// on a host also a few, as all lines are read once then; 0 where it has none.
int64_t step_along(const StageSchedule& schedule, const Dim& coefficient) {
  if (!coefficient.is_constant()) return 0;
  const int64_t step = coefficient.value(), most = schedule.device->is_cuda ? 1 : kMostStep;
  return step >= 1 && step <= most && (step & (step - 1)) == 0 ? step : 0;
}

// Read without conditions, every term an atom: its place in a tile is known without looking.
bool can_be_tiled(const StageSchedule& schedule, const Access& access) {
  return !access.is_store && !access.is_guarded && !access.in_segment &&
         walks_atoms_alone(schedule.accesses.vars, access.offset);
}

std::vector<const Access*> tiled_accesses(const StageSchedule& schedule, const TileAxes& axes) {
  std::vector<const Access*> found;
  std::set<std::pair<NodeId, IndexExpr>> known;
  for (const Access& access : schedule.accesses.list) {
    if (!can_be_tiled(schedule, access)) continue;
    if (step_along(schedule, axis_coefficient(schedule, access, axes.along)) == 0) continue;
    if (axis_coefficient(schedule, access, axes.across).is(0)) continue;
    if (known.insert({access.value, access.offset}).second) found.push_back(&access);
  }
  return found;
}

// Some axis beside the one across is reduced.
bool reduces_beside(const std::vector<AxisFacts>& facts, const TileAxes& axes) {
  const auto reduced = std::ranges::count(facts, false, &AxisFacts::is_eligible);
  return reduced > (facts[axes.across].is_eligible ? 0 : 1);
}

// Blocks divide the axis along, so every root must keep it or do little without it; what reduces
// must have both axes, or blocks would repeat its work.
bool can_have_tiles(const StageSchedule& schedule, const std::vector<AxisFacts>& facts,
                    const TileAxes& axes) {
  const AxisFacts &along = facts[axes.along], &across = facts[axes.across];
  if (!along.is_eligible || std::min(along.extent, across.extent) < kFewestIndices) return false;
  // A piece's loop is inside that of the axis across.
  if (std::ranges::count(facts, true, &AxisFacts::is_piece) > 0) return false;
  // A block's threads walk a tile together: nothing else may tell their indices apart.
  if (schedule.device->is_cuda && reduces_beside(facts, axes)) return false;
  if (!across.is_eligible && !schedule.axes[axes.across].axis.extent.is_constant()) return false;
  for (const RootSpace& space : schedule.spaces.roots) {
    if (space.reduced_atoms.empty()) continue;
    for (int axis : {axes.along, axes.across})
      if (role_of(space, schedule.axes[axis].axis) == Role::kAbsent) return false;
  }
  return true;
}

// Elements from row to row.  On the host a cache line more than the row, so that rows are in
// different sets of the cache; on a GPU 16 bytes more than all banks, or several times as many, so
// that two lanes along and 16 across write to different banks, and vectors are read whole.
int64_t tile_pitch(const StageSchedule& schedule, int64_t across, int bytes) {
  const bool is_cuda = schedule.device->is_cuda;
  const int64_t step = (is_cuda ? kBankBytes : kHostLineBytes) / bytes;
  return round_up(across, step) + (is_cuda ? 16 / bytes : step);
}

// Do the rows that a tile stores lie apart, each a short one?
bool stores_short_rows(const Graph& graph, const StageSchedule& schedule,
                       const std::vector<AxisFacts>& facts, const TileAxes& axes) {
  const Axis& across = schedule.axes[axes.across].axis;
  return std::ranges::any_of(schedule.accesses.list, [&](const Access& access) {
    if (!access.is_store || !axis_coefficient(schedule, access, axes.across).is(1)) return false;
    const Dim step = axis_coefficient(schedule, access, axes.along);
    const int64_t bytes = facts[axes.across].extent * element_bytes(graph, access.value);
    return !step.is(0) && !(step == across.extent) && bytes < kShortRowBytes;
  });
}

}  // namespace

TileAxes find_inner_axes(const Graph& graph, const StageSchedule& schedule,
                         const std::vector<AxisFacts>& facts, const std::vector<int>& group) {
  std::map<std::pair<int, int>, double> tiled;  // across, along -> bytes
  for (const Access& access : schedule.accesses.list) {
    if (!can_be_tiled(schedule, access)) continue;
    int along = -1;  // the axis of the shortest step, if one has it alone
    int64_t shortest = kMostStep + 1;
    for (int axis : group) {
      const int64_t step = step_along(schedule, axis_coefficient(schedule, access, axis));
      if (step == 0 || step > shortest) continue;
      along = step == shortest ? -1 : axis;
      shortest = step;
    }
    if (along < 0) continue;
    const double bytes = accessed_bytes(graph, schedule, access);
    for (int axis : group)
      if (axis != along && !axis_coefficient(schedule, access, axis).is(0))
        tiled[{axis, along}] += bytes;
  }
  std::map<int, std::pair<double, int>> best;  // across -> bytes, along
  for (const auto& [axes, bytes] : tiled) {
    const TileAxes found{axes.first, axes.second};
    if (bytes <= best[found.across].first || !can_have_tiles(schedule, facts, found)) continue;
    if (shape_tiles(graph, schedule, facts, found)) best[found.across] = {bytes, found.along};
  }
  TileAxes inner;
  std::pair<double, double> most{-1, 0};  // of as many bytes those that need no tile come first
  for (int axis : group) {
    const auto at = best.find(axis);
    const bool has_tiles = at != best.end() && at->second.first > 0;
    const double plain = facts[axis].unit_stride_bytes;
    const std::pair bytes{plain + (has_tiles ? at->second.first : 0), plain};
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
  for (const Access* access : accesses)
    widest = std::max(widest, element_bytes(graph, access->value));
  const bool is_whole = !facts[axes.across].is_eligible, is_cuda = schedule.device->is_cuda;
  TileShape shape{is_cuda ? (is_whole ? kCudaRows : kCudaSide) : kMostAlong,
                  is_cuda ? kCudaSide : kMostAcross};
  if (is_whole) shape.across = schedule.axes[axes.across].axis.extent.value();
  const int64_t line = (is_cuda ? kSectorBytes : kHostLineBytes) / widest;
  const bool is_short = !is_cuda && stores_short_rows(graph, schedule, facts, axes);
  // Sums along others go into arrays as large as a tile.
  if (reduces_beside(facts, axes) || is_short) shape.along = line;
  const int64_t row_bytes =
      std::ssize(accesses) * tile_pitch(schedule, shape.across, widest) * widest;
  const int64_t partial_bytes = kMostPartialBytes * std::max(kTileThreads, schedule.bounds.least);
  const int64_t budget = is_cuda ? kStaticSharedBytes - partial_bytes : kHostTileBytes;
  while (shape.along > line && shape.along * row_bytes > budget) shape.along /= 2;
  return shape.along * row_bytes <= budget ? std::optional(shape) : std::nullopt;
}

void place_tiles(const Graph& graph, const TileAxes& axes, StageSchedule& schedule) {
  const Axis& along = schedule.axes[axes.along].axis;
  for (const Access* access : tiled_accesses(schedule, axes)) {
    const int64_t rows = schedule.axes[axes.along].tile().value();
    const int64_t across = schedule.axes[axes.across].tile().value();
    const int bytes = element_bytes(graph, access->value);
    int vector = std::max(1, std::min(8, schedule.device->vector_bytes / bytes));
    auto is_aligned = [&] {
      return is_divisible(along.extent, vector) && rows % vector == 0 &&
             is_aligned_along(schedule, schedule.accesses.vars, access->offset, axes.along, vector);
    };
    while (vector > 1 && !is_aligned()) vector /= 2;
    const int64_t step = axis_coefficient(schedule, *access, axes.along).value();
    schedule.tiles.push_back({access->value, access->offset, axes.along, axes.across, rows,
                              tile_pitch(schedule, across, bytes), step, vector});
  }
}

void reserve_tiles(const Graph& graph, StageSchedule& schedule) {
  if (!schedule.device->is_cuda) return;
  std::erase_if(schedule.tiles, [&](const TiledLoad& tile) {
    return find_persistent(schedule, tile.value) != nullptr;
  });
  const int before = schedule.shared_bytes;
  for (TiledLoad& tile : schedule.tiles) {
    tile.shared_offset = static_cast<int>(round_up(schedule.shared_bytes, 16));
    schedule.shared_bytes = tile.shared_offset + static_cast<int>(tile_bytes(graph, tile));
  }
  // Blocks that must be resident beside each other share a multiprocessor's.
  const int64_t most = count_shared_bytes(*schedule.device, schedule.bounds.per_multiprocessor);
  if (schedule.shared_bytes <= most) return;
  schedule.tiles.clear();
  schedule.shared_bytes = before;
}

}  // namespace stitch
