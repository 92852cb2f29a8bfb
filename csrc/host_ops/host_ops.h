// What the host's kernels answer directly; torch_stitch's ops are called through the dispatcher.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/stack.h>

namespace stitch {

// Computes mm, bmm, addmm or baddbmm of `arguments` (the operator's own, in order) into `out`, or
// answers false and leaves it: the operator then runs as it is.
//
// Torch multiplies fp32 on x86 by MKL, whose kernels for other makers' CPUs stop at AVX2.  oneDNN's
// kernel for one tile, which torch exports, takes 0.85 to 0.95 of MKL's time on a Zen 4 EPYC and
// 0.5 to 0.6 on a Zen 5 one, and needs 0.1 us a call where oneDNN's own product needs 45 us to find
// its kernel.  [128, 512] by 512 transposed columns of 512 terms: 4 strips of 128 columns, each
// with 2 panels of 256 terms, which are turned to rows first.
bool multiply_matrices(const torch::jit::Stack& arguments, const at::Tensor& out);

// 64 bits that the default generator of a device has not drawn before; nothing is launched.
int64_t draw_word(const at::Device& device);

}  // namespace stitch
