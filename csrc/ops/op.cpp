#include "ops/op.h"

#include <algorithm>

#include "base/error.h"
#include "base/words.h"

namespace stitch {

const std::vector<OpInfo>& all_ops() {
  static const std::vector<OpInfo> table = {
#define STITCH_OP(name, family, arity, rule, function, identity, cost, low, high, aten, doc)       \
  OpInfo(OpKind::k_##name, #name, Family::k##family, arity, TypeRule::k##rule, function, identity, \
         CostClass::k##cost, low, high, aten, doc),
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
  const auto found = std::ranges::find(all_ops(), name, &OpInfo::name);
  if (found != all_ops().end()) return found->kind;
  throw UserError("unknown op '" + std::string(name) + "'; did you mean '" +
                  nearest_name(name, all_ops(), &OpInfo::name) + "'? (rows of ops/ops.def)");
}

}  // namespace stitch
