// Library calls: what one may do besides yielding its results, those known by name, and those that
// rewrites make, for which the host has no row in its call table.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <initializer_list>
#include <string_view>

namespace stitch {

// The effect of a call, which the host reads off its operator's schema: the one number in `ints` of
// its node.  A call with one must run, in order with others such, even when nobody reads its
// results: it draws random numbers, which moves the generator on, communicates, prints or asserts.
inline constexpr int64_t kRunsInOrder = 1;
inline constexpr int64_t kWritesOperands = 2;  // and may write what it is given

using CallNames = std::initializer_list<std::string_view>;

// Calls that write some elements of their first operand: where the second says, those of the last.
inline bool writes_at_indices(std::string_view name) {
  const CallNames calls = {"aten.index_put_.", "aten.index_copy_.", "aten.index_add_.",
                           "aten.scatter_.", "aten.scatter_add_."};
  return std::ranges::any_of(calls, [&](std::string_view call) { return name.starts_with(call); });
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
