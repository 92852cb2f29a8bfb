// Open blocks of the kernel being lowered, and how indices print inside them.
//
// A value belongs to the outermost open block in which all it depends on is known; appending there
// is what hoists loop-invariant work.
#pragma once

#include "base/words.h"
#include "codegen/kernel_body.h"
#include "stage/map_axes.h"

namespace stitch {

inline constexpr int kSegmentBlock = -1;

struct Scope {
  int block = 0;  // of the schedule's loop tree; kSegmentBlock: a loop over a segment
  std::vector<Statement> statements;
  std::vector<Statement> after_child;  // appended when the innermost child closes
};

// A scalar of the kernel: its text and the scope it lives in.
struct Scalar {
  std::string text;
  int depth = 0;
};

// A number, or the name of a size that is only known at run time: n0, n1, ...  A new one is added.
std::string print_size(const Dim& dim, DimList& sizes);

class Scopes {
 public:
  Scopes(const StageSchedule& schedule) : schedule_(schedule) {}

  std::vector<Scope> open;
  DimList sizes;                   // run-time sizes in use: n0, n1, ...
  bool has_short_indices = false;  // in 32 bits, and so are sizes in them

  int depth() const { return static_cast<int>(open.size()) - 1; }
  std::string fresh() { return concat("s_", next_++); }
  void append(int depth, Statement statement) {
    open[depth].statements.push_back(std::move(statement));
  }
  void append(Statement statement) { append(depth(), std::move(statement)); }  // to the innermost
  void assign(const std::string& target, const std::string& expr) {
    append(Statement::assign(target, expr));
  }
  std::string size(const Dim& dim) { return print_size(dim, sizes); }  // in 64 bits
  std::string print(const Dim& dim) {
    return has_short_indices && !dim.is_constant() ? "i32(" + size(dim) + ")" : size(dim);
  }

  // The scope an axis index is complete in, and its text there.
  int axis_depth(int axis, bool without_vector = false) const;
  static std::string axis_name(int axis, bool without_vector = false) {
    return concat(without_vector ? "b" : "x", axis);
  }
  int axis_of_atom(int atom) const {
    for (int a = 0; a < std::ssize(schedule_.axes); ++a)
      if (std::ranges::count(schedule_.axes[a].axis.atoms, AtomId(atom))) return a;
    throw InternalError("an index uses an atom that no loop walks");
  }
  // A block's own indices along an axis on the host, whose loops end at the extent.
  std::string block_end(int axis);
  // The axis index counted from the block's first.
  Scalar axis_in_block(int axis, bool without_vector = false);
  std::string block_begin(int axis) {
    const MappedAxis& mapped = schedule_.axes[axis];
    return mapped.in_grid() ? "g" + std::to_string(axis) + " * " + print(mapped.tile()) : "0";
  }
  // Offset text; `without_vector` leaves out the vector lane of that axis (-1: none).
  Scalar print(const IndexExpr& expr, const IndexVars& vars, const std::vector<Scalar>& values,
               int without_vector = -1);
  std::string print_step(int axis, const Dim& coefficient);  // of an index along the axis
  int depth_of_loop(int loop) const;                         // -1 when not open
  std::string loop_name(int loop) const { return concat("i", loop); }
  std::string loop_name(int axis, Level level) const { return loop_name(loop_of(axis, level)); }
  int loop_of(int axis, Level level) const {
    const auto at = std::ranges::find(schedule_.loops, LoopSpec{axis, level});
    STITCH_CHECK(at != schedule_.loops.end(), "an axis has no loop of the level it is mapped to");
    return static_cast<int>(at - schedule_.loops.begin());
  }
  // Row-major position inside an array over `loops` at the current digits, but those of `fixed`.
  Scalar position(const std::vector<int>& loops, const FixedAxes& fixed = {}) const;

 private:
  const StageSchedule& schedule_;
  int next_ = 0;
  std::set<std::string> steps_;  // that compilers do not see
};

}  // namespace stitch
