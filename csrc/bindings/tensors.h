// Tensors made of memory: what TorchFrame needs beyond the public factory functions.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/util/SmallVector.h>

#include "ops/type.h"

namespace stitch {

// What memory of one tensor holds and where, evaluated.
struct Layout {
  c10::SmallVector<int64_t, 6> sizes, strides;
  c10::ScalarType dtype;
};

Layout evaluate_layout(const TensorType& type, const std::vector<int64_t>& symbols);

c10::ScalarType to_scalar_type(DType dtype);  // InternalError for kOpaque

// Uninitialised; on the CPU memory of the host pool.  It resizes, saves and shares like any tensor.
at::Tensor make_tensor(const Layout& layout, c10::Device device);
// The same in the memory of `held`; undefined where others than this reference hold that, or may
// see it (numpy, other processes), or it has another size.
at::Tensor make_tensor_over(const at::Tensor& held, const Layout& layout);
// Shares the storage of `memory`; `offset` in elements from the storage's start.
at::Tensor view_memory(const at::Tensor& memory, int64_t offset, const Layout& layout);
// A view in the storage of `whole`; place: sizes, strides, bytes from the whole's start to its own.
at::Tensor part_of(const at::Tensor& whole, c10::ScalarType dtype,
                   const std::vector<int64_t>& place);
// A part of `memory`, which it keeps alive, as a storage of its own: what counts from the start of
// a storage finds there what the tensor holds and nothing else.
at::Tensor place_in_memory(const at::Tensor& memory, int64_t offset_bytes, const Layout& layout);
// `made` is memory of ours, where all elements of a row may be one.
void fill_made(at::Tensor made, at::Tensor source);
// As make_tensor, at an aligned address, with the contents of `from`, of the same dtype.
inline at::Tensor copy_tensor(const at::Tensor& from, const Layout& layout) {
  at::Tensor to = make_tensor(layout, from.device());
  fill_made(to, from);
  return to;
}

// Those of the type, whose sizes the tensor has; of extents 1 and of tensors without elements they
// do not matter.
bool has_strides(const at::Tensor& tensor, const TensorType& type,
                 const std::vector<int64_t>& symbols);

}  // namespace stitch
