// Accumulators of reductions: declared before the outermost loop they reduce, combined level by
// level on the way out (DESIGN.md 3, "one rule for reductions"), finished across threads.
//
// Those of scatters, on the host alone, are the memory that the root stores.  A block sets those
// that only it combines into before the first loop over positions opens; then each position
// combines its element into one of them.
#pragma once

#include "codegen/lower_values.h"
#include "stage/build_loops.h"

namespace stitch {

struct ReductionLowering {
  const Graph& graph;
  const Stage& stage;
  const StageSchedule& schedule;
  Scopes& scopes;
  ValueLowering& values;
  // Runs `body` inside loops over `blocks`, reopened for finished arrays.
  std::function<void(const std::vector<int>& blocks, const std::function<void()>& body)> reopen;

  struct Accumulator {
    std::string name;       // accumulator, an array when `blocks` is not empty
    std::string type = {};  // the result's own; f64 of long sums, i32 of vectors of bool, whose
                            // lanes would otherwise be as many as the bytes of a register
    std::string rest = {};  // of sums of f64: what their additions rounded off, of the same form
    std::string nan_flag = {};  // host maximum and minimum: NaN, kept apart so that it vectorises
    std::vector<int> blocks = {};  // kept loops inside, outermost first
    int opened_by = 0;             // block
    bool is_vectorised = false;
    bool is_wide = false;   // the second accumulator of a cascade
    std::string lane = {};  // of sums with one accumulator a lane: the vectorised loop's index
  };
  std::map<NodeId, std::vector<Accumulator>> levels = {};

  // Before the child opens: accumulators of the reductions whose outermost reduced loop it is.
  NodeList open_levels(int block);
  // At the end of each of its trips: long sums of f32 go over to their second accumulators.
  void carry_over(const NodeList& opened, int block);
  void close_levels(const NodeList& opened);
  // Inside a chunk loop: partial accumulators, so that sums cascade.
  NodeList open_cascade(int block);
  // Results read outside the block that finishes them live in variables of `block`.
  void declare_homes(int block);
  void accumulate(NodeId root, const Scalar& value);
  std::string store_predicate(const RootSpace& space) const;
  // Vectorisation clause of a host loop with this body; empty when it must not be vectorised.
  std::string simd_pragma(int block, const std::vector<Statement>& body) const;
  bool uses_array_loop(int loop) const;

  // Before the loop of `block` opens: sets what scatters combine into that take positions along it.
  void begin_scatters(int block);
  // An element of a root's source with what is stored at `offset`.
  void scatter(NodeId root, const IndexExpr& offset, const Scalar& element);
  // Does a scatter take positions along the loop?  Two of them may combine into one element.
  bool takes_positions_along(int block) const;

 private:
  std::string functor(NodeId root) const { return info(graph[root]).function; }
  std::string accumulator_type(NodeId root) const;
  std::string at(const Accumulator& level, const std::string& name) const;
  std::string at(const Accumulator& level) const { return at(level, level.name); }
  std::string result_of(NodeId root, const Accumulator& level) const;
  void open_level(NodeId root, int block, bool is_partial);
  // Does the loop walk the first terms of a cascaded sum?
  bool is_strip_of_sum(NodeId root, int block) const;
  void combine_into(NodeId root, const Accumulator& level, const std::string& value,
                    const std::string& type, const char* how = "apply");
  bool ascends(const RootSpace& space, const IndexExpr& flat) const;
  unsigned reduced_threads(NodeId root) const {  // bits of tid
    return thread_bits(schedule, space_of(schedule, root), Role::kReduced);
  }
  void close_level(NodeId root);
  void close_together(const NodeList& roots);
  // Where threads exchange values of `type`: shared memory where they are of several warps.
  std::string exchange(unsigned threads, const std::string& type) const;
  // The threads' partial results become those of their groups: an array's in place, or one.
  void combine_each(NodeId root, const std::string& array, const std::string& type, int64_t count);
  void combine_element(NodeId root, const std::string& partial, const std::string& type);
  void finish_element(NodeId root, std::string result, std::string type);
  bool is_vectorised_loop(int block) const {
    return !schedule.device->is_cuda && is_innermost(schedule, block);
  }
  // Lanes of the loop along strips that the root sums, where each may have an accumulator; or 0.
  int lanes_of(NodeId root) const;
  // Reductions inside the block that reduce its own loop.
  NodeList reduced_below(int block) const;
  std::string place(NodeId root, const Scalar& at) const {  // "p3[x0]"
    return "p" + std::to_string(values.pointer(root, true)) + "[" + at.text + "]";
  }
  void begin_scatter(NodeId root, const std::vector<int>& kept_blocks);
  void store_at(NodeId root, const Scalar& at, const Scalar& value);
};

}  // namespace stitch
