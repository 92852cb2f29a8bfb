#include "codegen/split_loops.h"

#include "stage/build_loops.h"

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
  for (int a = 0; a < std::ssize(schedule.axes); ++a) {
    const Dim coefficient = axis_coefficient(schedule, vars, index, a);
    if (coefficient.is(0)) continue;
    if (found || !coefficient.is_constant() || coefficient.value() < 0) return std::nullopt;
    found = Along{a, coefficient.value(), index.constant.value()};
  }
  return walks_atoms_alone(vars, index) ? found : std::nullopt;
}

bool may_cut(const Graph& graph, const StageSchedule& schedule, int block) {
  const LoopSpec& loop = schedule.loops[schedule.blocks[block].loop];
  const MappedAxis& axis = schedule.axes[loop.axis];
  if (schedule.device->is_cuda || loop.level != Level::kSerial) return false;
  if (axis.has(Level::kChunk) || axis.has(Level::kStrip) || axis.is_unrolled) return false;
  if (!axis.axis.extent.is_constant() || !schedule.kept_on_chip.empty()) return false;
  // What sums or walks segments has scopes of its own around loops.
  return !evaluates_any(schedule.accesses, [&](NodeId id) {
    return family(graph[id]) == Family::kReduce || combines_segments(info(graph[id]));
  });
}

// The lanes of each piece are added to the sum, rounded: one that is kept exactly has one piece.
bool sums_exactly(const Statement& loop) {
  return std::ranges::any_of(loop.body, [](const Statement& statement) {
    return statement.expr.starts_with("add_exactly(");
  });
}

// Of a row.  Fewer stores have too few whole lines: 64 elements of f32 are 4.
constexpr int64_t kRowElements = 256, kFewestStored = 64, kFewestMade = 32;
// What a function that makes a row may set before it and behind it (random.cuh), in elements.
constexpr int64_t kBeside = 8;
// Of a row that is walked along its strips, and so made as a whole.
constexpr int64_t kMostAlongStrips = 4096;

std::string sum(const std::string& a, const std::string& b) { return a == "0" ? b : a + " + " + b; }

std::string product(const std::string& text, int64_t factor) {
  return factor == 1 ? text : "(" + text + ") * " + std::to_string(factor);
}

struct RowLoop {
  const StageSchedule& schedule;
  int axis;
  int64_t step;  // elements that an iteration of the loop makes
  Scopes& scopes;

  // Visits what is marked in the loop, and in the loops along the same axis within it.
  void visit(Statement& loop, const std::function<void(Statement&)>& function) const {
    for (Statement& inner : loop.body) {
      if (inner.by_rows_along == axis) function(inner);
      for (int l = 0; inner.kind == Statement::Kind::kLoop && l < std::ssize(schedule.loops); ++l)
        if (schedule.loops[l].axis == axis && inner.name == scopes.loop_name(l))
          visit(inner, function);
    }
  }

  // The loop's iterations from `first` to `end`, at most `most`, as one row.
  std::vector<Statement> walk_row(Statement loop, const std::string& first, const std::string& end,
                                  int64_t most) const {
    const std::string index = "x" + std::to_string(axis), start = scopes.fresh();
    const std::string begin = sum(scopes.block_begin(axis), product(first, step));
    std::vector<Statement> row = {Statement::let("i64", start, begin)}, streams;
    visit(loop, [&](Statement& statement) {
      const bool is_store = statement.kind == Statement::Kind::kAssign;
      if (is_store && most * step < kFewestStored) return;
      const std::string name = scopes.fresh(), count = product(end + " - " + first, step);
      row.push_back(
          Statement::array(statement.type, name, most * step + (is_store ? 0 : 2 * kBeside)));
      // Its place is that of the first element.
      Statement at{Statement::Kind::kLoop, "i64", index, start};
      at.bound = start + " + 1";
      if (is_store) {
        at.body = {
            Statement::call(concat("stream_out(&", statement.name, ", ", name, ", ", count, ")"))};
        streams.push_back(std::move(at));
        statement.name = concat(name, "[", index, " - ", start, "]");
      } else {
        std::string make = std::move(statement.expr);
        make.insert(make.find('(') + 1, concat(name, " + ", kBeside, ", ", count, ", "));
        at.body = {Statement::call(make.insert(make.find_first_of("<("), "s"))};
        row.push_back(std::move(at));
        statement.expr = concat(name, "[", index, " - ", start, " + ", kBeside, "]");
      }
      statement.by_rows_along = -1;
    });
    loop.expr = first;
    loop.bound = end;
    std::ranges::move(split_vectors(std::move(loop)), std::back_inserter(row));
    std::ranges::move(streams, std::back_inserter(row));
    return row;
  }

