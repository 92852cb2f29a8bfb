#include "codegen/lower_stage.h"

#include <algorithm>
#include <cmath>
#include <iterator>

#include "codegen/lower_reductions.h"
#include "codegen/lower_scatters.h"
#include "codegen/lower_values.h"
#include "schedule/build_loops.h"
#include "schedule/place_values.h"
#include "schedule/schedule_stage.h"

namespace stitch {
namespace {

constexpr int64_t kMaxUnroll = 16;       // trips
constexpr int64_t kMostCombined = 4096;  // elements of an array along a loop over segments
constexpr const char* kUnroll = "STITCH_UNROLL";
// Left to itself, the compiler hoists the loads of all trips until no register is left.
constexpr const char* kUnrollInPart = "STITCH_UNROLL_IN_PART";

// Can no value of the expression, nor a partial sum of it, leave 32 bits?
bool fits_32_bits(const IndexExpr& expr, const IndexVars& vars) {
  if (!expr.constant.is_constant()) return false;
  double largest = std::abs(static_cast<double>(expr.constant.value()));
  for (const auto& [var, coefficient] : expr.terms) {
    if (vars[var].kind == IndexVar::Kind::kValue) continue;  // prints as 64 bits itself
    const Dim& extent = vars[var].extent;
    if (!coefficient.is_constant() || !extent.is_constant() || extent.is(0)) return false;
    largest +=
        std::abs(static_cast<double>(coefficient.value())) * static_cast<double>(extent.value());
  }
  return largest < INT32_MAX;
}

class StageLowering {
 public:
  StageLowering(const Graph& graph, const PlannedStage& stage, const StageSchedule& schedule,
                const LoweringOptions& options)
      : graph_(graph), stage_(stage), schedule_(schedule), options_(options) {}

  LoweredStage run() {
    out_.index_type = pick_index_type();
    // Arguments in a fixed order, so that equal kernels have equal text.
    for (NodeId load : stage_.loads) values_.pointer(load, false);
    for (NodeId store : stage_.stores) values_.pointer(store, true);
    scopes_.open.push_back({0, {}, {}});
    open_kernel();
    lower_block(0);
    report_collected();
    out_.body = remove_unused({std::move(scopes_.open.back().statements)});
    out_.sizes = scopes_.sizes;
    return std::move(out_);
  }

 private:
  bool on_cuda() const { return schedule_.device->is_cuda; }

  // Addresses are cheaper in 32 bits on a GPU; the host has no use for it.
  std::string pick_index_type() const {
    if (!on_cuda()) return "i64";
    const Accesses& accesses = schedule_.accesses;
    std::vector<IndexExpr> exprs = list_uses(accesses);
    for (const BlockBuffer& buffer : schedule_.buffers)
      exprs.push_back({schedule_.grid * Dim(buffer.size()), {}});
    for (const MappedAxis& mapped : schedule_.axes) {
      // A ragged last tile counts past the extent before it is clamped.
      exprs.push_back({mapped.axis.extent + mapped.tile, {}});
    }
    const bool fits = std::ranges::all_of(
        exprs, [&](const IndexExpr& expr) { return fits_32_bits(expr, accesses.vars); });
    return fits ? "i32" : "i64";
  }

  void let(const std::string& type, const std::string& name, const std::string& expr) {
    scopes_.append(scopes_.depth(), Statement::let(type, name, expr));
  }

  // Grid coordinates, thread coordinates and the axes that no loop walks.
  void open_kernel() {
    Dim grid = 1;
    std::vector<int> in_grid;
    for (size_t a = 0; a < schedule_.axes.size(); ++a)
      if (schedule_.axes[a].in_grid) in_grid.push_back(static_cast<int>(a));
    std::string rest = "block";
    for (size_t i = in_grid.size(); i-- > 0;) {
      const int a = in_grid[i];
      const Dim count = schedule_.axes[a].blocks;
      grid = grid * count;
      const std::string name = "g" + std::to_string(a);
      let(out_.index_type, name, i == 0 ? rest : "(" + rest + ") % " + scopes_.print(count));
      rest = "(" + rest + ") / " + scopes_.print(count);
    }
    out_.grid = grid;
    for (size_t a = 0; a < schedule_.axes.size(); ++a) {
      const MappedAxis& mapped = schedule_.axes[a];
      const std::string id = std::to_string(a);
      if (mapped.threads > 1) {
        const std::string shift = std::to_string(mapped.thread_shift);
        let(out_.index_type, "t" + id,
            (mapped.thread_shift ? "(tid() >> " + shift + ")" : "tid()") + " & " +
                std::to_string(mapped.threads - 1));
      }
      if (!has_loop(static_cast<int>(a), false)) define_axis(static_cast<int>(a), "0");
    }
    reductions_.declare_homes(0);
    declare_arrays(0);
  }

