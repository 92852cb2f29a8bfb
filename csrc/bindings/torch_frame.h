// TorchFrame: the tensors of one running call.
//
// Slab values and views are addresses until a library call wants them as tensors.  CPU memory comes
// from the host pool, CUDA memory from torch's caching allocator.
#pragma once

#include <ATen/core/Tensor.h>
#include <pybind11/pybind11.h>

#include <utility>
#include <vector>

#include "bindings/compiled_graph.h"
#include "runtime/executor.h"

namespace stitch {

class TorchFrame final : public Frame {
 public:
  TorchFrame(const CompiledGraph& graph, void* stream)
      : graph_(graph), stream_(stream), cells_(graph.program->buffers.size()) {}

  // What the call was given, before it runs.
  void set_argument(BufferId id, at::Tensor tensor) {
    cells_[id.value()].tensor = std::move(tensor);
  }
  void add_object(py::object object) { objects_.push_back(std::move(object)); }
  // What it yields, afterwards.
  const at::Tensor& output(BufferId id, const std::vector<int64_t>& symbols) {
    symbols_ = &symbols;
    return tensor(id);
  }

  void start(std::vector<int64_t>& symbols) override;
  void allocate_slab(int64_t bytes) override;
  void place_in_slab(BufferId id, int64_t offset_bytes) override;
  void allocate(BufferId id) override;
  bool take_memory(BufferId id, BufferId from) override;
  void align(BufferId id, int bytes) override;
  void write_back(BufferId id) override;
  void* data(BufferId id) override;
  void release(BufferId id) override { cells_[id.value()] = Cell(); }
  void copy(BufferId from, BufferId to) override;
  void call(const CallStep& step) override;
  void parallel_for(int64_t count, int64_t grain,
                    const std::function<void(int64_t, int64_t)>& body) override;
  void* stream() override { return stream_; }
  void* barrier() override;

 private:
  struct Cell {
    at::Tensor tensor;        // undefined: nothing there, or only an address
    void* address = nullptr;  // null: not asked for, or no elements
  };

  const Buffer& buffer(BufferId id) const { return graph_.program->buffers[id.value()]; }
  at::Tensor& tensor(BufferId id);
  void replace(BufferId id, at::Tensor replacement);
  // The tensor in the layout that is promised, or as it is where its sizes are nobody's business;
  // nothing where it does not fit.
  std::optional<at::Tensor> conform(const Buffer& promised, at::Tensor tensor) const;
  std::string describe_promise(const Buffer& buffer) const;
  void conform_argument(BufferId id);
  bool is_in_slab(const at::Tensor& tensor) const;
  void define_symbols(const std::vector<at::Tensor>& results, int64_t call);
  void set_result(BufferId id, at::Tensor result, const CallStep& step);

  const CompiledGraph& graph_;
  void* const stream_;
  const std::vector<int64_t>* symbols_ = nullptr;
  std::vector<int64_t>* defined_ = nullptr;  // the same, while the call runs
  std::vector<Cell> cells_;
  at::Tensor slab_;
  void* barrier_ = nullptr;
  at::Tensor captured_barrier_;
  std::vector<py::object> objects_;
  // Tensors that `start` and `align` replaced, kept while their memory may be in use.
  std::vector<std::pair<BufferId, at::Tensor>> replaced_;
};

}  // namespace stitch
