// Graph as text, one line per node; tests/support/parse_graph.h documents the form and reads it.
#pragma once

#include <array>
#include <string>

#include "ir/graph.h"

namespace stitch {

// As lines name them, in the order of Symbol::Kind.
inline constexpr std::array kSymbolKinds = {"input", "floordiv", "mod", "min", "max"};
Symbol::Kind symbol_kind(const std::string& name);  // UserError for one that is not there

// "%7 = add(%5, %6) : f32[8,s0]  # aten.add.Tensor model.py:31"
std::string to_string(const Graph& graph, NodeId id);
std::string to_string(const Graph& graph);

}  // namespace stitch