  void report_collected() {
    std::vector<Statement>& body = scopes_.open.back().statements;
    for (const auto& [report, flag] : out_.collected) {
      body.insert(body.begin(), Statement::var("i32", flag, "0"));
      body.push_back(Statement::call(report + "(" + flag + ", error)"));
    }
  }

  bool has_loop(int axis, bool vector) const {
    return std::ranges::any_of(schedule_.loops, [&](const LoopSpec& spec) {
      return spec.axis == axis && (spec.level == LoopSpec::Level::kVector) == vector;
    });
  }

  // Names the axis index once its grid, serial and thread digits are known: b<axis> without the
  // vector lane, x<axis> and ok<axis> when there is none.
  void define_axis(int a, const std::string& serial) {
    const MappedAxis& mapped = schedule_.axes[a];
    const std::string id = std::to_string(a);
    std::string index = serial;
    auto scale = [&](int factor) {
      if (index != "0" && factor > 1) index = "(" + index + ") * " + std::to_string(factor);
    };
    auto add = [&](const std::string& term) { index = index == "0" ? term : term + " + " + index; };
    scale(mapped.threads);
    if (mapped.threads > 1) add("t" + id);
    scale(mapped.vector);
    const std::string grid = "g" + id;
    if (mapped.in_grid) add(mapped.tile.is(1) ? grid : grid + " * " + scopes_.print(mapped.tile));
    const bool has_vector = mapped.vector > 1;
    const std::string name = (has_vector ? "b" : "x") + id;
    if (mapped.is_exact) {
      let(out_.index_type, name, index);
      return;
    }
    // Ragged: threads past the end read the last element and neither store nor accumulate.
    const std::string extent = scopes_.print(mapped.axis.extent);
    let(out_.index_type, "r" + id, index);
    let("bool", "ok" + id, "r" + id + " < " + extent);
    let(out_.index_type, name,
        "ok" + id + " ? r" + id + " : " + extent + " - " + std::to_string(mapped.vector));
  }

  void declare_arrays(int block) {
    for (const auto& [value, index] : schedule_.kept_on_chip) {
      std::vector<int> blocks;
      int made_in = -1;
      for (const LeafUse& leaf : leaves_) {
        if (leaf.made.count(value)) made_in = leaf.block;
        if (leaf.made.count(value) || leaf.reused.count(value)) blocks.push_back(leaf.block);
      }
      if (made_in < 0 || common_block(schedule_, blocks) != block) continue;
      OnChip home{scopes_.fresh(), array_loops(schedule_, value, block, made_in), scopes_.depth()};
      // Loops that are written out come first, so that the vectorised one walks contiguously.
      std::stable_partition(home.loops.begin(), home.loops.end(), [&](int loop) {
        return schedule_.axes[schedule_.loops[loop].axis].is_unrolled;
      });
      scopes_.append(scopes_.depth(), Statement::array(values_.register_type(value), home.name,
                                                       array_length(schedule_, home.loops)));
      if (home.loops.empty()) home.name += "[0]";
      values_.on_chip[value] = home;
    }
  }

  void lower_block(int block) {
    for (const LoopBlock::Item& item : schedule_.blocks[block].items) {
      if (item.block >= 0) lower_loop(item.block);
      if (!item.roots.empty()) lower_leaf(block, item.roots);
    }
  }

  // A segment walked once for each iteration of the vectorised loop would not vectorise: on the
  // host it is walked once for the whole loop, into an array along it.
  void combine_segments_along(int block) {
    const int loop = schedule_.blocks[block].loop;
    const bool is_plain = schedule_.loops[loop].level == LoopSpec::Level::kSerial &&
                          schedule_.axes[schedule_.loops[loop].axis].strips == 1;
    const auto trips = trip_count(schedule_, loop);
    if (on_cuda() || !is_plain || !is_innermost(schedule_, block)) return;
    if (!trips || *trips > kMostCombined) return;
    for (const LoopBlock::Item& item : schedule_.blocks[block].items)
      for (NodeId root : item.roots) combine_segments_of(root, block);
  }

