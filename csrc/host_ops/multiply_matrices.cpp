#include "host_ops/host_ops.h"

#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <ATen/native/CPUBlas.h>

#include <array>
#include <cstring>
#include <optional>
#include <set>
#include <vector>

#include "base/round_up.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace stitch {
namespace {

constexpr int64_t kTileRows = 128;
constexpr int64_t kTileColumns = 128;
// Of one sum before it is added to the result: errors are 1.2 times MKL's, with 512 terms 1.7.
constexpr int64_t kTileTerms = 256;
constexpr int64_t kFewestRows = 8;  // of either operand: MKL has kernels of its own for fewer
constexpr int64_t kLanes = 16;
// Torch keeps the kernels of tiles for ever: programs whose sizes always change go on with MKL.
constexpr size_t kMostShapes = 512;

// A matrix in memory, or a part of one; strides count elements.
struct Matrix {
  float* data;
  int64_t rows, columns, row_stride, column_stride;

  float* at(int64_t row, int64_t column) const {
    return data + row * row_stride + column * column_stride;
  }
};

Matrix take_rows(const Matrix& from, int64_t first, int64_t count) {
  return {from.at(first, 0), std::min(count, from.rows - first), from.columns, from.row_stride,
          from.column_stride};
}

Matrix take_columns(const Matrix& from, int64_t first, int64_t count) {
  return {from.at(0, first), from.rows, std::min(count, from.columns - first), from.row_stride,
          from.column_stride};
}

// Matrix `i` of a batch, or the only one.
Matrix read_matrix(const at::Tensor& tensor, int64_t i) {
  float* data = static_cast<float*>(const_cast<void*>(tensor.const_data_ptr()));
  if (tensor.dim() == 3) data += i * tensor.stride(0);
  return {data, tensor.size(-2), tensor.size(-1), tensor.stride(-2), tensor.stride(-1)};
}

#if defined(__x86_64__)
bool has_vectors() { return __builtin_cpu_supports("avx512f") && !__builtin_cpu_is("intel"); }

// Exchanges blocks of [kStep, kStep] beside the diagonal: steps of 8, 4, 2, 1 transpose.
template <int kStep>
__attribute__((target("avx512f"))) void exchange_blocks(__m512 (&rows)[kLanes]) {
  alignas(64) int upper[kLanes], lower[kLanes];  // lanes of the second row count from 16
  for (int lane = 0; lane < kLanes; ++lane) {
    const bool crosses = lane & kStep;
    upper[lane] = crosses ? kLanes + lane - kStep : lane;
    lower[lane] = crosses ? kLanes + lane : lane + kStep;
  }
  const __m512i to_upper = _mm512_load_si512(upper), to_lower = _mm512_load_si512(lower);
#pragma GCC unroll 16  // keeps the rows in registers
  for (int i = 0; i < kLanes; ++i) {
    if (i & kStep) continue;
    const __m512 first = rows[i], second = rows[i + kStep];
    rows[i] = _mm512_permutex2var_ps(first, to_upper, second);
    rows[i + kStep] = _mm512_permutex2var_ps(first, to_lower, second);
  }
}

// 16 columns of 16 elements become rows.
__attribute__((target("avx512f"))) void turn_block(const float* from, int64_t column_stride,
                                                   float* to, int64_t row_stride) {
  __m512 rows[kLanes];
#pragma GCC unroll 16
  for (int i = 0; i < kLanes; ++i) rows[i] = _mm512_loadu_ps(from + i * column_stride);
  exchange_blocks<8>(rows);
  exchange_blocks<4>(rows);
  exchange_blocks<2>(rows);
  exchange_blocks<1>(rows);
#pragma GCC unroll 16
  for (int i = 0; i < kLanes; ++i) _mm512_storeu_ps(to + i * row_stride, rows[i]);
}
#else
bool has_vectors() { return false; }
void turn_block(const float*, int64_t, float*, int64_t) {}
#endif

void copy(const Matrix& from, const Matrix& to) {
  for (int64_t row = 0; row < to.rows; ++row)
    if (from.column_stride == 1)
      std::memcpy(to.at(row, 0), from.at(row, 0), to.columns * sizeof(float));
    else
      for (int64_t column = 0; column < to.columns; ++column)
        *to.at(row, column) = *from.at(row, column);
}

// Columns that lie along memory become rows in `room`; rows stay where they are.
Matrix turn_to_rows(const Matrix& matrix, std::vector<float>& room) {
  if (matrix.column_stride == 1) return matrix;
  const int64_t stride = round_up(matrix.columns, kLanes);
  room.resize(std::max<size_t>(room.size(), matrix.rows * stride));
  const Matrix turned{room.data(), matrix.rows, matrix.columns, stride, 1};
  for (int64_t column = 0; column < matrix.columns; column += kLanes)
    for (int64_t row = 0; row < matrix.rows; row += kLanes) {
      const Matrix block = take_columns(take_rows(matrix, row, kLanes), column, kLanes);
      if (block.rows == kLanes && block.columns == kLanes)
        turn_block(block.data, block.column_stride, turned.at(row, column), stride);
      else
        copy(block, {turned.at(row, column), block.rows, block.columns, stride, 1});
    }
  return turned;
}

// out = added + a @ b, where `b` and `out` are a strip of columns.
void multiply_strip(const std::optional<Matrix>& added, const Matrix& a, const Matrix& b,
                    const Matrix& out) {
  thread_local std::vector<float> room_of_a, room_of_b;
  for (int64_t term = 0; term < b.rows; term += kTileTerms) {
    const Matrix panel = turn_to_rows(take_rows(b, term, kTileTerms), room_of_b);
    const Matrix terms = take_columns(a, term, kTileTerms);
    for (int64_t row = 0; row < a.rows; row += kTileRows) {
      const Matrix tile = turn_to_rows(take_rows(terms, row, kTileRows), room_of_a);
      const Matrix result = take_rows(out, row, kTileRows);
      if (term == 0 && added && added->data != out.data)
        copy(take_rows(*added, row, kTileRows), result);
      at::native::cpublas::brgemm(tile.rows, panel.columns, tile.columns, tile.row_stride,
                                  panel.row_stride, result.row_stride, term > 0 || added, tile.data,
                                  panel.data, result.data);
    }
  }
}

struct Product {
  at::Tensor added;  // undefined: nothing
  at::Tensor a, b;   // [batch.., rows, terms] and [batch.., terms, columns]
};

void multiply(const Product& product, const at::Tensor& out) {
  const at::Tensor added = product.added.defined() ? product.added.expand_as(out) : at::Tensor();
  const int64_t strips = divide_up(out.size(-1), kTileColumns);
  const int64_t batch = out.dim() == 3 ? out.size(0) : 1;
  const int64_t shares = divide_up(at::get_num_threads(), batch * strips);  // of the rows
  const int64_t rows = round_up(divide_up(out.size(-2), shares), kLanes);
  const int64_t parts = divide_up(out.size(-2), rows);
  at::parallel_for(0, batch * strips * parts, 1, [&](int64_t first, int64_t last) {
    for (int64_t i = first; i < last; ++i) {
      const int64_t matrix = i / (strips * parts), strip = i / parts % strips, part = i % parts;
      auto take = [&](const at::Tensor& tensor) {
        const Matrix all = take_rows(read_matrix(tensor, matrix), part * rows, rows);
        return take_columns(all, strip * kTileColumns, kTileColumns);
      };
      const Matrix b =
          take_columns(read_matrix(product.b, matrix), strip * kTileColumns, kTileColumns);
      multiply_strip(added.defined() ? std::optional(take(added)) : std::nullopt,
                     take_rows(read_matrix(product.a, matrix), part * rows, rows), b, take(out));
    }
  });
}

// When it is the faster way.

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

// Whether rows lie one behind the other in memory, and each along it.
bool has_rows(const at::Tensor& matrix) {
  return matrix.stride(-1) == 1 && matrix.stride(-2) >= matrix.size(-1);
}

bool is_worth_it(const Product& product, const at::Tensor& out) {
  if (!is_f32(product.a) || !is_f32(product.b) || !is_f32(out)) return false;
  if (product.added.defined() && !is_f32(product.added)) return false;
  if (std::min(out.size(-1), out.size(-2)) < kFewestRows || product.a.numel() == 0) return false;
  const auto has_lines = [](const at::Tensor& x) { return has_rows(x) || has_rows(x.mT()); };
  return has_rows(out) && has_lines(product.a) && has_lines(product.b);
}

bool is_known_shape(const Product& product, const at::Tensor& out) {
  thread_local std::set<std::array<int64_t, 6>> known;
  const std::array shape{out.size(-2),         out.size(-1),         product.a.size(-1),
                         product.a.stride(-2), product.b.stride(-2), out.stride(-2)};
  return known.contains(shape) || (known.size() < kMostShapes && known.insert(shape).second);
}

bool is_faster_library() {
  static const bool answer = at::hasMKL() && has_vectors();
  const at::Context& context = at::globalContext();
  return answer && context.userEnabledMkldnn() &&
         context.float32MatmulPrecision() == at::Float32MatmulPrecision::HIGHEST;
}

}  // namespace

bool multiply_matrices(const torch::jit::Stack& arguments, const at::Tensor& out) {
  if (!is_faster_library()) return false;
  const std::optional<Product> product = read_product(arguments);
  if (!product || !is_worth_it(*product, out) || !is_known_shape(*product, out)) return false;
  multiply(*product, out);
  return true;
}

}  // namespace stitch
