#include "stage/schedule_stage.h"

#include <bit>
#include <cmath>
#include <numeric>

#include "stage/build_loops.h"
#include "stage/persistent_values.h"
#include "stage/place_values.h"
#include "stage/reduction_arrays.h"
#include "stage/tiles.h"

namespace stitch {
namespace {

constexpr int64_t kLineBytes = 128;

double hint(const Graph& graph, const Dim& dim) {
  return static_cast<double>(std::max<int64_t>(0, graph.symbols.hint(dim)));
}

// Loop trips of a thread along an axis, at the symbols' hints.
double trips_along(const Graph& graph, const MappedAxis& mapped) {
  const Dim trips = mapped.trips();
  if (!trips.is(kOpen)) return std::max(1.0, hint(graph, trips));
  return std::max(1.0, std::ceil(hint(graph, mapped.axis.extent) / mapped.step()));
}

// Bytes that pass between two uses of a value in the leaves of `blocks`: one iteration of the loops
// they share, over all buffers of the kernel, in every block that runs at the time.
double reuse_distance(const Graph& graph, const Stage& stage, const StageSchedule& schedule,
                      const std::vector<int>& blocks) {
  const int shared = common_block(schedule, blocks);
  double elements = schedule.threads;
  for (int loop : loops_around(schedule, blocks.front(), shared)) {
    const LoopSpec& spec = schedule.loops[loop];
    const MappedAxis& mapped = schedule.axes[spec.axis];
    if (spec.level == Level::kVector) elements *= mapped.vector();
    const bool is_strip = spec.level == Level::kStrip;
    if (is_strip || spec.level == Level::kSerial) elements *= trips_along(graph, mapped);
  }
  double running = 1;
  if (schedule.device->is_cuda) {
    const int resident =
        std::max(1, schedule.device->threads_per_multiprocessor / schedule.threads);
    running = std::min<double>(count_planned_blocks(graph, schedule),
                               schedule.device->multiprocessors * resident);
  }
  constexpr double kElementBytes = 4;
  return elements * running * kElementBytes *
         static_cast<double>(stage.loads.size() + stage.stores.size());
}

// Arrays that a core's prefetchers follow at once; of more, each byte takes twice as long.  AdamW
// of 20 tensors, 7 arrays each: 0.16 ms a tensor in loops over 28, 0.22 over 35, 0.37 over 70
// [M, 2026-11].
constexpr size_t kMostStreams = 32;

// Loads of the first pass come from memory; later ones do unless the cache still holds them.
void add_memory(const Graph& graph, const Stage& stage, const StageSchedule& schedule,
                const HeldValues& held, StageWork& work) {
  const double cache = last_cache_bytes(*schedule.device);
  struct Passes {
    std::vector<int> blocks;
    std::vector<double> shares, bytes;  // shares of the value
  };
  std::map<NodeId, Passes> passes;
  for (const LeafUse& leaf : schedule.leaves) {
    for (NodeId load : leaf.loads) {
      const int64_t elements = accessed_elements(graph, schedule, load, &leaf.roots);
      Passes& of = passes[load];
      of.blocks.push_back(leaf.block);
      of.shares.push_back(share_loaded(schedule, leaf, load));
      of.bytes.push_back(static_cast<double>(elements * element_bytes(graph, load)) *
                         of.shares.back());
    }
  }
  for (const auto& [load, of] : passes) {
    if (find_buffer(schedule, load)) continue;
    const double first = of.bytes[0], share = of.shares.back();
    const double again = std::accumulate(of.bytes.begin() + 1, of.bytes.end(), 0.0);
    const bool cached =
        of.blocks.size() > 1 && share * reuse_distance(graph, stage, schedule, of.blocks) <= cache;
    // What has no home was read last.
    const bool is_in_cache = held.contains(load) || (of.shares[0] < 1 && first <= cache);
    (is_in_cache ? work.cache_bytes : work.dram_bytes) += first;
    (cached ? work.cache_bytes : work.dram_bytes) += again;
  }
  for (NodeId store : stage.stores)
    if (!find_buffer(schedule, store))
      work.dram_bytes += static_cast<double>(hint_bytes(graph, stored_part(graph, store)));
  const bool are_followed = passes.size() + stage.stores.size() <= kMostStreams;
  if (!schedule.device->is_cuda && !are_followed) work.dram_bytes *= 2;
}

bool moves_along(const MappedAxis& mapped, const IndexVar& leaf) {
  return leaf.is_value() || std::ranges::count(mapped.axis.atoms, AtomId(leaf.payload)) > 0;
}

// Times a node is evaluated: of segments once for each position, by threads once for each element,
// by a host in each trip of its blocks and loops down to the last that the index moves along.  A
// row of [64] that rows of [128, 64] read is computed 128 times.
double count_evaluations(const Graph& graph, const StageSchedule& schedule, bool in_segment,
                         const std::set<VarId>& leaves, const std::vector<int>& loops) {
  double trips = 1, reached = 1;
  if (schedule.device->is_cuda || in_segment) {
    for (VarId var : leaves) {
      const IndexVar& leaf = schedule.accesses.vars[var];
      if (leaf.is_atom() || in_segment) trips *= hint(graph, leaf.extent);
    }
    return trips;
  }
  const auto walk = [&](const MappedAxis& mapped, double own_trips) {
    trips *= own_trips;
    const auto moves = [&](VarId var) { return moves_along(mapped, schedule.accesses.vars[var]); };
    if (std::ranges::any_of(leaves, moves)) reached = trips;
  };
  for (const MappedAxis& mapped : schedule.axes) walk(mapped, blocks_along(graph, mapped));
  std::set<int> walked;
  for (int loop : loops) {
    if (!walked.insert(schedule.loops[loop].axis).second) continue;
    const MappedAxis& mapped = schedule.axes[schedule.loops[loop].axis];
    walk(mapped, hint(graph, mapped.axis.extent) / blocks_along(graph, mapped));
  }
  return reached;
}

constexpr double kLanes = 8;  // f32 of an AVX2 vector
// Time of a host's load that no vector makes, in operations: behind a condition [A], or by lanes
// far apart, 1 ns each on a core [M, 2026-11].
constexpr double kGuardedLoad = 24, kLoadApart = 50;

// The host's loop that is vectorised; -1 where there is none.
int find_lanes(const StageSchedule& schedule) {
  int last = schedule.device->is_cuda ? -1 : static_cast<int>(schedule.loops.size()) - 1;
  while (last >= 0 && is_written_out(schedule, last)) --last;
  return last;
}

double count_loads_apart(const Graph& graph, const StageSchedule& schedule) {
  const int lanes = find_lanes(schedule);
  if (lanes < 0) return 0;
  double count = 0;
  for (const Access& access : schedule.accesses.list) {
    if (access.is_store || find_tile(schedule, access.value, access.offset)) continue;
    const Dim step = axis_coefficient(schedule, access, schedule.loops[lanes].axis);
    if (graph.symbols.hint(step) > kMostBetweenLanes)
      count += accessed_bytes(graph, schedule, access) / element_bytes(graph, access.value);
  }
  return count;
}

// The axis of that loop; null where there is none.  A loop in which elements are combined one after
// another is not vectorised; nor is what shares it.
const MappedAxis* find_vectors(const Graph& graph, const StageSchedule& schedule) {
  const int last = find_lanes(schedule);
  if (last < 0) return nullptr;
  const bool is_single = std::ranges::any_of(schedule.spaces.roots, [&](const RootSpace& space) {
    return combines_at_indices(info(graph[space.root])) && reduces_loop(schedule, space, last);
  });
  return is_single ? nullptr : &schedule.axes[schedule.loops[last].axis];
}

// A host's vector computes for its lanes at once; what does not move along them, or along fewer,
// takes as long: softplus of [512, 256] before 8 states each is one number at a time, 8 operations.
// `lanes`: the axis of the vectors; null where there are none.
double operations_each(const Graph& graph, const StageSchedule& schedule,
                       const std::set<VarId>& leaves, const MappedAxis* lanes) {
  if (!lanes) return kLanes;
  const bool moves = std::ranges::any_of(
      leaves, [&](VarId var) { return moves_along(*lanes, schedule.accesses.vars[var]); });
  return moves ? kLanes / std::clamp(hint(graph, lanes->axis.extent), 1.0, kLanes) : kLanes;
}

double weight_of(CostClass cost) {
  return cost == CostClass::kFree ? 0 : cost == CostClass::kHeavy ? 8 : 1;
}

// Of a GPU's threads, for `results` of an op; numbers of 64 bits take two for one.
void add_instructions(const Graph& graph, NodeId id, double results, StageWork& work) {
  const Node& node = graph[id];
  const DTypeInfo& type = info(node.type.dtype);
  const Instructions& of = gpu_instructions(node.op);
  double each = type.is_float && type.bytes < 4 ? of.narrow : of.exact;
  if (info(node).cost == CostClass::kFree)
    each = node.op == OpKind::k_cast &&
           std::string(type.register_name) != info(graph[node.inputs[0]].type.dtype).register_name;
  work.operations += results * each * (type.bytes == 8 ? 2 : 1);
  work.specials += results * of.special;
}

// A root that lacks an axis of the grid or of the threads is computed once per block or thread.
// Values in arrays are the nest's that makes them: a softmax computes its exponentials for the sum,
// and the division reads them.  `shared`: what roots before it in its loop nest evaluate, sorted.
void add_root(const Graph& graph, const StageSchedule& schedule, const LeafUse& leaf,
              const RootSpace& space, std::vector<Evaluation>& shared, StageWork& work) {
  const MappedAxis* lanes = find_vectors(graph, schedule);
  double iterations = 1, block_copies = 1;
  for (const MappedAxis& mapped : schedule.axes)
    if (role_of(space, mapped.axis) == Role::kAbsent)
      block_copies *= blocks_along(graph, mapped);
    else
      iterations *= hint(graph, mapped.axis.extent);
  const int thread_copies = schedule.threads >> std::popcount(owned_thread_bits(schedule, space));
  const double copies = block_copies * thread_copies;
  const std::vector<int> loops = loops_around(schedule, leaf.block);
  const std::vector<Evaluation>& evaluated = schedule.accesses.evaluated.at(space.root);
  for_each_value(evaluated, [&](std::span<const Evaluation> evaluations) {
    const NodeId node = evaluations.front().value;
    if (!contains(leaf.evaluated, node)) return;
    const bool is_load = schedule.is_load[node.index()];
    const CostClass cost = is_load ? CostClass::kLight : info(graph[node]).cost;
    double count = 0, operations = 0;
    for (const Evaluation& evaluation : evaluations) {
      if (contains(shared, evaluation)) continue;
      const std::set<VarId>& leaves = schedule.accesses.leaves[evaluation.index];
      const double times = count_evaluations(graph, schedule, evaluation.in_segment, leaves, loops);
      const double each = copies * (evaluation.in_segment ? times : std::min(iterations, times));
      count += each;
      if (is_load)
        operations += each * (evaluation.is_guarded ? kGuardedLoad : 1);
      else
        operations += each * weight_of(cost) * operations_each(graph, schedule, leaves, lanes);
    }
    if (!schedule.device->is_cuda)
      (cost >= CostClass::kSpecial ? work.specials : work.operations) += operations;
    else if (!is_load)
      add_instructions(graph, node, count, work);
    if (is_load)
      work.cache_bytes += count / copies * (block_copies - 1) * element_bytes(graph, node);
  });
  shared.insert(shared.end(), evaluated.begin(), evaluated.end());
  std::ranges::sort(shared);
  if (schedule.device->is_cuda)
    return add_instructions(graph, space.root, iterations * copies, work);
  const CostClass own = info(graph[space.root]).cost;
  (own >= CostClass::kSpecial ? work.specials : work.operations) +=
      iterations * copies * std::max(1.0, weight_of(own));
}

// Instructions of a GPU's thread: an access and its address, a barrier, its begin and its end [A].
constexpr double kOfAccess = 3, kOfBarrier = 6, kOfThread = 40;

using Lanes = std::array<int64_t, 1 << kLaneBits>;

// Where the lanes of a warp access, each at its own elements: elements from the first lane's.
Lanes place_lanes(const Graph& graph, const StageSchedule& schedule, const Access& access) {
  Lanes places = {};
  for (size_t a = 0; a < schedule.axes.size(); ++a) {
    const MappedAxis& mapped = schedule.axes[a];
    const Digit* lanes = find_by(mapped.digits, Level::kLane, &Digit::level);
    if (!lanes) continue;
    const Dim step = axis_coefficient(schedule, access, static_cast<int>(a));
    const int64_t stride = graph.symbols.hint(step) * mapped.vector();
    for (int64_t lane = 0; lane < 1 << kLaneBits; ++lane)
      places[lane] += (lane >> lanes->shift & (lanes->count.value() - 1)) * stride;
  }
  return places;
}

// Lines of 128 bytes that they touch together.
double count_lines(Lanes places, int element_bytes) {
  const int64_t lowest = std::ranges::min(places);  // of a flipped axis, below the first lane's
  for (int64_t& at : places) at = (at - lowest) * element_bytes / kLineBytes;
  if (!std::ranges::is_sorted(places)) std::ranges::sort(places);
  return static_cast<double>(std::unique(places.begin(), places.end()) - places.begin());
}

// Of accesses whose lanes are known; what comes through tiles is contiguous.  `shared` gets what
// every block reads alike: some axis of the grid is in no access.  Returns the instructions of all
// threads that access memory, begin and end.
double add_lines(const Graph& graph, const StageSchedule& schedule, std::set<NodeId>& shared,
                 StageWork& work) {
  const double warps = work.blocks * schedule.threads / (1 << kLaneBits);
  double moves = kOfThread;  // of a thread
  for (const Access& access : schedule.accesses.list) {
    const IndexVars& vars = schedule.accesses.vars;
    double each = 1;  // accesses of a thread
    const int along = find_vector_axis(schedule, vars, access.offset);
    for (int a = 0; a < static_cast<int>(schedule.axes.size()); ++a) {
      const MappedAxis& mapped = schedule.axes[a];
      if (!axis_coefficient(schedule, access, a).is(0))
        each *= trips_along(graph, mapped) * (a == along ? 1 : mapped.vector());
      else if (mapped.in_grid() && !access.is_store)
        shared.insert(access.value);
    }
    const int bytes = element_bytes(graph, access.value);
    const int lanes = along < 0 ? 1 : schedule.axes[along].vector();
    moves += each * (kOfAccess + (bytes < 4 ? lanes : 0));
    if (access.in_segment || !walks_atoms_alone(vars, access.offset)) continue;
    if (find_tile(schedule, access.value, access.offset)) continue;
    work.lines += warps * each * count_lines(place_lanes(graph, schedule, access), bytes);
  }
  return moves * warps * (1 << kLaneBits);
}

// Of a thread, for a root that reduces.
double count_results(const Graph& graph, const StageSchedule& schedule, const RootSpace& space) {
  double results = 1;
  for (const MappedAxis& mapped : schedule.axes)
    if (role_of(space, mapped.axis) == Role::kKept)
      results *= trips_along(graph, mapped) * mapped.vector();
  return results;
}

// Steps in which threads exchange what they have reduced (stitch/block.cuh).
void add_exchange(const Graph& graph, const StageSchedule& schedule, const RootSpace& space,
                  StageWork& work) {
  const Latencies& cycles = schedule.device->latencies;
  const unsigned bits = thread_bits(schedule, space, Role::kReduced);
  const int lanes = std::popcount(bits & ((1u << kLaneBits) - 1)),
            warps = std::popcount(bits) - lanes;
  const double step = cycles.exchange + cycles.operation;
  const int shared_out = std::min(lanes, warps);
  double each = lanes * step, instructions = 2 * (lanes + shared_out);
  if (warps > 0) {
    // Lanes that agree share out the slots, and exchange once more.
    instructions += kOfBarrier;
    each += 2 * cycles.barrier + cycles.shared + shared_out * step +
            std::exp2(warps - shared_out) * cycles.operation;
  }
  // Of several results that warps share out each has its part of three barriers.
  if (const int slots = exchange_slots(schedule, space); slots > 1)
    each = (3 * cycles.barrier + 2 * cycles.shared + std::exp2(warps) * cycles.operation) / slots;
  const double results = count_results(graph, schedule, space);
  work.cycles += each * results;
  work.operations += instructions * results * std::max(1.0, work.blocks) * work.threads;
}

// Of the root with the most work: what its threads reach beyond the extents is nobody's.
double busy_share(const Graph& graph, const StageSchedule& schedule) {
  double most = 0, share = 1;
  for (const RootSpace& space : schedule.spaces.roots) {
    double elements = 1, covered = 1;
    for (const MappedAxis& mapped : schedule.axes) {
      if (role_of(space, mapped.axis) == Role::kAbsent) continue;
      elements *= std::max(1.0, hint(graph, mapped.axis.extent));
      covered *= blocks_along(graph, mapped) * trips_along(graph, mapped) * mapped.step();
    }
    if (elements <= most) continue;
    most = elements;
    share = std::min(1.0, elements / covered);
  }
  return share;
}

// From a warp's first step to its last.  Loads of neighbouring trips are in flight together, as far
// as compilers unroll loops of unknown bodies; `known` is in a cache by then; lanes of a vector
// fill the gaps of each other's arithmetic.
constexpr double kTripsInFlight = 4, kLanesInFlight = 4;
void add_cycles(const Graph& graph, const StageSchedule& schedule, std::set<NodeId> known,
                StageWork& work) {
  const Latencies& latencies = schedule.device->latencies;
  for (const LeafUse& leaf : schedule.leaves) {
    double trips = 1;
    for (int loop : loops_around(schedule, leaf.block))
      if (schedule.loops[loop].level == Level::kSerial)
        trips *= trips_along(graph, schedule.axes[schedule.loops[loop].axis]);
    work.in_flight = std::max(work.in_flight, std::min(trips, kTripsInFlight));
    if (leaf.loads.empty()) continue;
    for (NodeId load : leaf.loads)
      if (find_buffer(schedule, load)) known.insert(load);
    const size_t before = known.size();
    known.insert(leaf.loads.begin(), leaf.loads.end());
    work.cycles += std::ceil(trips / kTripsInFlight) *
                   (known.size() > before ? latencies.memory : latencies.cache);
  }
  double lanes = 1;
  for (const MappedAxis& mapped : schedule.axes) lanes = std::max<double>(lanes, mapped.vector());
  const double threads = std::max(1.0, work.blocks) * schedule.threads;
  work.cycles += (work.operations * latencies.operation + work.specials * latencies.special) /
                 (threads * std::min(kLanesInFlight, lanes));
  for (const RootSpace& space : schedule.spaces.roots)
    if (family(graph[space.root]) == Family::kReduce) add_exchange(graph, schedule, space, work);
}

// What is live at once (20.11): arrays between loop nests as place_values.h counts them,
// accumulators, and what one iteration works with: compilers load all of it first, so that AdamW of
// ten tensors in one body, 16 bytes of each of 40 loads, takes 254 registers.
constexpr int kOtherRegisters = 8;  // addresses, what is computed
int count_live_registers(const Graph& graph, const StageSchedule& schedule) {
  int vector = 1, working = kWorkingRegisters;
  for (const MappedAxis& mapped : schedule.axes) vector = std::max(vector, mapped.vector());
  for (const LeafUse& leaf : schedule.leaves) {
    int bytes = 0;
    for (NodeId load : leaf.loads)
      if (!find_buffer(schedule, load) && graph[load].type.rank() > 0)
        bytes += vector * element_bytes(graph, load);
    working = std::max(working, kOtherRegisters + bytes / 4);
  }
  double accumulators = 0;
  for (const RootSpace& space : schedule.spaces.roots)
    if (family(graph[space.root]) == Family::kReduce)
      accumulators = std::max(accumulators, count_results(graph, schedule, space));
  return working + schedule.kept_registers + schedule.bounds.persistent_registers +
         static_cast<int>(std::min(accumulators, 1e6));
}

}  // namespace

double last_cache_bytes(const DeviceSpec& device) {
  return static_cast<double>(device.l2_bytes) * (device.is_cuda ? 0.6 : 0.25);
}

StageWork measure_work(const Graph& graph, const Stage& stage, const StageSchedule& schedule,
                       const HeldValues& held) {
  StageWork work{.threads = schedule.threads};
  add_memory(graph, stage, schedule, held, work);
  work.blocks = count_planned_blocks(graph, schedule);
  for (const LeafUse& leaf : schedule.leaves) {
    std::vector<Evaluation> shared;
    for (NodeId root : leaf.roots)
      add_root(graph, schedule, leaf, space_of(schedule, root), shared, work);
  }
  work.operations += kLoadApart * count_loads_apart(graph, schedule);
  if (!schedule.device->is_cuda) return work;
  work.busy = busy_share(graph, schedule);
  std::set<NodeId> shared;
  const double moves = add_lines(graph, schedule, shared, work);
  add_cycles(graph, schedule, std::move(shared), work);
  work.operations += moves;
  work.registers = count_live_registers(graph, schedule);
  work.shared_bytes = schedule.shared_bytes;
  return work;
}

}  // namespace stitch
