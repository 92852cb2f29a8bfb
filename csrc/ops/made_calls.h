// Library calls that rewrites make: the host has no row for them in its call table.
//
// A node of one has `integer` = kMadeCall.  Its operands are the operator's first tensor
// parameters, its `dims` those that come next, as far as they go, its `number` is the parameter
// named here, all other parameters have their defaults; switches without one are off.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace stitch {

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
