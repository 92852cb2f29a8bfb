// The CUDA mapping: lanes along the contiguous axis with 16-byte accesses, reduced axes inside the
// block, rows packed until blocks are large (AStitch 3.3, horizontal packing).
#include <bit>

#include "ir/assume_sizes.h"
#include "stage/tiles.h"

namespace stitch {
namespace {

constexpr int kWarp = 1 << kLaneBits;
constexpr int kBlockThreads = 256;   // where nothing asks for more
constexpr int kColumnThreads = 512;  // column reductions: 16 warps share the rows
constexpr int kRowThreads = 512;     // of a block: two are resident, and wait at barriers in turn
constexpr int64_t kHeldValues = 40;  // by a thread, where kResidentThreads are resident
constexpr int64_t kManyElements = 1 << 16;  // of rows: fewer need all threads there can be
constexpr int kMaxVector = 8;

// Outermost first; the axis that most bytes are contiguous along comes last.
std::vector<int> order_axes(const std::vector<AxisFacts>& facts, const std::vector<int>& group) {
  std::vector<int> order = group;
  std::ranges::stable_sort(order, std::greater(), [&](int a) { return facts[a].stride; });
  auto contiguous =
      std::ranges::max_element(order, {}, [&](int a) { return facts[a].unit_stride_bytes; });
  std::rotate(contiguous, contiguous + 1, order.end());
  return order;
}

struct Mapper {
  const Graph& graph;
  StageSchedule& schedule;
  std::vector<AxisFacts> facts;
  std::vector<int> order;  // outermost first, the contiguous axis last
  int free_threads = block_threads(kBlockThreads);
  int used_bits = 0;
  // Elements of the contiguous axis that a thread loads one by one, where no vector moves as much.
  int unrolled = 1;

  const Template& chosen() const { return schedule.bounds.chosen; }
  int at_least(int wanted) const { return std::max(wanted, schedule.bounds.least); }
  int block_threads(int wanted) const {
    return at_least(chosen().block_threads > 0 ? chosen().block_threads : wanted);
  }
  int bounded_threads(int wanted) const {
    return std::min(block_threads(wanted), schedule.bounds.most);
  }

  MappedAxis& axis(int a) { return schedule.axes[a]; }

  void assign(int a, int limit) {
    MappedAxis& mapped = axis(a);
    const int taken = mapped.vector() * (a == order.back() ? unrolled : 1);
    const int64_t vectors = divide_up(facts[a].extent, taken);
    used_bits = mapped.set_threads(pick_threads(vectors, facts[a].is_piece ? 1 : limit), used_bits);
    free_threads = std::max(1, free_threads / mapped.threads());
  }

  // Among axes, the innermost first.
  template <typename Takes>
  void share_out(Takes takes) {
    for (size_t i = order.size(); i-- > 0 && free_threads > 1;)
      if (takes(order[i])) assign(order[i], free_threads);
  }

  // The vector for which the heaviest contiguous access moves 16 bytes.
  int full_vector(int a) const {
    int bytes = 0;
    double heaviest = 0;
    for (const Access& access : schedule.accesses.list) {
      if (!axis_coefficient(schedule, access, a).is(1)) continue;
      // Lanes of a vector walk a segment one after another: each would load for itself.
      if (access.in_segment) return 1;
      const double weight = accessed_bytes(graph, schedule, access);
      if (weight <= heaviest) continue;
      heaviest = weight;
      bytes = element_bytes(graph, access.value);
    }
    return bytes == 0 ? 1 : std::min(kMaxVector, schedule.device->vector_bytes / bytes);
  }

  // The widest that divides the axis.
  int pick_vector(int a) const {
    int vector = full_vector(a);
    while (vector > 1 && !is_divisible(schedule.axes[a].axis.extent, vector)) vector /= 2;
    return vector;
  }

  // Of the axes that reductions keep, which blocks may divide, or reduce.
  int64_t count_elements(Role role) const {
    int64_t elements = 1;
    for (int a : order)
      if (facts[a].is_eligible == (role == Role::kKept)) elements *= facts[a].extent;
    return elements;
  }

  // Blocks that no launch takes are run one after the other by those that one does.
  void fit_grid() {
    const auto blocks = [&](const MappedAxis& mapped) { return blocks_along(graph, mapped); };
    while (count_planned_blocks(graph, schedule) > static_cast<double>(kMostGrid)) {
      MappedAxis& widest = *std::ranges::max_element(schedule.axes, {}, blocks);
      widest.set(Level::kSerial, widest.trips() * Dim(2));
    }
  }

