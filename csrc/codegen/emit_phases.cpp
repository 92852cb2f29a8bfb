#include "codegen/emit_phases.h"

#include "codegen/lower_values.h"

namespace stitch {

std::string list_parameters(const Graph& graph, const std::vector<KernelArgument>& pointers,
                            size_t sizes, const LoweringOptions& options,
                            const std::set<NodeId>& exchanged) {
  std::string text;
  for (size_t i = 0; i < pointers.size(); ++i) {
    if (pointers[i].is_tabled) continue;
    const bool is_shared =
        exchanged.count(pointers[i].value) || shares_memory(pointers[i], options);
    text += pointer_parameter(graph, pointers[i], i, !is_shared) + ", ";
  }
  for (size_t i = 0; i < sizes; ++i) text += "i64 n" + std::to_string(i) + ", ";
  return text;
}

namespace {

// "registers_t<Vec<f32, 4>> k0[8]": what registers hold, by accesses.
std::string declare_array(const Graph& graph, const StageSchedule& schedule,
                          const PersistentValue& kept, const std::string& name) {
  const DType dtype = graph[kept.value].type.dtype;
  const std::string type = kept.vector_axis < 0
                               ? info(dtype).device_name
                               : vector_type(dtype, schedule.axes[kept.vector_axis].vector());
  return concat("registers_t<", type, "> ", name, "[", kept.home.in_registers, "]");
}

// In an array of the kernel's frame.
bool is_handed_on(const PersistentValue& kept) {
  return kept.home.in_registers > 0 && !kept.is_of_stage;
}

// What counts a phase's blocks: in 32 bits where the step past the last fits too, for the registers
// (1024 threads with 64 each spill on sm_80 otherwise).
std::string counter_type(const Dim& blocks) {
  constexpr int64_t kMost = int64_t{1} << 30;
  return blocks.is_at_most(kMost) ? "i32" : "i64";
}

// Do threads read from shared memory what no barrier follows?
bool leaves_shared(const KernelStage& part) {
  const std::vector<PersistentValue>& persistent = part.schedule->persistent;
  return !part.schedule->tiles.empty() ||
         std::ranges::any_of(persistent, [](const PersistentValue& value) {
           return value.is_of_stage && value.home.in_shared > 0;
         });
}

// Is most of what the phases behind the first load what earlier ones have touched?  Then one launch
// of resident blocks, which take turns, finds part of it in the second cache; launches of all
// blocks, one a phase, keep more accesses in flight.
bool reads_again(const Graph& graph, std::span<const LoweredPhase> phases) {
  std::set<NodeId> touched;
  int64_t again = 0, first = 0;  // bytes
  for (const LoweredPhase& phase : phases) {
    std::set<NodeId> loads, stores;
    for (const KernelStage& part : phase.stages())
      for (const KernelArgument& pointer : part.lowered.pointers)
        (pointer.is_store ? stores : loads).insert(pointer.value);
    for (NodeId load : loads)
      if (touched.contains(load))
        again += hint_bytes(graph, load);
      else if (!touched.empty())
        first += hint_bytes(graph, load);
    touched.insert(loads.begin(), loads.end());
    touched.insert(stores.begin(), stores.end());
  }
  return again > first;
}

// Stages of one phase and one text, each of which has tensors and blocks of its own.
using Records = std::vector<const KernelStage*>;

struct Emitter {
  const Graph& graph;
  const LoweringOptions& options;
  KernelSource& source;
  // Stored by one stage, loaded by another.  None is restrict: a compiler may move loads through a
  // restrict pointer across the barrier, and those through const and restrict to the non-coherent
  // cache.
  std::set<NodeId> exchanged = {};
  bool uses_shared = false;
  bool take_turns = false;  // the blocks of all phases
  bool is_whole = false;    // each launch has a block for each block's work
  // By function, of those that loop over blocks themselves.
  struct LoopingBody {
    KernelBody before, inside;  // the loop
    std::string turns;          // their type
  };
  std::map<int, LoopingBody> split = {};
  std::map<int, Dim> places = {};  // by group: its first block
  Dim resident = 0;                // blocks of all groups
  struct FrameArray {
    const KernelStage* first;  // of the group
    const PersistentValue* kept;
    int phase;  // the last in which a stage of the group had it
  };
  std::vector<FrameArray> arrays = {};
  std::map<const KernelStage*, Records> records = {};  // by the first
  std::set<const KernelStage*> repeated = {};          // those behind the first
  std::map<NodeList, size_t> columns = {};             // of the table: where each begins

