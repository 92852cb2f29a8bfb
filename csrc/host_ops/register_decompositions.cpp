// Aten ops taken apart in other ways than torch does: see torch_stitch/decompositions.py.
#include <ATen/ATen.h>

#include "host_ops/host_ops.h"

namespace stitch {
namespace {

using at::Tensor;
using OptionalTensor = std::optional<Tensor>;
using Dtype = std::optional<at::ScalarType>;

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
  Tensor grad = reduction == at::Reduction::Mean ? grad_output / total_weight : grad_output;
  if (x.dim() > grad.dim() && grad.dim() > 0) grad = grad.unsqueeze(dim);
  if (weight) grad = grad * weight->reshape(per_class);
  const Tensor wanted = target.reshape_symint(per_target);
  const Tensor classes = at::arange(x.sym_size(dim), target.options()).reshape(per_class);
  return at::where(classes.eq(wanted).logical_and(wanted.ne(ignored)), -grad, 0);
}

// As one store by an index; torch 2.11's form copies into memory that it makes, which no graph may.
// Of a value without elements a call, which has its own rules for what it may index.
Tensor put_filled(const Tensor& x, int64_t dim, const Tensor& index, const Tensor& value) {
  if (TORCH_GUARD_OR_FALSE(x.sym_numel().sym_eq(0))) return {};
  if (x.dim() == 0) return put_filled(x.reshape({1}), 0, index, value).reshape({});
  c10::List<OptionalTensor> places;
  for (int64_t d = at::maybe_wrap_dim(dim, x.dim()); d > 0; --d) places.push_back(std::nullopt);
  places.push_back(index);
  return at::index_put(x, places, value.to(x.scalar_type()));
}

Tensor index_fill(const Tensor& x, int64_t dim, const Tensor& index, const at::Scalar& value) {
  return put_filled(x, dim, index, at::scalar_tensor(value, x.options()));
}

// Torch's asks what sizes and counts are, and keeps a permuted layout.
Tensor repeat(const Tensor& x, c10::SymIntArrayRef counts) {
  c10::SymDimVector apart, wide, sizes;
  const auto added = std::ssize(counts) - x.dim();
  for (int64_t d = 0; d < added + x.dim(); ++d) {
    const c10::SymInt size = d < added ? c10::SymInt(1) : x.sym_size(d - added);
    apart.insert(apart.end(), {1, size});
    wide.insert(wide.end(), {counts[d], size});
    sizes.push_back(counts[d] * size);
  }
  const Tensor repeated = x.reshape_symint(apart).expand_symint(wide);
  return repeated.clone(at::MemoryFormat::Contiguous).view_symint(sizes);
}

// Rows beyond these are calls: results are undefined.  Measured on a CPU with AVX-512, 2026-11, of
// eager's time: sums and products take 0.2 to 0.6 where rows lie across memory, 0.3 to 1.0 along it
// (1.5 where vectors of rows are no power of two), logarithms 0.4 to 0.7, searches 0.05 to 0.5.
constexpr int64_t kLongestSum = 16, kLongestLogSum = 32, kMostWrittenOut = 16, kMostSearched = 512;

// Nothing where it is larger than `most` or not static.
std::optional<int64_t> short_size(const Tensor& x, int64_t dim, int64_t most) {
  const auto size = x.dim() == 0 ? 1 : x.sym_size(dim).maybe_as_int();
  return size && *size <= most ? size : std::nullopt;
}

// In eager's order and precision, from 0 or 1 on.
template <bool kIsSum>
Tensor accumulate(const Tensor& x, int64_t dim, Dtype dtype) {
  const bool is_whole = at::isIntegralType(x.scalar_type(), /*includeBool=*/true);
  const at::ScalarType type = dtype.value_or(is_whole ? at::kLong : x.scalar_type());
  const bool is_known = at::isFloatingType(type) || at::isIntegralType(type, false);
  const auto count = short_size(x, dim, kLongestSum);
  if (!count || !is_known || at::isBarebonesUnsignedType(type)) return {};
  const Tensor given = x.to(type);
  if (x.dim() == 0 || *count == 0) return given.clone(at::MemoryFormat::Contiguous);
  const auto inner = x.sym_sizes().slice(at::maybe_wrap_dim(dim, x.dim()) + 1);
  const auto is_one = [](const c10::SymInt& size) { return size.maybe_as_int() == 1; };
  if (std::ranges::all_of(inner, is_one) && (*count & (*count - 1)) != 0) return {};
  const auto wide = at::isReducedFloatingType(type) ? at::kFloat : at::kDouble;
  const Tensor terms = at::isFloatingType(type) ? given.to(wide) : given;
  std::vector<Tensor> states;
  Tensor state = at::scalar_tensor(kIsSum ? 0 : 1, terms.options());
  for (int64_t i = 0; i < *count; ++i) {
    const Tensor term = terms.narrow(dim, i, 1);
    states.push_back(state = kIsSum ? state + term : state * term);
  }
  return at::cat(states, dim).to(type).contiguous();
}

// Of each part that a row begins with for itself: beside the largest of all, small ones are lost.
Tensor logcumsumexp(const Tensor& x, int64_t dim) {
  const auto count = short_size(x, dim, kLongestLogSum);
  if (!count || !at::isFloatingType(x.scalar_type())) return {};
  if (x.dim() == 0 || *count == 0) return x.clone(at::MemoryFormat::Contiguous);
  const int64_t axis = at::maybe_wrap_dim(dim, x.dim());
  std::vector<int64_t> sizes(x.dim() - axis + 1, 1);
  sizes[0] = sizes[1] = *count;
  const Tensor line = at::arange(*count, x.options().dtype(at::kLong));
  const Tensor wide = at::isReducedFloatingType(x.scalar_type()) ? x.to(at::kFloat) : x;
  const Tensor is_part = line.le(line.unsqueeze(1)).reshape(sizes);
  const Tensor parts = at::where(is_part, wide.unsqueeze(axis), -INFINITY);
  return at::logsumexp(parts, axis + 1).to(x.scalar_type()).contiguous();
}

// The number of boundaries before each value, all of which a NaN comes after.
Tensor search(const Tensor& boundaries, const Tensor& values, bool is_32_bits, bool right) {
  const int64_t dims = boundaries.dim();
  const auto count = dims ? short_size(boundaries, -1, kMostSearched) : std::nullopt;
  const at::ScalarType common = at::result_type(boundaries, values);
  if (!count || (dims > 1 && dims != values.dim()) || at::isComplexType(common)) return {};
  const Tensor sorted = boundaries.to(common), x = values.to(common);
  const auto is_before = [&](const Tensor& boundary, const Tensor& value) {
    return (right ? boundary.gt(value) : boundary.ge(value)).logical_not();
  };
  Tensor before;
  if (dims > 1 || *count > kMostWrittenOut || *count == 0) {
    const Tensor rows = dims > 1 ? sorted.unsqueeze(-2) : sorted;
    before = is_before(rows, x.unsqueeze(-1)).sum(-1, false, at::kInt);
  } else {
    before = is_before(sorted.select(0, 0), x).to(at::kInt);
    for (int64_t i = 1; i < *count; ++i) before = before + is_before(sorted.select(0, i), x);
  }
  return before.to(is_32_bits ? at::kInt : at::kLong).contiguous();
}

Tensor searchsorted(const Tensor& sorted, const Tensor& x, bool is_32_bits, bool right,
                    std::optional<c10::string_view> side, const OptionalTensor& sorter) {
  const bool is_plain = !sorter && (!side || *side == "right" || (*side == "left" && !right));
  return is_plain ? search(sorted, x, is_32_bits, right || side == "right") : Tensor();
}

Tensor bucketize(const Tensor& x, const Tensor& sorted, bool is_32_bits, bool right) {
  return sorted.dim() == 1 ? search(sorted, x, is_32_bits, right) : Tensor();
}

// What fake quantisation makes, and which elements have a gradient.  Whole numbers, exact in f32;
// `most` is the largest that does not turn into the lowest, as NaN does.
using Quantised = std::tuple<Tensor, Tensor>;
Quantised fake_quantize(const Tensor& x, const Tensor& scale, const Tensor& zero, int64_t low,
                        int64_t high, double most) {
  if (x.scalar_type() == at::kDouble || low < -(1 << 22) || high > 1 << 22) return {};
  const Tensor placed = (x.to(at::kFloat) * scale.reciprocal()).round() + zero;
  const Tensor kept = at::where(placed.le(most), placed.clamp(low, high), low);
  return {((kept - zero) * scale).to(x.scalar_type()), placed.ge(low).logical_and(placed.le(high))};
}

Quantised fake_quantize_tensor(const Tensor& x, double scale, int64_t zero, int64_t low,
                               int64_t high) {
  const auto options = x.options().dtype(at::kFloat);
  return fake_quantize(x, at::scalar_tensor(scale, options), at::scalar_tensor(zero, options), low,
                       high, INFINITY);
}

// Through integers of 64 bits; a zero point that is a float is added before rounding.
Quantised fake_quantize_channels(const Tensor& x, const Tensor& scale, const Tensor& zero,
                                 int64_t axis, int64_t low, int64_t high) {
  if (zero.scalar_type() != at::kInt) return {};
  std::vector<int64_t> sizes(x.dim() - at::maybe_wrap_dim(axis, x.dim()), 1);
  sizes[0] = -1;
  return fake_quantize(x, scale.reshape(sizes), zero.reshape(sizes), low, high, 0x1.fffffep62);
}

// Windows of few places as shifted parts of the image, added in eager's order.  0.1 to 0.2 of
// eager's time where channels come first, up to 5 times where they come last [M, 2026-11].
Tensor avg_pool2d(const Tensor& x, at::IntArrayRef kernel, at::IntArrayRef stride,
                  at::IntArrayRef padding, bool ceil_mode, bool counts_padding,
                  std::optional<int64_t> divisor) {
  const auto of = [](at::IntArrayRef pair, int64_t d) { return pair[pair.size() == 1 ? 0 : d]; };
  const int64_t places = of(kernel, 0) * of(kernel, 1);
  const int64_t rows = of(padding, 0), columns = of(padding, 1);
  const bool pads = rows > 0 || columns > 0;
  const bool is_plain = at::isFloatingType(x.scalar_type()) && x.is_contiguous() && !ceil_mode &&
                        places <= kMostWrittenOut && (!pads || counts_padding || divisor);
  if (!is_plain || (x.dim() == 4 && x.is_contiguous(at::MemoryFormat::ChannelsLast))) return {};
  Tensor wide = at::isReducedFloatingType(x.scalar_type()) ? x.to(at::kFloat) : x;
  if (pads) wide = at::constant_pad_nd(wide, {columns, columns, rows, rows});
  Tensor sum;
  for (int64_t place = 0; place < places; ++place) {
    Tensor part = wide;
    for (int64_t d = 0; d < 2; ++d) {
      const int64_t at = d == 0 ? place / of(kernel, 1) : place % of(kernel, 1);
      const int64_t step = stride.empty() ? of(kernel, d) : of(stride, d);
      const c10::SymInt last_window = wide.sym_size(d - 2) - of(kernel, d);
      part = part.slice_symint(d - 2, at, last_window + at + 1, step);
    }
    sum = place == 0 ? part : sum + part;
  }
  return (sum / static_cast<double>(divisor.value_or(places))).to(x.scalar_type()).contiguous();
}

// Two parts, as eager joins them; torch's form looks elements up, 2.4 times as long [M, 2026-11].
Tensor roll(const Tensor& x, c10::SymIntArrayRef shifts, at::IntArrayRef dims) {
  if (dims.empty() && shifts.size() == 1)
    return roll(x.flatten(), shifts, {0}).view_symint(x.sym_sizes());
  if (x.sym_numel() == 0) return x.clone();
  if (dims.size() != shifts.size()) return {};
  Tensor rolled = x;
  for (size_t i = 0; i < dims.size(); ++i) {
    const c10::SymInt size = x.sym_size(dims[i]);
    const bool is_short = shifts[i] > -size && shifts[i] < size;
    const c10::SymInt shift = is_short ? shifts[i] : shifts[i] % size;
    const c10::SymInt start = shift > 0 ? size - shift : -shift;
    rolled = at::cat({rolled.slice_symint(dims[i], start), rolled.slice_symint(dims[i], 0, start)},
                     dims[i]);
  }
  return rolled;
}

// Filters of one channel each, but for 3x3 inside the image: oneDNN's gradients take 1.1 to 5.6
// times as long as sums over windows, and 1 KB beside each weight where channels lie last [M,
// AVX-512, 2026-11].
constexpr int64_t kFewestChannels = 16;  // that fill a vector

bool pays_windows(const Tensor& grad, const Tensor& x, const Tensor& weight, int64_t groups) {
  if (x.dim() != 4 || x.scalar_type() != at::kFloat || groups < kFewestChannels) return false;
  bool is_long = false, is_known = weight.sym_size(0) == groups && weight.sym_size(1) == 1;
  for (int64_t d = 2; d < 4; ++d) {
    const auto image = x.sym_size(d).maybe_as_int(), rows = weight.sym_size(d).maybe_as_int();
    is_known = is_known && image && rows && grad.sym_size(d).maybe_as_int();
    is_long = is_long || (is_known && *rows > std::min<int64_t>(*image, 3));
  }
  return is_known && is_long;
}

// [channels, rows, columns].
Tensor sum_windows(const Tensor& grad, const Tensor& x, const Tensor& weight,
                   at::IntArrayRef stride, at::IntArrayRef padding, at::IntArrayRef dilation) {
  const auto places = [&](int64_t d) {  // of the padded image, by weight and by place of `grad`
    const auto line = [&](const Tensor& of, int64_t step) {
      return at::arange(0, of.sym_size(d).expect_int() * step, step, x.options().dtype(at::kLong));
    };
    return line(weight, dilation[d - 2]).unsqueeze(1) + line(grad, stride[d - 2]);
  };
  const Tensor image = at::constant_pad_nd(x.permute({0, 2, 3, 1}),
                                           {0, 0, padding[1], padding[1], padding[0], padding[0]});
  const Tensor windows =
      at::index(image, {std::nullopt, places(2).unsqueeze(1).unsqueeze(3), places(3).unsqueeze(1)});
  const Tensor grads = grad.permute({0, 2, 3, 1}).unsqueeze(1).unsqueeze(1);
  return (windows * grads).sum({0, 3, 4}).permute({2, 0, 1}).contiguous();
}

using Gradients = std::tuple<Tensor, Tensor, Tensor>;

// Filters that meet each place of the image once have gradients that are products with patches.  Of
// 1x1 filters over so few places the image's takes 0.05 to 0.9 of the time in which eager computes
// it, from one image at a time; where larger filters have more elements than the image, both take
// 0.1 to 0.95 of oneDNN's, which lays the filters out anew [M, 2026-11].
constexpr int64_t kFewPlaces = 16;

std::array<bool, 2> pays_patches(const Tensor& x, const Tensor& weight, at::IntArrayRef stride) {
  const auto height = x.sym_size(2).maybe_as_int(), width = x.sym_size(3).maybe_as_int();
  if (x.scalar_type() != at::kFloat || !height || !width || *height % stride[0] != 0 ||
      *width % stride[1] != 0 || weight.suggest_memory_format() != at::MemoryFormat::Contiguous ||
      weight.sym_size(2) != stride[0] || weight.sym_size(3) != stride[1])
    return {false, false};
  const int64_t places = *height * *width;
  if (stride.equals({1, 1})) {
    const bool is_first = x.suggest_memory_format() == at::MemoryFormat::Contiguous;
    return {is_first && places > 1 && places <= kFewPlaces, false};
  }
  const auto filters = weight.sym_numel().maybe_as_int(), image = x.sym_numel().maybe_as_int();
  const bool is_large = filters && image && *filters > *image;
  return {is_large, is_large};
}

void multiply_patches(const Tensor& grad, const Tensor& x, const Tensor& weight,
                      std::array<bool, 2> wanted, Gradients& made) {
  const at::MemoryFormat format = x.suggest_memory_format();
  const auto size = [](const Tensor& of, int64_t d) { return of.sym_size(d); };
  const Tensor rows = grad.permute({0, 2, 3, 1}).flatten(0, 2);
  if (wanted[0]) {
    const Tensor patches = rows.mm(weight.flatten(1))
                               .reshape_symint({size(x, 0), size(grad, 2), size(grad, 3),
                                                size(x, 1), size(weight, 2), size(weight, 3)});
    const Tensor image = patches.permute({0, 3, 1, 4, 2, 5}).reshape_symint(x.sym_sizes());
    std::get<0>(made) = image.contiguous(format);
  }
  if (wanted[1]) {
    const Tensor patches = x.reshape_symint(
        {size(x, 0), size(x, 1), size(grad, 2), size(weight, 2), size(grad, 3), size(weight, 3)});
    const Tensor columns = patches.permute({0, 2, 4, 1, 3, 5}).flatten(0, 2).flatten(1);
    std::get<1>(made) = rows.t().mm(columns).reshape_symint(weight.sym_sizes()).contiguous(format);
  }
}

Gradients convolution_backward(const Tensor& grad, const Tensor& x, const Tensor& weight,
                               at::OptionalIntArrayRef bias, at::IntArrayRef stride,
                               at::IntArrayRef padding, at::IntArrayRef dilation, bool transposed,
                               at::IntArrayRef added, int64_t groups, std::array<bool, 3> wanted) {
  const bool is_plain = x.dim() == 4 && !transposed && stride.size() == 2 && padding.size() == 2 &&
                        dilation.size() == 2;
  const auto by_call = [&](bool image, bool filters, bool sums) {
    return image || filters || sums
               ? at::convolution_backward(grad, x, weight, bias, stride, padding, dilation,
                                          transposed, added, groups, {image, filters, sums})
               : Gradients();
  };
  if (wanted[1] && is_plain && pays_windows(grad, x, weight, groups)) {
    Gradients made = by_call(wanted[0], false, false);
    const Tensor sums = sum_windows(grad, x, weight, stride, padding, dilation);
    const bool is_first = x.suggest_memory_format() == at::MemoryFormat::Contiguous;  // eager's
    std::get<1>(made) = is_first ? sums.unsqueeze(1) : sums.unsqueeze(3).permute({0, 3, 1, 2});
    if (wanted[2]) std::get<2>(made) = grad.sum({0, 2, 3});
    return made;
  }
  if (!is_plain || groups != 1 || !padding.equals({0, 0}) || !dilation.equals({1, 1})) return {};
  std::array<bool, 2> pays = pays_patches(x, weight, stride);
  pays = {pays[0] && wanted[0], pays[1] && wanted[1]};
  if (!pays[0] && !pays[1]) return {};
  Gradients made = by_call(wanted[0] && !pays[0], wanted[1] && !pays[1], wanted[2] && !pays[1]);
  multiply_patches(grad, x, weight, pays, made);
  if (pays[1] && wanted[2]) std::get<2>(made) = grad.sum({0, 2, 3});
  return made;
}

}  // namespace

TORCH_LIBRARY_FRAGMENT(torch_stitch, library) {
  define_op(library, "native_group_norm", "", &native_group_norm);
  define_op(library, "index_fill", "int_Scalar", &index_fill);
  define_op(library, "index_fill", "int_Tensor", &put_filled);
  define_op(library, "repeat", "", &repeat);
  define_op(library, "nll_loss_backward", "", &nll_loss_backward);
  define_op(library, "nll_loss2d_backward", "", &nll_loss_backward);
  define_op(library, "cumsum", "", &accumulate<true>);
  define_op(library, "cumprod", "", &accumulate<false>);
  define_op(library, "logcumsumexp", "", &logcumsumexp);
  define_op(library, "searchsorted", "Tensor", &searchsorted);
  define_op(library, "bucketize", "Tensor", &bucketize);
  define_op(library, "avg_pool2d", "", &avg_pool2d);
  define_op(library, "roll", "", &roll);
  define_op(library, "convolution_backward", "", &convolution_backward);
  define_op(library, "fake_quantize_per_tensor_affine_cachemask", "", &fake_quantize_tensor);
  define_op(library, "fake_quantize_per_channel_affine_cachemask", "", &fake_quantize_channels);
}

}  // namespace stitch
