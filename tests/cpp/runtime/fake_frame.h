// A Frame over plain memory, and graphs, plans and sources made by hand.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "runtime/build_program.h"
#include "runtime/executor.h"
#include "support/own_node.h"

namespace stitch {

// Buffers are vectors of floats; an alias is an address inside its base.
class FakeFrame : public Frame {
 public:
  explicit FakeFrame(const Program& program) : program_(program), memory_(program.buffers.size()) {}

  void set(int argument, std::vector<float> values) {
    for (size_t i = 0; i < program_.buffers.size(); ++i) {
      const Buffer& buffer = program_.buffers[i];
      if (buffer.kind != Buffer::Kind::kArgument || buffer.index != argument) continue;
      memory_[i] = std::make_shared<std::vector<float>>(std::move(values));
      return;
    }
  }
  std::vector<float> output(int i) {
    const BufferId id = program_.outputs[i].buffer;
    const auto* begin = static_cast<const float*>(data(id));
    return std::vector<float>(begin, begin + elements(id));
  }

  void start(std::vector<int64_t>& symbols) override { symbols_ = symbols; }
  void allocate_slab(int64_t bytes) override {
    slab_bytes = bytes;
    slab_.resize(bytes / sizeof(float) + 16);
  }
  void place_in_slab(BufferId id, int64_t offset_bytes) override { offsets_[id] = offset_bytes; }
  void allocate(BufferId id, BufferId over) override {
    if (over.valid()) {
      log.push_back("take " + std::to_string(id.value()) + " from " + std::to_string(over.value()));
      if (memory_[over.index()].use_count() == 1) memory_[id.index()] = memory_[over.index()];
      if (memory_[id.index()]) return;
    }
    log.push_back("allocate " + std::to_string(id.value()));
    memory_[id.index()] = std::make_shared<std::vector<float>>(elements(id));
  }
  void align(BufferId id, int) override { log.push_back("align " + std::to_string(id.value())); }
  void write_back(BufferId id) override {
    log.push_back("write back " + std::to_string(id.value()));
  }
  void* data(BufferId id) override {
    const Buffer& buffer = program_.buffers[id.index()];
    if (buffer.kind == Buffer::Kind::kSlab) {
      return reinterpret_cast<char*>(slab_.data()) + offsets_.at(id);
    }
    if (buffer.kind == Buffer::Kind::kAlias) {
      return static_cast<float*>(data(buffer.base)) + evaluate(buffer.offset, symbols_);
    }
    return memory_[id.index()] ? memory_[id.index()]->data() : nullptr;
  }
  void release(BufferId id) override {
    log.push_back("release " + std::to_string(id.value()));
    memory_[id.index()] = nullptr;
  }
  void copy(BufferId from, BufferId to) override {
    const auto* begin = static_cast<const float*>(data(from));
    std::copy_n(begin, elements(to), static_cast<float*>(data(to)));
  }
  // Every call doubles its first operand.
  void call(const CallStep& step) override {
    log.push_back("call " + std::to_string(step.call));
    for (const BufferId id : step.outputs) {
      if (!id.valid()) continue;
      memory_[id.index()] = std::make_shared<std::vector<float>>(elements(id));
      const auto* begin = static_cast<const float*>(data(step.inputs.at(0)));
      std::transform(begin, begin + elements(id), memory_[id.index()]->begin(),
                     [](float x) { return 2 * x; });
    }
  }
  void parallel_for(int64_t count, int64_t grain,
                    const std::function<void(int64_t, int64_t)>& body) override {
    ++parallel_calls;
    for (int64_t begin = 0; begin < count; begin += grain) {
      body(begin, std::min(count, begin + grain));
    }
  }
  void* stream() override { return reinterpret_cast<void*>(7); }
  void* barrier() override { return &counter_; }

  std::vector<std::string> log;
  int64_t slab_bytes = 0;
  int parallel_calls = 0;

 private:
  int64_t elements(BufferId id) {
    const TensorType& type = program_.buffers[id.index()].type;
    return storage_bytes(type, symbols_) / info(type.dtype).bytes;
  }

  const Program& program_;
  std::vector<int64_t> symbols_;
  std::vector<std::shared_ptr<std::vector<float>>> memory_;
  std::vector<float> slab_;
  uint32_t counter_ = 0;
  std::map<BufferId, int64_t> offsets_;
};

// A graph of `relu` kernels, one per call to `add_kernel`, that add 1 to each element instead: the
// runtime does not look at what a kernel computes.
struct FakePlan {
  Graph graph;
  StitchPlan plan;
  std::vector<KernelSource> sources;
  std::vector<LoadedKernel> kernels;

  NodeId add_node(OpKind op, std::vector<NodeId> inputs, TensorType type) {
    Node node;
    node.op = op;
    node.inputs = std::move(inputs);
    node.type = std::move(type);
    graph.nodes.push_back(std::move(node));
    return NodeId(graph.size() - 1);
  }

  NodeId add_input(TensorType type) {
    const NodeId id = add_node(OpKind::k_input, {}, std::move(type));
    graph.inputs.push_back(id);
    graph.input_positions.push_back(graph.argument_count++);
    return id;
  }

  static void add_one(void* const* pointers, const int64_t* sizes, int64_t begin, int64_t end,
                      int32_t*) {
    for (int64_t i = begin * sizes[0]; i < end * sizes[0]; ++i) {
      static_cast<float*>(pointers[1])[i] = static_cast<float*>(pointers[0])[i] + 1;
    }
  }

  // One block per `block` elements.
  NodeId add_kernel(NodeId x, const Dim& blocks, int64_t block) {
    const TensorType type = graph[x].type;
    const NodeId y = add_node(OpKind::k_relu, {x}, contiguous_type(type.dtype, type.shape));
    const int kernel = static_cast<int>(plan.kernels.size());
    plan.kernels.push_back({.phases = {{.blocks = {PlannedBlocks{{kernel}}}}}});
    plan.stages.push_back({{y}, {y}, {x}, {y}});
    plan.steps.push_back({kernel});
    KernelSource source;
    source.name = "relu_" + std::to_string(kernel);
    source.pointers = {{x, false, 4}, {y, true, 4}};
    source.sizes = {block};
    source.phases = {blocks};
    sources.push_back(source);
    kernels.push_back({reinterpret_cast<void*>(&add_one)});
    return y;
  }

  NodeId add_call(NodeId x, int64_t row) {
    const NodeId y = add_node(OpKind::k_library, {x}, graph[x].type);
    own(graph.nodes.back()).integer = row;
    plan.steps.push_back({-1, y});
    return y;
  }

  // `offset`: in elements, of rows of one.
  NodeId add_alias(NodeId base, TensorType type, const Dim& offset) {
    const NodeId y = add_node(OpKind::k_slice, {base}, std::move(type));
    own(graph.nodes.back()).ints = {0};
    own(graph.nodes.back()).dims = {offset, 1};
    plan.aliases.push_back({y, base, offset});
    return y;
  }

  void returns(NodeId node) { graph.outputs.push_back({GraphOutput::Kind::kTensor, node, 0}); }

  void mutate(NodeId input, NodeId value, bool in_place) {
    graph.mutations.push_back({input, value});
    plan.in_place.push_back(in_place);
  }

  Program build(bool on_cuda = false) const {
    Program program = build_program(graph, plan, sources, on_cuda);
    program.kernels = kernels;
    return program;
  }
};

inline TensorType floats(std::vector<Dim> shape) {
  return contiguous_type(DType::kF32, std::move(shape));
}

}  // namespace stitch
