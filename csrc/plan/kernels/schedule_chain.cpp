#include <bit>

#include "plan/kernels/schedule_kernel.h"
#include "stage/block_ranges.h"
#include "stage/map_axes.h"

namespace stitch {
namespace {

constexpr int kMostLanes = 32;  // along the axis that stores are contiguous along

// The mapping of an element-wise stage to given blocks and threads.
struct BlockMapper {
  StageSchedule& schedule;
  const Access& load;   // of what the ranges are of
  const Access& store;  // the one that decides which axis lanes walk
  int64_t range;        // elements of a block
  int threads;          // of a block
  int store_bytes;      // of an element
  int used_bits = 0;

  int64_t step(const Access& access, int a) const {
    return axis_coefficient(schedule, access, a).value();
  }

  // Which indices of each axis a block has.
  bool divide() {
    for (int a = 0; a < std::ssize(schedule.axes); ++a) {
      MappedAxis& mapped = schedule.axes[a];
      const int64_t extent = mapped.axis.extent.value(), in_load = std::abs(step(load, a));
      if (in_load == 0 || in_load * extent <= range) continue;
      put_in_grid(mapped, std::max<int64_t>(1, range / in_load));
      if (in_load < range && range % in_load != 0) return false;
    }
    return true;
  }

  // Indices of a tile of the grid are shared out evenly: past them others' begin.
  void assign(MappedAxis& mapped, int limit, int vector) {
    const int64_t tile = mapped.tile().value(), count = tile / vector;
    const int threads = mapped.in_grid()
                            ? static_cast<int>(std::min<int64_t>(limit, count & -count))
                            : pick_threads(count, limit);
    mapped.set(Level::kVector, vector);
    used_bits = mapped.set_threads(threads, used_bits);
    mapped.set(Level::kSerial, divide_up(tile, mapped.step()));
    const Dim unit = mapped.in_grid() ? tile : mapped.step();
    mapped.is_exact = is_divisible(mapped.axis.extent, unit);
  }

  int pick_vector(int a) const {
    const MappedAxis& mapped = schedule.axes[a];
    int width = schedule.device->vector_bytes / store_bytes;
    auto fits = [&] {
      return mapped.tile().value() % width == 0 && mapped.axis.extent.value() % width == 0 &&
             is_aligned_along(schedule, schedule.accesses.vars, store.offset, a, width);
    };
    while (width > 1 && !fits()) width /= 2;
    return std::max(1, width);
  }

  // Lanes walk the axis that the store is contiguous along, then those where the load steps least.
  std::vector<int> order_axes() const {
    std::vector<int> order = count_to(schedule.axes.size());
    auto place = [&](int a) {
      const int64_t in_load = std::abs(step(load, a));
      return std::pair(step(store, a) != 1, in_load == 0 ? INT64_MAX : in_load);
    };
    std::ranges::stable_sort(order, {}, place);
    return order;
  }

  bool map() {
    if (!divide()) return false;
    const std::vector<int> order = order_axes();
    for (size_t i = 0; i < order.size(); ++i) {
      const bool is_contiguous = i == 0 && step(store, order[i]) == 1;
      assign(schedule.axes[order[i]],
             std::min(threads >> used_bits, is_contiguous ? kMostLanes : threads),
             is_contiguous ? pick_vector(order[i]) : 1);
    }
    add_thread_loops({order.rbegin(), order.rend()}, schedule);
    schedule.threads = threads;
    return true;
  }
};

bool has_static_offset(const StageSchedule& schedule, const Access& access) {
  return std::ranges::all_of(access.offset.terms,
                             [](const auto& term) { return term.second.is_constant(); }) &&
         std::ranges::all_of(schedule.axes, [](const MappedAxis& mapped) {
           return mapped.axis.extent.is_constant() && mapped.axis.extent.value() > 0;
         });
}

struct ChainScheduler {
  KernelScheduler& scheduler;
  const PlannedBlocks& chain;
  const BlockBounds& bounds;
  const Graph& graph = scheduler.graph;
  Schedules out = {};                                   // by stage of the chain
  std::vector<std::pair<NodeId, int64_t>> ranges = {};  // of what a stage hands to later ones

  const Stage& stage(size_t i) const { return scheduler.stages[chain.stages[i]]; }

  bool describe() {
    return std::ranges::all_of(chain.stages, [&](int s) {
      const ScheduleOrNot& found = scheduler.describe({s}).found;
      out.push_back(found.schedule);
      return found.verdict.ok;
    });
  }

  bool find_ranges(size_t i) {
    for (NodeId store : stage(i).stores) {
      size_t reader = i + 1;
      while (reader < out.size() && !contains(stage(reader).loads, store)) ++reader;
      if (reader == out.size()) continue;
      const std::optional<int64_t> range = find_block_range(out[i], store);
      if (!range) return false;
      ranges.push_back({store, *range});
    }
    return true;
  }