  // A value that one phase stores and another loads is one argument.
  size_t argument(const KernelArgument& wanted) {
    auto known = std::ranges::find(source.pointers, wanted.value, &KernelArgument::value);
    if (known == source.pointers.end()) {
      known = source.pointers.insert(known, wanted);
      known->is_tabled = true;  // until a call names it
    }
    if (known->is_store != wanted.is_store) exchanged.insert(wanted.value);
    known->is_store |= wanted.is_store;
    known->alignment_bytes = std::max(known->alignment_bytes, wanted.alignment_bytes);
    return known - source.pointers.begin();
  }

  std::string size(const Dim& dim) { return print_size(dim, source.sizes); }

  std::string stage_function(const KernelStage& part, int number) const {
    const LoweredStage& lowered = part.lowered;
    const auto loop = split.find(number);
    const bool loops = loop != split.end();
    std::string text =
        concat("STITCH_DEVICE void stage_", number, "(",
               loops ? loop->second.turns + " turns, " : "i64 block_number, ") +
        list_parameters(graph, lowered.pointers, lowered.sizes.size(), options, exchanged);
    for (size_t i = 0; i < part.schedule->persistent.size(); ++i) {
      const PersistentValue& kept = part.schedule->persistent[i];
      if (is_handed_on(kept))
        text += declare_array(graph, *part.schedule, kept, concat("(&k", i, ")")) + ", ";
      if (kept.is_filled) text += concat("bool has_k", i, ", ");
    }
    text += std::string(uses_shared ? "u8* shared, " : "") + "i32* error) {\n";
    if (loops)
      text += "  if (!turns.are_left()) return;\n" + to_string(loop->second.before) +
              "  for (; turns.are_left(); turns.next()) {\n  ";
    text += concat("  const ", lowered.index_type, " block = ", lowered.index_type,
                   loops ? "(turns.block);\n" : "(block_number);\n",
                   declare_arrays(graph, *part.schedule));
    if (loops) return text + to_string(loop->second.inside, 4) + "  }\n}\n";
    return text + to_string(lowered.body) + "}\n";
  }

  // The array of the frame that a stage knows by its own number, and whether it holds anything.
  std::string persistent_arguments(const KernelStage& part, int phase) {
    std::string text;
    for (const PersistentValue& kept : part.schedule->persistent) {
      if (kept.is_of_stage) continue;
      auto at = std::ranges::find_if(arrays, [&](const FrameArray& known) {
        return known.first->group == part.group && known.kept->value == kept.value;
      });
      if (at == arrays.end()) at = arrays.insert(at, {&part, &kept, phase});
      if (is_handed_on(kept)) text += "k" + std::to_string(at - arrays.begin()) + ", ";
      if (kept.is_filled) text += concat("is_resident && first_phase <= ", at->phase, ", ");
      at->phase = phase;
    }
    return text;
  }

  // Stages that have their blocks alone, and keep nothing for other phases, by text.
  void find_records(const LoweredPhase& phase) {
    if (std::ssize(phase.blocks) < kFewestRecords) return;
    std::map<std::string, Records> equal;
    for (const LoweredBlocks& stages : phase.blocks) {
      const KernelStage& part = stages[0];
      if (stages.size() > 1 || places.contains(part.group)) continue;
      const std::string text = stage_function(part, 0);
      equal[concat(text, part.schedule->grid, ' ', join(part.lowered.sizes, " "))].push_back(&part);
    }
    for (const auto& [text, own] : equal) {
      if (std::ssize(own) < kFewestRecords) continue;
      records[own[0]] = own;
      repeated.insert(own.begin() + 1, own.end());
    }
  }

  // What is stored into an input is where that is.
  NodeId memory_of(NodeId value) const {
    const auto over = options.stored_over.find(value);
    const bool is_there =
        over != options.stored_over.end() && graph[over->second].op == OpKind::k_input;
    return is_there ? over->second : value;
  }

