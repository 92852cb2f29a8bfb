#include <bit>

#include "base/verify.h"
#include "stage/build_loops.h"
#include "stage/persistent_values.h"
#include "stage/reduction_arrays.h"
#include "stage/schedule_stage.h"
#include "stage/tiles.h"
#include "support/verify.h"

namespace stitch {
namespace {

// Sizes that only a call knows are compared at their hints.
void verify_axes(const Graph& graph, const StageSchedule& schedule) {
  const bool is_cuda = schedule.device->is_cuda;
  const auto hint = [&](const Dim& dim) { return graph.symbols.hint(dim); };
  for (int a = 0; a < std::ssize(schedule.axes); ++a) {
    const MappedAxis& mapped = schedule.axes[a];
    const Dim &extent = mapped.axis.extent, tile = mapped.tile();
    const auto hold = rules_of("schedule", "axis ", a);
    const auto by_level = [](const Digit& lower, const Digit& higher) {
      return lower.level >= higher.level;
    };
    hold(std::ranges::adjacent_find(mapped.digits, by_level) == mapped.digits.end(),
         "digits-in-order");
    for (const auto& [level, count, shift] : mapped.digits) {
      hold(!count.is(kOpen) || level == mapped.digits.back().level, "open-digit-is-last");
      if (level != Level::kLane && level != Level::kWarp) continue;
      const auto threads = static_cast<uint64_t>(count.value());
      hold(std::has_single_bit(threads), "threads-power-of-two");
      hold((threads - 1) << shift < static_cast<uint64_t>(schedule.threads),
           "thread-bits-in-block");
    }
    hold(is_divisible(extent, mapped.vector()), "vector-divides-extent");
    const bool has_parts = mapped.has(Level::kStrip) || mapped.has(Level::kChunk);
    hold(!mapped.in_grid() || !has_parts, "parts-in-one-block");
    const Dim trips = mapped.trips();
    if (mapped.in_grid())
      hold(hint(mapped.count(Level::kGrid) * tile) >= hint(extent), "blocks-cover-extent");
    else
      hold(trips.is(kOpen) || hint(trips) * mapped.step() >= hint(extent), "digits-cover-extent");
    const Dim unit = mapped.in_grid() ? tile : Dim(mapped.step());
    hold(!mapped.is_exact || !is_cuda || is_divisible(extent, unit), "exact-divides");
  }
}

void verify_loops(const Stage& stage, const StageSchedule& schedule) {
  for (const LoopSpec& loop : schedule.loops)
    rules_of("schedule", "axis ", loop.axis)(
        loop.axis >= 0 && loop.axis < std::ssize(schedule.axes), "loop-has-axis");
  const std::vector<LoopBlock>& blocks = schedule.blocks;
  std::vector<int> parents(blocks.size(), -1);
  NodeList roots;
  for (int b = 0; b < std::ssize(blocks); ++b) {
    const auto hold = rules_of("schedule", "block ", b);
    hold(blocks[b].parent == parents[b] && (b == 0 || parents[b] >= 0), "block-in-one-block");
    hold(b == 0 || blocks[b].loop > blocks[parents[b]].loop, "loops-in-order");
    hold(blocks[b].loop < std::ssize(schedule.loops), "block-has-loop");
    for (const auto& [block, own] : blocks[b].items) {
      hold(block < std::ssize(blocks) && (block < 0 || std::exchange(parents[block], b) < 0),
           "block-in-one-block");
      roots.insert(roots.end(), own.begin(), own.end());
    }
  }
  std::ranges::sort(roots);
  rules_of("schedule", roots.size(), " roots")(roots == stage.roots, "root-in-one-leaf");
  std::set<NodeId> made;
  for (const LeafUse& leaf : schedule.leaves) {
    for (NodeId value : leaf.reused)
      rules_of("schedule", "%", value)(made.contains(value), "made-before-reused");
    made.insert(leaf.made.begin(), leaf.made.end());
  }
}

void verify_root(const StageSchedule& schedule, const RootSpace& space) {
  const auto hold = rules_of("schedule", "root %", space.root);
  const std::vector<int> loops = loops_around(schedule, path_to(schedule, space.root).back());
  unsigned taken = 0;
  for (int a = 0; a < std::ssize(schedule.axes); ++a) {
    const MappedAxis& mapped = schedule.axes[a];
    if (role_of(space, mapped.axis) == Role::kAbsent) continue;
    const unsigned own = mapped.thread_bits();
    hold((taken & own) == 0, "thread-bits-disjoint");
    taken |= own;
    // A host's loops over strips stand in for each other.
    const auto all = std::ranges::count(schedule.loops, a, &LoopSpec::axis);
    const auto around =
        std::ranges::count_if(loops, [&](int loop) { return schedule.loops[loop].axis == a; });
    hold(schedule.device->is_cuda ? around == all : around > 0 || all == 0, "root-in-its-loops");
  }
  const unsigned reduced = thread_bits(schedule, space, Role::kReduced);
  hold(schedule.schemes.contains(space.root), "root-has-scheme");
  const Scheme scheme = schedule.schemes.at(space.root);
  hold(reduced >> kLaneBits ? scheme == Scheme::kRegional : !reduced || scheme == Scheme::kWarp,
       "scheme-crosses-threads");
}

void verify_homes(const StageSchedule& schedule) {
  int of_stage = 0, across = 0;  // registers
  for (const PersistentValue& value : schedule.persistent) {
    const Home& home = value.home;
    const auto hold = rules_of("schedule", "kept %", value.value);
    hold(std::min({home.in_registers, home.in_shared, home.in_memory}) >= 0 &&
             home.in_registers + home.in_shared + home.in_memory == value.accesses,
         "homes-add-up");
    hold(array_length(schedule, value.loops) == value.accesses, "accesses-are-trips");
    (value.is_of_stage ? of_stage : across) += home.registers;
  }
  rules_of("schedule", of_stage, " and across barriers ", across)(
      !schedule.device->is_cuda || (of_stage <= count_free_registers(schedule) &&
                                    across <= schedule.bounds.persistent_registers),
      "registers-of-thread");
}

// What is handed on lies first, then what reductions exchange, then tiles and the stage's homes.
void verify_shared(const Graph& graph, const StageSchedule& schedule) {
  const int64_t handed_on = schedule.bounds.persistent_shared_bytes;
  int64_t own = handed_on;
  for (const RootSpace& space : schedule.spaces.roots)
    own = std::max(own, handed_on + exchanged_bytes(graph, schedule, space));
  rules_of("schedule", schedule.shared_bytes)(
      own <= schedule.shared_bytes &&
          schedule.shared_bytes <= schedule.device->shared_bytes_per_block,
      "shared-within-device");
  std::vector<std::pair<int64_t, int64_t>> ranges;
  const auto add = [&](NodeId value, int64_t begin, int64_t bytes, bool is_own) {
    const auto hold = rules_of("schedule", "%", value, " at ", begin);
    const int64_t end = begin + bytes;
    hold(begin >= (is_own ? own : 0) && end <= (is_own ? schedule.shared_bytes : handed_on),
         "shared-range");
    for (const auto& [other, other_end] : ranges)
      hold(end <= other || other_end <= begin, "shared-disjoint");
    ranges.push_back({begin, end});
  };
  for (const TiledLoad& tile : schedule.tiles)
    add(tile.value, tile.shared_offset, tile_bytes(graph, tile), true);
  for (const PersistentValue& value : schedule.persistent)
    add(value.value, value.home.in_shared > 0 ? value.home.shared_offset : own,
        value.home.shared_bytes, value.is_of_stage || value.home.in_shared == 0);
  for (const BlockBuffer& buffer : schedule.buffers)
    add(buffer.value, buffer.shared_offset, buffer.size() * element_bytes(graph, buffer.value),
        false);
}

}  // namespace

void verify_schedule(const Graph& graph, const Stage& stage, const StageSchedule& schedule) {
  verify_axes(graph, schedule);
  verify_loops(stage, schedule);
  for (const RootSpace& space : schedule.spaces.roots) verify_root(schedule, space);
  verify_homes(schedule);
  if (schedule.device->is_cuda) verify_shared(graph, schedule);
  const Verdict fits = check_arrays(graph, schedule);
  rules_of("schedule", fits.why)(fits.ok, "arrays-are-static");
}

}  // namespace stitch
