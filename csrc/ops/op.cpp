#include "ops/op.h"

#include "base/error.h"
#include "base/words.h"

namespace stitch {

static DType common_dtype(const OpInfo& op, const std::vector<DType>& operands, size_t first) {
  for (size_t i = first; i < operands.size(); ++i)
    if (operands[i] != operands[first])
      throw UserError(std::string(op.name) + " found operands of " +
                      join(operands, ", ", [](DType dtype) { return info(dtype).name; }) +
                      "; they must have one dtype: insert a cast");
  return operands[first];
}

const std::vector<OpInfo>& all_ops() {
  static const std::vector<OpInfo> table = {
#define STITCH_OP(name, family, arity, rule, function, identity, cost, instructions, aten, doc)    \
  OpInfo(OpKind::k_##name, #name, Family::k##family, arity, TypeRule::k##rule, function, identity, \
         CostClass::k##cost, Instructions instructions,                                            \
         aten == std::string_view("=") ? #name ".default" : aten, doc),
#include "ops/ops.def"
#undef STITCH_OP
  };
  return table;
}

const OpInfo& info(OpKind kind) {
  STITCH_CHECK(kind < OpKind::kCount, "op kind " << static_cast<int>(kind) << " has no row");
  return all_ops()[static_cast<size_t>(kind)];
}

OpKind op_from_name(std::string_view name) {
  if (const OpInfo* found = find_by(all_ops(), name, &OpInfo::name)) return found->kind;
  throw UserError("unknown op '" + std::string(name) + "'; did you mean '" +
                  nearest_name(name, all_ops(), &OpInfo::name) + "'? (rows of ops/ops.def)");
}

DType result_dtype(const OpInfo& op, const std::vector<DType>& operands, DType declared) {
  using enum TypeRule;
  if (op.type_rule == kExplicit) return declared;
  if (op.type_rule == kInteger) return DType::kI64;
  if (op.type_rule == kFirst) return operands.at(0);
  const bool is_choice = op.type_rule == kSecond;
  if (is_choice && operands.at(0) != DType::kBool)
    throw UserError(std::string(op.name) + " found a condition of " + info(operands[0]).name +
                    "; it must be bool: compare with 0 first");
  const DType common = common_dtype(op, operands, is_choice ? 1 : 0);
  return op.type_rule == kBool ? DType::kBool : op.type_rule == kFloat ? DType::kF32 : common;
}

}  // namespace stitch