  // What the n-th pointer of a stage, or of the record that a block belongs to, is.
  std::string pointer(const KernelStage& part, size_t n) {
    const KernelArgument& own = part.lowered.pointers[n];
    if (const BlockBuffer* buffer = find_buffer(*part.schedule, own.value))
      return concat("reinterpret_cast<", info(graph[own.value].type.dtype).device_name,
                    "*>(shared + ", buffer->shared_offset, ")");
    const auto equal = records.find(&part);
    const NodeList memories = map_to_vector(
        equal == records.end() ? Records{&part} : equal->second,
        [&](const KernelStage* record) { return memory_of(record->lowered.pointers[n].value); });
    if (std::ranges::count(memories, memories[0]) == std::ssize(memories)) {
      source.pointers[argument(own)].is_tabled = false;
      return concat("p", argument(own));
    }
    const auto [column, is_new] = columns.try_emplace(memories, source.tensors.size());
    for (size_t r = 0; r < memories.size(); ++r) {
      const size_t at = argument(equal->second[r]->lowered.pointers[n]);
      if (is_new) source.tensors.push_back(at);
      // One address, aligned for both.
      int &first = source.pointers[source.tensors[column->second + r]].alignment_bytes,
          &own = source.pointers[at].alignment_bytes;
      first = own = std::max(first, own);
    }
    return concat("static_cast<", pointer_type(graph, own), ">(tensors.at[", column->second,
                  " + record])");
  }

  std::string call(const KernelStage& part, const std::string& block, int phase) {
    std::string text = concat("stage_", part.number, "(", block, ", ");
    for (size_t i = 0; i < part.lowered.pointers.size(); ++i) text += pointer(part, i) + ", ";
    for (const Dim& dim : part.lowered.sizes) text += size(dim) + ", ";
    text += persistent_arguments(part, phase);
    return text + (uses_shared ? "shared, " : "") + "error);\n";
  }

  // Groups come first in each phase and have the same blocks in all.
  void place_groups(const LoweredKernel& kernel) {
    std::map<int, Dim> grids;
    for (const KernelStage& part : stages_of(kernel))
      if (part.group >= 0 &&
          !std::ranges::all_of(part.schedule->persistent, &PersistentValue::is_of_stage))
        grids[part.group] = part.schedule->grid;
    for (const auto& [group, grid] : grids) {
      places[group] = resident;
      resident = resident + grid;
    }
  }

  // Of all its records.
  Dim count_blocks(const KernelStage& part) const {
    const auto own = records.find(&part);
    const size_t count = own == records.end() ? 1 : own->second.size();
    return part.schedule->grid * static_cast<int64_t>(count);
  }

  // Where blocks begin in their phase, in the order in which they are placed.
  std::vector<std::pair<const LoweredBlocks*, Dim>> place_blocks(const LoweredPhase& phase) const {
    std::vector<std::pair<const LoweredBlocks*, Dim>> placed;
    Dim end = 0;
    for (const auto& [group, begin] : places) {
      for (const LoweredBlocks& own : phase.blocks) {
        if (own[0].group != group) continue;
        placed.push_back({&own, begin});
        end = begin + count_blocks(own[0]);
      }
    }
    for (const LoweredBlocks& own : phase.blocks) {
      if (places.count(own[0].group) || repeated.contains(&own[0])) continue;
      placed.push_back({&own, end});
      end = end + count_blocks(own[0]);
    }
    return placed;
  }

  // All stages of a block, or that of its record.  Shared memory is the next block's once all have
  // read it.
  std::string call_in_turn(const LoweredBlocks& stages, const std::string& block, int phase,
                           const std::string& type) {
    if (records.contains(&stages[0])) {
      const std::string grid = size(stages[0].schedule->grid);
      return concat("{\n        const ", type, " record = (", block, ") / ", grid, ";\n        ",
                    call(stages[0], concat(block, " - record * ", grid), phase), "      }\n");
    }
    if (stages.size() == 1) return call(stages[0], block, phase);
    std::string text = "{\n";
    for (const KernelStage& part : stages)
      text += "        " + call(part, block, phase) + "        block_barrier();\n";
    return text + "      }\n";
  }

