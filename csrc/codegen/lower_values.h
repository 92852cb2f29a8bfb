// The walk's sink that emits text: loads, arithmetic, guards, kept values and reduction results.
#pragma once

#include <tuple>

#include "codegen/lower_stage.h"
#include "codegen/split_loops.h"

namespace stitch {

// Where a value that outlives its loop is found: a scalar, or an array over loops.
struct OnChip {
  std::string name;
  std::vector<int> loops;  // empty: a scalar
  int depth = 0;           // of its declaration
  std::string type = {};   // of its elements, where it holds results of a reduction
};

inline std::string vector_type(DType dtype, int width) {  // "Vec<f32, 4>"
  return concat("Vec<", info(dtype).device_name, ", ", width, ">");
}
// A value of `type` as one of the type that is wanted.
inline std::string in_type(const std::string& wanted, const std::string& value,
                           const std::string& type) {
  return wanted == type ? value : "convert<" + wanted + ">(" + value + ")";
}

class ValueLowering : public WalkSink {
 public:
  ValueLowering(const Graph& graph, const StageSchedule& schedule, Scopes& scopes,
                LoweredStage& lowered, const LoweringOptions& options);

  std::vector<Scalar> values;          // by handle
  std::map<NodeId, OnChip> on_chip;    // arrays of kept values, results of reductions
  std::map<Handle, std::string> wide;  // results of reductions before they are rounded
  std::set<NodeId> made;               // kept values whose array has been filled
  // Segments that have been combined for all of an open or later loop, at this index.
  std::map<NodeId, std::pair<Index, OnChip>> combined;
  NodeId unrounded_root;  // a cast that is stored right away: the store rounds it
  // Holds in the threads that store the root's elements; empty: in all.  Only they may read what
  // the store overwrites: the others' reads would race with it.
  std::string owner;

  // Threads past the end of an axis read nothing: their index is past it too.  Else they read the
  // last element once more.
  bool skips_past_end = false;

  // Between the two, the index of an axis lies in a range, by which guards are decided; what is
  // evaluated there holds there only.
  void open_range(const AxisRange& range) {
    ranges_.push_back(range);
    known_outside_.push_back(known_);
  }
  void close_range() {
    known_ = std::move(known_outside_.back());
    known_outside_.pop_back();
    ranges_.pop_back();
  }
  const AxisRange* range_of(int axis) const { return find_by(ranges_, axis, &AxisRange::axis); }
  // Forgets what was known only in the innermost scope.
  void close_scope();
  Handle add(Scalar scalar) {  // to `values`
    values.push_back(std::move(scalar));
    return static_cast<Handle>(values.size()) - 1;
  }
  int pointer(NodeId value, bool is_store);  // its position among the arguments
  void store(NodeId root, const IndexExpr& offset, const std::string& text, int value_depth,
             const std::string& predicate);
  std::string register_type(NodeId value) const {
    return info(graph_[value].type.dtype).register_name;
  }
  // Is an array in registers indexed by the loop, which then must be unrolled?
  bool keeps_in_registers_over(int loop) const;
  const std::map<std::string, std::string>& collected() const { return lowered_.collected; }
  // The loop over a segment is opened, and closed below what has been appended since; between the
  // two, the handle is a position.  `depth`: of the scope that the loop belongs to.
  Handle open_segment(Handle first, Handle end, int depth);
  void close_segment();
  // The end of a segment, checked; its first position where the guard fails.
  Handle check_end(const Segment& segment, int depth);
  // Element of an on-chip array at the current loop digits, but those of `fixed`.
  Scalar element(const OnChip& home, const FixedAxes& fixed = {}) const;

  std::optional<Handle> find(NodeId value, const Index& index, int guard) override;
  void remember(NodeId value, const Index& index, int guard, Handle handle) override;
  bool is_load(NodeId value) override { return schedule_.is_load[value.index()]; }
  Handle load(NodeId value, const IndexExpr& offset, int guard) override;
  Handle reduced(NodeId reduction, const Index& index) override;
  Handle constant(const Node& node) override;
  Handle from_index(DType dtype, const IndexExpr& index) override;
  Handle pointwise(NodeId node, const std::vector<Handle>& operands, int guard) override;
  Handle checked_index(NodeId node, Handle value, const Dim& extent, int guard) override;
  Handle known_index(Handle value) override {  // wide enough to be multiplied by strides
    return let("i64", "i64(" + values[value].text + ")", values[value].depth);
  }
  int begin_guard(const Condition& condition, int outer) override;
  bool excludes(int guard) override { return guard == kNever; }
  Handle choose(int guard, Handle inside, Handle outside, DType dtype) override;
  Handle begin_segment(const Segment& segment) override;
  Handle end_segment(const Segment& segment, Handle element) override;

