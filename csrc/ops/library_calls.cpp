#include "ops/library_calls.h"

#include <algorithm>
#include <array>

namespace stitch {
namespace {

using namespace std::string_view_literals;

constexpr std::array kWritingParts = {"_."sv, ".out"sv, "_out"sv, "resize"sv, "set_"sv};

constexpr std::array kIndexedWrites = {"aten.index_put_."sv, "aten.index_copy_."sv,
                                       "aten.index_add_."sv, "aten.scatter_."sv,
                                       "aten.scatter_add_."sv};

constexpr std::array kEffectParts = {"c10d"sv, "wait_tensor"sv, "print"sv, "assert"sv,
                                     "constrain"sv};

constexpr std::array kBlasCalls = {"aten.mm.default"sv, "aten.bmm.default"sv,
                                   "aten.addmm.default"sv, "aten.baddbmm.default"sv};

template <class Parts>
bool contains_any(std::string_view text, const Parts& parts) {
  return std::ranges::any_of(
      parts, [&](std::string_view part) { return text.find(part) != std::string_view::npos; });
}

}  // namespace

bool may_write_operands(std::string_view name) {
  const bool is_known = name.starts_with("aten.") || name.starts_with("torch_stitch.");
  return !is_known || contains_any(name, kWritingParts);
}

bool writes_at_indices(std::string_view name) { return contains_any(name, kIndexedWrites); }

bool has_effects(std::string_view name) {
  return may_write_operands(name) || contains_any(name, kEffectParts);
}

bool is_blas_call(std::string_view name) {
  return std::ranges::find(kBlasCalls, name) != kBlasCalls.end();
}

}  // namespace stitch
