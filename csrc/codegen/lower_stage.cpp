#include "codegen/lower_stage.h"

#include "codegen/load_ahead.h"
#include "codegen/lower_reductions.h"
#include "ir/assume_sizes.h"
#include "stage/persistent_values.h"

namespace stitch {
namespace {

constexpr int64_t kMaxUnroll = 16;       // trips
constexpr int64_t kMostCombined = 4096;  // elements of an array along a loop over segments
constexpr const char* kUnroll = "STITCH_UNROLL";
// Left to itself, the compiler hoists the loads of all trips until no register is left.
constexpr const char* kUnrollInPart = "STITCH_UNROLL_IN_PART";

// What no value of the expression, nor a partial sum of it, exceeds.
std::optional<Dim> find_largest(const IndexExpr& expr, const IndexVars& vars) {
  Dim largest = magnitude(expr.constant);
  for (const auto& [var, coefficient] : expr.terms) {
    const bool is_wide = vars[var].is_value();  // prints as 64 bits itself
    if (!is_wide && vars[var].extent.is(0)) return std::nullopt;
    largest = largest + magnitude(coefficient) * (is_wide ? Dim(1) : magnitude(vars[var].extent));
  }
  return largest;
}

struct StageLowering {
  using enum Level;

  const Graph& graph;
  const Stage& stage;
  const StageSchedule& schedule;
  const LoweringOptions& options;
  LoweredStage out = {};
  Scopes scopes{schedule};
  ValueLowering values{graph, schedule, scopes, out, options};
  ReductionLowering reductions{
      graph,  stage,  schedule,
      scopes, values, [this](const auto& blocks, const auto& body) { reopen(blocks, 0, body); }};
  int copies = 1;  // of what is lowered now, each in ranges of its own

  LoweredStage run() {
    out.assumptions = schedule.assumptions;
    out.index_type = pick_index_type();
    scopes.has_short_indices = out.index_type == "i32";
    values.skips_past_end = may_skip_past_end();
    // Arguments in a fixed order, so that equal kernels have equal text.
    for (NodeId load : stage.loads) values.pointer(load, false);
    for (NodeId store : stage.stores) values.pointer(store, true);
    scopes.open.push_back({0, {}, {}});
    open_kernel();
    lower_block(0);
    report_collected();
    const auto streams = [&](NodeId store) { return options.streamed.count(store) > 0; };
    if (std::ranges::any_of(stage.stores, streams))
      scopes.append(0, Statement::call("end_streams()"));
    out.body = remove_unused(std::move(scopes.open.back().statements));
    out.sizes = scopes.sizes;
    return std::move(out);
  }

  bool on_cuda() const { return schedule.device->is_cuda; }

  // Addresses are cheaper in 32 bits on a GPU; the host has no use for it.
  std::string pick_index_type() {
    if (!on_cuda()) return "i64";
    const Accesses& accesses = schedule.accesses;
    std::vector<IndexExpr> exprs = list_uses(accesses);
    for (const BlockBuffer& buffer : schedule.buffers)
      exprs.push_back({schedule.grid * Dim(buffer.size()), {}});
    // A ragged last tile counts past the extent.
    for (const MappedAxis& mapped : schedule.axes)
      exprs.push_back({mapped.axis.extent + mapped.tile(), {}});
    std::vector<Assumption> assumed;
    for (const IndexExpr& expr : exprs) {
      const std::optional<Dim> largest = find_largest(expr, accesses.vars);
      if (largest && largest->is_at_most(INT32_MAX)) continue;
      const auto small = largest ? assume_small(graph.symbols, *largest) : std::nullopt;
      if (!small) return "i64";
      assumed.push_back(*small);
    }
    std::ranges::move(assumed, std::back_inserter(out.assumptions));
    return "i32";
  }

  void let(const std::string& type, const std::string& name, const std::string& expr) {
    scopes.append(Statement::let(type, name, expr));
  }

