#include "rewrite/rewrite_graph.h"

namespace stitch {

const std::vector<RewritePass>& rewrite_passes() {
  static const std::vector<RewritePass> passes = {
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
  return passes;
}

Graph rewrite_graph(const Graph& graph, const std::vector<std::string>& off) {
  const std::vector<RewritePass>& passes = rewrite_passes();
  for (const std::string& name : off)
    STITCH_CHECK(std::ranges::count(passes, name, &RewritePass::name) > 0,
                 "there is no rewrite pass '" << name << "' to switch off");
  Graph result = graph;
  for (const RewritePass& pass : passes) {
    if (std::ranges::find(off, pass.name) != off.end()) continue;
    ErrorContext context(std::string("while running the rewrite pass ") + pass.name);
    result = pass.run(result);
  }
  return result;
}

}  // namespace stitch
