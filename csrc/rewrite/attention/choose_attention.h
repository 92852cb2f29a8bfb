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

}  // namespace stitch