  // Shares out the next phase: which of its blocks one of the launch runs, their type and the
  // first.  A later phase begins with what the one before has read last, but groups have their own
  // blocks in all.
  std::pair<std::string, std::string> share_out(const Dim& blocks, bool in_turns) {
    const std::string type = counter_type(blocks);
    const Dim before = source.phases.empty() ? Dim(0) : source.phases.back();
    const bool is_forward = source.phases.empty() || blocks.is(1) || !places.empty();
    if (in_turns) source.in_turns.push_back(source.phases.size());
    source.phases.push_back(blocks);
    if (is_forward)
      return {concat("Forward<", type, ">"), concat("forward<", type, ">(", size(blocks), ")")};
    const std::string in_rows = concat("i64(", size(before), ") <= grid_blocks()");
    return {concat("Backward<", type, ">"),
            concat("backward<", type, ">(", size(blocks), ", ", in_rows, ")")};
  }

  // Of a phase of one stage that computes something before it loops over its blocks; else "".  Not
  // of a group: its blocks keep what they read, so that each has no other's work to do.
  std::string looping_call(const LoweredPhase& phase, int number) {
    const KernelStage& part = phase.blocks[0][0];
    const LoweredStage& lowered = part.lowered;
    const Dim& grid = part.schedule->grid;
    const bool is_single = std::ranges::distance(phase.stages()) == 1;
    if (!is_single || places.contains(part.group) || grid.is(1)) return "";
    std::set<std::string> variant = {"block", "take_slot"};
    for (size_t i = 0; i < part.schedule->persistent.size(); ++i) variant.insert(concat("k", i));
    for (size_t i = 0; i < lowered.pointers.size(); ++i)
      if (lowered.pointers[i].is_store || shares_memory(lowered.pointers[i], options))
        variant.insert(concat("p", i));
    auto bodies = split_invariant(lowered.body, std::move(variant));
    if (bodies.first.empty()) return "";
    const auto [type, turns] = share_out(grid, true);
    split[part.number] = {std::move(bodies.first), std::move(bodies.second), type};
    return call(part, turns, number);
  }

  std::string phase_loop(const LoweredPhase& phase, int number) {
    const bool is_alone = phase.join == Join::kLastBlock;
    if (!is_alone)
      if (const std::string text = looping_call(phase, number); !text.empty()) return text;
    Dim end = 0;
    std::string calls;
    const auto placed = place_blocks(phase);
    for (const auto& [stages, begin] : placed) {
      calls += stages == placed.front().first ? "      " : "      else ";
      std::vector<std::string> conditions;
      if (begin != end) conditions.push_back("block >= " + size(begin));
      end = begin + count_blocks(stages->front());
      if (stages != placed.back().first) conditions.push_back("block < " + size(end));
      if (!conditions.empty()) calls += "if (" + join(conditions, " && ") + ") ";
      const std::string block = begin.is(0) ? "block" : "block - " + size(begin);
      calls += call_in_turn(*stages, block, number, counter_type(end));
    }
    // Stages have places of their own in shared memory: none may begin while another is read.
    if (placed.size() > 1 && std::ranges::any_of(phase.stages(), leaves_shared))
      calls += "      block_barrier();\n";
    const std::string type = counter_type(end);
    if (is_alone)
      return concat("for (", type, " block = 0; block < ", size(end), "; ++block) {\n", calls,
                    "    }\n");
    const auto [turns_type, turns] = share_out(end, take_turns);
    // Where there are several stages: a loop around them costs registers.
    if (is_whole && placed.size() > 1)
      return concat("const ", type, " block = ", type, "(block_index());\n", calls);
    return concat("for (", turns_type, " turns = ", turns, "; turns.are_left(); turns.next()) {\n",
                  "      const ", type, " block = turns.block;\n", calls, "    }\n");
  }

