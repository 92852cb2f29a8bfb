#include "codegen/scopes.h"

#include "stage/build_loops.h"
#include "stage/place_values.h"

namespace stitch {

constexpr int64_t kMostShort = int64_t{1} << 32;

std::string print_size(const Dim& dim, DimList& sizes) {
  if (dim.is_constant()) return std::to_string(dim.value());
  auto at = std::ranges::find(sizes, dim);
  if (at == sizes.end()) at = sizes.insert(at, dim);
  return "n" + std::to_string(at - sizes.begin());
}

int Scopes::depth_of_loop(int loop) const {
  for (int d = depth(); d > 0; --d) {
    if (open[d].block == kSegmentBlock) continue;
    if (array_loop(schedule_, schedule_.blocks[open[d].block].loop) == loop) return d;
  }
  return -1;
}

int Scopes::axis_depth(int axis, bool without_vector) const {
  for (int d = depth(); d > 0; --d) {
    if (open[d].block == kSegmentBlock) continue;
    const LoopSpec& spec = schedule_.loops[schedule_.blocks[open[d].block].loop];
    if (spec.axis != axis) continue;
    if (!without_vector || spec.level != Level::kVector) return d;
  }
  return 0;
}

std::string Scopes::block_end(int axis) {
  const MappedAxis& mapped = schedule_.axes[axis];
  const std::string tile = print(mapped.tile());
  if (!mapped.in_grid() || is_divisible(mapped.axis.extent, mapped.tile())) return tile;
  return "min_index(" + tile + ", " + print(mapped.axis.extent) + " - " + block_begin(axis) + ")";
}

Scalar Scopes::axis_in_block(int axis, bool without_vector) {
  const std::string name = axis_name(axis, without_vector);
  const bool is_whole = !schedule_.axes[axis].in_grid();
  return {is_whole ? name : "(" + name + " - " + block_begin(axis) + ")",
          axis_depth(axis, without_vector)};
}

// GCC 12 loads all that lies between lanes whose step it knows: of 4,096 elements, 130 times the
// time of a step that it does not know, and minutes of compiling.
std::string Scopes::print_step(int axis, const Dim& coefficient) {
  const int at = axis < 0 || schedule_.device->is_cuda ? 0 : axis_depth(axis);
  const bool walks_lanes = at > 0 && is_innermost(schedule_, open[at].block);
  if (!walks_lanes || !coefficient.is_constant() || coefficient.value() <= kMostBetweenLanes)
    return print(coefficient);
  const std::string name = "step_" + print(coefficient);
  if (steps_.insert(name).second)
    append(0, Statement::let("i64", name, "hide(" + print(coefficient) + ")"));
  return name;
}

Scalar Scopes::print(const IndexExpr& expr, const IndexVars& vars,
                     const std::vector<Scalar>& values, int without_vector) {
  Scalar out;
  auto add = [&](const std::string& term, const Dim& coefficient, int axis = -1) {
    if (!out.text.empty()) out.text += " + ";
    out.text += coefficient.is(1) ? term : term + " * " + print_step(axis, coefficient);
  };
  std::map<int, Dim> axes;  // axis -> coefficient of its innermost atom
  for (const auto& [var, coefficient] : expr.terms) {
    const IndexVar& info = vars[var];
    if (info.is_atom()) {
      const int axis = axis_of_atom(info.payload);
      axes[axis] = axis_coefficient(schedule_, vars, expr, axis);
      continue;
    }
    if (info.is_value()) {
      add(values[info.payload].text, coefficient);
      out.depth = std::max(out.depth, values[info.payload].depth);
      continue;
    }
    Scalar operand = print(info.operand, vars, values, without_vector);
    const char* op = info.kind == IndexVar::Kind::kQuotient ? " / " : " % ";
    // Vectors and GPUs divide by constants of 32 bits; by one of 64 bits no vector does.
    const bool is_short = info.divisor.is_constant() && vars.is_below(info.operand, kMostShort);
    const std::string divided = (is_short ? "u32(" : "(") + operand.text + ")";
    add((is_short ? "i64(" : "(") + divided + op + print(info.divisor) + ")", coefficient);
    out.depth = std::max(out.depth, operand.depth);
  }
  for (const auto& [axis, coefficient] : axes) {
    STITCH_CHECK(!coefficient.is(0), "an index uses part of an axis");
    const bool base = axis == without_vector;
    add(axis_name(axis, base), coefficient, axis);
    out.depth = std::max(out.depth, axis_depth(axis, base));
  }
  if (!expr.constant.is(0) || out.text.empty()) add(print(expr.constant), 1);
  return out;
}

Scalar Scopes::position(const std::vector<int>& loops, const FixedAxes& fixed) const {
  Scalar out{"", 0};
  for (int loop : loops) {
    const int64_t trips = trip_count(schedule_, loop).value();
    const LoopSpec& spec = schedule_.loops[loop];
    if (spec.level == Level::kChunk) continue;
    if (out.text.find(' ') != std::string::npos) out.text = "(" + out.text + ")";
    if (!out.text.empty()) out.text += " * " + std::to_string(trips) + " + ";
    if (auto at = fixed.find(spec.axis); at != fixed.end()) {
      // One thread holds the axis, so its index is serial * vector + lane.
      const int64_t vector = schedule_.axes[spec.axis].vector();
      const bool is_lane = spec.level == Level::kVector;
      out.text += std::to_string(is_lane ? at->second % vector : at->second / vector);
      continue;
    }
    // No block divides an axis of strips: its index is the digit.
    const bool has_strips = schedule_.axes[spec.axis].has(Level::kStrip);
    out.text += has_strips ? axis_name(spec.axis, false) : loop_name(loop);
    const int at = depth_of_loop(loop);
    STITCH_CHECK(at > 0, "an array is indexed by a loop that is not open");
    out.depth = std::max(out.depth, at);
  }
  if (out.text.empty()) out.text = "0";
  return out;
}

}  // namespace stitch
