// The host mapping: blocks are pieces of the outermost kept axes, one thread walks a block, the
// contiguous axis is innermost so that the compiler vectorises it.
#include <algorithm>
#include <numeric>

#include "schedule/map_axes.h"

namespace stitch {
namespace {

// Elements of work that repay handing a block to another thread (about 5 us at one core's copy
// rate of 10 GB/s).
constexpr int64_t kBlockElements = 16384;
// Blocks per worker thread: enough to even out uneven progress.
constexpr int64_t kBlocksPerWorker = 4;
// Widest tile of a kept contiguous axis under a reduction: its accumulators stay in the L1 cache.
constexpr int64_t kColumnTile = 1024;
constexpr int64_t kColumnTileStep = 64;
// Sums run in chunks whose partial results are added up, so that rounding errors grow with the
// chunk and not with the extent; an innermost loop already sums in 16 vector lanes.  512 elements:
// RMSE of row sums within 1.2 of eager's, 2.5 with 4096 (measured, 2026-11).
constexpr int64_t kInnermostChunk = 512;
constexpr int64_t kOuterChunk = 128;
// Iterations written out inside a vectorised loop: their values should stay in registers.
constexpr int64_t kMostUnrolled = 8;

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

void put_in_grid(MappedAxis& axis, int64_t tile) {
  axis.in_grid = true;
  axis.tile = tile;
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

}  // namespace

void map_axes_host(const Graph& graph, StageSchedule& schedule, int worker_threads) {
  const std::vector<AxisFacts> facts = find_axis_facts(graph, schedule);
  std::vector<int> order(facts.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](int a, int b) { return facts[a].stride > facts[b].stride; });
  auto contiguous = std::max_element(order.begin(), order.end(), [&](int a, int b) {
    return facts[a].unit_stride_bytes < facts[b].unit_stride_bytes;
  });
  if (contiguous != order.end()) std::rotate(contiguous, contiguous + 1, order.end());

  int64_t work = 1;
  bool reduces = false;
  for (const AxisFacts& fact : facts) {
    work *= fact.extent;
    reduces |= !fact.is_eligible;
  }
  for (MappedAxis& axis : schedule.axes) axis.tile = axis.axis.extent;
  int64_t wanted = std::clamp<int64_t>(work / kBlockElements, 1, worker_threads * kBlocksPerWorker);
  for (size_t i = 0; i < order.size() && wanted > 1; ++i) {
    const AxisFacts& fact = facts[order[i]];
    MappedAxis& axis = schedule.axes[order[i]];
    if (!fact.is_eligible) continue;
    const bool innermost = i + 1 == order.size();
    int64_t tile = ceil_div(fact.extent, wanted);
    if (innermost) tile = ceil_div(tile, kColumnTileStep) * kColumnTileStep;
    put_in_grid(axis, tile);
    wanted = ceil_div(wanted, ceil_div(fact.extent, tile));
  }
  if (!order.empty() && reduces) {
    MappedAxis& last = schedule.axes[order.back()];
    const AxisFacts& fact = facts[order.back()];
    const int64_t tile = last.tile.is_constant() ? last.tile.value() : fact.extent;
    const bool has_columns = fact.is_eligible && is_column_axis(schedule, order.back());
    if (has_columns && (tile > kColumnTile || !last.tile.is_constant())) {
      put_in_grid(last, kColumnTile);
    }
  }
  const int64_t pieces = unroll_pieces(schedule, facts, order);
  for (size_t i = 0; i < order.size(); ++i) {
    MappedAxis& axis = schedule.axes[order[i]];
    axis.serial = axis.tile;
    axis.is_exact = true;  // host loops end at the extent
    if (axis.tile.is(1)) continue;
    const bool innermost = i + 1 == order.size() || schedule.axes[order[i + 1]].is_unrolled;
    const int64_t chunk = innermost ? kInnermostChunk / pieces : kOuterChunk;
    const bool is_long = !axis.tile.is_constant() || axis.tile.value() > 2 * chunk;
    if (facts[order[i]].is_summed && is_long && !axis.is_unrolled) {
      axis.chunk = chunk;
      schedule.loops.push_back({order[i], LoopSpec::Level::kChunk});
    }
    schedule.loops.push_back({order[i], LoopSpec::Level::kSerial});
  }
  schedule.threads = 1;
}

}  // namespace stitch
