// ValueLowering's checks of what only data says: indices and divisors.
#include <algorithm>

#include "codegen/lower_values.h"
#include "ops/op_rules.h"

namespace stitch {

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
  if (guard != 0) {
    zero += " & " + values[guard].text;
    depth = std::max(depth, values[guard].depth);
  }
  collect("report_zero_divisor", zero, depth);
}

IndexExpr ValueLowering::checked_index(NodeId node, Handle value, const Dim& extent, int guard) {
  std::string index = values[value].text;
  int depth = values[value].depth;
  if (guard != 0) {
    // Where the guard does not hold nothing is read, so nothing can be out of range.
    index = "(" + values[guard].text + " ? i64(" + index + ") : i64(0))";
    depth = std::max(depth, values[guard].depth);
  }
  const std::string size = "i64(" + scopes_.print(extent) + ")";
  index = "i64(" + index + ")";
  if (counts_from_end(graph_[node])) index = "wrap_index(" + index + ", " + size + ")";
  if (schedule_.device->is_cuda) {
    lowered_.may_fail = true;
    const Handle checked = let("i64", "check_index(" + index + ", " + size + ", error)", depth);
    return index_of(vars.value(checked, extent));
  }
  const Handle place = let("i64", index, depth);
  const std::string arguments = "(" + values[place].text + ", " + size + ")";
  collect("report_bad_index", "!is_index" + arguments, depth);
  return index_of(vars.value(let("i64", "safe_index" + arguments, depth), extent));
}

// Wide enough to be multiplied by strides.
IndexExpr ValueLowering::known_index(Handle value, const Dim& extent) {
  const Scalar at = values[value];
  return index_of(vars.value(let("i64", "i64(" + at.text + ")", at.depth), extent));
}

}  // namespace stitch
