// Chooses the level of every axis: grid, loops, threads, vector lanes (DESIGN.md 3, AStitch A.9).
#pragma once

#include "stage/schedule.h"

namespace stitch {

inline Role role_of(const RootSpace& space, const Axis& axis) {
  return role_of(space, axis.atoms[0]);
}

// What both targets' mappings are chosen from: one entry per axis, sizes at the symbols' hints.
struct AxisFacts {
  int64_t extent = 1;
  bool is_eligible = true;       // no root reduces it: blocks may divide it
  double unit_stride_bytes = 0;  // bytes accessed contiguously along it
  double stride = 0;             // of the heaviest access, in elements: orders the loops
  int few_terms = 0;  // that sums over it add before they cascade (stage/reduction_arrays.h)
  bool takes_strips = false;  // some root walks strips of it
  bool is_piece = false;      // one thread should hold it: find_piece_axes
};
std::vector<AxisFacts> find_axis_facts(const Graph& graph, const StageSchedule& schedule);

// Bytes of the distinct elements an access touches, at the symbols' hints.
double accessed_bytes(const Graph& graph, const StageSchedule& schedule, const Access& access);

// Coefficient of an axis in an offset, that of its innermost atom; 0: there is none.
Dim axis_coefficient(const StageSchedule& schedule, const IndexVars& vars, const IndexExpr& offset,
                     int axis);
inline Dim axis_coefficient(const StageSchedule& schedule, const Access& access, int axis) {
  return axis_coefficient(schedule, schedule.accesses.vars, access.offset, axis);
}
// Threads for an axis of `count` vectors: a power of two that divides it, unless only a ragged one
// keeps enough threads busy.
int pick_threads(int64_t count, int limit);
// Moves the axis to the end of the order that it is in.
inline void move_last(std::vector<int>& order, int axis) {
  const auto at = std::ranges::find(order, axis);
  if (at != order.end()) std::rotate(at, at + 1, order.end());
}
// Is an access at this offset aligned to `width` elements wherever its index along `axis` is?
bool is_aligned_along(const StageSchedule& schedule, const IndexVars& vars, const IndexExpr& offset,
                      int axis, int width);
// The axis along which an access at this offset is one aligned vector per thread; -1 for none.
int find_vector_axis(const StageSchedule& schedule, const IndexVars& vars, const IndexExpr& offset);

// Does some reduction keep this axis?  Then its accumulators lie along it (a column reduction).
inline bool is_column_axis(const StageSchedule& schedule, int axis) {
  return std::ranges::any_of(schedule.spaces.roots, [&](const RootSpace& space) {
    return !space.reduced_atoms.empty() && role_of(space, schedule.axes[axis].axis) == Role::kKept;
  });
}
// Axes that no root joins, directly or through others, may use the same threads: each root runs
// over axes of one group.  The group with the most work comes first.
std::vector<std::vector<int>> find_axis_groups(const StageSchedule& schedule,
                                               const std::vector<AxisFacts>& facts);
// Axes of the group that only roots of little work iterate over, beside the root with the most:
// results of pieces that every block combines for itself.  Their roots share no loop with the large
// ones, so neither need they share the threads.
std::vector<int> find_side_axes(const StageSchedule& schedule, const std::vector<AxisFacts>& facts,
                                const std::vector<int>& group);
// Thread-index bits that belong to axes the root keeps, or reduces; to both.
unsigned thread_bits(const StageSchedule& schedule, const RootSpace& space, Role role);
inline unsigned owned_thread_bits(const StageSchedule& schedule, const RootSpace& space) {
  return thread_bits(schedule, space, Role::kKept) | thread_bits(schedule, space, Role::kReduced);
}

// A block gets `tile` indices of the axis.
inline void put_in_grid(MappedAxis& axis, int64_t tile) {
  axis.set(Level::kGrid, kOpen);
  axis.set(Level::kSerial, tile);
}
// Loops of a GPU's threads along axes, outermost first: over their trips, inside over vectors.
void add_thread_loops(const std::vector<int>& order, StageSchedule& schedule);

// Fill axes[*], loops (global order) and threads.
void map_axes_host(const Graph& graph, StageSchedule& schedule, int worker_threads);
void map_axes_cuda(const Graph& graph, StageSchedule& schedule);
// Blocks along an axis and of all: where sizes are static, and at the symbols' hints.
std::optional<int64_t> static_blocks(const MappedAxis& mapped);
std::optional<int64_t> count_static_blocks(const StageSchedule& schedule);
double blocks_along(const Graph& graph, const MappedAxis& mapped);
double count_planned_blocks(const Graph& graph, const StageSchedule& schedule);

// Reads of a value at fixed indices of an axis: the halves of a rotated row, one of a few channels.
// A value made at index (p, i) and read at (1, i) is the same array on chip at another position, if
// one thread holds the axis p: the mapping is asked for that, the placement checks it.
using FixedAxes = std::map<int, int64_t>;  // axis -> the index it is read at

// The axes that run in `made` and stand still in `read`, all else being the same: none where both
// are equal, nothing where `read` is no such index.  `vars` names the variables of both.
std::optional<FixedAxes> find_fixed_axes(const StageSchedule& schedule, const IndexVars& vars,
                                         const Index& made, const Index& read);
// Short axes that one thread should hold: of states made one from another, or a reduction evaluates
// a value along them that a root which waits for it reads at fixed indices.
std::set<int> find_piece_axes(const Graph& graph, const StageSchedule& schedule);

}  // namespace stitch
