#include "ops/op_rules.h"

#include "base/error.h"
#include "base/words.h"

namespace stitch {
namespace {

DType common_dtype(const OpInfo& op, const std::vector<DType>& operands, size_t first) {
  for (size_t i = first; i < operands.size(); ++i)
    if (operands[i] != operands[first])
      throw UserError(std::string(op.name) + " found operands of " +
                      join(operands, ", ", [](DType dtype) { return info(dtype).name; }) +
                      "; they must have one dtype: insert a cast");
  return operands[first];
}

}  // namespace

DType result_dtype(const OpInfo& op, const std::vector<DType>& operands, DType declared) {
  switch (op.type_rule) {
    case TypeRule::kExplicit:
      return declared;
    case TypeRule::kFirst:
      return operands.at(0);
    case TypeRule::kSame:
      return common_dtype(op, operands, 0);
    case TypeRule::kBool:
      common_dtype(op, operands, 0);
      return DType::kBool;
    case TypeRule::kInteger:
      return DType::kI64;
    case TypeRule::kFloat:
      common_dtype(op, operands, 0);
      return DType::kF32;
    case TypeRule::kSecond:
      if (operands.at(0) != DType::kBool)
        throw UserError(std::string(op.name) + " found a condition of " + info(operands[0]).name +
                        "; it must be bool: compare with 0 first");
      return common_dtype(op, operands, 1);
  }
  throw InternalError("a type rule has no meaning");
}

std::vector<Dim> broadcast_shape(const std::vector<Dim>& a, const std::vector<Dim>& b) {
  const std::vector<Dim>& longer = a.size() >= b.size() ? a : b;
  const std::vector<Dim>& shorter = a.size() >= b.size() ? b : a;
  std::vector<Dim> shape = longer;
  const size_t lead = longer.size() - shorter.size();
  for (size_t i = 0; i < shorter.size(); ++i) {
    Dim& extent = shape[lead + i];
    if (shorter[i] == extent || shorter[i].is(1)) continue;
    if (!extent.is(1))
      require_equal(shorter[i], extent, "broadcasting " + to_string(a) + " with " + to_string(b));
    extent = shorter[i];
  }
  return shape;
}

bool broadcasts_to(const std::vector<Dim>& shape, const std::vector<Dim>& target) {
  if (shape.size() > target.size()) return false;
  const size_t lead = target.size() - shape.size();
  for (size_t i = 0; i < shape.size(); ++i)
    if (!shape[i].is(1) && shape[i] != target[lead + i]) return false;
  return true;
}

void require_equal(const Dim& found, const Dim& expected, const std::string& what) {
  if (found == expected) return;
  const std::string sizes =
      what + ": found size " + to_string(found) + ", expected " + to_string(expected);
  if ((found - expected).is_constant())
    throw UserError(sizes + "; extents must be equal, or 1 where they broadcast");
  throw UnsupportedError(sizes + ", and cannot prove them equal for all values of the symbols; " +
                         "mark the size as static, or leave the op to a library call");
}

bool is_integral(DType dtype) { return dtype == DType::kBool || info(dtype).is_integer; }

bool divides_integers(const OpInfo& op, DType result) {
  return op.cost == CostClass::kDivide && op.arity == 2 && is_integral(result);
}

bool is_assertion(const OpInfo& op) { return op.kind == OpKind::k_assert_true; }

bool is_value_preserving(DType from, DType to) {
  if (from == to) return true;
  if (from == DType::kOpaque || to == DType::kOpaque || to == DType::kBool) return false;
  const DTypeInfo &narrow = info(from), &wide = info(to);
  if (narrow.is_signed && !wide.is_signed) return false;
  return narrow.digits <= wide.digits && narrow.exponent_bits <= wide.exponent_bits;
}

}  // namespace stitch
