// The host mapping: blocks are pieces of the outermost kept axes, one thread walks a block, the
// contiguous axis is innermost so that the compiler vectorises it.

#include "stage/reduction_arrays.h"
#include "stage/tiles.h"

namespace stitch {
namespace {

// Elements of work that repay handing a block to another thread (5 us, as a core copies 10 GB/s).
constexpr int64_t kBlockElements = 16384;
// Blocks per worker thread: enough to even out uneven progress.
constexpr int64_t kBlocksPerWorker = 4;
// Widest tile of a kept contiguous axis under a reduction: its accumulators stay in the L1 cache.
constexpr int64_t kColumnTile = 1024;
constexpr int64_t kColumnTileStep = 64;
// Iterations that a vectorised loop keeps when it is cut into strips: a vector of f64.  Rows of 16
// and 32 elements take half and 0.7 of the time that vectors of 16 lanes take [M, 2026-11].
constexpr int64_t kFewestIterations = 4;
// Iterations written out inside a vectorised loop: their values should stay in registers.
constexpr int64_t kMostUnrolled = kMostStates;

// Elements of a tile that repay finding out where its block is.
constexpr int64_t kTileElements = 1024;
// Rows of a tile that are not divided further among threads.
constexpr int64_t kFewestAlong = 32;

void walk_strips(MappedAxis& axis, const Dim& length, int strips, int64_t spans) {
  axis.set(Level::kSerial, 1);
  axis.set(Level::kAlong, length);
  axis.set(Level::kStrip, strips);
  axis.set(Level::kSpan, spans);
}

// Puts the axes read at fixed indices inside the vectorised loop, so that all indices share what is
// evaluated at the fixed ones; answers how many iterations they make.  Accumulators that lie along
// such an axis would not vectorise.
int64_t unroll_pieces(StageSchedule& schedule, const std::vector<AxisFacts>& facts,
                      std::vector<int>& order) {
  int64_t trips = 1;
  for (int a : order) {
    const bool fits = trips * facts[a].extent <= kMostUnrolled;
    if (!facts[a].is_piece || !fits || is_column_axis(schedule, a)) continue;
    schedule.axes[a].is_unrolled = true;
    trips *= facts[a].extent;
  }
  std::stable_partition(order.begin(), order.end(),
                        [&](int a) { return !schedule.axes[a].is_unrolled; });
  return trips;
}

// Where no load moves along a kept axis, all its indices share what is computed.
bool shares_loads(const Graph& graph, const StageSchedule& schedule, int axis) {
  const Axis& atoms = schedule.axes[axis].axis;
  bool loads = false, moves = false;
  for (const Access& access : schedule.accesses.list) {
    if (access.is_store) continue;
    loads = true;
    moves |= access.is_guarded || !walks_atoms_alone(schedule.accesses.vars, access.offset) ||
             !axis_coefficient(schedule, access, axis).is(0);
  }
  const auto computes = [&](const Evaluation& evaluation) {
    return info(graph[evaluation.value]).cost > CostClass::kFree;
  };
  return atoms.extent.is_at_most(kMostUnrolled) && loads && !moves &&
         std::ranges::all_of(schedule.spaces.roots, [&](const RootSpace& space) {
           return family(graph[space.root]) != Family::kReduce &&
                  role_of(space, atoms) == Role::kKept &&
                  std::ranges::any_of(schedule.accesses.evaluated.at(space.root), computes);
         });
}

// The few terms that a sum adds first lie side by side where the vectorised loop is reduced: it is
// cut into strips, all of one extent.  Those of a span are one vector each, which has a sum for
// each lane; those of a whole row of 4 or 8 KB are streams of their own, and sums of 64 MB of such
// rows took 1.5 times as long as by spans [M, 2026-11].
void cut_strips(MappedAxis& axis, int lanes, int few_terms) {
  const Dim whole = axis.tile();
  const int64_t extent = whole.is_constant() ? whole.value() : 0;
  for (const int strips : {4, 3, 7, 5}) {
    const int64_t span = int64_t{strips} * lanes;
    if (strips > few_terms || span == 0 || extent <= span || extent % span != 0) continue;
    return walk_strips(axis, lanes, strips, extent / span);
  }
  for (int strips = kFewTerms; strips > 1; strips /= 2) {
    const auto length = divide_exact(whole, strips);
    if (!length || (length->is_constant() && length->value() < kFewestIterations)) continue;
    return walk_strips(axis, *length, strips, 1);
  }
}

// Where the vectorised loop is kept, the first sums of a chunk are an array along it.
void cut_chunks(StageSchedule& schedule, const std::vector<AxisFacts>& facts,
                const std::vector<int>& order) {
  int64_t left = kFewWideTerms;
  for (size_t i = order.size() - 1; i-- > 0 && left > 1;) {
    MappedAxis& axis = schedule.axes[order[i]];
    if (facts[order[i]].few_terms == 0 || axis.has(Level::kStrip)) continue;
    left = std::min<int64_t>(left, facts[order[i]].few_terms);
    const bool fits = axis.tile().is_at_most(left);
    if (!fits) {
      axis.set(Level::kSerial, left);
      axis.set(Level::kChunk, kOpen);
    }
    left = fits ? left / axis.tile().value() : 1;
  }
}

// Elements of a vector whose elements are the narrowest that it walks: GCC needs a loop of as many.
// 0 of a scatter, which may combine neighbours into one row.
int count_lanes(const Graph& graph, const StageSchedule& schedule, int axis) {
  for (const RootSpace& space : schedule.spaces.roots)
    if (combines_at_indices(info(graph[space.root]))) return 0;
  int bytes = info(DType::kF32).bytes;
  for (const Access& access : schedule.accesses.list)
    if (!axis_coefficient(schedule, access, axis).is(0))
      bytes = std::min(bytes, info(graph[access.value].type.dtype).bytes);
  return kVectorBytes / bytes;
}

// Do all roots that walk the axis walk it inside every other?
bool is_innermost_axis(const StageSchedule& schedule, const std::vector<int>& order, size_t at) {
  return std::ranges::none_of(schedule.spaces.roots, [&](const RootSpace& space) {
    const auto walks = [&](int axis) {
      return role_of(space, schedule.axes[axis].axis) != Role::kAbsent;
    };
    return walks(order[at]) && std::any_of(order.begin() + at + 1, order.end(), walks);
  });
}

// Can blocks divide the axis without repeating a reduction?
bool is_divisible_among_blocks(const StageSchedule& schedule, int axis) {
  return std::ranges::all_of(schedule.spaces.roots, [&](const RootSpace& space) {
    const Role role = role_of(space, schedule.axes[axis].axis);
    return role != Role::kReduced && (role == Role::kKept || space.reduced_atoms.empty());
  });
}

// Gives a block one tile, of both axes, and of the others one index, or a few where tiles are
// small.  Neighbouring blocks then are neighbours in memory, which measured 1.5 times as fast as
// loops over the other axes inside the block.
void cut_tiles(StageSchedule& schedule, const std::vector<AxisFacts>& facts, const TileAxes& inner,
               TileShape shape, int64_t wanted) {
  auto cut = [&](int a, int64_t most) {
    MappedAxis& axis = schedule.axes[a];
    if (!axis.tile().is_at_most(most)) put_in_grid(axis, most);
    return std::min(facts[a].extent, most);
  };
  std::vector<int> others;
  const int64_t across = cut(inner.across, shape.across);
  int64_t blocks = divide_up(facts[inner.across].extent, across);
  for (int a = 0; a < std::ssize(facts); ++a) {
    const bool is_inner = a == inner.along || a == inner.across;
    if (is_inner || !is_divisible_among_blocks(schedule, a)) continue;
    others.push_back(a);
    blocks *= facts[a].extent;
  }
  while (shape.along > kFewestAlong && blocks * facts[inner.along].extent < wanted * shape.along)
    shape.along /= 2;
  int64_t few = std::max<int64_t>(1, kTileElements / (across * cut(inner.along, shape.along)));
  for (size_t i = others.size(); i-- > 0;) {
    const int64_t tile = std::min(few, facts[others[i]].extent);
    const Dim& extent = schedule.axes[others[i]].axis.extent;
    if (!extent.is_constant() || tile < extent.value()) put_in_grid(schedule.axes[others[i]], tile);
    few = divide_up(few, tile);
  }
}

// Rows that chunks of a scatter combine beside each other: the core's second cache holds them.
constexpr int64_t kBesideBytes = 128 << 10;
constexpr int64_t kChunksBeside = 4, kFewestChunks = 4 * kChunksBeside;

// The innermost axis counts the positions of a scatter, the one around it chunks of them.  Of few
// rows, where neighbours often go to one, some chunks are walked side by side, so that a position
// waits for none of the others; answers how many.
int64_t put_chunks_beside(const Graph& graph, StageSchedule& schedule, std::vector<int>& order) {
  if (order.size() < 2 || schedule.spaces.roots.size() != 1) return 1;
  const RootSpace& space = schedule.spaces.roots.front();
  const Node& node = graph[space.root];
  MappedAxis &positions = schedule.axes[order.back()],
             &chunks = schedule.axes[order[order.size() - 2]];
  if (!combines_at_indices(info(node)) || role_of(space, positions.axis) != Role::kReduced)
    return 1;
  const Dim& extent = chunks.axis.extent;
  const bool is_plain = role_of(space, chunks.axis) == Role::kKept && extent.is_constant();
  if (!is_plain || extent.value() % kChunksBeside != 0 || extent.value() < kFewestChunks) return 1;
  const Dim& rows = node.type.shape[node.ints[0]];
  const int64_t row_bytes = kChunksBeside * info(node.type.dtype).bytes;
  if (!rows.is_constant() || rows.value() * row_bytes > kBesideBytes) return 1;
  put_in_grid(chunks, kChunksBeside);
  chunks.is_unrolled = true;
  std::swap(order[order.size() - 2], order.back());
  return kChunksBeside;
}

// Blocks for the threads, along the outermost axes that they may divide.
void divide_grid(StageSchedule& schedule, const std::vector<AxisFacts>& facts,
                 const std::vector<int>& order, int64_t wanted) {
  for (size_t i = 0; i < order.size() && wanted > 1; ++i) {
    const AxisFacts& fact = facts[order[i]];
    MappedAxis& axis = schedule.axes[order[i]];
    if (!fact.is_eligible || fact.is_piece || axis.in_grid()) continue;
    const bool innermost = i + 1 == order.size();
    int64_t tile = divide_up(fact.extent, wanted);
    if (innermost) tile = divide_up(tile, kColumnTileStep) * kColumnTileStep;
    if (axis.axis.extent.is_constant() && tile >= fact.extent) continue;  // one block
    put_in_grid(axis, tile);
    wanted = divide_up(wanted, divide_up(fact.extent, tile));
  }
}

}  // namespace

void map_axes_host(const Graph& graph, StageSchedule& schedule, int worker_threads) {
  std::vector<AxisFacts> facts = find_axis_facts(graph, schedule);
  std::vector<int> order = count_to(facts.size());
  std::ranges::stable_sort(order, std::greater(), [&](int a) { return facts[a].stride; });
  const TileAxes inner = find_inner_axes(graph, schedule, facts, order);
  for (int last : {inner.along, inner.across}) move_last(order, last);
  for (int a : order)
    facts[a].is_piece |= inner.along < 0 && order.size() > 1 && a != order.back() &&
                         shares_loads(graph, schedule, a);

  int64_t work = 1;
  for (const AxisFacts& fact : facts) work *= fact.extent;
  const int64_t wanted =
      std::clamp<int64_t>(work / kBlockElements, 1, worker_threads * kBlocksPerWorker);
  if (inner.along >= 0)
    cut_tiles(schedule, facts, inner, *shape_tiles(graph, schedule, facts, inner), wanted);
  else
    divide_grid(schedule, facts, order, wanted);
  const auto has_columns = [&](int a) {
    return facts[a].is_eligible && is_column_axis(schedule, a);
  };
  if (!order.empty() && has_columns(order.back())) {
    MappedAxis& last = schedule.axes[order.back()];
    if (!last.tile().is_at_most(kColumnTile)) put_in_grid(last, kColumnTile);
  }
  // Inside a loop that reduces, a kept axis needs an array along it, which needs a size.
  bool is_inside = false;
  for (size_t i = 0; i + 1 < order.size(); ++i) {
    MappedAxis& axis = schedule.axes[order[i]];
    is_inside |= !facts[order[i]].is_eligible;
    if (is_inside && has_columns(order[i]) && !axis.tile().is_constant()) put_in_grid(axis, 1);
  }
  int64_t pieces = unroll_pieces(schedule, facts, order);
  if (pieces == 1) pieces = put_chunks_beside(graph, schedule, order);
  for (MappedAxis& axis : schedule.axes)  // loops end at the extent
    if (!axis.in_grid()) axis.set(Level::kSerial, axis.axis.extent);
  std::erase_if(order, [&](int a) { return schedule.axes[a].tile().is(1); });
  if (!order.empty() && pieces == 1) {
    for (size_t at = 0; at < order.size(); ++at)
      if (facts[order[at]].takes_strips && is_innermost_axis(schedule, order, at))
        cut_strips(schedule.axes[order[at]], count_lanes(graph, schedule, order[at]),
                   facts[order[at]].few_terms);
    if (is_column_axis(schedule, order.back())) cut_chunks(schedule, facts, order);
  }
  for (int a : order) {
    for (const Level level : {Level::kChunk, Level::kSpan, Level::kAlong, Level::kStrip})
      if (schedule.axes[a].has(level)) schedule.loops.push_back({a, level});
    schedule.loops.push_back({a, Level::kSerial});
  }
  if (inner.along >= 0) place_tiles(graph, inner, schedule);
}

}  // namespace stitch
