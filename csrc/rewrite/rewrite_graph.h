// The rewrite stage: passes as data, in order.  A pass is one function from Graph to Graph; to add
// one, write its file pair and its test, and give it a row.
#pragma once

#include <string>
#include <vector>

#include "ir/graph.h"

namespace stitch {

struct RewritePass {
  const char* name;
  Graph (*run)(const Graph& graph);
};

// A pass that later ones make work for again stands here more than once.
const std::vector<RewritePass>& rewrite_passes();

// Runs all passes but those named in `off`; UserError for a name that is no pass.
Graph rewrite_graph(const Graph& graph, const std::vector<std::string>& off = {});

}  // namespace stitch
