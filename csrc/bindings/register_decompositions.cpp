// Aten ops taken apart in other ways than torch does: see torch_stitch/decompositions.py.
#include <ATen/ATen.h>

#include "bindings/register_decompositions.h"

namespace stitch {
namespace {

using at::Tensor;
using OptionalTensor = std::optional<Tensor>;

// By channel, where they are given.
Tensor scale_and_shift(const Tensor& x, const OptionalTensor& weight, const OptionalTensor& bias) {
  std::vector<int64_t> per_channel(x.dim() - 1, 1);
  per_channel[0] = -1;
  const Tensor scaled = weight ? x * weight->reshape(per_channel) : x;
  return bias ? scaled + bias->reshape(per_channel) : scaled;
}

// Two-pass statistics; torch's CPU form folds them into scale and shift, which cancels.
std::tuple<Tensor, Tensor, Tensor> native_group_norm(const Tensor& x, const OptionalTensor& weight,
                                                     const OptionalTensor& bias, c10::SymInt batch,
                                                     c10::SymInt channels, c10::SymInt inner,
                                                     int64_t groups, double eps) {
  const Tensor grouped = x.reshape_symint({batch, groups, channels / groups, inner});
  const auto [var, mean] = at::var_mean(grouped, at::IntArrayRef{2, 3}, 0, /*keepdim=*/true);
  const Tensor rstd = (var + eps).rsqrt();
  const Tensor normal = ((grouped - mean) * rstd).reshape_symint(x.sym_sizes());
  return {scale_and_shift(normal, weight, bias), mean.reshape_symint({batch, groups}),
          rstd.reshape_symint({batch, groups})};
}

// By comparing with class numbers: no zeros to fill and scatter into.
Tensor nll_loss_backward(const Tensor& grad_output, const Tensor& x, const Tensor& target,
                         const OptionalTensor& weight, int64_t reduction, c10::SymInt ignored,
                         const Tensor& total_weight) {
  const int64_t dim = x.dim() > 1 ? 1 : 0;
  std::vector<int64_t> per_class(x.dim(), 1);
  std::vector<c10::SymInt> per_target = x.sym_sizes().vec();
  per_class[dim] = -1;
  per_target[dim] = 1;
  const bool is_mean = reduction == at::Reduction::Mean;
  Tensor grad = is_mean ? grad_output / total_weight : grad_output;
  if (x.dim() > grad.dim() && grad.dim() > 0) grad = grad.unsqueeze(dim);
  if (weight) grad = grad * weight->reshape(per_class);
  const Tensor wanted = target.reshape_symint(per_target);
  const Tensor classes = at::arange(x.sym_size(dim), target.options()).reshape(per_class);
  return at::where(classes.eq(wanted).logical_and(wanted.ne(ignored)), -grad, 0);
}

// As one store by an index; torch 2.11's form copies into memory that it makes, which no graph may.
// Eager checks no index of a value without elements.
Tensor put_filled(const Tensor& x, int64_t dim, const Tensor& index, const Tensor& value) {
  if (TORCH_GUARD_OR_FALSE(x.sym_numel().sym_eq(0))) return x.clone();
  if (x.dim() == 0) return put_filled(x.reshape({1}), 0, index, value).reshape({});
  c10::List<OptionalTensor> places;
  for (int64_t d = at::maybe_wrap_dim(dim, x.dim()); d > 0; --d) places.push_back(std::nullopt);
  places.push_back(index);
  return at::index_put(x, places, value.to(x.scalar_type()));
}

Tensor index_fill(const Tensor& x, int64_t dim, const Tensor& index, const at::Scalar& value) {
  return put_filled(x, dim, index, at::scalar_tensor(value, x.options()));
}

}  // namespace

TORCH_LIBRARY_FRAGMENT(torch_stitch, library) {
  library.def("scale_and_shift(Tensor x, Tensor? weight, Tensor? bias) -> Tensor");
  library.impl("scale_and_shift", &scale_and_shift);
  define_op(library, "native_group_norm", "", &native_group_norm);
  define_op(library, "index_fill", "int_Scalar", &index_fill);
  define_op(library, "index_fill", "int_Tensor", &put_filled);
  define_op(library, "nll_loss_backward", "", &nll_loss_backward);
  define_op(library, "nll_loss2d_backward", "", &nll_loss_backward);
}

}  // namespace stitch
