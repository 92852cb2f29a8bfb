#include "rewrite/merge_common.h"

#include "rewrite/rebuild_graph.h"

namespace stitch {

Graph merge_common(const Graph& graph) { return rebuild_graph(graph, {}); }

}  // namespace stitch
