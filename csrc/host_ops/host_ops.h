// What the host's kernels answer directly, and how torch_stitch's ops, which are called through the
// dispatcher, are defined.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>
#include <torch/library.h>

namespace stitch {

// A decomposition in C++: an op of torch_stitch with the name and schema of the aten op that it
// takes apart.  Tracing goes through it to the ops that it calls.
template <class Function>
void define_op(torch::Library& library, std::string name, const std::string& overload,
               Function* function) {
  const auto aten =
      c10::Dispatcher::singleton().findSchemaOrThrow(("aten::" + name).c_str(), overload.c_str());
  library.def(aten.schema().cloneWithName("torch_stitch::" + name, overload));
  if (!overload.empty()) name += "." + overload;
  library.impl(name.c_str(), function);
}

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