  // Grid coordinates, thread coordinates and the axes that no loop walks.
  void open_kernel() {
    const auto outermost = std::ranges::find_if(schedule.axes, &MappedAxis::in_grid);
    std::string rest = "block";
    for (size_t a = schedule.axes.size(); a-- > 0;) {
      const MappedAxis& mapped = schedule.axes[a];
      if (!mapped.in_grid()) continue;
      const std::string count = scopes.print(mapped.count(kGrid));
      const bool is_outermost = &mapped == &*outermost;
      let(out.index_type, concat("g", a), is_outermost ? rest : "(" + rest + ") % " + count);
      rest = "(" + rest + ") / " + count;
    }
    for (int a = 0; a < std::ssize(schedule.axes); ++a) {
      const MappedAxis& mapped = schedule.axes[a];
      const std::string id = std::to_string(a);
      if (mapped.thread_bits() != 0) {
        const int shift = mapped.thread_shift();
        const std::string own = shift > 0 ? concat("(tid() >> ", shift, ")") : "tid()";
        let(out.index_type, "t" + id, concat(own, " & ", mapped.threads() - 1));
      }
      if (!has_loop(a)) define_axis(a, "0");
    }
    reductions.declare_homes(0);
    declare_arrays(0);
  }

  void report_collected() {
    std::vector<Statement>& body = scopes.open.back().statements;
    for (const auto& [report, flag] : out.collected) {
      body.insert(body.begin(), Statement::var("i32", flag, "0"));
      body.push_back(Statement::call(report + "(" + flag + ", error)"));
    }
  }

  bool has_loop(int axis) const {
    return std::ranges::any_of(schedule.loops, [&](const LoopSpec& spec) {
      return spec.axis == axis && spec.level != kVector;
    });
  }

  // Names the axis index once its grid, serial and thread digits are known: b<axis> without the
  // vector lane, x<axis> and ok<axis> when there is none.
  void define_axis(int a, const std::string& serial) {
    const MappedAxis& mapped = schedule.axes[a];
    const std::string id = std::to_string(a);
    std::string index = serial;
    auto scale = [&](int factor) {
      if (index != "0" && factor > 1) index = "(" + index + ") * " + std::to_string(factor);
    };
    auto add = [&](const std::string& term) { index = index == "0" ? term : term + " + " + index; };
    scale(mapped.threads());
    if (mapped.thread_bits() != 0) add("t" + id);
    scale(mapped.vector());
    const std::string grid = "g" + id;
    const Dim tile = mapped.tile();
    if (mapped.in_grid()) add(tile.is(1) ? grid : grid + " * " + scopes.print(tile));
    const std::string name = Scopes::axis_name(a, mapped.has(kVector));
    if (mapped.is_exact) return let(out.index_type, name, index);
    // Ragged: threads past the end neither store nor accumulate, and read the last element if any.
    const std::string extent = scopes.print(mapped.axis.extent), raw = "r" + id;
    let(out.index_type, raw, index);
    let("bool", "ok" + id, concat(raw, " < ", extent));
    let(out.index_type, name,
        values.skips_past_end ? raw
                              : concat("ok", a, " ? ", raw, " : ", extent, " - ", mapped.vector()));
  }

  // Places of elements read one by one are then one place and constants.  What checks what it reads
  // must not find what is not there, and what lies on chip has places for what exists.
  bool may_skip_past_end() const {
    const auto checks = [&](NodeId id) {
      const Node& node = graph[id];
      const bool is_place = node.op == OpKind::k_cat || node.op == OpKind::k_pad;
      return is_assertion(info(node)) || (family(node) == Family::kReader && !is_place) ||
             family(node) == Family::kWriter;
    };
    return on_cuda() && schedule.tiles.empty() && schedule.buffers.empty() &&
           std::ranges::all_of(schedule.axes,
                               [](const MappedAxis& axis) { return axis.vector() == 1; }) &&
           !evaluates_any(schedule.accesses, checks);
  }

  void declare_arrays(int block) {
    for (const auto& [value, index] : schedule.kept_on_chip) {
      std::vector<int> blocks;
      int made_in = -1;
      for (const LeafUse& leaf : schedule.leaves) {
        if (contains(leaf.made, value)) made_in = leaf.block;
        if (contains(leaf.made, value) || contains(leaf.reused, value))
          blocks.push_back(leaf.block);
      }
      if (made_in < 0 || common_block(schedule, blocks) != block) continue;
      OnChip home{scopes.fresh(), array_loops(schedule, value, block, made_in), scopes.depth()};
      // Loops that are written out come first, so that the vectorised one walks contiguously.
      std::stable_partition(home.loops.begin(), home.loops.end(), [&](int loop) {
        return schedule.axes[schedule.loops[loop].axis].is_unrolled;
      });
      const int64_t length = array_length(schedule, home.loops).value();
      scopes.append(Statement::array(values.register_type(value), home.name, length));
      if (home.loops.empty()) home.name += "[0]";
      values.on_chip[value] = home;
    }
  }