 private:
  using Key = std::tuple<NodeId, Index, int>;  // value, index, guard
  Handle let(const std::string& type, const std::string& expr, int depth) {
    const std::string name = scopes_.fresh();
    scopes_.append(depth, Statement::let(type, name, expr));
    return add({name, depth});
  }
  void align(int pointer, int bytes) {  // at least so, up to the widest access
    int& alignment = lowered_.pointers[pointer].alignment_bytes;
    alignment = std::max(alignment, std::min(16, bytes));
  }
  int vector_axis(const IndexExpr& offset) const;
  bool is_overwritten(NodeId load) const;
  // "ok0 & ok1": of the axes that the offset moves along.
  std::string inside_axes(const IndexExpr& offset) const;
  int contiguous_axis(const IndexExpr& offset, int depth) const;
  // Where an element is behind the value's pointer: in memory, or in the buffer of the block.
  Scalar place_of(NodeId value, const IndexExpr& offset, int without_vector = -1);
  // The element of the tile, which is filled where all that it depends on is known.
  Handle load_tiled(const TiledLoad& tile);
  // This thread's lane of a vector along the axis.
  Handle lane_of(Handle vector, int axis, DType dtype);
  void fill_tile(const TiledLoad& tile, const std::string& name, int depth);
  Handle load_vector(NodeId value, const IndexExpr& offset, int axis, int guard);
  // `loaded`, which is of `type`, as this thread holds it where the value is persistent.
  Handle load_persistent(const PersistentValue& persistent, const std::string& type,
                         const std::string& loaded, int depth);
  // As above; nullptr where it is read from memory all the same.
  const PersistentValue* persistent_of(NodeId value, bool by_owner);
  std::string array_of(const PersistentValue& persistent) const {
    return "k" + std::to_string(&persistent - schedule_.persistent.data());
  }
  std::string slot_of(const PersistentValue& persistent, const std::string& at) const;
  // `loaded`: what has no home.
  std::string take_persistent(const PersistentValue& persistent, const std::string& type,
                              const std::string& loaded) const;
  void put_persistent(const PersistentValue& persistent, const std::string& text,
                      const std::string& predicate, std::vector<Statement>& statements) const;
  // Where `condition` holds, `report`, a function of the device headers, is called in the end.
  void collect(const char* report, const std::string& condition, int depth);
  // What a GPU's kernel calls for the node, and with what.
  std::string call(NodeId id, const std::vector<Handle>& operands, const std::string& arguments,
                   int depth);
  // A random number; empty for what draws none.
  std::string draw(const Node& node, const std::vector<Handle>& operands,
                   const std::string& arguments, int depth);
  void check_divisor(const Node& division, Handle divisor, int guard, int depth);
  static std::string in_register(DType dtype, const std::string& loaded) {
    return in_type(info(dtype).register_name, loaded, info(dtype).device_name);
  }
  int depth_of(const Segment& segment);

  const Graph& graph_;
  const StageSchedule& schedule_;
  Scopes& scopes_;
  LoweredStage& lowered_;
  const LoweringOptions& options_;
  static constexpr int kNever = 1;  // the guard that holds nowhere
  std::map<Key, Handle> known_;
  std::vector<AxisRange> ranges_;                                 // that are open
  std::vector<std::map<Key, Handle>> known_outside_;              // of each
  std::map<const TiledLoad*, Handle> tiles_;                      // filled: name and depth
  std::map<std::tuple<NodeId, IndexExpr, int>, Handle> vectors_;  // loads: value, offset, guard
  // What a value was made by: of one op from others, or a number.
  struct Parts {
    OpKind op = OpKind::k_input;
    std::vector<Handle> operands = {};
    double number = 0;
  };
  const Parts& parts_of(Handle value) const {
    static const Parts none;
    const auto at = parts_.find(value);
    return at == parts_.end() ? none : at->second;
  }
  // The loop over a segment, whose statements are in a scope of their own.
  struct OpenSegment {
    Statement loop;
    int depth;  // of the scope that the loop belongs to
  };
  std::vector<OpenSegment> segments_;
  std::vector<std::string> results_;     // of the segments that are being walked
  std::map<Handle, Parts> parts_;        // of results
  std::map<Handle, Handle> inverses_;    // of divisors
  std::map<Handle, IndexExpr> indices_;  // that are values
  std::set<NodeId> held_;                // persistent values met already
  std::set<NodeId> passed_over_;         // those that stay in memory
};

}  // namespace stitch