  void combine_segments_of(NodeId root, int block) {
    if (combines_segments(info(graph_[root]))) combine_segment(root, leaf_index(root), block);
    for (const auto& [value, evaluations] : schedule_.accesses.evaluated.at(root)) {
      if (is_load_[value.index()] || !combines_segments(info(graph_[value]))) continue;
      const Evaluation& first = evaluations.front();
      if (evaluations.size() == 1 && !first.is_guarded && !first.in_segment)
        combine_segment(value, first.index, block);
    }
  }

  bool runs_along(const IndexExpr& index, int loop) const {
    return std::ranges::any_of(values_.vars.leaves_of({&index, 1}), [&](VarId var) {
      const IndexVar& leaf = values_.vars[var];
      return leaf.kind == IndexVar::Kind::kAtom &&
             scopes_.axis_of_atom(leaf.payload) == schedule_.loops[loop].axis;
    });
  }

  void combine_segment(NodeId id, const Index& index, int block) {
    const Node& node = graph_[id];
    const int loop = schedule_.blocks[block].loop;
    const int64_t dim = node.ints[0];
    if (values_.combined.count(id) || runs_along(index[dim], loop)) return;
    const bool is_along =
        std::ranges::any_of(index, [&](const IndexExpr& expr) { return runs_along(expr, loop); });
    if (!is_along) return;
    const OnChip home{scopes_.fresh(), {loop}, scopes_.depth()};
    auto assign = [&](const std::string& element, const std::string& expr) {
      scopes_.append(scopes_.depth(), Statement::assign(element, expr));
    };
    auto value_of = [&](NodeId operand, const Index& at) {
      return values_.values[walk(graph_, values_, operand, at)].text;
    };
    scopes_.append(scopes_.depth(), Statement::array(values_.register_type(id), home.name,
                                                     array_length(schedule_, home.loops)));
    reopen({block}, 0, [&] {
      const std::string initial = value_of(node.inputs[0], index);
      assign(values_.element(home).text, initial);
    });
    const Handle first = walk(graph_, values_, node.inputs[3], {index[dim]});
    const Handle last = walk(graph_, values_, node.inputs[3], {index[dim] + IndexExpr{1, {}}});
    const Handle end = values_.check_end({id, index, 0, first, last, 0}, scopes_.depth());
    const Handle position = values_.open_segment(first, end, scopes_.depth());
    const Dim& count = graph_[node.inputs[2]].type.shape[0];
    const IndexExpr at = index_of(values_.vars.value(position, count));
    const Handle place = walk(graph_, values_, node.inputs[2], {at});
    Index taken = index;
    taken[dim] = values_.known_index(place, count);
    reopen({block}, 0, [&] {
      const std::string element = values_.element(home).text;
      const std::string added = value_of(node.inputs[1], taken);
      assign(element, std::string(info(node).function) + "::apply(" + element + ", " + added + ")");
    });
    values_.close_segment();
    values_.combined[id] = {index, home};
  }

  void lower_loop(int block) {
    combine_segments_along(block);
    scatters_.begin_below(block);
    const int outside = copies_;
    const std::vector<AxisRange> ranges =
        find_ranges(graph_, schedule_, block, kMostRanges / outside);
    if (ranges.empty()) return lower_whole_loop(block);
    copies_ *= static_cast<int>(ranges.size());
    for (const AxisRange& range : ranges) {
      values_.open_range(range);
      lower_whole_loop(block);
      values_.close_range();
    }
    copies_ = outside;
  }

  void lower_whole_loop(int block) {
    const int loop = schedule_.blocks[block].loop;
    std::vector<NodeId> opened = reductions_.open_levels(block);
    scopes_.open.push_back({block, {}, {}});
    open_loop(loop);
    reductions_.declare_homes(block);
    declare_arrays(block);
    std::vector<NodeId> cascaded = reductions_.open_cascade(block);
    lower_block(block);
    reductions_.close_levels(cascaded);
    reductions_.carry_over(opened, block);
    close_loop(block);
    reductions_.close_levels(opened);
  }

