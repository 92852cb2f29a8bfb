#include "stage/reduction_arrays.h"

#include <bit>
#include <cmath>

#include "base/words.h"
#include "stage/build_loops.h"
#include "stage/place_values.h"

namespace stitch {
namespace {

constexpr int64_t kHostBytes = 256 << 10;  // of one array on a worker's stack, within its L2 cache
constexpr int64_t kCudaElements = 64;      // of one array in a thread's registers

Verdict check_array(const Graph& graph, const StageSchedule& schedule, NodeId root, int block) {
  const std::string what = std::string("the result of ") + info(graph[root]).name;
  const std::vector<int> loops = array_loops(schedule, kept_blocks_below(schedule, root, block));
  const std::optional<int64_t> elements = array_length(schedule, loops);
  if (!elements)
    return Verdict::no(kRuleUnboundedArray,
                       what + " would need an array of a size only known at run time");
  const int64_t limit = schedule.device->is_cuda
                            ? kCudaElements
                            : kHostBytes / std::max(4, info(graph[root].type.dtype).bytes);
  if (*elements <= limit) return Verdict::yes();
  return Verdict::no(kRuleLargeArray, concat(what, " would need ", *elements,
                                             " elements on chip per thread; ", limit, " fit"));
}

// The block in which the root's last combination happens: the one around all that it reduces in.
int finish_block(const StageSchedule& schedule, NodeId root) {
  const int reduced = find_reduced_block(schedule, root);
  return reduced < 0 ? path_to(schedule, root).back() : schedule.blocks[reduced].parent;
}

}  // namespace

std::vector<int> kept_blocks_below(const StageSchedule& schedule, NodeId root, int block) {
  std::vector<int> kept = blocks_below(path_to(schedule, root), block);
  const RootSpace& space = space_of(schedule, root);
  std::erase_if(kept,
                [&](int at) { return reduces_loop(schedule, space, schedule.blocks[at].loop); });
  return kept;
}

int find_reduced_block(const StageSchedule& schedule, NodeId root) {
  const RootSpace& space = space_of(schedule, root);
  const std::vector<int> path = path_to(schedule, root);
  const auto first = std::ranges::find_if(path, [&](int block) {
    const int loop = schedule.blocks[block].loop;
    return loop >= 0 && reduces_loop(schedule, space, loop);
  });
  return first == path.end() ? -1 : *first;
}

int home_block(const StageSchedule& schedule, NodeId root) {
  std::vector<int> blocks;
  for (const auto& [reader, reductions] : schedule.spaces.depends)
    if (reductions.count(root)) blocks.push_back(path_to(schedule, reader).back());
  if (blocks.empty()) return -1;
  blocks.push_back(finish_block(schedule, root));
  return common_block(schedule, blocks);
}

bool is_cascaded(const Graph& graph, const StageSchedule& schedule, const RootSpace& space) {
  const Node& node = graph[space.root];
  const bool is_f32 = node.type.dtype == DType::kF32, is_f64 = node.type.dtype == DType::kF64;
  if (schedule.device->is_cuda || node.op != OpKind::k_sum || !(is_f32 || is_f64)) return false;
  const Dim terms = schedule.spaces.atoms.product(space.reduced_atoms);
  return !terms.is_constant() || terms.value() > (is_f64 ? kFewWideTerms : kFewTerms);
}

int find_carry(const Graph& graph, const StageSchedule& schedule, NodeId root, int block) {
  const Node& node = graph[root];
  if (!schedule.device->is_cuda || node.op != OpKind::k_sum || node.type.dtype != DType::kF32)
    return 0;
  constexpr int64_t kUnknownTrips = 1024;
  int64_t terms = 1;  // of a trip
  const std::vector<int> path = path_to(schedule, root);
  for (size_t i = path.size(); i-- > 0;) {
    const int loop = schedule.blocks[path[i]].loop;
    if (loop < 0 || !reduces_loop(schedule, space_of(schedule, root), loop)) continue;
    const int64_t trips = std::max<int64_t>(1, trip_count(schedule, loop).value_or(kUnknownTrips));
    const bool carries = schedule.loops[loop].level == Level::kSerial && trips * terms > kMostTerms;
    const auto trips_of_first =
        static_cast<uint64_t>(std::max(1.0, std::sqrt(static_cast<double>(trips / terms))));
    if (path[i] == block) return carries ? static_cast<int>(std::bit_floor(trips_of_first)) : 0;
    terms = carries ? 1 : terms * trips;
  }
  return 0;
}

int exchange_slots(const StageSchedule& schedule, const RootSpace& space) {
  constexpr int64_t kMost = 8;
  const unsigned bits = thread_bits(schedule, space, Role::kReduced);
  if (bits == 0 || bits % (1 << kLaneBits) != 0) return 1;
  int64_t results = 1;
  for (const MappedAxis& mapped : schedule.axes)
    if (role_of(space, mapped.axis) == Role::kKept)
      results *= mapped.static_trips().value_or(1) * mapped.vector();
  const int64_t warps = int64_t{1} << std::popcount(bits);
  return static_cast<int>(std::bit_floor(uint64_t(std::min({kMost, warps, results}))));
}

Verdict check_arrays(const Graph& graph, const StageSchedule& schedule) {
  for (const RootSpace& space : schedule.spaces.roots) {
    if (family(graph[space.root]) != Family::kReduce) continue;
    for (int block : {finish_block(schedule, space.root), home_block(schedule, space.root)}) {
      if (block < 0) continue;
      if (Verdict fits = check_array(graph, schedule, space.root, block); !fits) return fits;
    }
  }
  return Verdict::yes();
}

}  // namespace stitch