  void lower_block(int block) {
    for (const LoopBlock::Item& item : schedule.blocks[block].items) {
      if (item.block >= 0) lower_loop(item.block);
      if (!item.roots.empty()) lower_leaf(block, item.roots);
    }
  }

  // A segment walked once for each iteration of the vectorised loop would not vectorise: on the
  // host it is walked once for the whole loop, into an array along it.
  void combine_segments_along(int block) {
    const int loop = schedule.blocks[block].loop;
    const bool is_plain = schedule.loops[loop].level == kSerial &&
                          !schedule.axes[schedule.loops[loop].axis].has(kStrip);
    const auto trips = trip_count(schedule, loop);
    if (on_cuda() || !is_plain || !is_innermost(schedule, block)) return;
    if (!trips || *trips > kMostCombined) return;
    for (const LoopBlock::Item& item : schedule.blocks[block].items)
      for (NodeId root : item.roots) combine_segments_of(root, block);
  }

  void combine_segments_of(NodeId root, int block) {
    if (combines_segments(info(graph[root]))) combine_segment(root, leaf_index(root), block);
    for_each_value(schedule.accesses.evaluated.at(root), [&](const auto& evaluations) {
      const auto& [value, index, is_guarded, in_segment] = evaluations.front();
      if (schedule.is_load[value.index()] || !combines_segments(info(graph[value]))) return;
      if (evaluations.size() == 1 && !is_guarded && !in_segment)
        combine_segment(value, schedule.accesses.indices[index], block);
    });
  }

  bool runs_along(const IndexExpr& index, int loop) const {
    return std::ranges::any_of(values.vars.leaves_of({&index, 1}), [&](VarId var) {
      const IndexVar& leaf = values.vars[var];
      return leaf.is_atom() && scopes.axis_of_atom(leaf.payload) == schedule.loops[loop].axis;
    });
  }

  void combine_segment(NodeId id, const Index& index, int block) {
    const Node& node = graph[id];
    const int loop = schedule.blocks[block].loop;
    const int64_t dim = node.ints[0];
    if (values.combined.count(id) || runs_along(index[dim], loop)) return;
    const bool is_along =
        std::ranges::any_of(index, [&](const IndexExpr& expr) { return runs_along(expr, loop); });
    if (!is_along) return;
    const OnChip home{scopes.fresh(), {loop}, scopes.depth()};
    auto value_of = [&](NodeId operand, const Index& at) {
      return values.values[walk(graph, values, operand, at)].text;
    };
    scopes.append(Statement::array(values.register_type(id), home.name,
                                   array_length(schedule, home.loops).value()));
    reopen({block}, 0, [&] {
      const std::string initial = value_of(node.inputs[0], index);
      scopes.assign(values.element(home).text, initial);
    });
    const Handle first = walk(graph, values, node.inputs[3], {index[dim]});
    const Handle last = walk(graph, values, node.inputs[3], {index[dim] + IndexExpr{1, {}}});
    const Handle end = values.check_end({id, index, 0, first, last, 0}, scopes.depth());
    const Handle position = values.open_segment(first, end, scopes.depth());
    const Dim& count = graph[node.inputs[2]].type.shape[0];
    const Handle place = walk(graph, values, node.inputs[2], {values.as_index(position, count)});
    Index taken = index;
    taken[dim] = values.as_index(values.known_index(place), count);
    reopen({block}, 0, [&] {
      const std::string element = values.element(home).text;
      const std::string added = value_of(node.inputs[1], taken);
      scopes.assign(element, concat(info(node).function, "::apply(", element, ", ", added, ")"));
    });
    values.close_segment();
    values.combined[id] = {index, home};
  }

  void lower_loop(int block) {
    combine_segments_along(block);
    reductions.begin_scatters(block);
    const int outside = copies;
    const std::vector<AxisRange> ranges =
        find_ranges(graph, schedule, block, kMostRanges / outside);
    if (ranges.empty()) return lower_whole_loop(block);
    copies *= static_cast<int>(ranges.size());
    for (const AxisRange& range : ranges) {
      values.open_range(range);
      lower_whole_loop(block);
      values.close_range();
    }
    copies = outside;
  }