  void finish() {
    int threads = 1;
    for (MappedAxis& mapped : schedule.axes) {
      threads = std::max(threads, 1 << std::bit_width(mapped.thread_bits()));
      const int step = mapped.step();
      const Dim& extent = mapped.axis.extent;
      mapped.is_exact = is_divisible(extent, mapped.in_grid() ? mapped.tile() : Dim(step));
      if (mapped.in_grid()) continue;
      if (extent.is_constant())
        mapped.set(Level::kSerial, divide_up(extent.value(), step));
      else if (const auto few =
                   assume_few_trips(graph.symbols, extent, step, schedule.bounds.most_trips)) {
        mapped.set(Level::kSerial, few->most / step);
        mapped.is_exact = false;
        schedule.assumptions.push_back(*few);
      } else
        mapped.set(Level::kSerial, divide_exact(extent, step).value_or(kOpen));
    }
    // Threads that no axis uses repeat what others do, and do not store.
    schedule.threads = at_least(std::max(threads, kWarp));
    add_thread_loops(order, schedule);
  }

  void map_main_group() {
    const int last = order.back();
    axis(last).set(Level::kVector, pick_vector(last));
    const bool reduces = std::ranges::any_of(order, [&](int a) { return !facts[a].is_eligible; });
    if (!reduces)
      map_pointwise();
    else if (facts[last].is_eligible)
      map_columns(last);
    else
      map_rows(last);
  }

  // A block has one tile: lanes walk across it, the other threads along.
  void map_tiles(const TileAxes& inner, TileShape shape) {
    MappedAxis &across = axis(inner.across), &along = axis(inner.along);
    across.set(Level::kVector, pick_vector(inner.across));
    const bool reduces = !facts[inner.across].is_eligible;
    const int64_t vectors =
        divide_up(std::min(facts[inner.across].extent, shape.across), across.vector());
    const int block = std::min(at_least(kTileThreads), schedule.bounds.most);
    const uint64_t lanes = static_cast<uint64_t>(reduces ? (vectors + 1) / 2 : vectors);
    const int most = static_cast<int>(std::min<uint64_t>(std::bit_ceil(lanes), block));
    used_bits = across.set_threads(most, 0);
    const auto rows = static_cast<int>(std::min(shape.along, facts[inner.along].extent));
    const auto covering = static_cast<int>(std::bit_ceil(static_cast<unsigned>(rows)));
    used_bits = along.set_threads(std::min(block / across.threads(), covering), used_bits);
    along.set(Level::kSerial, divide_up(rows, along.threads()));
  }

  // A small computation beside the main one, done by every block for itself: the same threads.
  void map_side_group(int threads) {
    unrolled = 1;
    axis(order.back()).set(Level::kVector, pick_vector(order.back()));
    free_threads = threads;
    share_out([](int) { return true; });
  }

  // Axes inside the block beside the main ones: the longest run of thread bits that no axis has
  // which some root walks together with it.
  void map_side_axes(const std::vector<int>& side, int threads) {
    const unsigned all = static_cast<unsigned>(at_least(threads)) - 1;
    for (size_t i = side.size(); i-- > 0;) {
      unsigned taken = 0;
      for (const RootSpace& space : schedule.spaces.roots)
        if (role_of(space, schedule.axes[side[i]].axis) != Role::kAbsent)
          taken |= owned_thread_bits(schedule, space);
      int best_shift = 0, best_bits = 0, bits = 0;
      for (int bit = 0; all >> bit; ++bit) {
        bits = taken >> bit & 1 ? 0 : bits + 1;
        if (bits > best_bits) {
          best_bits = bits;
          best_shift = bit + 1 - bits;
        }
      }
      const int limit = facts[side[i]].is_piece ? 1 : 1 << best_bits;
      axis(side[i]).set_threads(pick_threads(facts[side[i]].extent, limit), best_shift);
    }
  }

  void map_pointwise() {
    const int last = order.back();
    const auto is_full = [&](double blocks) {
      return blocks >= 16 * schedule.device->multiprocessors;
    };
    // Two independent accesses in flight per thread once the device is full anyway, or those that
    // a vector would be.
    if (is_full(count_elements(Role::kKept) / (free_threads * axis(last).vector())))
      unrolled = full_vector(last) / axis(last).vector();
    share_out([](int) { return true; });
    if (unrolled > 1) {
      axis(last).set(Level::kSerial, unrolled);
      return;
    }
    if (!is_full(count_planned_blocks(graph, schedule))) return;
    for (size_t i = order.size(); i-- > 0;) {
      MappedAxis& mapped = axis(order[i]);
      if (!is_divisible(mapped.axis.extent, 2 * mapped.step())) continue;
      mapped.set(Level::kSerial, 2);
      return;
    }
  }