  // Phases that the grid shares out, each where a launch runs it, a barrier between each two; then
  // those of the last block.
  std::string body(const LoweredKernel& kernel) {
    const int count = static_cast<int>(kernel.size());
    const auto finish = std::ranges::find(kernel, Join::kLastBlock, &LoweredPhase::join);
    const auto shared = static_cast<int>(finish - kernel.begin());
    take_turns = places.empty() && reads_again(graph, {kernel.begin(), finish});
    source.finishes = shared < count;
    is_whole = shared == 1 && !take_turns;
    std::string text;
    for (int p = 0; p < count; ++p) {
      const std::string loop = "    " + phase_loop(kernel[p], p);
      std::string meet, runs = "  {\n";
      if (p == shared) {
        const std::string more = shared > 1 ? concat("end_phase < ", p, " || ") : "";
        meet = "  if (" + more + "!is_last_block(barrier)) return;\n";
      } else if (p > shared) {
        meet = "  block_barrier();\n";
      } else if (p > 0) {
        meet =
            concat("  if (first_phase < ", p, " && ", p, " < end_phase) grid_barrier(barrier);\n");
      }
      if (p < shared && shared > 1)
        runs = concat("  if (first_phase <= ", p, " && ", p, " < end_phase) {\n");
      text += meet + runs + loop + "  }\n";
    }
    return text;
  }

  // The arrays of the frame, and whether a launch has a block for each block's work.
  std::string frame_arrays() {
    if (arrays.empty()) return "";
    std::string text =
        concat("  const bool is_resident = grid_blocks() >= ", size(resident), ";\n");
    for (size_t i = 0; i < arrays.size(); ++i)
      if (const auto& [first, kept, phase] = arrays[i]; is_handed_on(*kept))
        text += concat("  ", declare_array(graph, *first->schedule, *kept, concat("k", i)), ";\n");
    return text;
  }
};

}  // namespace

std::string declare_arrays(const Graph& graph, const StageSchedule& schedule) {
  std::string text;
  for (size_t i = 0; i < schedule.persistent.size(); ++i) {
    const PersistentValue& kept = schedule.persistent[i];
    if (kept.is_of_stage && kept.home.in_registers > 0)
      text += concat("  ", declare_array(graph, schedule, kept, concat("k", i)), ";\n");
  }
  return text;
}

std::string declare_shared(int bytes, KernelSource& source) {
  constexpr int kMostStaticBytes = 48 << 10;  // CUDA programming guide, "Shared Memory"
  if (bytes == 0) return "";
  if (bytes <= kMostStaticBytes) return concat("  STITCH_SHARED(u8, shared, ", bytes, ");\n");
  source.shared_bytes = bytes;
  return concat("  STITCH_DYNAMIC_SHARED(shared, ", bytes, ");\n");
}

std::pair<std::string, std::string> emit_phases(const Graph& graph, const LoweredKernel& kernel,
                                                const LoweringOptions& options,
                                                KernelSource& source) {
  Emitter emitter{graph, options, source};
  int shared_bytes = 0;
  for (const KernelStage& part : stages_of(kernel)) {
    STITCH_CHECK(part.schedule->threads == kernel[0].blocks[0][0].schedule->threads,
                 "stages of one kernel have blocks of different sizes");
    shared_bytes = std::max(shared_bytes, part.schedule->shared_bytes);
    source.may_fail |= part.lowered.may_fail;
    for (const KernelArgument& pointer : part.lowered.pointers)
      if (!find_buffer(*part.schedule, pointer.value)) emitter.argument(pointer);
    for (const BlockBuffer& buffer : part.schedule->buffers) emitter.exchanged.insert(buffer.value);
  }
  emitter.uses_shared = shared_bytes > 0;
  emitter.place_groups(kernel);
  for (const LoweredPhase& phase : kernel) emitter.find_records(phase);
  const std::string body = emitter.body(kernel);
  std::string functions;
  if (!source.tensors.empty())
    functions = concat("struct Tensors {\n  void* at[", source.tensors.size(), "];\n};\n");
  for (const KernelStage& part : stages_of(kernel))
    if (!emitter.repeated.contains(&part)) functions += emitter.stage_function(part, part.number);
  std::string frame = "(" + list_parameters(graph, source.pointers, source.sizes.size(), options,
                                            emitter.exchanged);
  if (source.phases.size() > 1) frame += "i32 first_phase, i32 end_phase, ";
  if (kernel.size() > 1) frame += "u32* barrier, ";
  frame += source.tensors.empty() ? "i32* error) {\n"
                                  : "i32* error, const __grid_constant__ Tensors tensors) {\n";
  frame += declare_shared(shared_bytes, source) + emitter.frame_arrays();
  frame += std::string(options.dependent_launch ? kWaitForLaunch : "") + body + "}\n";
  return {functions, frame};
}

}  // namespace stitch