  void lower_whole_loop(int block) {
    const int loop = schedule.blocks[block].loop;
    NodeList opened = reductions.open_levels(block);
    scopes.open.push_back({block, {}, {}});
    open_loop(loop);
    reductions.declare_homes(block);
    declare_arrays(block);
    NodeList cascaded = reductions.open_cascade(block);
    lower_block(block);
    reductions.close_levels(cascaded);
    reductions.carry_over(opened, block);
    close_loop(block);
    reductions.close_levels(opened);
  }

  // Loops over kept axes once more, to set or finish the elements of an array.
  void reopen(const std::vector<int>& blocks, size_t at, const std::function<void()>& body) {
    if (at == blocks.size()) return body();
    scopes.open.push_back({blocks[at], {}, {}});
    open_loop(schedule.blocks[blocks[at]].loop);
    reopen(blocks, at + 1, body);
    close_loop(blocks[at]);
  }

  void open_loop(int loop) {
    const LoopSpec& spec = schedule.loops[loop];
    const std::string name = scopes.loop_name(loop);
    if (spec.level == kVector) {
      const std::string id = std::to_string(spec.axis);
      let(out.index_type, "x" + id, "b" + id + " + " + name);
    } else if (spec.level == kStrip) {
      const MappedAxis& mapped = schedule.axes[spec.axis];
      std::string index = name + " * " + scopes.print(mapped.count(kAlong)) + " + ";
      if (mapped.has(kSpan))
        index = concat(scopes.loop_name(spec.axis, kSpan), " * ",
                       mapped.extent_below(kSpan).value(), " + ", index);
      define_axis(spec.axis, index + scopes.loop_name(spec.axis, kAlong));
    } else if (spec.level == kSerial) {
      define_axis(spec.axis, name);
    }
  }

  std::string count_of(const MappedAxis& mapped, Level level) {
    const Dim count = mapped.count(level);
    if (!count.is(kOpen)) return scopes.print(count);
    const int64_t below = mapped.extent_below(level).value();
    return concat("(", scopes.print(mapped.axis.extent), " + ", below - 1, ") / ", below);
  }

  Statement loop_header(int loop) {
    const LoopSpec& spec = schedule.loops[loop];
    const MappedAxis& mapped = schedule.axes[spec.axis];
    Statement header{Statement::Kind::kLoop, out.index_type, scopes.loop_name(loop), "0"};
    if (on_cuda()) {
      header.bound = count_of(mapped, spec.level);
      // Unrolled loops keep arrays in registers and several loads in flight.
      const std::optional<int64_t> trips = mapped.static_trips();
      if (spec.level == kVector || (trips && *trips <= kMaxUnroll) ||
          keeps_other_arrays_over(loop) || values.keeps_in_registers_over(loop))
        header.pragma = kUnroll;
      else if (trips)
        header.pragma = kUnrollInPart;
      return header;
    }
    if (is_written_out(schedule, loop)) header.pragma = kUnroll;
    header.bound =
        spec.level == kSerial ? scopes.block_end(spec.axis) : count_of(mapped, spec.level);
    if (spec.level != kSerial) return header;
    if (const AxisRange* range = values.range_of(spec.axis)) {
      const auto place = [&](const char* function, int64_t at, const std::string& end) {
        if (!mapped.in_grid()) return std::to_string(at);
        return concat(function, "(", at, " - ", scopes.block_begin(spec.axis), ", ", end, ")");
      };
      header.expr = place("max_index", range->low, "0");
      header.bound = place("min_index", range->high, header.bound);
    }
    if (mapped.has(kChunk)) {
      const int64_t length = mapped.count(kSerial).value();
      const std::string chunk = concat(scopes.loop_name(spec.axis, kChunk), " * ", length);
      header.expr = chunk;
      header.bound = concat("min_index(", chunk, " + ", length, ", ", header.bound, ")");
    }
    return header;
  }

  // Arrays that only unrolled loops keep in registers, beside those of cut_at_homes.
  bool keeps_other_arrays_over(int loop) const {
    return reductions.uses_array_loop(loop) ||
           std::ranges::any_of(values.on_chip, [&](const auto& entry) {
             return std::ranges::count(entry.second.loops, loop) > 0;
           });
  }

