#include "codegen/lower_values.h"

#include <cmath>
#include <cstdio>

#include "stage/persistent_values.h"

namespace stitch {
namespace {

// Exact in every bit: a hexadecimal literal, or a named special value.
std::string float_literal(double number, const std::string& type) {
  const bool is_f64 = type == "f64";
  if (!is_f64) number = static_cast<float>(number);  // infinite beyond float's range
  if (std::isnan(number)) return "quiet_nan<" + type + ">()";
  if (std::isinf(number)) return (number < 0 ? "-infinity<" : "infinity<") + type + ">()";
  char text[64];
  std::snprintf(text, sizeof text, is_f64 ? "%a" : "%af", number);
  return text;
}

// A cast of integers back to the type of floats that they were made of.
bool was_of_type(const Graph& graph, const Node& cast) {
  const std::string type = info(cast.type.dtype).register_name;
  const Node* node = &graph[cast.inputs[0]];
  while (info(node->type.dtype).is_integer &&
         (node->op == OpKind::k_cast || family(*node) == Family::kView)) {
    const Node& operand = graph[node->inputs[0]];
    if (info(operand.type.dtype).is_float) return type == info(operand.type.dtype).register_name;
    if (!is_value_preserving(operand.type.dtype, node->type.dtype)) return false;
    node = &operand;
  }
  return false;
}

}  // namespace

ValueLowering::ValueLowering(const Graph& graph, const StageSchedule& schedule, Scopes& scopes,
                             LoweredStage& lowered, const LoweringOptions& options)
    : graph_(graph), schedule_(schedule), scopes_(scopes), lowered_(lowered), options_(options) {
  vars = schedule.accesses.vars;
  vars.forget_values();
  values.push_back({"true", 0});   // guard 0, known everywhere
  values.push_back({"false", 0});  // kNever
}

void ValueLowering::close_scope() {
  const int depth = scopes_.depth();
  std::erase_if(known_, [&](const auto& entry) { return values[entry.second].depth >= depth; });
  std::erase_if(tiles_, [&](const auto& entry) { return values[entry.second].depth >= depth; });
  std::erase_if(vectors_, [&](const auto& entry) { return values[entry.second].depth >= depth; });
  std::erase_if(on_chip, [&](const auto& entry) { return entry.second.depth >= depth; });
  std::erase_if(combined, [&](const auto& entry) { return entry.second.second.depth >= depth; });
}

int ValueLowering::pointer(NodeId value, bool is_store) {
  for (size_t i = 0; i < lowered_.pointers.size(); ++i)
    if (lowered_.pointers[i].value == value && lowered_.pointers[i].is_store == is_store)
      return static_cast<int>(i);
  lowered_.pointers.push_back({value, is_store, info(graph_[value].type.dtype).bytes});
  return static_cast<int>(lowered_.pointers.size()) - 1;
}

Scalar ValueLowering::element(const OnChip& home, const FixedAxes& fixed) const {
  for (int l = 0; l < std::ssize(schedule_.loops); ++l) {
    const bool is_fixed = fixed.count(schedule_.loops[l].axis) > 0;
    STITCH_CHECK(!is_fixed || std::ranges::count(home.loops, array_loop(schedule_, l)),
                 "a value is read along an axis that its array does not hold");
  }
  if (home.loops.empty()) return {home.name, home.depth};
  Scalar at = scopes_.position(home.loops, fixed);
  return {home.name + "[" + at.text + "]", std::max(at.depth, home.depth)};
}

std::optional<Handle> ValueLowering::find(NodeId value, const Index& index, int guard) {
  auto at = known_.find({value, index, guard});
  if (at != known_.end()) return at->second;
  if (auto done = combined.find(value); done != combined.end() && done->second.first == index) {
    const Scalar scalar = element(done->second.second);
    return let(register_type(value), scalar.text, scalar.depth);
  }
  auto home = on_chip.find(value);
  auto kept = schedule_.kept_on_chip.find(value);
  const bool is_kept = kept != schedule_.kept_on_chip.end() && made.count(value) > 0;
  if (!is_kept || home == on_chip.end()) return std::nullopt;
  auto fixed = find_fixed_axes(schedule_, vars, kept->second, index);
  if (!fixed) return std::nullopt;
  for (int loop : home->second.loops) {
    const bool runs = fixed->count(schedule_.loops[loop].axis) == 0;
    if (runs && scopes_.depth_of_loop(loop) < 0) return std::nullopt;
  }
  // An element of the array may be read whether or not a guard holds.
  Scalar scalar = element(home->second, *fixed);
  Handle handle = let(register_type(value), scalar.text, scalar.depth);
  known_[{value, index, guard}] = handle;
  return handle;
}

void ValueLowering::remember(NodeId value, const Index& index, int guard, Handle handle) {
  known_[{value, index, guard}] = handle;
  auto home = on_chip.find(value);
  auto kept = schedule_.kept_on_chip.find(value);
  const bool is_made_here = kept != schedule_.kept_on_chip.end() && kept->second == index;
  if (guard != 0 || !is_made_here || home == on_chip.end() || made.count(value)) return;
  Scalar target = element(home->second);
  const int depth = std::max(target.depth, values[handle].depth);
  scopes_.append(depth, Statement::assign(target.text, values[handle].text));
}

Handle ValueLowering::reduced(NodeId reduction, const Index&) {
  auto home = on_chip.find(reduction);
  STITCH_CHECK(home != on_chip.end(), "a reduction is read before it is finished");
  const Scalar result = element(home->second);
  if (const std::string own = register_type(reduction); home->second.type != own) {
    const Handle rounded = let(own, in_type(own, result.text, home->second.type), result.depth);
    wide[rounded] = result.text;
    return rounded;
  }
  if (options_.rounded.contains(reduction)) {
    const DTypeInfo& type = info(graph_[reduction].type.dtype);
    const std::string text = std::string("round_to<") + type.device_name + ">(" + result.text + ")";
    return let(type.register_name, text, result.depth);
  }
  return add(result);
}

Handle ValueLowering::constant(const Node& node) {
  const DTypeInfo& type = info(node.type.dtype);
  const std::string reg = type.register_name;
  std::string text;
  if (node.op == OpKind::k_full && !node.dims.empty())
    text = reg + "(" + scopes_.size(node.dims[0]) + ")";
  else if (type.is_float)
    text = float_literal(node.number, reg);
  else if (node.type.dtype == DType::kBool)
    text = node.integer ? "true" : "false";
  else if (node.integer == INT64_MIN)
    text = "(-9223372036854775807LL - 1)";
  else
    text = reg + "(" + std::to_string(node.integer) + "LL)";
  const Handle result = add({text, 0});
  if (node.dims.empty()) parts_[result] = {node.op, {}, node.number};
  return result;
}

Handle ValueLowering::from_index(DType dtype, const IndexExpr& index) {
  Scalar at = scopes_.print(index, vars, values);
  const std::string text = concat("convert<", info(dtype).register_name, ">(i64(", at.text, "))");
  const Handle result = let(info(dtype).register_name, text, at.depth);
  indices_[result] = index;
  return result;
}

std::string ValueLowering::call(NodeId id, const std::vector<Handle>& operands,
                                const std::string& arguments, int depth) {
  const Node& node = graph_[id];
  const Precision& precision = options_.precision;
  const std::string function = info(node).function, exact = function + "(" + arguments + ")";
  if (precision.is_short.empty() || register_type(id) != "f32") return exact;
  const bool is_short = precision.is_short[id.index()], divides = node.op == OpKind::k_div;
  if (divides && !precision.is_decisive[id.index()] && values[operands[1]].depth < depth) {
    auto [at, is_new] = inverses_.try_emplace(operands[1]);
    const Scalar& divisor = values[operands[1]];
    if (is_new) at->second = let("Inverse", "invert(" + divisor.text + ")", divisor.depth);
    return "div_by(" + values[operands[0]].text + ", " + values[at->second].text + ")";
  }
  if (!is_short) return exact;
  const GpuForms& forms = gpu_forms(node.op);
  if (precision.may_vanish[id.index()]) return concat(forms.vanishing, "(", arguments, ")");
  for (size_t i = 0; i < 2; ++i) {
    if (node.op == OpKind::k_add && parts_of(operands[1 - i]).number == 1) {
      const Parts& term = parts_of(operands[i]);
      const std::string sum = gpu_forms(term.op).plus_one_short;
      if (!sum.empty()) return concat(sum, "(", values[term.operands[0]].text, ")");
    }
    const Parts& product = parts_of(operands[0]);
    if (forms.takes_factor && product.op == OpKind::k_mul &&
        parts_of(product.operands[1 - i]).op == OpKind::k_full)
      return concat(function, "_short(", values[product.operands[i]].text, ", ",
                    values[product.operands[1 - i]].text, ")");
  }
  const bool has_short = forms.has_short && !(divides && node.type.dtype == DType::kF16);
  return has_short ? function + "_short(" + arguments + ")" : exact;
}

Handle ValueLowering::pointwise(NodeId id, const std::vector<Handle>& operands, int guard) {
  const Node& node = graph_[id];
  const DTypeInfo& type = info(node.type.dtype);
  int depth = 0;
  for (Handle operand : operands) depth = std::max(depth, values[operand].depth);
  std::string arguments =
      join(operands, ", ", [&](Handle operand) { return values[operand].text; });
  if (operands.size() == 2) check_divisor(node, operands[1], guard, depth);
  if (is_assertion(info(node))) {
    STITCH_CHECK(guard == 0, "an assertion is evaluated where its value may not exist");
    lowered_.may_fail = true;
    arguments += ", error";
  }
  const bool is_cast = node.op == OpKind::k_cast;
  const bool is_flag = is_cast && graph_[node.inputs[0]].type.dtype == DType::kBool;
  const bool asked = (is_cast && !keeps_digits(node)) || options_.emulate_eager_casts ||
                     options_.rounded.contains(id);
  const bool narrow = std::string(type.device_name) != type.register_name && type.is_float;
  const bool rounds = narrow && asked && id != unrounded_root && !is_flag;
  std::string expr;
  if (is_cast) {
    const std::string from = info(graph_[node.inputs[0]].type.dtype).register_name;
    const bool same = from == type.register_name;
    if (same && !rounds) return operands[0];
    const std::string convert = was_of_type(graph_, node) ? "convert_back<" : "convert<";
    const bool is_small = type.is_integer && (type.bytes < 4 || node.type.dtype == DType::kI32);
    const Parts& rounded = parts_of(operands[0]);
    if (schedule_.device->is_cuda && is_small && from == "f32" && rounded.op == OpKind::k_round)
      arguments = "round_to_i32(" + values[rounded.operands[0]].text + ")";
    expr = same ? arguments : convert + type.register_name + ">(" + arguments + ")";
  } else if (node.op == OpKind::k_div && wide.count(operands[0]) &&
             graph_[skip_views(graph_, node.inputs[1])].op == OpKind::k_full) {
    // A mean is rounded once, as eager's beside a variance is: twice is up to 2.2 times as far off.
    const std::string divisor = "f64(" + values[operands[1]].text + ")";
    expr = in_type(type.register_name, wide[operands[0]] + " / " + divisor, "f64");
  } else {
    expr = draw(node, operands, arguments, depth);
    if (expr.empty()) expr = call(id, operands, arguments, depth);
  }
  if (rounds) expr = std::string("round_to<") + type.device_name + ">(" + expr + ")";
  const Handle result = let(type.register_name, expr, depth);
  parts_[result] = {node.op, operands};
  return result;
}

int ValueLowering::begin_guard(const Condition& condition, int outer) {
  const Holds holds = holds_in(ranges_, schedule_, vars, condition);
  if (holds == Holds::kAlways || outer == kNever) return outer;
  if (holds == Holds::kNever) return kNever;
  // Of ends that are multiples of a vector it holds for all lanes or for none.
  int lanes = vector_axis(condition.index);
  for (const Dim& end : {condition.low, condition.high})
    if (lanes >= 0 && !is_divisible(end, schedule_.axes[lanes].vector())) lanes = -1;
  Scalar at = scopes_.print(condition.index, vars, values, lanes);
  std::string text;
  auto add = [&](const std::string& part) { text += (text.empty() ? "" : " & ") + part; };
  const bool starts_at_zero = condition.low.is(0) && condition.index.constant.is_constant() &&
                              !may_be_negative(condition.index.constant) &&
                              std::ranges::none_of(condition.index.terms, [](const auto& term) {
                                return may_be_negative(term.second);
                              });
  if (!starts_at_zero) add("((" + at.text + ") >= " + scopes_.size(condition.low) + ")");
  add("((" + at.text + ") < " + scopes_.size(condition.high) + ")");
  if (outer != 0) add(values[outer].text);
  return let("bool", text, std::max(at.depth, values[outer].depth));
}

Handle ValueLowering::choose(int guard, Handle inside, Handle outside, DType dtype) {
  if (guard == 0) return inside;
  if (guard == kNever) return outside;
  const int depth = std::max({values[guard].depth, values[inside].depth, values[outside].depth});
  return let(info(dtype).register_name,
             values[guard].text + " ? " + values[inside].text + " : " + values[outside].text,
             depth);
}

// The axis of the loop that the scope belongs to, if what lies at the offset lies side by side
// along it; else -1.
int ValueLowering::contiguous_axis(const IndexExpr& offset, int depth) const {
  const int block = scopes_.open[depth].block;
  if (block <= 0 || !walks_atoms_alone(vars, offset)) return -1;
  const int axis = schedule_.loops[schedule_.blocks[block].loop].axis;
  return axis_coefficient(schedule_, vars, offset, axis).is(1) ? axis : -1;
}

void ValueLowering::store(NodeId root, const IndexExpr& offset, const std::string& text,
                          int value_depth, const std::string& predicate) {
  const TensorType& type = graph_[root].type;
  const DTypeInfo& dtype = info(type.dtype);
  const int p = pointer(root, true);
  const std::string base = "p" + std::to_string(p);
  const std::string stored = in_type(dtype.device_name, text, dtype.register_name);
  const int axis = vector_axis(offset);
  const PersistentValue* persistent = find_persistent(schedule_, root);
  if (persistent) held_.insert(root);
  if (axis < 0) {
    Scalar at = place_of(root, offset);
    const int depth = std::max(at.depth, value_depth);
    if (persistent) {
      const std::string element = std::string(dtype.device_name) + "(" + stored + ")";
      put_persistent(*persistent, element, "", scopes_.open[depth].statements);
    }
    Statement statement = Statement::assign(base + "[" + at.text + "]", stored, predicate);
    statement.type = dtype.device_name;
    if (options_.streamed.count(root) && predicate.empty())
      statement.by_rows_along = contiguous_axis(offset, depth);
    scopes_.append(depth, std::move(statement));
    return;
  }
  const int width = schedule_.axes[axis].vector();
  align(p, width * dtype.bytes);
  const int lane_depth = scopes_.axis_depth(axis);
  const std::string name = scopes_.fresh();
  scopes_.append(lane_depth - 1, Statement::var(vector_type(type.dtype, width), name));
  const std::string lane = scopes_.loop_name(axis, Level::kVector);
  scopes_.append(std::max(lane_depth, value_depth),
                 Statement::assign(name + ".v[" + lane + "]", stored));
  std::vector<Statement>& after = scopes_.open[lane_depth - 1].after_child;
  if (persistent) put_persistent(*persistent, name, "", after);
  Scalar at = place_of(root, offset, axis);
  after.push_back(
      Statement::call("store_vec(" + base + " + (" + at.text + "), " + name + ")", predicate));
}

// Checks of what only data says: indices and divisors.

// Collected without a branch, so that the loop still vectorises; reported when the kernel ends.
void ValueLowering::collect(const char* report, const std::string& condition, int depth) {
  lowered_.may_fail = true;
  std::string& flag = lowered_.collected[report];
  if (flag.empty()) flag = scopes_.fresh();
  scopes_.append(depth, Statement::assign(flag, flag + " | i32(" + condition + ")"));
}

// Eager on a GPU yields a value, and so do kernels there.
void ValueLowering::check_divisor(const Node& division, Handle divisor, int guard, int depth) {
  if (schedule_.device->is_cuda || !divides_integers(info(division), division.type.dtype)) return;
  const Node& by = graph_[division.inputs[1]];
  if (by.op == OpKind::k_full && by.dims.empty() && by.integer != 0) return;
  std::string zero = "(" + values[divisor].text + " == 0)";
  if (guard != 0) zero += " & " + values[guard].text;
  collect("report_zero_divisor", zero, std::max(depth, values[guard].depth));
}

Handle ValueLowering::checked_index(NodeId node, Handle value, const Dim& extent, int guard) {
  std::string index = values[value].text;
  const int depth = std::max(values[value].depth, values[guard].depth);
  // Where the guard does not hold nothing is read, so nothing can be out of range.
  if (guard != 0) index = "(" + values[guard].text + " ? i64(" + index + ") : i64(0))";
  const std::string size = "i64(" + scopes_.size(extent) + ")";
  index = "i64(" + index + ")";
  if (counts_from_end(graph_[node])) index = "wrap_index(" + index + ", " + size + ")";
  if (schedule_.device->is_cuda) {
    lowered_.may_fail = true;
    return let("i64", "check_index(" + index + ", " + size + ", error)", depth);
  }
  const Handle place = let("i64", index, depth);
  const std::string arguments = "(" + values[place].text + ", " + size + ")";
  collect("report_bad_index", "!is_index" + arguments, depth);
  return let("i64", "safe_index" + arguments, depth);
}

// Loops over segments: rows that combine the elements which an order puts there.

// The outermost scope in which all that a segment depends on is known.
int ValueLowering::depth_of(const Segment& segment) {
  int depth = values[segment.guard].depth;
  for (Handle known : {segment.initial, segment.first, segment.last})
    depth = std::max(depth, values[known].depth);
  for (VarId var : vars.leaves_of(segment.index)) {
    const IndexVar& leaf = vars[var];
    const bool is_value = leaf.kind == IndexVar::Kind::kValue;
    depth = std::max(depth, is_value ? values[leaf.payload].depth
                                     : scopes_.axis_depth(scopes_.axis_of_atom(leaf.payload)));
  }
  return depth;
}

Handle ValueLowering::check_end(const Segment& segment, int depth) {
  lowered_.may_fail = true;
  std::string end = "check_segment(" + values[segment.last].text + ", error)";
  if (segment.guard != 0)
    end = "(" + values[segment.guard].text + " ? " + end + " : " + values[segment.first].text + ")";
  return let("i64", end, depth);
}

Handle ValueLowering::open_segment(Handle first, Handle end, int depth) {
  const std::string position = scopes_.fresh();
  Statement loop{Statement::Kind::kLoop, "i64", position, values[first].text};
  loop.bound = values[end].text;
  segments_.push_back({std::move(loop), depth});
  scopes_.open.push_back({kSegmentBlock, {}, {}});
  return add({position, scopes_.depth()});
}

void ValueLowering::close_segment() {
  OpenSegment segment = std::move(segments_.back());
  segments_.pop_back();
  close_scope();
  segment.loop.body = std::move(scopes_.open.back().statements);
  scopes_.open.pop_back();
  scopes_.append(segment.depth, std::move(segment.loop));
}

Handle ValueLowering::begin_segment(const Segment& segment) {
  const int depth = depth_of(segment);
  const Handle end = check_end(segment, depth);
  results_.push_back(scopes_.fresh());
  scopes_.append(depth, Statement::var(register_type(segment.node), results_.back(),
                                       values[segment.initial].text));
  return open_segment(segment.first, end, depth);
}

Handle ValueLowering::end_segment(const Segment& segment, Handle element) {
  const std::string result = std::move(results_.back());
  results_.pop_back();
  scopes_.assign(result, concat(info(graph_[segment.node]).function, "::apply(", result, ", ",
                                values[element].text, ")"));
  const int depth = segments_.back().depth;
  close_segment();
  return add({result, depth});
}

}  // namespace stitch
