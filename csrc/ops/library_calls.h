// Library calls: what one may do besides yielding its results, read off its name alone, and those
// that rewrites make, for which the host has no row in its call table.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <initializer_list>
#include <string_view>

namespace stitch {

using CallNames = std::initializer_list<std::string_view>;

inline bool contains_any(std::string_view text, CallNames parts) {
  return std::ranges::any_of(
      parts, [&](std::string_view part) { return text.find(part) != std::string_view::npos; });
}

// The call may write its operands: in-place and out variants, and what is neither aten's nor ours.
inline bool may_write_operands(std::string_view name) {
  const bool is_known = name.starts_with("aten.") || name.starts_with("torch_stitch.");
  return !is_known || contains_any(name, {"_.", ".out", "_out", "resize", "set_"});
}
// Calls that write some elements of their first operand: where the second says, those of the last.
inline bool writes_at_indices(std::string_view name) {
  return contains_any(name, {"aten.index_put_.", "aten.index_copy_.", "aten.index_add_.",
                             "aten.scatter_.", "aten.scatter_add_."});
}

// The call must run even when nobody reads its results: it communicates, prints, asserts, writes an
// operand, or is no aten op, so that we know nothing about it.  See has_effects of ir/graph.h.
inline bool has_effects(std::string_view name) {
  return may_write_operands(name) ||
         contains_any(name, {"c10d", "wait_tensor", "print", "assert", "constrain"});
}

// A matrix product that reads operands of any strides BLAS can express, and whose result is
// contiguous whatever these are.
inline bool is_blas_call(std::string_view name) {
  const CallNames calls = {"aten.mm.default", "aten.bmm.default", "aten.addmm.default",
                           "aten.baddbmm.default"};
  return std::ranges::count(calls, name) > 0;
}

// A node of a call that a rewrite makes has `integer` = kMadeCall.  Its operands are the operator's
// first tensor parameters, its `dims` those that come next, as far as they go, its `number` is the
// parameter named here, all other parameters have their defaults; switches without one are off.
inline constexpr int64_t kMadeCall = -1;

struct MadeCall {
  std::string_view name;
  const char* number;
};

inline constexpr std::string_view kAttentionCall = "aten.scaled_dot_product_attention.default";
// What the first one runs on a GPU, without a mask and with one.
inline constexpr std::string_view kFlashAttention =
    "aten._scaled_dot_product_flash_attention.default";
inline constexpr std::string_view kEfficientAttention =
    "aten._scaled_dot_product_efficient_attention.default";
// (indices [count], narrow, and of each rows, wraps and ignored): of each the positions in the
// order of their rows, [count], and where each row's begin, [rows + 1].
inline constexpr std::string_view kSegmentsCall = "torch_stitch.segments.default";
inline constexpr std::array kMadeCalls = {
    MadeCall{kAttentionCall, "scale"},      MadeCall{kFlashAttention, "scale"},
    MadeCall{kEfficientAttention, "scale"}, MadeCall{kSegmentsCall, ""},
    MadeCall{"aten.mm.default", ""},        MadeCall{"aten.addmm.default", ""},
    MadeCall{"aten.baddbmm.default", ""}};

// No call at all: the value is the memory of its operands, which write all parts of it.
inline constexpr std::string_view kJoin = "torch_stitch.join";

}  // namespace stitch
