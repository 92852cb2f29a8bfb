#include "codegen/split_loops.h"

#include <algorithm>
#include <optional>
#include <set>

#include "analysis/index_walk.h"
#include "base/round_up.h"
#include "base/words.h"
#include "schedule/build_loops.h"
#include "schedule/map_axes.h"

namespace stitch {
namespace {

// An index that is `axis * step + added`: of every second element, step is 2.
struct Along {
  int axis;
  int64_t step, added;
  // The first place along the axis whose index is `bound` or more.
  int64_t first_from(const Dim& bound) const { return divide_up(bound.value() - added, step); }
};

std::optional<Along> find_along(const StageSchedule& schedule, const IndexVars& vars,
                                const IndexExpr& index) {
  if (!index.constant.is_constant()) return std::nullopt;
  std::optional<Along> found;
  for (size_t a = 0; a < schedule.axes.size(); ++a) {
    const Dim coefficient = axis_coefficient(schedule, vars, index, static_cast<int>(a));
    if (coefficient.is(0)) continue;
    if (found || !coefficient.is_constant() || coefficient.value() < 0) return std::nullopt;
    found = Along{static_cast<int>(a), coefficient.value(), index.constant.value()};
  }
  return walks_atoms_alone(vars, index) ? found : std::nullopt;
}

bool may_cut(const Graph& graph, const StageSchedule& schedule, int block) {
  const LoopSpec& loop = schedule.loops[schedule.blocks[block].loop];
  const MappedAxis& axis = schedule.axes[loop.axis];
  if (schedule.device->is_cuda || loop.level != LoopSpec::Level::kSerial) return false;
  if (axis.chunk > 0 || axis.strips > 1 || axis.is_unrolled) return false;
  if (!axis.axis.extent.is_constant() || !schedule.kept_on_chip.empty()) return false;
  // What sums or walks segments has scopes of its own around loops.
  return std::ranges::all_of(schedule.accesses.evaluated, [&](const auto& of) {
    const auto is_simple = [&](NodeId id) {
      return family(graph[id]) != Family::kReduce && !combines_segments(info(graph[id]));
    };
    return is_simple(of.first) && std::ranges::all_of(of.second, [&](const auto& entry) {
             return is_simple(entry.first);
           });
  });
}

}  // namespace

std::vector<AxisRange> find_ranges(const Graph& graph, const StageSchedule& schedule, int block,
                                   int most) {
  if (!may_cut(graph, schedule, block)) return {};
  const int axis = schedule.loops[schedule.blocks[block].loop].axis;
  std::set<int64_t> borders;
  for (const NodeId root : roots_below(schedule, block)) {
    const auto conditions = schedule.accesses.conditions.find(root);
    if (conditions == schedule.accesses.conditions.end()) continue;
    for (const auto& [index, low, high] : conditions->second) {
      const auto along = find_along(schedule, schedule.accesses.vars, index);
      if (!along || along->axis != axis || !low.is_constant() || !high.is_constant()) continue;
      borders.insert({along->first_from(low), along->first_from(high)});
    }
  }
  const int64_t end = schedule.axes[axis].axis.extent.value();
  std::vector<AxisRange> ranges;
  int64_t low = 0;
  borders.insert(end);
  for (const int64_t border : borders) {
    if (border <= low || border > end) continue;
    ranges.push_back({axis, low, border});
    low = border;
  }
  return ranges.size() < 2 || std::ssize(ranges) > most ? std::vector<AxisRange>() : ranges;
}

Holds holds_in(const std::vector<AxisRange>& ranges, const StageSchedule& schedule,
               const IndexVars& vars, const Condition& condition) {
  if (ranges.empty() || !condition.low.is_constant() || !condition.high.is_constant())
    return Holds::kUnknown;
  const auto along = find_along(schedule, vars, condition.index);
  if (!along) return Holds::kUnknown;
  for (const AxisRange& range : ranges) {
    if (range.axis != along->axis) continue;
    const int64_t low = along->first_from(condition.low), high = along->first_from(condition.high);
    if (range.low >= low && range.high <= high) return Holds::kAlways;
    if (range.high <= low || range.low >= high) return Holds::kNever;
  }
  return Holds::kUnknown;
}

std::vector<Statement> split_vectors(Statement loop) {
  constexpr int64_t kLanes[] = {16, 8, 4, 1};
  const auto first = to_number(loop.expr), end = to_number(loop.bound);
  const bool is_vectorised = loop.pragma.find("omp simd") != std::string::npos;
  // The lanes of each piece are added to the sum, rounded: one that is kept exactly has one piece.
  const bool is_exact = std::ranges::any_of(loop.body, [](const Statement& statement) {
    return statement.expr.starts_with("add_exactly(");
  });
  if (!first || !end || *end - *first < kLanes[2] || !is_vectorised || is_exact)
    return {std::move(loop)};
  std::vector<Statement> pieces;
  int64_t at = *first;
  for (const int64_t lanes : kLanes) {
    const int64_t next = at + (*end - at) / lanes * lanes;
    if (next == at) continue;
    pieces.push_back(loop);
    pieces.back().expr = std::to_string(at);
    pieces.back().bound = std::to_string(next);
    at = next;
  }
  return pieces;
}

}  // namespace stitch
