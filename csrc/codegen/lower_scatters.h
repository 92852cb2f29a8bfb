// Scatters on the host: accumulators are the memory that the root stores.  A block sets those that
// only it combines into before the first loop over positions opens; then each position combines its
// element into one of them.
#pragma once

#include <string>
#include <vector>

#include "codegen/lower_reductions.h"
#include "codegen/lower_values.h"

namespace stitch {

struct ScatterLowering {
  const Graph& graph;
  const StageSchedule& schedule;
  Scopes& scopes;
  ValueLowering& values;
  const ReductionLowering& reductions;  // loops opened once more, and which blocks a root is of

  // Before the loop of `block` opens: sets what scatters combine into that take positions along it.
  void begin_below(int block);
  // An element of a root's source with what is stored at `offset`.
  void combine(NodeId root, const IndexExpr& offset, const Scalar& element);
  // Does a scatter take positions along the loop?  Two of them may combine into one element.
  bool takes_positions_along(int block) const;

 private:
  // The outermost block whose loop takes the root's positions; -1 where it has one.
  int find_first_block(NodeId root) const;
  std::string place(NodeId root, const Scalar& at) const;  // "p3[x0]"
  void begin(NodeId root, const std::vector<int>& kept_blocks);
  void store(NodeId root, const Scalar& at, const Scalar& value);
};

}  // namespace stitch