  // Loops over kept axes once more, to set or finish the elements of an array.
  void reopen(const std::vector<int>& blocks, size_t at, const std::function<void()>& body) {
    if (at == blocks.size()) {
      body();
      return;
    }
    scopes_.open.push_back({blocks[at], {}, {}});
    open_loop(schedule_.blocks[blocks[at]].loop);
    reopen(blocks, at + 1, body);
    close_loop(blocks[at]);
  }

  void open_loop(int loop) {
    const LoopSpec& spec = schedule_.loops[loop];
    const std::string name = scopes_.loop_name(loop);
    if (spec.level == LoopSpec::Level::kVector) {
      const std::string id = std::to_string(spec.axis);
      let(out_.index_type, "x" + id, "b" + id + " + " + name);
    } else if (spec.level == LoopSpec::Level::kStrip) {
      const std::string along = scopes_.loop_name(spec.axis, LoopSpec::Level::kAlongStrips);
      const int64_t span = schedule_.axes[spec.axis].span;
      const std::string before = span == 0 ? ""
                                           : scopes_.loop_name(spec.axis, LoopSpec::Level::kSpan) +
                                                 " * " + std::to_string(span) + " + ";
      define_axis(spec.axis, before + name + " * " + strip_length(spec.axis) + " + " + along);
    } else if (spec.level == LoopSpec::Level::kSerial) {
      define_axis(spec.axis, name);
    }
  }

  std::string strip_length(int axis) {
    const MappedAxis& mapped = schedule_.axes[axis];
    const Dim whole = mapped.span > 0 ? Dim(mapped.span) : mapped.serial;
    return scopes_.print(*divide_exact(whole, mapped.strips));
  }

  std::string serial_trips(const MappedAxis& mapped) {
    if (!mapped.serial_at_run_time) return scopes_.print(mapped.serial);
    const int step = mapped.threads * mapped.vector;
    return "(" + scopes_.print(mapped.axis.extent) + " + " + std::to_string(step - 1) + ") / " +
           std::to_string(step);
  }

  Statement loop_header(int loop) {
    const LoopSpec& spec = schedule_.loops[loop];
    const MappedAxis& mapped = schedule_.axes[spec.axis];
    Statement header{Statement::Kind::kLoop, out_.index_type, scopes_.loop_name(loop), "0"};
    if (spec.level == LoopSpec::Level::kVector) {
      header.bound = std::to_string(mapped.vector);
      header.pragma = kUnroll;
      return header;
    }
    if (on_cuda()) {
      header.bound = serial_trips(mapped);
      // Unrolled loops keep arrays in registers and several loads in flight.
      const bool is_short = mapped.serial.is_constant() && !mapped.serial_at_run_time &&
                            mapped.serial.value() <= kMaxUnroll;
      if (is_short || reductions_.uses_array_loop(loop) || keeps_array_over(loop))
        header.pragma = kUnroll;
      else if (mapped.serial.is_constant() && !mapped.serial_at_run_time)
        header.pragma = kUnrollInPart;
      return header;
    }
    if (spec.level == LoopSpec::Level::kChunk) {
      header.bound = "(" + scopes_.block_end(spec.axis) + " + " + std::to_string(mapped.chunk - 1) +
                     ") / " + std::to_string(mapped.chunk);
      return header;
    }
    if (spec.level == LoopSpec::Level::kSpan) {
      header.bound = std::to_string(mapped.serial.value() / mapped.span);
      return header;
    }
    if (is_written_out(schedule_, loop)) header.pragma = kUnroll;
    if (spec.level == LoopSpec::Level::kStrip || spec.level == LoopSpec::Level::kAlongStrips) {
      const bool is_strip = spec.level == LoopSpec::Level::kStrip;
      header.bound = is_strip ? std::to_string(mapped.strips) : strip_length(spec.axis);
      return header;
    }
    header.bound = scopes_.block_end(spec.axis);
    if (const AxisRange* range = values_.range_of(spec.axis)) {
      const auto place = [&](const char* function, int64_t at, const std::string& end) {
        if (!mapped.in_grid) return std::to_string(at);
        return function + ("(" + std::to_string(at) + " - " + scopes_.block_begin(spec.axis)) +
               ", " + end + ")";
      };
      header.expr = place("max_index", range->low, "0");
      header.bound = place("min_index", range->high, header.bound);
    }
    if (mapped.chunk > 0) {
      const std::string chunk = scopes_.loop_name(spec.axis, LoopSpec::Level::kChunk) + " * " +
                                std::to_string(mapped.chunk);
      header.expr = chunk;
      header.bound =
          "min_index(" + chunk + " + " + std::to_string(mapped.chunk) + ", " + header.bound + ")";
    }
    return header;
  }

