// Library calls: what one may do besides yielding its results, read off its name alone, and those
// that rewrites make, for which the host has no row in its call table.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace stitch {

// The call must run even when nobody reads its results: it communicates, prints, asserts, writes an
// operand, or is no aten op, so that we know nothing about it.  See has_effects of ir/graph.h.
bool has_effects(std::string_view library_name);

// The call may write its operands: in-place and out variants, and what is neither aten's nor ours.
bool may_write_operands(std::string_view library_name);
// Calls that write some elements of their first operand: where the second says, those of the last.
bool writes_at_indices(std::string_view library_name);

// A matrix product that reads operands of any strides BLAS can express, and whose result is
// contiguous whatever these are.
bool is_blas_call(std::string_view library_name);

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
// (index [count], rows, wraps, narrow, ignored): the positions in the order of their rows, [count],
// and where each row's begin, [rows + 1].
inline constexpr std::string_view kSegmentsCall = "torch_stitch.segments.default";
inline constexpr std::array kMadeCalls = {
    MadeCall{kAttentionCall, "scale"}, MadeCall{kFlashAttention, "scale"},
    MadeCall{kEfficientAttention, "scale"}, MadeCall{kSegmentsCall, ""},
    MadeCall{"aten.mm.default", ""}};

// No call at all: the value is the memory of its operands, which write all parts of it.
inline constexpr std::string_view kJoin = "torch_stitch.join";

}  // namespace stitch
