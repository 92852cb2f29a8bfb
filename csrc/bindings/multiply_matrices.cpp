#include "bindings/multiply_matrices.h"

#include <ATen/Context.h>
#include <ATen/Functions.h>

#include <algorithm>

namespace at::native {
// result = beta * result + alpha * a @ b, of 2 or 3 dimensions.  Exported by torch, which does not
// install the header; null where torch is built without oneDNN.
__attribute__((weak, visibility("default"))) void mkldnn_matmul(const Tensor& a, const Tensor& b,
                                                                const Tensor& result, float beta,
                                                                float alpha);
}  // namespace at::native

namespace stitch {
namespace {

// Below, finding the compiled kernel takes as long as is gained.
constexpr int64_t kFewestProducts = int64_t{1} << 21;
constexpr int64_t kFewestRows = 8;  // of either operand: MKL has kernels of its own for fewer
// Of one sum: beyond, the error passes twice MKL's (measured with 16 to 512 rows: 1.4 to 1.75 times
// at 256 to 1024 terms, 2.0 to 2.3 at 1152 to 2560).
constexpr int64_t kMostTerms = 1024;
constexpr int64_t kVectorLanes = 16;

bool is_faster_library() {
#if defined(__x86_64__)
  static const bool answer = at::native::mkldnn_matmul != nullptr && at::hasMKL() &&
                             !__builtin_cpu_is("intel") && __builtin_cpu_supports("avx512f");
  return answer;
#else
  return false;
#endif
}

struct Product {
  at::Tensor added;  // undefined: nothing
  at::Tensor a, b;   // [batch.., rows, terms] and [batch.., terms, columns]

  int64_t terms() const { return a.size(-1); }
};

bool is_one(const c10::IValue& scalar) {
  return (scalar.isInt() && scalar.toInt() == 1) || (scalar.isDouble() && scalar.toDouble() == 1);
}

std::optional<Product> read_product(const torch::jit::Stack& arguments) {
  if (arguments.size() == 2) return Product{{}, arguments[0].toTensor(), arguments[1].toTensor()};
  if (arguments.size() != 5 || !is_one(arguments[3]) || !is_one(arguments[4])) return std::nullopt;
  return Product{arguments[0].toTensor(), arguments[1].toTensor(), arguments[2].toTensor()};
}

bool is_f32(const at::Tensor& tensor) {
  return tensor.scalar_type() == at::kFloat && tensor.layout() == at::kStrided && tensor.is_cpu() &&
         !tensor.is_neg();
}

bool has_rows(const at::Tensor& matrix) {
  return matrix.stride(-1) == 1 && matrix.stride(-2) >= matrix.size(-1);
}

// Of a transposed second operand oneDNN reads only dense columns at its full rate.
bool has_dense_columns(const at::Tensor& matrix) {
  return matrix.stride(-2) == 1 && matrix.stride(-1) == matrix.size(-2);
}

bool is_worth_it(const Product& product, const at::Tensor& out) {
  if (!is_f32(product.a) || !is_f32(product.b) || !is_f32(out)) return false;
  if (!out.is_contiguous()) return false;
  if (product.added.defined() && !is_f32(product.added)) return false;
  if (out.numel() * product.terms() < kFewestProducts) return false;
  if (std::min(out.size(-1), out.size(-2)) < kFewestRows) return false;
  if (out.dim() == 3 && (product.a.stride(0) == 0 || product.b.stride(0) == 0)) return false;
  return has_rows(product.a) || has_rows(product.a.mT());
}

// visit(first term, count) for the pieces of the sum, all but the last whole vectors.
template <class Visit>
void for_each_piece(int64_t terms, Visit visit) {
  const int64_t pieces = (terms + kMostTerms - 1) / kMostTerms;
  const int64_t lanes = pieces * kVectorLanes;
  const int64_t length = (terms + lanes - 1) / lanes * kVectorLanes;
  for (int64_t at = 0; at < terms; at += length) visit(at, std::min(length, terms - at));
}

// `take_b` makes the piece of the second operand.
template <class TakeB>
void add_pieces(const at::Tensor& a, TakeB take_b, bool has_added, const at::Tensor& out) {
  float beta = has_added ? 1 : 0;
  for_each_piece(a.size(-1), [&](int64_t first, int64_t count) {
    at::native::mkldnn_matmul(a.narrow(-1, first, count), take_b(first, count), out, beta, 1);
    beta = 1;
  });
}

void multiply(const Product& product, const at::Tensor& out) {
  if (product.added.defined()) out.copy_(product.added.expand_as(out));
  auto take_b = [&](int64_t first, int64_t count) { return product.b.narrow(-2, first, count); };
  add_pieces(product.a, take_b, product.added.defined(), out);
}

// Pieces of a transposed second operand have columns that are not dense, pieces of a first operand
// may lie anyhow: the transposed product is computed and turned.
void multiply_turned(const Product& product, const at::Tensor& out) {
  const at::Tensor turned = at::empty({out.size(1), out.size(0)}, out.options());
  if (product.added.defined()) turned.copy_(product.added.expand_as(out).t());
  auto take_b = [&](int64_t first, int64_t count) {
    return product.a.narrow(1, first, count).contiguous().t();
  };
  add_pieces(product.b.t(), take_b, product.added.defined(), turned);
  out.copy_(turned.t());
}

}  // namespace

bool multiply_by_onednn(const torch::jit::Stack& arguments, const at::Tensor& out) {
  if (!is_faster_library() || !at::globalContext().userEnabledMkldnn()) return false;
  const std::optional<Product> product = read_product(arguments);
  if (!product || !is_worth_it(*product, out)) return false;
  if (has_rows(product->b) || (has_dense_columns(product->b) && product->terms() <= kMostTerms)) {
    multiply(*product, out);
    return true;
  }
  if (out.dim() != 2 || !has_dense_columns(product->b)) return false;
  multiply_turned(*product, out);
  return true;
}

}  // namespace stitch
