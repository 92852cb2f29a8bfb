#include "plan/choose_attention.h"

#include "cost/judge_attention.h"

namespace stitch {
namespace {

Verdict judge(const Graph& graph, const Attention& attention, const Settings& settings,
              const DeviceSpec& device) {
  if (!attention.verdict || settings.attention == "library") return attention.verdict;
  const TensorType& scores = graph[attention.scores].type;
  const AttentionWork work{static_cast<double>(hint_bytes(graph, attention.scores)),
                           graph.symbols.hint(scores.shape[scores.rank() - 2]), scores.dtype};
  if (info(scores.dtype).bytes == 2 && settings.emulate_eager_casts)
    return Verdict::no(kRuleEagerRounding, "the library does not round scores to 16 bits",
                       "emulate_eager_casts=False");
  return judge_attention(work, device);
}

// A call of the host keeps its row in all rewrites.
NodeId find_call(const Graph& graph, const Node& call) {
  for (int i = 0; i < graph.size(); ++i) {
    const Node& node = graph.nodes[i];
    if (node.op == call.op && node.name == call.name && node.integer == call.integer)
      return NodeId(i);
  }
  return {};
}

}  // namespace

AttentionChoice choose_attention(const Graph& graph, const Settings& settings,
                                 const DeviceSpec& device) {
  AttentionChoice choice;
  // The other policies show what they alone make of a graph.
  const bool is_off =
      settings.attention == "stitch" || (settings.attention == "auto" && settings.policy != "auto");
  if (is_off) return choice;
  for (Attention& attention : find_attention(graph)) {
    attention.verdict = judge(graph, attention, settings, device);
    (attention.verdict ? choice.chosen : choice.refused).push_back(std::move(attention));
  }
  return choice;
}

std::vector<Cut> find_cuts(const std::vector<Attention>& refused, const Graph& before,
                           const Graph& after) {
  std::vector<Cut> cuts;
  for (const Attention& attention : refused) {
    const NodeId from = find_call(after, before[attention.scores]);
    const NodeId to = find_call(after, before[attention.result]);
    if (from.valid() && to.valid()) cuts.push_back({from, to, attention.verdict});
  }
  return cuts;
}

}  // namespace stitch
