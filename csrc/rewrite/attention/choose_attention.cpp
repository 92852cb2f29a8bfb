#include "rewrite/attention/attention.h"

namespace stitch {

// Does the library's attention beat two batched products with a stitched softmax between them?
//
// Written out over library time on one core of two hosts of 2 cores and AVX-512, heads of 64 [M,
// torch 2.13, 2026-11]; the softmax written out is torch's, which is slower than ours.
//   heads x rows x columns   fp32 scores   fp32   fp16   bf16 (avx512_bf16)   bf16 (without)
//    128 x    1 x  512         0.3 MB      0.85   0.32        0.24
//     12 x  128 x  128         0.8 MB      0.9     24         0.39                 2.9
//     48 x  128 x  128         3.1 MB      1.02    28                              2.7
//     12 x  512 x  512          13 MB      1.1-1.2 38         0.32                 3.2
//     12 x 1024 x 1024          50 MB      1.3-2.1 34         0.66                 3.4
// With AMX the library's kernel multiplies by tiles: unmeasured, taken as without.  GPUs have
// tensor cores for 16 bits only: unmeasured.
static Verdict compare_times(const Graph& graph, NodeId scores, const DeviceSpec& device) {
  const TensorType& type = graph[scores].type;
  const bool is_narrow = info(type.dtype).bytes == 2;
  if (!device.is_cuda && graph.symbols.hint(type.shape[type.rank() - 2]) == 1)
    return Verdict::no(kRuleOneQuery);
  if (device.multiplies_bf16 && type.dtype == DType::kBF16) return Verdict::no(kRuleProductsInBf16);
  if (is_narrow || hint_bytes(graph, scores) > device.l2_bytes) return Verdict::yes();
  return Verdict::no(kRuleScoresInCache);
}

static Verdict judge(const Graph& graph, const Attention& attention, const Settings& settings,
                     const DeviceSpec& device) {
  if (!attention.verdict || settings.attention == "library") return attention.verdict;
  if (element_bytes(graph, attention.scores) == 2 && settings.emulate_eager_casts)
    return Verdict::no(kRuleEagerRounding);
  return compare_times(graph, attention.scores, device);
}

// A call of the host keeps its row in all rewrites.
static NodeId find_call(const Graph& graph, const Node& call) {
  const auto at = std::ranges::find_if(graph.nodes, [&](const Node& node) {
    return node.op == call.op && node.name == call.name && node.integer == call.integer;
  });
  return at == graph.nodes.end() ? NodeId() : NodeId(at - graph.nodes.begin());
}

std::vector<Attention> choose_attention(const Graph& graph, const Settings& settings,
                                        const DeviceSpec& device) {
  // The other policies show what they alone make of a graph.
  const bool is_off =
      settings.attention == "stitch" || (settings.attention == "auto" && settings.policy != "auto");
  if (is_off) return {};
  std::vector<Attention> judged = find_attention(graph);
  for (Attention& attention : judged) attention.verdict = judge(graph, attention, settings, device);
  return judged;
}

std::vector<Cut> find_cuts(const std::vector<Attention>& judged, const Graph& before,
                           const Graph& after) {
  std::vector<Cut> cuts;
  for (const Attention& attention : judged) {
    if (attention.verdict) continue;
    const NodeId from = find_call(after, before[attention.scores]);
    const NodeId to = find_call(after, before[attention.result]);
    if (from.valid() && to.valid()) cuts.push_back({from, to, attention.verdict});
  }
  return cuts;
}

}  // namespace stitch
