// Which attention of rewrite/attention/attention.h settings or the cost model make a library call.
#pragma once

#include "config/settings.h"
#include "cost/device_spec.h"
#include "rewrite/attention/attention.h"

namespace stitch {

// All that is looked at, each with its verdict.
std::vector<Attention> choose_attention(const Graph& graph, const Settings& settings,
                                        const DeviceSpec& device);

// The refused ones, found in `before`, as cuts of the graph that rewrites made of it.
std::vector<Cut> find_cuts(const std::vector<Attention>& judged, const Graph& before,
                           const Graph& after);

inline constexpr int kRuleScoresInCache = 36;
inline constexpr int kRuleEagerRounding = 37;   // the library does not round where eager does
inline constexpr int kRuleOneQuery = 38;        // both products are of a matrix and a vector
inline constexpr int kRuleProductsInBf16 = 39;  // the host multiplies bf16 as it is

}  // namespace stitch
