#include "bindings/tensors.h"

#include <ATen/EmptyTensor.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/ops/empty_strided.h>
#include <c10/core/CPUAllocator.h>
#include <c10/core/StorageImpl.h>

#include <array>

#include "base/error.h"
#include "runtime/pool.h"

namespace stitch {
namespace {

constexpr c10::DispatchKeySet kOnCpu(c10::DispatchKey::CPU);

// In the order of DType, all but kOpaque.
constexpr std::array<c10::ScalarType, 15> kScalarTypes = {
    c10::kBool,        c10::kByte,  c10::kUInt16,   c10::kUInt32, c10::kUInt64,
    c10::kChar,        c10::kShort, c10::kInt,      c10::kLong,   c10::kFloat8_e4m3fn,
    c10::kFloat8_e5m2, c10::kHalf,  c10::kBFloat16, c10::kFloat,  c10::kDouble};

// Torch's profiler counts the pool's blocks beside those of its own allocator.
void report(const PoolBlock* block, int64_t sign) {
  if (c10::memoryProfilingEnabled())
    c10::reportMemoryUsageToProfiler(block->data, sign * block->bytes, 0, 0, c10::kCPU);
}

void return_to_pool(void* block) {
  report(static_cast<PoolBlock*>(block), -1);
  host_pool().release(static_cast<PoolBlock*>(block));
}

at::DataPtr allocate_from_pool(int64_t bytes) {
  if (bytes == 0) return at::DataPtr(nullptr, c10::Device(c10::kCPU));
  PoolBlock* block = host_pool().allocate(bytes);
  report(block, 1);
  return at::DataPtr(block->data, block, &return_to_pool, c10::Device(c10::kCPU));
}

int64_t count_bytes(const Layout& layout) {
  return at::detail::computeStorageNbytes(layout.sizes, layout.strides,
                                          c10::elementSize(layout.dtype));
}

// Where it has an allocator, resize_ may move it.
c10::Storage make_storage(at::DataPtr data, int64_t bytes, c10::Allocator* allocator) {
  return c10::make_intrusive<c10::StorageImpl>(c10::StorageImpl::use_byte_size_t(), bytes,
                                               std::move(data), allocator, allocator != nullptr);
}

at::Tensor tensor_in(c10::Storage storage, c10::DispatchKeySet keys, const Layout& layout) {
  at::Tensor tensor = at::detail::make_tensor<c10::TensorImpl>(
      std::move(storage), keys, c10::scalarTypeToTypeMeta(layout.dtype));
  tensor.unsafeGetTensorImpl()->set_sizes_and_strides(layout.sizes, layout.strides);
  return tensor;
}

}  // namespace

Layout evaluate_layout(const TensorType& type, const std::vector<int64_t>& symbols) {
  Layout layout{{}, {}, to_scalar_type(type.dtype)};
  for (const Dim& extent : type.shape) layout.sizes.push_back(evaluate(extent, symbols));
  for (const Dim& stride : type.strides) layout.strides.push_back(evaluate(stride, symbols));
  return layout;
}

c10::ScalarType to_scalar_type(DType dtype) {
  STITCH_CHECK(dtype != DType::kOpaque, "an opaque value has no element type");
  return kScalarTypes[static_cast<size_t>(dtype)];
}

at::Tensor make_tensor(const Layout& layout, c10::Device device) {
  if (!device.is_cpu()) {
    at::AutoDispatchBelowADInplaceOrView guard;
    return at::empty_strided(layout.sizes, layout.strides,
                             at::TensorOptions().dtype(layout.dtype).device(device));
  }
  const int64_t bytes = count_bytes(layout);
  return tensor_in(make_storage(allocate_from_pool(bytes), bytes, c10::GetCPUAllocator()), kOnCpu,
                   layout);
}

at::Tensor make_tensor_over(const at::Tensor& held, const Layout& layout) {
  if (!held.defined() || held.use_count() != 1 || held.storage().use_count() != 1) return {};
  const c10::Storage& storage = held.storage();
  const c10::DeleterFnPtr owner = storage.data_ptr().get_deleter();
  const bool is_ours = owner == &return_to_pool || owner == c10::GetCPUAllocator()->raw_deleter();
  const auto bytes = static_cast<size_t>(count_bytes(layout));
  if (!is_ours || held.storage_offset() != 0 || storage.nbytes() != bytes) return {};
  return tensor_in(storage, kOnCpu, layout);
}

at::Tensor view_memory(const at::Tensor& memory, int64_t offset, const Layout& layout) {
  at::Tensor tensor = at::detail::make_tensor<c10::TensorImpl>(
      c10::TensorImpl::VIEW, c10::Storage(memory.storage()), memory.key_set(),
      c10::scalarTypeToTypeMeta(layout.dtype));
  tensor.unsafeGetTensorImpl()->set_storage_offset(offset);
  tensor.unsafeGetTensorImpl()->set_sizes_and_strides(layout.sizes, layout.strides);
  return tensor;
}

at::Tensor part_of(const at::Tensor& whole, c10::ScalarType dtype,
                   const std::vector<int64_t>& place) {
  const auto strides = place.begin() + std::ssize(place) / 2, end = place.end() - 1;
  const size_t begin = whole.storage_offset() * whole.itemsize() + *end;  // in bytes
  const Layout layout{{place.begin(), strides}, {strides, end}, dtype};
  return view_memory(whole, static_cast<int64_t>(begin / c10::elementSize(dtype)), layout);
}

at::Tensor place_in_memory(const at::Tensor& memory, int64_t offset_bytes, const Layout& layout) {
  auto* kept = new c10::Storage(memory.storage());
  at::DataPtr data(
      static_cast<char*>(kept->mutable_data()) + offset_bytes, kept,
      [](void* storage) { delete static_cast<c10::Storage*>(storage); }, memory.device());
  return tensor_in(make_storage(std::move(data), count_bytes(layout), /*allocator=*/nullptr),
                   memory.key_set(), layout);
}

void fill_made(at::Tensor made, at::Tensor source) {
  at::AutoDispatchBelowADInplaceOrView guard;
  for (int64_t d = 0; d < made.dim(); ++d) {
    if (made.stride(d) != 0 || made.size(d) == 0) continue;
    made = made.narrow(d, 0, 1);
    source = source.narrow(d, 0, 1);
  }
  made.copy_(source);
}

bool has_strides(const at::Tensor& tensor, const TensorType& type,
                 const std::vector<int64_t>& symbols) {
  if (tensor.numel() == 0) return true;
  const c10::IntArrayRef sizes = tensor.sizes(), strides = tensor.strides();
  for (size_t d = 0; d < sizes.size(); ++d)
    if (sizes[d] != 1 && strides[d] != evaluate(type.strides[d], symbols)) return false;
  return true;
}

}  // namespace stitch
