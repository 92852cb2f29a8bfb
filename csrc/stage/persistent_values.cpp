#include "stage/persistent_values.h"

#include "stage/build_loops.h"
#include "stage/schedule_stage.h"

namespace stitch {
namespace {

constexpr int kRegisterUnit = 8;  // what a thread's registers come in
// What saves less than this part of the largest value is not worth a home.
constexpr int64_t kWorthwhileShare = 16;
constexpr int64_t kMostAccesses = 4096;  // of a thread
// Arrays in registers need loops that are unrolled: of no more trips than this.
constexpr int64_t kMostUnrolledAccesses = 128;
// Of accesses across grid barriers: a smaller part saves less than its mapping costs.
constexpr double kLeastHeld = 0.25;
// Of a thread, for two accesses in flight on their way to shared memory.
constexpr int kInFlightRegisters = 8;
constexpr int64_t kSystemSharedBytes = 1024;  // of each block (CUDA programming guide)
constexpr int kSlotAlignment = 16;            // bytes

// Fills loops and accesses; false where a thread's share is nothing, or only known at run time, and
// where one of the loops around the first access, `inside`, may have no trips.  Loops that every
// use is inside of, those of `around`, fill the home again.
bool count_accesses(const Graph& graph, const StageSchedule& schedule,
                    const std::vector<int>& around, const std::vector<int>& inside,
                    PersistentValue& out) {
  const IndexVars& vars = schedule.accesses.vars;
  std::set<int> axes;
  for (int a = 0; a < std::ssize(schedule.axes); ++a)
    if (!axis_coefficient(schedule, vars, out.offset, a).is(0)) axes.insert(a);
  if (may_be_skipped(graph, schedule, inside, axes)) return false;
  out.vector_axis = find_vector_axis(schedule, vars, out.offset);
  for (int l = 0; l < std::ssize(schedule.loops); ++l) {
    const LoopSpec& loop = schedule.loops[l];
    if (std::ranges::count(around, l) > 0 || !axes.contains(loop.axis)) continue;
    if (loop.level == Level::kVector && loop.axis == out.vector_axis) continue;
    const std::optional<int64_t> trips = trip_count(schedule, l);
    if (!trips || *trips == 0 || out.accesses * *trips > kMostAccesses) return false;
    out.accesses *= *trips;
    out.loops.push_back(l);
  }
  return true;
}

int count_access_bytes(const Graph& graph, const StageSchedule& schedule,
                       const PersistentValue& value) {
  const int lanes = value.vector_axis < 0 ? 1 : schedule.axes[value.vector_axis].vector();
  return element_bytes(graph, value.value) * lanes;
}

// Gives the value a home and takes its room; false where both together have not enough, for the
// share of the accesses that must be `held`.  Registers get what shared memory has no room for:
// loops over them are unrolled, and what these have in flight needs registers too.
bool find_home(const Graph& graph, const StageSchedule& schedule, double held, ChipRoom& room,
               PersistentValue& value) {
  const int bytes = count_access_bytes(graph, schedule, value);
  const int words = (bytes + 3) / 4, slot_bytes = bytes * schedule.threads;
  const bool can_unroll = value.accesses <= kMostUnrolledAccesses;
  const int64_t slots = std::max<int64_t>(0, room.shared_bytes) / slot_bytes;
  Home& home = value.home = {};
  if (slots < value.accesses) {
    const bool splits = schedule.bounds.splits_homes;
    home.in_registers = value.accesses - (splits ? slots : 0);
    const bool is_split = home.in_registers < value.accesses;
    const int most = std::max(0, room.registers - (is_split ? kInFlightRegisters : 0)) / words;
    if (!can_unroll || home.in_registers > most) {
      home.in_registers = can_unroll ? most : 0;
      home.in_memory = value.accesses - home.in_registers - slots;
      if (!splits || value.share_in_memory() > 1 - held) return false;
    }
  }
  home.in_shared = value.accesses - home.in_registers - home.in_memory;
  home.registers = static_cast<int>(home.in_registers) * words;
  home.shared_bytes = static_cast<int>(round_up(home.in_shared * slot_bytes, kSlotAlignment));
  home.shared_offset = home.in_shared > 0 ? room.shared_begin : 0;
  room.registers -= home.registers;
  room.shared_bytes -= home.shared_bytes;
  room.shared_begin += home.shared_bytes;
  return true;
}

// The offset of every load of the value; nullptr where there are several, or where it depends on
// data or on a condition.
const IndexExpr* only_offset(const StageSchedule& schedule, NodeId value) {
  const IndexExpr* only = nullptr;
  for (const Access& access : schedule.accesses.list) {
    if (access.value != value) continue;
    if (access.is_store || access.is_guarded || access.in_segment) return nullptr;
    if (only && *only != access.offset) return nullptr;
    only = &access.offset;
  }
  return only && walks_atoms_alone(schedule.accesses.vars, *only) ? only : nullptr;
}

struct RepeatedLoad {
  PersistentValue persistent;
  int64_t bytes = 0;          // of one pass
  int64_t saved_bytes = 0;    // by a home
  double saved_per_byte = 0;  // of a thread's share of the home
};

// Loads of several loop nests, the most valuable first.
std::vector<RepeatedLoad> find_repeated_loads(const Graph& graph, const StageSchedule& schedule) {
  std::map<NodeId, std::vector<int>> passes;  // the blocks of its leaves
  for (const LeafUse& leaf : schedule.leaves)
    for (NodeId load : leaf.loads) passes[load].push_back(leaf.block);
  std::vector<RepeatedLoad> loads;
  int64_t largest_bytes = 0;
  for (const PersistentValue& held : schedule.persistent)
    largest_bytes = std::max(largest_bytes, hint_bytes(graph, held.value));
  for (const auto& [value, blocks] : passes) {
    const int element = element_bytes(graph, value);
    RepeatedLoad load;
    load.bytes = accessed_elements(graph, schedule, value) * element;
    largest_bytes = std::max(largest_bytes, load.bytes);
    const IndexExpr* offset = blocks.size() > 1 ? only_offset(schedule, value) : nullptr;
    if (!offset) continue;
    load.persistent = {.value = value, .offset = *offset, .is_of_stage = true};
    const int common = common_block(schedule, blocks);
    const std::vector<int> around = loops_around(schedule, common);
    const std::vector<int> inside = loops_around(schedule, blocks.front(), common);
    if (!count_accesses(graph, schedule, around, inside, load.persistent)) continue;
    load.saved_bytes = load.bytes * static_cast<int64_t>(blocks.size() - 1);
    load.saved_per_byte = static_cast<double>(load.saved_bytes) /
                          static_cast<double>(load.persistent.accesses *
                                              count_access_bytes(graph, schedule, load.persistent));
    loads.push_back(std::move(load));
  }
  std::erase_if(loads, [&](const RepeatedLoad& load) {
    return load.saved_bytes * kWorthwhileShare < largest_bytes;
  });
  std::ranges::stable_sort(loads, std::greater(), &RepeatedLoad::saved_per_byte);
  return loads;
}

// Blocks that a multiprocessor should hold at once: as many as must be resident, and no fewer than
// keep memory busy where there are that many.
int count_needed_blocks(const StageSchedule& schedule) {
  int64_t wanted = divide_up(kLeastResidentThreads, schedule.threads);
  const int multiprocessors = schedule.device->multiprocessors;
  if (const auto blocks = count_static_blocks(schedule))
    wanted = std::min(wanted, divide_up(*blocks, multiprocessors));
  return std::max(schedule.bounds.per_multiprocessor, static_cast<int>(wanted));
}

}  // namespace

int count_registers(const DeviceSpec& device, const BlockBounds& bounds, int threads) {
  const int resident = std::max(threads * bounds.per_multiprocessor, bounds.resident_threads);
  const int share = device.registers_per_multiprocessor / resident;
  return std::min(kMostRegisters, share / kRegisterUnit * kRegisterUnit);
}

int64_t count_shared_bytes(const DeviceSpec& device, int blocks_per_multiprocessor) {
  const int64_t share = device.shared_bytes_per_multiprocessor / blocks_per_multiprocessor;
  return std::min<int64_t>(device.shared_bytes_per_block, share - kSystemSharedBytes);
}

std::vector<SharedAccess> find_shared_accesses(const Graph& graph,
                                               const std::vector<const Stage*>& stages,
                                               const StageSchedule& schedule) {
  std::map<NodeId, size_t> stage_of;  // by root
  std::set<NodeId> loads;
  for (size_t s = 0; s < stages.size(); ++s) {
    for (NodeId root : stages[s]->roots) stage_of[root] = s;
    loads.insert(stages[s]->loads.begin(), stages[s]->loads.end());
  }
  // The only offset of each stage; none where there are several, or where it depends on data or on
  // a condition.
  std::map<NodeId, std::map<size_t, const IndexExpr*>> offsets;
  for (const Access& access : schedule.accesses.list) {
    if (!loads.count(access.value)) continue;
    const auto [entry, is_first] =
        offsets[access.value].try_emplace(stage_of.at(access.root), &access.offset);
    const bool differs = !is_first && entry->second && *entry->second != access.offset;
    if (differs || access.is_guarded || !walks_atoms_alone(schedule.accesses.vars, access.offset))
      entry->second = nullptr;
  }
  int64_t largest_bytes = 0;
  for (NodeId value : loads) largest_bytes = std::max(largest_bytes, hint_bytes(graph, value));
  std::vector<SharedAccess> shared;
  for (const auto& [value, by_stage] : offsets) {
    SharedAccess access{value, {}, {}};
    for (const auto& [s, offset] : by_stage) {
      if (!offset) continue;
      if (access.stages.empty()) access.offset = *offset;
      if (*offset == access.offset) access.stages.push_back(s);
    }
    if (access.stages.size() < 2) continue;
    const double elements = count_elements(graph, schedule.accesses.vars, access.offset).value();
    access.bytes = std::min(static_cast<int64_t>(elements) * element_bytes(graph, value),
                            hint_bytes(graph, value));
    if (access.saved_bytes() * kWorthwhileShare >= largest_bytes)
      shared.push_back(std::move(access));
  }
  std::ranges::stable_sort(shared, std::greater(), &SharedAccess::saved_bytes);
  return shared;
}

Persistence find_persistent_values(const Graph& graph, const std::vector<SharedAccess>& accesses,
                                   size_t stages, const ChipRoom& room,
                                   const StageSchedule& schedule) {
  Persistence kept;
  const std::vector<int> all_loops = count_to(schedule.loops.size());
  kept.values.resize(stages);
  kept.left = room;
  for (const SharedAccess& access : accesses) {
    PersistentValue persistent{access.value, access.offset};
    if (!count_accesses(graph, schedule, {}, all_loops, persistent)) continue;
    if (!find_home(graph, schedule, kLeastHeld, kept.left, persistent)) {
      kept.is_complete = false;
      continue;
    }
    kept.is_complete &= persistent.home.in_memory == 0;
    kept.saved_bytes += static_cast<int64_t>(static_cast<double>(access.saved_bytes()) *
                                             (1 - persistent.share_in_memory()));
    for (size_t s : access.stages) {
      kept.values[s].push_back(persistent);
      kept.values[s].back().is_filled = s != access.stages[0];
    }
  }
  return kept;
}

void keep_loads(const Graph& graph, StageSchedule& schedule) {
  schedule.leaves = find_leaf_uses(graph, schedule);
  if (!schedule.device->is_cuda || schedule.leaves.size() < 2) return;
  const int begin = static_cast<int>(round_up(schedule.shared_bytes, kSlotAlignment));
  const std::vector<RepeatedLoad> all = find_repeated_loads(graph, schedule);
  std::vector<RepeatedLoad> loads;
  // Whether all find homes.
  const auto find_homes = [&](int registers, int blocks, double held) {
    ChipRoom room{registers, count_shared_bytes(*schedule.device, blocks) - begin, begin};
    loads = all;
    std::erase_if(loads, [&](RepeatedLoad& load) {
      return !find_home(graph, schedule, held, room, load.persistent);
    });
    return loads.size() == all.size();
  };
  const int registers = count_free_registers(schedule), needed = count_needed_blocks(schedule);
  const bool has_second =
      count_static_blocks(schedule).value_or(INT64_MAX) > schedule.device->multiprocessors;
  // One block computes while another loads.  What is loaded again in loops that are unrolled would
  // stay in registers too.
  const bool is_busy = needed * schedule.threads >= kLeastResidentThreads;
  if (!(has_second && needed == 1 && find_homes(registers, 2, 1)) &&
      !find_homes(registers, needed, 1))
    find_homes(0, needed, is_busy ? kLeastHeld : 1);
  for (RepeatedLoad& load : loads) {
    if (const Home& home = load.persistent.home; home.in_shared > 0)
      schedule.shared_bytes = home.shared_offset + home.shared_bytes;
    schedule.schemes[load.persistent.value] = Scheme::kLocal;
    schedule.persistent.push_back(std::move(load.persistent));
  }
  if (!loads.empty()) schedule.leaves = find_leaf_uses(graph, schedule);
}

}  // namespace stitch
