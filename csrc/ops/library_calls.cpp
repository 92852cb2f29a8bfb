#include "ops/library_calls.h"

#include <algorithm>
#include <span>

namespace stitch {

constexpr std::string_view kWritingParts[] = {"_.", ".out", "_out", "resize", "set_"};
constexpr std::string_view kIndexedWrites[] = {"aten.index_put_.", "aten.index_copy_.",
                                               "aten.index_add_.", "aten.scatter_.",
                                               "aten.scatter_add_."};
constexpr std::string_view kEffectParts[] = {"c10d", "wait_tensor", "print", "assert", "constrain"};
constexpr std::string_view kBlasCalls[] = {"aten.mm.default", "aten.bmm.default",
                                           "aten.addmm.default", "aten.baddbmm.default"};

static bool contains_any(std::string_view text, std::span<const std::string_view> parts) {
  return std::ranges::any_of(
      parts, [&](std::string_view part) { return text.find(part) != std::string_view::npos; });
}

bool may_write_operands(std::string_view name) {
  const bool is_known = name.starts_with("aten.") || name.starts_with("torch_stitch.");
  return !is_known || contains_any(name, kWritingParts);
}

bool writes_at_indices(std::string_view name) { return contains_any(name, kIndexedWrites); }

bool has_effects(std::string_view name) {
  return may_write_operands(name) || contains_any(name, kEffectParts);
}

bool is_blas_call(std::string_view name) { return std::ranges::count(kBlasCalls, name) > 0; }

}  // namespace stitch