  // A loop for each home of what is kept on chip over it: what lies in registers is unrolled alone,
  // and nothing asks where an access lies.
  std::vector<Statement> cut_at_homes(int loop, Statement header) const {
    const auto trips = to_number(header.bound);
    std::set<int64_t> borders;
    int64_t in_registers = 0;  // trips
    bool is_whole = true;
    for (const PersistentValue& kept : schedule.persistent) {
      if (kept.loops.empty() || kept.loops[0] != loop || !trips) continue;
      const int64_t each = kept.accesses / *trips, held = kept.home.in_registers;
      in_registers = std::max(in_registers, divide_up(held, each));
      is_whole &= kept.home.in_memory == 0;
      borders.insert(divide_up(held, each));
      borders.insert(divide_up(held + kept.home.in_shared, each));
    }
    if (borders.empty()) return {std::move(header)};
    borders.insert(*trips);
    std::vector<Statement> pieces;
    int64_t begin = 0;
    for (const int64_t end : borders) {
      if (end == begin) continue;
      Statement& piece = pieces.emplace_back(header);
      piece.expr = std::to_string(begin);
      piece.bound = std::to_string(end);
      const bool may_roll = !is_whole && begin >= in_registers && end - begin > kMaxUnroll;
      if (may_roll && !keeps_other_arrays_over(loop)) piece.pragma = kUnrollInPart;
      begin = end;
    }
    return pieces;
  }

  void close_loop(int block) {
    const int loop = schedule.blocks[block].loop;
    Statement header = loop_header(loop);
    const std::vector<Statement>& body = scopes.open.back().statements;
    const bool is_innermost = std::ranges::none_of(body, [](const Statement& inner) {
      return inner.kind == Statement::Kind::kLoop && inner.pragma != kUnroll;
    });
    const bool is_parallel = is_innermost && !reductions.takes_positions_along(block);
    if (!on_cuda() && is_parallel && header.pragma != kUnroll)
      header.pragma = reductions.simd_pragma(block, body);
    values.close_scope();
    Scope closed = std::move(scopes.open.back());
    scopes.open.pop_back();
    header.body = std::move(closed.statements);
    Scope& parent = scopes.open.back();
    for (Statement& cut : cut_at_homes(loop, std::move(header)))
      for (Statement& piece :
           on_cuda() ? load_ahead(std::move(cut), count_free_registers(schedule), scopes)
                     : walk_by_rows(schedule, block, std::move(cut), scopes))
        parent.statements.push_back(std::move(piece));
    std::ranges::move(parent.after_child, std::back_inserter(parent.statements));
    parent.after_child.clear();
  }

  Index leaf_index(NodeId root) {
    return index_from_atoms(schedule.spaces.atoms, space_of(schedule, root).dims, values.vars);
  }

  void lower_leaf(int block, const NodeList& roots) {
    // All are evaluated before any is stored: a store may replace what another root reads.
    std::vector<Scalar> results;
    std::vector<IndexExpr> offsets;
    for (NodeId root : roots) {
      const Index index = leaf_index(root);
      const bool is_reduction = family(graph[root]) == Family::kReduce;
      values.unrounded_root = is_reduction ? NodeId() : root;
      values.owner = is_reduction ? "" : reductions.store_predicate(space_of(schedule, root));
      const Handle handle = walk_root(graph, values, root, index);
      values.unrounded_root = NodeId();
      values.owner.clear();
      results.push_back(values.values[handle]);
      offsets.push_back(is_reduction ? IndexExpr() : stored_offset(graph, values, root, index));
    }
    for (size_t i = 0; i < roots.size(); ++i) {
      const NodeId root = roots[i];
      if (family(graph[root]) == Family::kReduce)
        reductions.accumulate(root, results[i]);
      else if (combines_at_indices(info(graph[root])))
        reductions.scatter(root, offsets[i], results[i]);
      else
        values.store(root, offsets[i], results[i].text, std::max(results[i].depth, scopes.depth()),
                     reductions.store_predicate(space_of(schedule, root)));
    }
    for (const LeafUse& leaf : schedule.leaves)
      if (leaf.block == block && leaf.roots == roots)
        values.made.insert(leaf.made.begin(), leaf.made.end());
  }
};

}  // namespace

LoweredStage lower_stage(const Graph& graph, const Stage& stage, const StageSchedule& schedule,
                         const LoweringOptions& options) {
  return StageLowering{graph, stage, schedule, options}.run();
}

}  // namespace stitch
