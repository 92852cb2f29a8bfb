// A graph as one kernel: its roots are all reductions and all outputs, its loads all inputs.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "analysis/accesses.h"
#include "support/read_graph.h"

namespace stitch {

struct OneKernel {
  Graph graph;
  std::vector<bool> is_load;
  std::set<NodeId> stores;
  Verdict verdict;
  Spaces spaces;
  Accesses accesses;  // only when the verdict is yes

  const RootSpace& space(int root) const { return spaces.roots[root]; }
  const RootSpace& last() const { return spaces.roots.back(); }
};

inline OneKernel one_kernel(const std::string& text) {
  OneKernel kernel{read_graph(text), {}, {}, {}, {}, {}};
  for (const GraphOutput& output : kernel.graph.outputs) kernel.stores.insert(output.node);
  std::vector<NodeId> roots;
  for (int n = 0; n < kernel.graph.size(); ++n) {
    kernel.is_load.push_back(family(kernel.graph.nodes[n]) == Family::kInput);
    const bool reduces = family(kernel.graph.nodes[n]) == Family::kReduce;
    if (reduces || kernel.stores.count(NodeId(n))) roots.push_back(NodeId(n));
  }
  const LoadsOfRoots loads(roots.size(), &kernel.is_load);
  SpacesOrNot found = find_spaces(kernel.graph, roots, loads);
  kernel.verdict = found.verdict;
  kernel.spaces = std::move(found.spaces);
  if (kernel.verdict) {
    kernel.accesses = find_accesses(kernel.graph, kernel.spaces, loads, kernel.stores);
  }
  return kernel;
}

// "7 - i*6 + v*16": atoms of the last root are i, j, k, ... outermost first, v is a value read from
// memory, [a]/d and [a]%d do not simplify.
inline std::string show(const OneKernel& kernel, const IndexExpr& expr) {
  AtomList atoms;
  for (const AtomList& dim : kernel.last().dims) atoms.insert(atoms.end(), dim.begin(), dim.end());
  std::vector<std::string> terms;
  for (const auto& [var, coefficient] : expr.terms) {
    const IndexVar& info = kernel.accesses.vars[var];
    std::string name = "v";
    if (info.kind == IndexVar::Kind::kAtom) {
      const auto at = std::find(atoms.begin(), atoms.end(), AtomId(info.payload));
      name = std::string(1, static_cast<char>('i' + (at - atoms.begin())));
    } else if (info.kind != IndexVar::Kind::kValue) {
      const bool divides = info.kind == IndexVar::Kind::kQuotient;
      name = "[" + show(kernel, info.operand) + (divides ? "]/" : "]%") + to_string(info.divisor);
    }
    if (!coefficient.is(1)) name += "*" + to_string(coefficient);
    terms.push_back(name);
  }
  std::sort(terms.begin(), terms.end());
  std::string text;
  for (const std::string& term : terms) text += (text.empty() ? "" : " + ") + term;
  if (!expr.constant.is(0) || text.empty()) {
    text += (text.empty() ? "" : " + ") + to_string(expr.constant);
  }
  return text;
}

// The offset at which input number `input` is read; a '?' follows where the read is guarded.
inline std::vector<std::string> reads(const OneKernel& kernel, int input) {
  std::vector<std::string> offsets;
  for (const Access& access : kernel.accesses.list) {
    if (access.is_store || access.value != kernel.graph.inputs[input]) continue;
    offsets.push_back(show(kernel, access.offset) + (access.is_guarded ? "?" : ""));
  }
  return offsets;
}

}  // namespace stitch
