#include "bindings/torch_frame.h"

#include <ATen/Functions.h>
#include <ATen/Parallel.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <c10/util/StringUtil.h>

#include <map>

#include "bindings/tensors.h"

#ifndef _OPENMP
#error "compile this file with -fopenmp: without it at::parallel_for silently uses one thread"
#endif

namespace stitch {

static std::string describe(const at::Tensor& tensor) {
  return c10::str(tensor.scalar_type(), tensor.sizes(), " on ", tensor.device());
}

void TorchFrame::start(std::vector<int64_t>& symbols) {
  symbols_ = defined_ = &symbols;
  for (size_t i = 0; i < cells_.size(); ++i) {
    const BufferId id(static_cast<int64_t>(i));
    if (buffer(id).kind == Buffer::Kind::kArgument && buffer(id).type.dtype != DType::kOpaque)
      conform_argument(id);
  }
}

std::optional<at::Tensor> TorchFrame::conform(const Buffer& promised, at::Tensor tensor) const {
  const Layout layout = evaluate_layout(promised.type, *symbols_);
  const bool fits = tensor.sizes().equals(layout.sizes);
  if (!fits && !promised.is_addressed) return tensor;
  if (!fits || from_scalar_type(tensor.scalar_type()) != promised.type.dtype) return std::nullopt;
  if (tensor.is_neg()) {  // kernels read the bits in memory
    at::AutoDispatchBelowADInplaceOrView guard;
    tensor = tensor.resolve_neg();
  }
  return has_strides(tensor, layout) ? tensor : copy_tensor(tensor, layout);
}

std::string TorchFrame::describe_promise(const Buffer& buffer) const {
  const Layout layout = evaluate_layout(buffer.type, *symbols_);
  return c10::str(info(buffer.type.dtype).name, c10::IntArrayRef(layout.sizes));
}

void TorchFrame::conform_argument(BufferId id) {
  const Buffer& promised = buffer(id);
  if (has_type(cells_[id.value()].tensor, promised.type, *symbols_)) [[likely]]
    return;
  const at::Tensor given = cells_[id.value()].tensor;
  std::optional<at::Tensor> tensor = conform(promised, given);
  if (!tensor)
    throw UserError("argument " + std::to_string(promised.index) + " is " + describe(given) +
                    ", but the graph was compiled for " + describe_promise(promised) +
                    "; compile again for these sizes");
  if (!tensor->is_same(given)) replace(id, *std::move(tensor));
}

void TorchFrame::replace(BufferId id, at::Tensor replacement) {
  Cell& cell = cells_[id.value()];
  replaced_.emplace_back(id, std::move(cell.tensor));
  cell.tensor = std::move(replacement);
  cell.address = nullptr;
}

void TorchFrame::allocate_slab(int64_t bytes) {
  slab_ = make_tensor({{bytes}, {1}}, c10::kByte, graph_.device);
}

void TorchFrame::place_in_slab(BufferId id, int64_t offset_bytes) {
  cells_[id.value()].address = static_cast<char*>(slab_.storage().mutable_data()) + offset_bytes;
}

void TorchFrame::allocate(BufferId id) {
  const TensorType& type = buffer(id).type;
  cells_[id.value()].tensor =
      make_tensor(evaluate_layout(type, *symbols_), to_scalar_type(type.dtype), graph_.device);
}

bool TorchFrame::take_memory(BufferId id, BufferId from) {
  const TensorType& type = buffer(id).type;
  const Layout layout = evaluate_layout(type, *symbols_);
  at::Tensor& taken = cells_[id.value()].tensor;
  taken = make_tensor_over(cells_[from.value()].tensor, layout, to_scalar_type(type.dtype));
  return taken.defined();
}

void TorchFrame::align(BufferId id, int bytes) {
  at::Tensor aligned = copy_tensor(tensor(id), evaluate_layout(buffer(id).type, *symbols_));
  STITCH_CHECK(reinterpret_cast<uintptr_t>(aligned.const_data_ptr()) % bytes == 0,
               "the allocator gives addresses that are not " << bytes << "-byte aligned");
  replace(id, std::move(aligned));
}

void TorchFrame::write_back(BufferId id) {
  at::AutoDispatchBelowADInplaceOrView guard;
  for (const auto& [replaced, original] : replaced_)
    if (replaced == id) original.copy_(tensor(id));
}

void* TorchFrame::data(BufferId id) {
  Cell& cell = cells_[id.value()];
  if (cell.address) return cell.address;
  const Buffer& promised = buffer(id);
  const at::Tensor& tensor = cell.tensor;
  if (promised.kind == Buffer::Kind::kAlias && !tensor.defined()) {
    char* base = static_cast<char*>(data(promised.base));
    const int64_t offset = evaluate(promised.offset, *symbols_);
    return cell.address = base + offset * info(promised.type.dtype).bytes;
  }
  STITCH_CHECK(tensor.defined(), "buffer " << id << " is not set when a kernel uses it");
  if (tensor.device().type() != graph_.device.type() || tensor.layout() != c10::kStrided)
    throw UnsupportedError("a kernel on " + graph_.device.str() + " would read " +
                           describe(tensor) + "; it can only read dense tensors of its device");
  return cell.address = tensor.unsafeGetTensorImpl()->mutable_data();
}

// By thread and stream, as launches of one stream follow each other; for the life of the process,
// in the driver's memory, since torch's may be a CUDA graph's that is being warmed up.  A capture
// has its own, as graphs captured on one stream may run on several.
void* TorchFrame::barrier() {
  if (barrier_) return barrier_;
  const Driver& table = driver();
  int capturing = 0;
  check_driver(table.stream_is_capturing(stream_, &capturing), "cuStreamIsCapturing", "a stream");
  if (capturing) {
    at::AutoDispatchBelowADInplaceOrView guard;
    captured_barrier_ = at::zeros({1}, at::TensorOptions().dtype(at::kInt).device(graph_.device));
    return barrier_ = captured_barrier_.mutable_data_ptr();
  }
  thread_local std::map<std::pair<c10::DeviceIndex, void*>, CudaAddress> barriers;
  CudaAddress& kept = barriers[{graph_.device.index(), stream_}];
  if (!kept) {
    check_driver(table.memory_allocate(&kept, sizeof(uint32_t)), "cuMemAlloc", "a barrier");
    check_driver(table.memory_set(kept, 0, 1, stream_), "cuMemsetD32Async", "a barrier");
  }
  return barrier_ = reinterpret_cast<void*>(kept);
}

at::Tensor& TorchFrame::tensor(BufferId id) {
  Cell& cell = cells_[id.value()];
  const Buffer& promised = buffer(id);
  if (cell.tensor.defined() || promised.kind == Buffer::Kind::kResult) return cell.tensor;
  const Layout layout = evaluate_layout(promised.type, *symbols_);
  const c10::ScalarType dtype = to_scalar_type(promised.type.dtype);
  if (promised.kind == Buffer::Kind::kAlias) {
    const at::Tensor& base = tensor(promised.base);
    const int64_t offset = base.storage_offset() + evaluate(promised.offset, *symbols_);
    return cell.tensor = view_memory(base, offset, layout, dtype);
  }
  STITCH_CHECK(promised.kind == Buffer::Kind::kSlab,
               "buffer " << id << " is not set when a library call uses it");
  const auto* slab = static_cast<const char*>(slab_.storage().data());
  const int64_t offset_bytes = static_cast<const char*>(cell.address) - slab;
  return cell.tensor = place_in_memory(slab_, offset_bytes, layout, dtype);
}

void TorchFrame::copy(BufferId from, BufferId to) {
  if (buffer(to).kind != Buffer::Kind::kArgument) return fill_made(tensor(to), tensor(from));
  at::AutoDispatchBelowADInplaceOrView guard;
  tensor(to).copy_(tensor(from));
  write_back(to);
}

void TorchFrame::call(const CallStep& step) {
  const CallRow& row = graph_.call(step);
  const auto operands = map_to_vector(step.inputs, [&](BufferId input) { return tensor(input); });
  CallValues values{operands, *symbols_, objects_, {}};
  const OperatorCall* op = std::get_if<OperatorCall>(&row.call);
  const bool is_one = step.outputs.size() == 1 && step.outputs[0].valid();
  if (op && op->out_variant && graph_.device.is_cpu() && is_one &&
      buffer(step.outputs[0]).type.dtype != DType::kOpaque) {
    allocate(step.outputs[0]);
    values.out = cells_[step.outputs[0].value()].tensor;
    run_call(row, values);
    return;
  }
  std::vector<at::Tensor> results = run_call(row, values);
  define_symbols(results, step.call);
  for (size_t i = 0; i < step.outputs.size() && i < results.size(); ++i)
    if (step.outputs[i].valid()) set_result(step.outputs[i], std::move(results[i]), step);
}

bool TorchFrame::is_in_slab(const at::Tensor& tensor) const {
  if (!tensor.defined() || !slab_.defined() || !tensor.has_storage()) return false;
  const auto* begin = static_cast<const char*>(slab_.storage().data());
  const auto* data = static_cast<const char*>(tensor.storage().data());
  return data >= begin && data < begin + slab_.storage().nbytes();
}

void TorchFrame::define_symbols(const std::vector<at::Tensor>& results, int64_t call) {
  const SymbolTable& table = graph_.program->symbols;
  bool is_defined = false;
  for (size_t i = 0; i < table.symbols.size(); ++i) {
    const Symbol& symbol = table.symbols[i];
    if (!is_late(symbol) || row_of(symbol) != call) continue;
    const at::Tensor& result = results.at(symbol.left.value());
    const int64_t dimension = symbol.right.value();
    (*defined_)[i] = dimension < 0 ? result.item().toLong() : result.size(dimension);
    is_defined = true;
  }
  if (is_defined) complete(table, *defined_);
}

void TorchFrame::set_result(BufferId id, at::Tensor result, const CallStep& step) {
  const Buffer& promised = buffer(id);
  // What outlives the call must not sit in memory that the next value overwrites.
  if (is_in_slab(result)) {
    at::AutoDispatchBelowADInplaceOrView guard;
    result = result.clone();
  }
  if (result.defined() && promised.type.dtype != DType::kOpaque) {
    std::optional<at::Tensor> tensor = conform(promised, result);
    if (!tensor)
      throw InternalError(graph_.call(step).name + " returned " + describe(result) +
                          ", the graph expects " + describe_promise(promised));
    result = *std::move(tensor);
  }
  cells_[id.value()] = Cell{std::move(result), nullptr};
}

void TorchFrame::parallel_for(int64_t count, int64_t grain,
                              const std::function<void(int64_t, int64_t)>& body) {
  at::parallel_for(0, count, grain, body);
}

}  // namespace stitch
