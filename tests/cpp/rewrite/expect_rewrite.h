// Compares graphs by what they compute, not by how their nodes are numbered.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "support/read_graph.h"

namespace stitch {

// The graph with inputs first, then what outputs, mutations and calls need, depth first.
inline std::string canonical_text(const Graph& graph) {
  Graph sorted = graph;
  sorted.nodes.clear();
  std::vector<NodeId> place(graph.nodes.size());
  const std::function<void(NodeId)> visit = [&](NodeId id) {
    if (place[id.index()].valid()) return;
    Node node = graph[id];
    for (NodeId& input : node.inputs) {
      visit(input);
      input = place[input.index()];
    }
    place[id.index()] = NodeId(sorted.size());
    sorted.nodes.push_back(std::move(node));
  };
  for (NodeId& input : sorted.inputs) {
    visit(input);
    input = place[input.index()];
  }
  for (int i = 0; i < graph.size(); ++i)
    if (graph.nodes[i]->op == OpKind::k_library) visit(NodeId(i));
  for (GraphOutput& output : sorted.outputs)
    if (output.kind == GraphOutput::Kind::kTensor) {
      visit(output.node);
      output.node = place[output.node.index()];
    }
  for (Mutation& mutation : sorted.mutations) {
    visit(mutation.value);
    mutation = {place[mutation.input.index()], place[mutation.value.index()]};
  }
  return to_string(sorted);
}

using Pass = Graph (*)(const Graph& graph);

inline void expect_rewrite(Pass pass, const std::string& before, const std::string& after) {
  const Graph made = pass(read_graph(before));
  verify_graph(made);
  EXPECT_EQ(canonical_text(made), canonical_text(read_graph(after)));
}

inline void expect_unchanged(Pass pass, const std::string& text) {
  expect_rewrite(pass, text, text);
}

}  // namespace stitch