  // Adapts a later stage's mapping to what earlier ones hand it, or checks the one it has.
  bool map_later(size_t i) {
    StageSchedule& own = out[i];
    own.bounds = bounds;
    own.bounds.least = own.bounds.most = out[0].threads;
    std::vector<std::pair<NodeId, int64_t>> read = ranges;
    std::erase_if(read, [&](const auto& range) { return !contains(stage(i).loads, range.first); });
    STITCH_CHECK(!read.empty(), "a chain's stages have nothing in common");
    const bool is_elementwise = std::ranges::all_of(stage(i).roots, [&](NodeId root) {
      return family(graph[root]) == Family::kPointwise || family(graph[root]) == Family::kView;
    });
    if (!is_elementwise) {
      map_stages(graph, 1, own.bounds, own);
    } else {
      const auto& [value, range] = read.front();
      const Access* load = find_access(own.accesses, value, false);
      const NodeId stored = stage(i).stores.back();
      const Access* store = find_access(own.accesses, stored, true);
      if (!load || !store || !has_static_offset(own, *load) || !has_static_offset(own, *store))
        return false;
      BlockMapper mapper{own, *load, *store, range, out[0].threads, element_bytes(graph, stored)};
      if (!mapper.map()) return false;
    }
    if (own.threads != out[0].threads || count_static_blocks(own) != count_static_blocks(out[0]))
      return false;
    return std::ranges::all_of(
        read, [&](const auto& range) { return stays_in_range(own, range.first, range.second); });
  }

  // How far apart the lanes of the first stage that reads the value step; 0: not known.
  int64_t find_step(NodeId value) const {
    for (const StageSchedule& schedule : out) {
      const Access* load = find_access(schedule.accesses, value, false);
      for (int a = 0; load && a < std::ssize(schedule.axes); ++a) {
        const MappedAxis& mapped = schedule.axes[a];
        if ((mapped.thread_bits() & 1) == 0) continue;
        const Dim step = axis_coefficient(schedule, *load, a);
        return step.is_constant() ? step.value() : 0;
      }
    }
    return 0;
  }

  // Rows as far apart as lanes step, so that they meet different banks.
  BlockBuffer shape(NodeId value, int64_t range) const {
    const BlockBuffer plain{value, range, range, range};
    const int64_t length = find_step(value);
    const int bytes = element_bytes(graph, value);
    if (length <= 1 || length >= range || range % length != 0 || bytes > 16) return plain;
    const int64_t banks = kBankBytes / bytes;
    const BlockBuffer padded{value, range, length, round_up(length, banks) + 16 / bytes};
    for (const StageSchedule& schedule : out)
      for (const Access& access : schedule.accesses.list)
        if (access.value == value && !pad_rows(schedule, access.offset, length, padded.pitch))
          return plain;
    return padded;
  }

  // Buffers at the beginning of shared memory, what the stages need for themselves behind them.
  bool place_buffers() {
    int64_t bytes = 0;
    std::vector<BlockBuffer> buffers;
    for (const auto& [value, range] : ranges) {
      if (!std::ranges::count(chain.in_shared, value)) continue;
      buffers.push_back(shape(value, range));
      buffers.back().shared_offset = static_cast<int>(bytes);
      bytes += round_up(buffers.back().size() * element_bytes(graph, value), 16);
    }
    const int blocks = std::max(1, kBusyThreads / out[0].threads);  // that have their share
    const int64_t room =
        count_shared_bytes(*out[0].device, blocks) - kMostPartialBytes * out[0].threads;
    for (StageSchedule& schedule : out) {
      schedule.bounds.persistent_shared_bytes = static_cast<int>(bytes);
      schedule.buffers = buffers;
    }
    return bytes <= room;
  }

  // Not where a tile would copy what is on chip already.
  bool finish() {
    for (size_t i = 0; i < out.size(); ++i) finish_stage(graph, stage(i), out[i]);
    return std::ranges::none_of(ranges, [&](const auto& range) {
      return std::ranges::any_of(out, [&](const StageSchedule& schedule) {
        return std::ranges::count(schedule.tiles, range.first, &TiledLoad::value) > 0;
      });
    });
  }

  bool run(int64_t least_blocks) {
    if (!describe()) return false;
    BlockBounds own = bounds;
    own.least_blocks = least_blocks;
    map_stages(graph, 1, own, out[0]);
    for (size_t i = 0; i < out.size(); ++i)
      if ((i > 0 && !map_later(i)) || !find_ranges(i)) return false;
    return place_buffers() && finish();
  }
};

}  // namespace

Schedules schedule_chain(KernelScheduler& scheduler, const PlannedBlocks& chain,
                         const BlockBounds& bounds) {
  const auto schedule = [&](int64_t least_blocks) {
    ChainScheduler chained{scheduler, chain, bounds};
    return chained.run(least_blocks) ? std::move(chained.out) : Schedules();
  };
  const auto count_blocks = [&](int s) {
    return count_static_blocks(scheduler.map_alone(s, bounds)).value_or(0);
  };
  Schedules found = schedule(0);
  if (!found.empty()) return found;
  const int64_t first = count_blocks(chain.stages[0]);
  std::set<int64_t> more;  // blocks of later stages
  for (int s : chain.stages | std::views::drop(1))
    if (const int64_t own = count_blocks(s); own > first) more.insert(own);
  for (auto blocks = more.begin(); found.empty() && blocks != more.end(); ++blocks)
    found = schedule(*blocks);
  return found;
}

}  // namespace stitch
