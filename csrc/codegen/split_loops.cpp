#include "codegen/split_loops.h"

#include "base/round_up.h"
#include "schedule/build_loops.h"

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
  return !evaluates_any(schedule.accesses, [&](NodeId id) {
    return family(graph[id]) == Family::kReduce || combines_segments(info(graph[id]));
  });
}

// Of a row that is streamed.  Fewer have too few whole lines: 64 elements of f32 are 4.
constexpr int64_t kRowElements = 256, kFewestElements = 64;

std::string sum(const std::string& a, const std::string& b) { return a == "0" ? b : a + " + " + b; }

std::string product(const std::string& text, int64_t factor) {
  return factor == 1 ? text : "(" + text + ") * " + std::to_string(factor);
}

struct StoreStreaming {
  const StageSchedule& schedule;
  int axis;
  int64_t step;  // elements that an iteration of the loop makes
  Scopes& scopes;

  // Visits the marked stores of the loop, and of the loops along the same axis within it.
  void visit(Statement& loop, const std::function<void(Statement&)>& function) const {
    for (Statement& inner : loop.body) {
      if (inner.kind == Statement::Kind::kStore && inner.streams_along == axis) function(inner);
      for (size_t l = 0; inner.kind == Statement::Kind::kLoop && l < schedule.loops.size(); ++l)
        if (schedule.loops[l].axis == axis && inner.name == scopes.loop_name(static_cast<int>(l)))
          visit(inner, function);
    }
  }

  // The loop's iterations from `first` to `end`, at most `most`, as one row.
  std::vector<Statement> stream_row(Statement loop, const std::string& first,
                                    const std::string& end, int64_t most) const {
    const std::string index = "x" + std::to_string(axis), start = scopes.fresh();
    const std::string begin = sum(scopes.block_begin(axis), product(first, step));
    std::vector<Statement> row = {Statement::let("i64", start, begin)}, streams;
    visit(loop, [&](Statement& store) {
      const std::string name = scopes.fresh();
      row.push_back(Statement::array(store.type, name, most * step));
      // Its place is that of the first element.
      Statement at{Statement::Kind::kLoop, "i64", index, start};
      at.bound = start + " + 1";
      at.body = {Statement::call("stream_out(&" + store.name + ", " + name + ", " +
                                 product(end + " - " + first, step) + ")")};
      streams.push_back(std::move(at));
      store.name = name + "[" + index + " - " + start + "]";
      store.streams_along = -1;
    });
    loop.expr = first;
    loop.bound = end;
    std::ranges::move(split_vectors(std::move(loop)), std::back_inserter(row));
    std::ranges::move(streams, std::back_inserter(row));
    return row;
  }

  // A loop over rows of `most` iterations; the last one may be shorter.
  Statement stream_rows(const Statement& loop, const std::string& rows, int64_t most) const {
    const std::string first = scopes.fresh(), end = scopes.fresh();
    const std::string whole = first + " + " + std::to_string(most);
    const bool is_ragged = !to_number(loop.bound);
    Statement outer{Statement::Kind::kLoop, "i64", scopes.fresh(), "0"};
    outer.bound = rows;
    outer.body = {
        Statement::let("i64", first, sum(loop.expr, product(outer.name, most))),
        Statement::let("i64", end,
                       is_ragged ? "min_index(" + whole + ", " + loop.bound + ")" : whole)};
    std::ranges::move(stream_row(loop, first, end, most), std::back_inserter(outer.body));
    return outer;
  }
};

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

std::set<NodeId> find_streamed(const Graph& graph, const StitchPlan& plan,
                               const DeviceSpec& device) {
  if (device.cached_bytes == 0) return {};
  std::set<NodeId> streamed;
  for (const PlannedKernel& kernel : plan.kernels) {
    std::set<NodeId> moved, stores;
    for (const PlannedStage* stage : stages_of(plan, kernel)) {
      moved.insert(stage->loads.begin(), stage->loads.end());
      stores.insert(stage->stores.begin(), stage->stores.end());
    }
    moved.insert(stores.begin(), stores.end());
    int64_t bytes = 0;
    for (const NodeId value : moved) bytes += hint_bytes(graph, value);
    if (bytes <= device.cached_bytes) continue;
    std::ranges::copy_if(stores, std::inserter(streamed, streamed.end()),
                         [&](NodeId store) { return hint_bytes(graph, store) > device.l2_bytes; });
  }
  for (size_t m = 0; m < plan.in_place.size(); ++m)
    if (plan.in_place[m]) streamed.erase(graph.mutations[m].value);
  return streamed;
}

std::vector<Statement> stream_stores(const StageSchedule& schedule, int block, Statement loop,
                                     Scopes& scopes) {
  const LoopSpec& spec = schedule.loops[schedule.blocks[block].loop];
  const bool is_span = spec.level == LoopSpec::Level::kSpan;
  const bool is_outermost = std::ranges::none_of(scopes.open, [&](const Scope& scope) {
    return scope.block > 0 && schedule.loops[schedule.blocks[scope.block].loop].axis == spec.axis;
  });
  const StoreStreaming streaming{schedule, spec.axis, is_span ? schedule.axes[spec.axis].span : 1,
                                 scopes};
  const bool walks = is_span || spec.level == LoopSpec::Level::kSerial;
  int stores = 0;
  streaming.visit(loop, [&](Statement&) { ++stores; });
  if (!walks || !is_outermost || stores == 0) return split_vectors(std::move(loop));
  const int64_t most = std::max<int64_t>(1, kRowElements / streaming.step);
  const auto first = to_number(loop.expr), end = to_number(loop.bound);
  // A loop that sums adds up its lanes at the end of each row: of one row or none.
  const bool sums = loop.pragma.find("reduction(") != std::string::npos;
  if (!first || !end) {
    if (sums) return {std::move(loop)};
    const std::string all = loop.bound + " - (" + loop.expr + ") + " + std::to_string(most - 1);
    return {streaming.stream_rows(loop, "(" + all + ") / " + std::to_string(most), most)};
  }
  const int64_t trips = *end - *first;
  if (trips * streaming.step < kFewestElements || (sums && trips > most))
    return split_vectors(std::move(loop));
  std::vector<Statement> out;
  const int64_t rest = trips < 2 * most ? *first : *end - trips % most;
  if (rest > *first) out.push_back(streaming.stream_rows(loop, std::to_string(trips / most), most));
  if (rest < *end)
    std::ranges::move(
        streaming.stream_row(loop, std::to_string(rest), std::to_string(*end), *end - rest),
        std::back_inserter(out));
  return out;
}

}  // namespace stitch