  // For all axes that a row's reductions run over; two vectors each where nothing else is asked.
  int row_threads(int contiguous) const {
    if (chosen().level == ReductionLevel::kThread) return 1;
    if (chosen().level == ReductionLevel::kWarp) return kWarp;
    if (chosen().level == ReductionLevel::kBlock) return bounded_threads(schedule.bounds.most);
    const int64_t inside = count_elements(Role::kReduced);
    const int64_t per_thread = 2 * schedule.axes[contiguous].vector() * unrolled;
    const uint64_t wanted = static_cast<uint64_t>(std::max<int64_t>(1, inside / per_thread));
    int most = bounded_threads(schedule.bounds.most);
    // Larger blocks for rows that theirs alone have the registers for, or that have no neighbour.
    const bool fits_one = inside > kRowThreads * kHeldValues && inside <= most * kHeldValues;
    if (!fits_one && count_elements(Role::kKept) > schedule.device->multiprocessors)
      most = std::min(most, at_least(kRowThreads));
    // Threads that hold pieces of their own have no barrier to share: small blocks, of many rows.
    const bool has_pieces = std::ranges::any_of(order, [&](int a) { return facts[a].is_piece; });
    while (has_pieces && most > at_least(kBlockThreads) &&
           count_elements(Role::kKept) * most >
               2 * schedule.device->multiprocessors * kResidentThreads)
      most /= 2;
    return static_cast<int>(std::clamp<uint64_t>(std::bit_ceil(wanted), kWarp, most));
  }

  void map_rows(int contiguous) {
    if (count_elements(Role::kKept) * count_elements(Role::kReduced) >= kManyElements)
      unrolled = full_vector(contiguous) / axis(contiguous).vector();
    const int block = row_threads(contiguous);
    free_threads = block;
    assign(contiguous, block);
    share_out([&](int a) { return a != contiguous && !facts[a].is_eligible; });
    // Pack rows while every multiprocessor still gets a block, and there are as many as are asked
    // for, unless a template says how many.
    const int threads_so_far = 1 << used_bits;
    free_threads = std::max(1, bounded_threads(kBlockThreads) / threads_so_far);
    const auto leaves = [&](int64_t blocks) {
      return count_elements(Role::kKept) / free_threads >= blocks;
    };
    while (chosen().block_threads == 0 && free_threads > 1 &&
           (!leaves(schedule.bounds.least_blocks) ||
            (!leaves(schedule.device->multiprocessors) && threads_so_far * free_threads > kWarp)))
      free_threads /= 2;
    share_out([&](int a) { return facts[a].is_eligible; });
  }

  void map_columns(int contiguous) {
    MappedAxis& lanes = axis(contiguous);
    // Fewer lanes where a warp along each row would leave multiprocessors idle, not narrower ones.
    const int block = bounded_threads(kColumnThreads);
    int along = chosen().level == ReductionLevel::kThread ? block : kWarp;
    const int vector = lanes.vector();
    while (along * vector > kWarp &&
           count_elements(Role::kKept) / (along * vector) < schedule.device->multiprocessors)
      along /= 2;
    free_threads = block;
    assign(contiguous, along);
    if (chosen().level == ReductionLevel::kThread) free_threads = 1;
    if (chosen().level == ReductionLevel::kWarp)
      free_threads = std::min(free_threads, std::max(1, kWarp / lanes.threads()));
    for (int a : order)
      if (!facts[a].is_eligible && free_threads > 1) assign(a, free_threads);
    if (chosen().level != ReductionLevel::kThread && chosen().level != ReductionLevel::kWarp)
      return;
    // Columns that reductions leave threads for.
    free_threads = std::max(1, block >> used_bits);
    share_out([&](int a) { return a != contiguous && facts[a].is_eligible; });
  }
};

}  // namespace

void map_axes_cuda(const Graph& graph, StageSchedule& schedule) {
  Mapper mapper{graph, schedule, find_axis_facts(graph, schedule), {}};
  const std::vector<AxisFacts>& facts = mapper.facts;
  std::vector<int> all_loops;
  int threads = 1;
  TileAxes inner;
  for (const std::vector<int>& group : find_axis_groups(schedule, facts)) {
    const std::vector<int> side = find_side_axes(schedule, facts, group);
    std::vector<int> main;
    std::ranges::set_difference(group, side, std::back_inserter(main));
    mapper.order = order_axes(facts, main);
    mapper.used_bits = 0;
    const bool is_main = all_loops.empty();
    if (is_main) inner = find_inner_axes(graph, schedule, facts, main);
    for (int a : mapper.order)
      if (is_main && facts[a].is_eligible) mapper.axis(a).set(Level::kGrid, kOpen);
    if (!is_main) {
      mapper.map_side_group(std::max(threads, kWarp));
    } else if (inner.along >= 0) {
      for (int last : {inner.along, inner.across}) move_last(mapper.order, last);
      mapper.map_tiles(inner, *shape_tiles(graph, schedule, facts, inner));
    } else {
      mapper.map_main_group();
    }
    if (is_main) threads = 1 << mapper.used_bits;
    all_loops.insert(all_loops.end(), mapper.order.begin(), mapper.order.end());
    if (side.empty()) continue;
    const std::vector<int> side_order = order_axes(facts, side);
    mapper.map_side_axes(side_order, std::max(threads, kWarp));
    all_loops.insert(all_loops.end(), side_order.begin(), side_order.end());
  }
  mapper.order = all_loops;
  if (inner.along < 0) mapper.fit_grid();
  mapper.finish();
  if (inner.along >= 0) place_tiles(graph, inner, schedule);
}

}  // namespace stitch
