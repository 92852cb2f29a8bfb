#include "stage/map_axes.h"

#include <bit>
#include <cmath>

#include "stage/reduction_arrays.h"

namespace stitch {

static int64_t positive_hint(const Graph& graph, const Dim& extent) {
  return std::max<int64_t>(1, graph.symbols.hint(extent));
}

// The other atoms' coefficients are proportional to that of the innermost.
Dim axis_coefficient(const StageSchedule& schedule, const IndexVars& vars, const IndexExpr& offset,
                     int axis) {
  const int innermost = schedule.axes[axis].axis.atoms.back().index();
  for (const auto& [var, coefficient] : offset.terms)
    if (vars[var].is_atom() && vars[var].payload == innermost) return coefficient;
  return 0;
}

int pick_threads(int64_t count, int limit) {
  const uint64_t covering = std::bit_ceil(static_cast<uint64_t>(count));
  const int ragged = static_cast<int>(std::min<uint64_t>(limit, covering));
  const int dividing = static_cast<int>(std::min<int64_t>(limit, count & -count));
  return dividing * 4 >= ragged ? dividing : ragged;
}

bool is_aligned_along(const StageSchedule& schedule, const IndexVars& vars, const IndexExpr& offset,
                      int axis, int width) {
  if (!is_divisible(offset.constant, width)) return false;
  const AtomList& own = schedule.axes[axis].axis.atoms;
  return std::ranges::all_of(offset.terms, [&](const auto& term) {
    const IndexVar& var = vars[term.first];
    const bool is_own = var.is_atom() && std::ranges::count(own, AtomId(var.payload)) > 0;
    return is_own || is_divisible(term.second, width);
  });
}

int find_vector_axis(const StageSchedule& schedule, const IndexVars& vars,
                     const IndexExpr& offset) {
  for (int a = 0; a < std::ssize(schedule.axes); ++a) {
    const int width = schedule.axes[a].vector();
    if (width == 1 || !axis_coefficient(schedule, vars, offset, a).is(1)) continue;
    return is_aligned_along(schedule, vars, offset, a, width) ? a : -1;
  }
  return -1;
}

double accessed_bytes(const Graph& graph, const StageSchedule& schedule, const Access& access) {
  double elements = 1;
  for (const auto& [var, coefficient] : access.offset.terms) {
    const Dim& extent = schedule.accesses.vars[var].extent;
    elements *= static_cast<double>(positive_hint(graph, extent));
  }
  return elements * element_bytes(graph, access.value);
}

// A thread has the few terms along it to itself: of what another reduction over the loops around it
// reduces in turn, [4096, 24, 4, 128, 4] over the 4 and then over all else.
static bool has_terms_of_terms(const StageSchedule& schedule, const Axis& axis) {
  constexpr int64_t kFew = 16;
  const auto reduces_again = [&](const RootSpace& first, const RootSpace& then) {
    if (role_of(first, axis) != Role::kReduced || role_of(then, axis) != Role::kAbsent)
      return false;
    return std::ranges::any_of(schedule.axes, [&](const MappedAxis& other) {
      return role_of(first, other.axis) == Role::kKept &&
             role_of(then, other.axis) == Role::kReduced;
    });
  };
  for (const auto& [reader, reductions] : schedule.spaces.depends)
    for (NodeId reduction : reductions)
      if (reduces_again(space_of(schedule, reduction), space_of(schedule, reader)))
        return axis.extent.is_at_most(kFew);
  return false;
}

std::vector<AxisFacts> find_axis_facts(const Graph& graph, const StageSchedule& schedule) {
  std::vector<AxisFacts> facts(schedule.axes.size());
  for (int a : find_piece_axes(graph, schedule)) facts[a].is_piece = true;
  for (int a = 0; a < std::ssize(facts); ++a) {
    AxisFacts& fact = facts[a];
    const Axis& axis = schedule.axes[a].axis;
    fact.extent = positive_hint(graph, axis.extent);
    for (const RootSpace& space : schedule.spaces.roots) {
      if (role_of(space, axis) != Role::kReduced) continue;
      fact.is_eligible = false;
      const bool is_wide =
          fact.few_terms != kFewTerms && graph[space.root].type.dtype == DType::kF64;
      if (is_cascaded(graph, schedule, space)) fact.few_terms = is_wide ? kFewWideTerms : kFewTerms;
      fact.takes_strips |= takes_strips(graph, schedule, space);
    }
    double heaviest = -1;
    for (const Access& access : schedule.accesses.list) {
      const Dim coefficient = axis_coefficient(schedule, access, a);
      if (coefficient.is(0)) continue;
      // Stores decide the order of loops: a scattered write costs more than a scattered read.
      const double bytes = accessed_bytes(graph, schedule, access) * (access.is_store ? 4 : 1);
      if (coefficient.is(1)) fact.unit_stride_bytes += bytes;
      if (bytes > heaviest) {
        heaviest = bytes;
        fact.stride = std::abs(static_cast<double>(graph.symbols.hint(coefficient)));
      }
    }
    if (schedule.device->is_cuda && fact.unit_stride_bytes == 0)
      fact.is_piece |= has_terms_of_terms(schedule, axis);
  }
  return facts;
}

std::vector<std::vector<int>> find_axis_groups(const StageSchedule& schedule,
                                               const std::vector<AxisFacts>& facts) {
  std::vector<int> group = count_to(schedule.axes.size());
  for (const RootSpace& space : schedule.spaces.roots) {
    int first = -1;
    for (size_t a = 0; a < group.size(); ++a) {
      if (role_of(space, schedule.axes[a].axis) == Role::kAbsent) continue;
      if (first < 0) first = group[a];
      const int old = group[a];
      std::ranges::replace(group, old, first);
    }
  }
  std::vector<std::vector<int>> groups(group.size());
  for (int a = 0; a < std::ssize(group); ++a) groups[group[a]].push_back(a);
  std::erase_if(groups, [](const std::vector<int>& axes) { return axes.empty(); });
  auto work = [&](const std::vector<int>& axes) {
    double product = 1;
    for (int a : axes) product *= static_cast<double>(facts[a].extent);
    return product;
  };
  std::ranges::stable_sort(groups, std::greater(), work);
  return groups;
}

std::vector<int> find_side_axes(const StageSchedule& schedule, const std::vector<AxisFacts>& facts,
                                const std::vector<int>& group) {
  if (group.size() < 2) return {};
  constexpr double kLittleWork = 0.25;  // of the largest root's
  std::map<int, double> work;           // by axis: of the largest root over it
  double most = 0;
  for (const RootSpace& space : schedule.spaces.roots) {
    double elements = 1;
    std::vector<int> own;
    for (int a : group) {
      if (role_of(space, schedule.axes[a].axis) == Role::kAbsent) continue;
      elements *= static_cast<double>(facts[a].extent);
      own.push_back(a);
    }
    for (int a : own) work[a] = std::max(work[a], elements);
    if (!own.empty()) most = std::max(most, elements);
  }
  std::vector<int> side = group;
  std::erase_if(side, [&](int a) { return work[a] >= kLittleWork * most; });
  return side;
}

unsigned thread_bits(const StageSchedule& schedule, const RootSpace& space, Role role) {
  unsigned bits = 0;
  for (const MappedAxis& mapped : schedule.axes)
    if (role_of(space, mapped.axis) == role) bits |= mapped.thread_bits();
  return bits;
}

void add_thread_loops(const std::vector<int>& order, StageSchedule& schedule) {
  for (const Level level : {Level::kSerial, Level::kVector})
    for (int a : order)
      if (schedule.axes[a].has(level)) schedule.loops.push_back({a, level});
}

std::optional<int64_t> static_blocks(const MappedAxis& mapped) {
  if (!mapped.in_grid()) return 1;
  const Dim &extent = mapped.axis.extent, tile = mapped.tile();
  if (!extent.is_constant() || !tile.is_constant()) return std::nullopt;
  return divide_up(extent.value(), tile.value());
}

std::optional<int64_t> count_static_blocks(const StageSchedule& schedule) {
  int64_t blocks = 1;
  for (const MappedAxis& mapped : schedule.axes) {
    const std::optional<int64_t> along = static_blocks(mapped);
    if (!along) return std::nullopt;
    blocks *= *along;
  }
  return blocks;
}

double blocks_along(const Graph& graph, const MappedAxis& mapped) {
  if (!mapped.in_grid()) return 1;
  return static_cast<double>(
      divide_up(positive_hint(graph, mapped.axis.extent), positive_hint(graph, mapped.tile())));
}

// Not the schedule's grid: its symbols may be of a candidate, unknown to the graph's table.
double count_planned_blocks(const Graph& graph, const StageSchedule& schedule) {
  double blocks = 1;
  for (const MappedAxis& mapped : schedule.axes) blocks *= blocks_along(graph, mapped);
  return blocks;
}

}  // namespace stitch