  bool keeps_array_over(int loop) const {
    return values_.keeps_in_registers_over(loop) ||
           std::ranges::any_of(values_.on_chip, [&](const auto& entry) {
             return std::ranges::count(entry.second.loops, loop) > 0;
           });
  }

  void close_loop(int block) {
    const int loop = schedule_.blocks[block].loop;
    Statement header = loop_header(loop);
    const std::vector<Statement>& body = scopes_.open.back().statements;
    const bool is_innermost = std::ranges::none_of(body, [](const Statement& inner) {
      return inner.kind == Statement::Kind::kLoop && inner.pragma != kUnroll;
    });
    const bool is_parallel = is_innermost && !scatters_.takes_positions_along(block);
    if (!on_cuda() && is_parallel && header.pragma != kUnroll)
      header.pragma = reductions_.simd_pragma(block, body);
    values_.close_scope();
    Scope closed = std::move(scopes_.open.back());
    scopes_.open.pop_back();
    header.body = std::move(closed.statements);
    Scope& parent = scopes_.open.back();
    for (Statement& piece : split_vectors(std::move(header)))
      parent.statements.push_back(std::move(piece));
    std::ranges::move(parent.after_child, std::back_inserter(parent.statements));
    parent.after_child.clear();
  }

  Index leaf_index(NodeId root) {
    return index_from_atoms(schedule_.spaces.atoms, space_of(schedule_, root).dims, values_.vars);
  }

  void lower_leaf(int block, const std::vector<NodeId>& roots) {
    // All are evaluated before any is stored: a store may replace what another root reads.
    std::vector<Scalar> results;
    std::vector<IndexExpr> offsets;
    for (NodeId root : roots) {
      const Index index = leaf_index(root);
      const bool is_reduction = family(graph_[root]) == Family::kReduce;
      values_.unrounded_root = is_reduction ? NodeId() : root;
      values_.owner = is_reduction ? "" : reductions_.store_predicate(space_of(schedule_, root));
      const Handle handle = walk_root(graph_, values_, root, index);
      values_.unrounded_root = NodeId();
      values_.owner.clear();
      results.push_back(values_.values[handle]);
      offsets.push_back(is_reduction ? IndexExpr() : stored_offset(graph_, values_, root, index));
    }
    for (size_t i = 0; i < roots.size(); ++i) {
      const NodeId root = roots[i];
      if (family(graph_[root]) == Family::kReduce) {
        reductions_.accumulate(root, results[i]);
        continue;
      }
      if (combines_at_indices(info(graph_[root]))) {
        scatters_.combine(root, offsets[i], results[i]);
        continue;
      }
      values_.store(root, offsets[i], results[i].text, std::max(results[i].depth, scopes_.depth()),
                    reductions_.store_predicate(space_of(schedule_, root)));
    }
    for (const LeafUse& leaf : leaves_)
      if (leaf.block == block && leaf.roots == roots)
        values_.made.insert(leaf.made.begin(), leaf.made.end());
  }

  const Graph& graph_;
  const PlannedStage& stage_;
  const StageSchedule& schedule_;
  const LoweringOptions& options_;
  LoweredStage out_;
  std::vector<bool> is_load_ = find_loads(graph_, stage_);
  Scopes scopes_{schedule_};
  ValueLowering values_{graph_, schedule_, scopes_, out_, options_, is_load_};
  ReductionLowering reductions_{
      graph_,  stage_,  schedule_,
      scopes_, values_, [this](const auto& blocks, const auto& body) { reopen(blocks, 0, body); }};
  ScatterLowering scatters_{graph_, schedule_, scopes_, values_, reductions_};
  std::vector<LeafUse> leaves_ = find_leaf_uses(graph_, is_load_, schedule_);
  int copies_ = 1;  // of what is lowered now, each in ranges of its own
};

}  // namespace

LoweredStage lower_stage(const Graph& graph, const PlannedStage& stage,
                         const StageSchedule& schedule, const LoweringOptions& options) {
  return StageLowering(graph, stage, schedule, options).run();
}

}  // namespace stitch