  // A loop over rows of `most` iterations; the last one may be shorter.
  Statement walk_rows(const Statement& loop, const std::string& rows, int64_t most) const {
    const std::string first = scopes.fresh(), end = scopes.fresh();
    const std::string whole = first + " + " + std::to_string(most);
    const bool is_ragged = !to_number(loop.bound);
    Statement outer{Statement::Kind::kLoop, "i64", scopes.fresh(), "0"};
    outer.bound = rows;
    outer.body = {
        Statement::let("i64", first, sum(loop.expr, product(outer.name, most))),
        Statement::let("i64", end,
                       is_ragged ? "min_index(" + whole + ", " + loop.bound + ")" : whole)};
    std::ranges::move(walk_row(loop, first, end, most), std::back_inserter(outer.body));
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
  if (!first || !end || *end - *first < kLanes[2] || !is_vectorised || sums_exactly(loop))
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
    for (const Stage* stage : stages_of(plan, kernel)) {
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

std::vector<Statement> walk_by_rows(const StageSchedule& schedule, int block, Statement loop,
                                    Scopes& scopes) {
  const LoopSpec& spec = schedule.loops[schedule.blocks[block].loop];
  const MappedAxis& axis = schedule.axes[spec.axis];
  const bool is_span = spec.level == Level::kSpan;
  const bool is_along = spec.level == Level::kAlong;
  const bool is_outermost = std::ranges::none_of(scopes.open, [&](const Scope& scope) {
    return scope.block > 0 && schedule.loops[schedule.blocks[scope.block].loop].axis == spec.axis;
  });
  const Dim step_of_loop = is_span    ? axis.extent_below(Level::kSpan)
                           : is_along ? axis.count(Level::kStrip)
                                      : Dim(1);
  const int64_t step = step_of_loop.value();
  const RowLoop rows{schedule, spec.axis, step, scopes};
  int stores = 0, made = 0;
  rows.visit(loop, [&](Statement& s) { ++(s.kind == Statement::Kind::kAssign ? stores : made); });
  const bool walks = is_span || spec.level == Level::kSerial || (is_along && made > 0);
  if (!walks || !is_outermost || stores + made == 0 || loop.pragma == "STITCH_UNROLL")
    return split_vectors(std::move(loop));
  const int64_t most = std::max<int64_t>(1, (is_along ? kMostAlongStrips : kRowElements) / step);
  const int64_t fewest = made > 0 ? kFewestMade : kFewestStored;
  const auto first = to_number(loop.expr), end = to_number(loop.bound);
  // A loop that sums adds up its lanes at the end of each row: of one row or none, but for values
  // that would each take longer.
  const bool sums = loop.pragma.find("reduction(") != std::string::npos;
  const bool is_whole = is_along || (sums && (made == 0 || sums_exactly(loop)));
  if (!first || !end) {
    if (is_whole) return {std::move(loop)};
    const std::string all = loop.bound + " - (" + loop.expr + ") + " + std::to_string(most - 1);
    return {rows.walk_rows(loop, "(" + all + ") / " + std::to_string(most), most)};
  }
  const int64_t trips = *end - *first;
  if (trips * step < fewest || (is_whole && trips > most)) return split_vectors(std::move(loop));
  std::vector<Statement> out;
  const int64_t rest = trips < 2 * most ? *first : *end - trips % most;
  if (rest > *first) out.push_back(rows.walk_rows(loop, std::to_string(trips / most), most));
  if (rest < *end)
    std::ranges::move(rows.walk_row(loop, std::to_string(rest), std::to_string(*end), *end - rest),
                      std::back_inserter(out));
  return out;
}

}  // namespace stitch
