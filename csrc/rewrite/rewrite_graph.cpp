#include "rewrite/rewrite_graph.h"

#include "ir/assume_sizes.h"
#include "rewrite/attention/attention.h"

namespace stitch {

// One that later ones make work for again stands here more than once.
constexpr std::pair<const char*, Graph (*)(const Graph&)> kPasses[] = {
    {"remove_dead", remove_dead},
    {"expand_deviations", expand_deviations},
    {"fold_constants", fold_constants},
    {"simplify_algebra", simplify_algebra},
    {"read_past_writes", read_past_writes},
    {"remove_copies", remove_copies},
    {"merge_views", merge_views},
    {"order_blas_copies", order_blas_copies},  // once views are merged
    {"sink_casts", sink_casts},
    {"merge_views", merge_views},        // views that a cast stood between
    {"fold_constants", fold_constants},  // casts that a view stood between
    {"remove_dead", remove_dead},        // what reads the parts that are written
    {"write_in_place", write_in_place},
    {"remove_dead", remove_dead},
};

Graph rewrite_graph(const Graph& graph, bool keeps_deviations) {
  Graph result = graph;
  for (const auto& [name, run] : kPasses) {
    if (keeps_deviations && run == expand_deviations) continue;
    ErrorContext context(std::string("while running the rewrite pass ") + name);
    result = run(result);
  }
  return result;
}

// Reductions are split before deviations are expanded: a split one needs no second pass.
Rewritten rewrite_for_target(const Graph& graph, const Settings& settings, const Target& target) {
  const bool is_cuda = target.device.is_cuda, rounds = settings.emulate_eager_casts;
  const std::string layout = is_cuda ? "eager" : settings.convolution_layout;
  const Graph laid = lay_channels_last(assume_units(graph), layout);
  const Graph first = rewrite_graph(lower_scatters(laid, !is_cuda), /*keeps_deviations=*/true);
  const std::vector<Attention> attention = choose_attention(first, settings, target.device);
  // A simulated GPU's library calls run on the host.
  const Graph called = call_attention(first, attention, is_cuda && !is_simulated(settings));
  Graph out = rewrite_graph(split_reductions(called, target.device, target.workers, rounds));
  // The other policies show what they alone make of a graph.
  if (settings.policy == "auto") out = merge_views(remove_dead(add_in_products(out, rounds)));
  out = write_joined_parts(out);
  if (is_cuda && !rounds) out = remove_dead(form_sigmoids(out));
  std::vector<Cut> cuts = find_cuts(attention, first, out);
  return {std::move(out), std::move(cuts)};
}

}  // namespace stitch
