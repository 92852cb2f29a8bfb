#include "ops/op.h"

#include <unordered_map>

#include "base/error.h"
#include "base/nearest.h"

namespace stitch {
namespace {

std::vector<OpInfo> make_table() {
  return {
#define STITCH_OP(name, family, arity, rule, function, identity, cost, low, high, aten, doc) \
  OpInfo{OpKind::k_##name,                                                                   \
         #name,                                                                              \
         Family::k##family,                                                                  \
         arity,                                                                              \
         TypeRule::k##rule,                                                                  \
         function,                                                                           \
         identity,                                                                           \
         CostClass::k##cost,                                                                 \
         low,                                                                                \
         high,                                                                               \
         aten,                                                                               \
         doc},
#include "ops/ops.def"
#undef STITCH_OP
  };
}

}  // namespace

const std::vector<OpInfo>& all_ops() {
  static const std::vector<OpInfo> table = make_table();
  return table;
}

const OpInfo& info(OpKind kind) {
  STITCH_CHECK(kind < OpKind::kCount, "op kind " << static_cast<int>(kind) << " has no row");
  return all_ops()[static_cast<size_t>(kind)];
}

OpKind op_from_name(std::string_view name) {
  static const std::unordered_map<std::string_view, OpKind> kinds = [] {
    std::unordered_map<std::string_view, OpKind> map;
    for (const OpInfo& row : all_ops()) map.emplace(row.name, row.kind);
    return map;
  }();
  if (const auto found = kinds.find(name); found != kinds.end()) return found->second;
  std::vector<std::string> names;
  for (const OpInfo& row : all_ops()) names.push_back(row.name);
  throw UserError("unknown op '" + std::string(name) + "'; did you mean '" +
                  nearest_name(name, names) + "'? (rows of ops/ops.def)");
}

}  // namespace stitch
