// fp32 matrix products by oneDNN where it is the faster library.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/stack.h>

namespace stitch {

// Computes mm, bmm, addmm or baddbmm of `arguments` (the operator's own, in order) into `out`, or
// answers false and leaves it: the operator then runs as it is.
//
// Torch multiplies fp32 on x86 by MKL, whose kernels for other makers' CPUs stop at AVX2; oneDNN,
// which torch brings too, uses AVX-512 there: 178 GFLOP/s a core of a Zen 5 EPYC against 88 (torch
// 2.13).  It adds the terms of a sum one after the other where MKL adds blocks of them: sums are
// cut so that errors stay within 1.8 times MKL's.
bool multiply_by_onednn(const torch::jit::Stack& arguments, const at::Tensor& out);

}  // namespace stitch
