// Random numbers as a pure function of a seed, and aten's random ops in terms of it.
//
// torch_stitch::random(seed, stream, size, coarse) is what kernels compute
// (device/stitch/random.cuh); here is the same arithmetic by the dispatcher, for what runs without
// kernels: the same bits.  The others are decompositions of aten's ops.  Each draws a seed of its
// own; share_seed of backend.py makes one draw of all that a graph has, whose words are arguments
// of a GPU's kernels, unless the graph is captured: no launch draws them.
#include <ATen/ATen.h>

#include "base/lists.h"
#include "host_ops/host_ops.h"

namespace stitch {
namespace {

using at::Tensor;
using OptionalGenerator = std::optional<at::Generator>;

// Words are in i64; the products of two wrap there, which leaves their 64 bits as they are.
Tensor low_word(const Tensor& x) { return x.bitwise_and(0xffffffff); }
Tensor high_word(const Tensor& x) { return low_word(x.bitwise_right_shift(32)); }

Tensor random(const Tensor& seed, int64_t stream, at::IntArrayRef size, bool coarse) {
  const Tensor index = at::arange(c10::multiply_integers(size), seed.options());
  const Tensor block = index.bitwise_right_shift(coarse ? 3 : 2), from = seed[1] + stream;
  Tensor a = low_word(block), b = high_word(block), c = low_word(from), d = high_word(from);
  Tensor key_low = low_word(seed[0]), key_high = high_word(seed[0]);
  for (int round = 0; round < 10; ++round) {
    const Tensor first = a * 0xD2511F53, second = c * 0xCD9E8D57;
    a = high_word(second).bitwise_xor(b).bitwise_xor(key_low);
    b = low_word(second);
    c = high_word(first).bitwise_xor(d).bitwise_xor(key_high);
    d = low_word(first);
    key_low = low_word(key_low + 0x9E3779B9);
    key_high = low_word(key_high + 0xBB67AE85);
  }
  const auto choose = [&](int64_t bit, const Tensor& set, const Tensor& unset) {
    return at::where(index.bitwise_and(bit).to(at::kBool), set, unset);
  };
  const int64_t half = coarse ? 2 : 1;
  Tensor word = choose(2 * half, choose(half, d, c), choose(half, b, a));
  if (coarse) {
    const Tensor upper = word.bitwise_and(0xffff0000), lower = word.bitwise_left_shift(16);
    const Tensor shared = low_word(low_word(block) * 0x9E3779B9 + seed[0]).bitwise_right_shift(16);
    word = choose(1, upper, low_word(lower)).bitwise_or(shared);
  }
  return (word.bitwise_right_shift(8).to(at::kFloat) * 0x1p-24).reshape(size);
}

Tensor random_meta(const Tensor& seed, int64_t, c10::SymIntArrayRef size, bool) {
  return at::empty_symint(size, seed.options().dtype(at::kFloat));
}

Tensor draw_words(at::Device device, int64_t count) {
  return at::randint(INT64_MIN, INT64_MAX, {count}, at::device(device).dtype(at::kLong));
}
Tensor draw_seed(const Tensor& like) { return draw_words(like.device(), 2); }

// One number per element, in the order in which `like` lies in memory: its strides, and lanes of a
// vector that are neighbours of one stream.
Tensor draw(const Tensor& seed, int64_t stream, const Tensor& like, bool coarse = false) {
  static const auto op = c10::Dispatcher::singleton()
                             .findSchemaOrThrow("torch_stitch::random", "")
                             .typed<Tensor(const Tensor&, int64_t, c10::SymIntArrayRef, bool)>();
  if (like.is_contiguous()) return op.call(seed, stream, like.sym_sizes(), coarse);
  const c10::SymIntArrayRef strides = like.sym_strides();
  const std::vector<int64_t> dims = count_to<int64_t>(like.dim());
  std::vector<int64_t> order = dims;
  std::ranges::stable_sort(order, [&](int64_t a, int64_t b) { return strides[a] > strides[b]; });
  const auto size = map_to_vector(order, [&](int64_t d) { return like.sym_size(d); });
  return op.call(seed, stream, size, coarse).movedim(dims, order);
}

// To be compared with p.  Where that is rare, neighbours would be below it together too often.
Tensor draw_for(double p, const Tensor& like) {
  return draw(draw_seed(like), 0, like, std::min(p, 1 - p) >= 0x1p-8);
}

// 48 bits for f64, 24 else; takes streams `stream` and `stream` + 1.
Tensor draw_wide(const Tensor& seed, int64_t stream, const Tensor& like) {
  const Tensor numbers = draw(seed, stream, like);
  if (like.scalar_type() != at::kDouble) return numbers;
  return numbers.to(at::kDouble) + draw(seed, stream + 1, like).to(at::kDouble) * 0x1p-24;
}

// In the dtype of `like`, below 1 there too: eager fills a significand, it does not round.
Tensor uniforms(const Tensor& like) {
  const Tensor numbers = draw_wide(draw_seed(like), 0, like);
  const double steps = like.scalar_type() == at::kHalf       ? 0x1p11
                       : like.scalar_type() == at::kBFloat16 ? 0x1p8
                                                             : 0;
  return steps == 0 ? numbers : ((numbers * steps).floor() * (1 / steps)).to(like.scalar_type());
}

// Box and Muller's, from numbers in (0, 1].
Tensor normals(const Tensor& like) {
  const Tensor seed = draw_seed(like);
  const Tensor radius = ((draw_wide(seed, 0, like).neg() + 1).log() * -2).sqrt();
  return radius * (draw_wide(seed, 2, like) * (2 * M_PI)).cos();
}

std::tuple<Tensor, Tensor> native_dropout(const Tensor& x, double p, std::optional<bool> train) {
  if (!train.value_or(true) || p == 0) return {x.clone(), at::ones_like(x, at::kBool)};
  const Tensor mask = draw_for(p, at::empty_like(x)).ge(p);
  return {x * mask * (p == 1 ? 0. : 1 / (1 - p)), mask};
}

Tensor bernoulli_p(const Tensor& x, double p, const OptionalGenerator&) {
  return draw_for(p, at::empty_like(x)).lt(p).to(x.scalar_type());
}
Tensor bernoulli_of(const Tensor& x, const Tensor& p, const OptionalGenerator&) {
  const Tensor like = at::empty_like(x);
  return draw(draw_seed(like), 0, like).lt(p).to(x.scalar_type());
}
Tensor bernoulli(const Tensor& x, const OptionalGenerator& generator) {
  return bernoulli_of(x, x, generator);
}
Tensor uniform(const Tensor& x, double from, double to, const OptionalGenerator&) {
  return uniforms(at::empty_like(x)) * (to - from) + from;
}
Tensor normal_functional(const Tensor& x, double mean, double std, const OptionalGenerator&) {
  return (normals(at::empty_like(x)) * std + mean).to(x.scalar_type());
}
// Never 0, by which samplers divide.
Tensor exponential(const Tensor& x, double rate, const OptionalGenerator&) {
  const Tensor like = at::empty_like(x);
  const Tensor waits = -(draw_wide(draw_seed(like), 0, like).neg() + 1).log();
  return (waits.clamp_min(0x1p-24) / rate).to(x.scalar_type());
}

using Dtype = std::optional<at::ScalarType>;
using MaybeLayout = std::optional<at::Layout>;
using Device = std::optional<at::Device>;
using Pinned = std::optional<bool>;
using Format = std::optional<at::MemoryFormat>;

template <Tensor (*kDraw)(const Tensor&)>
Tensor of_size(c10::SymIntArrayRef size, Dtype dtype, MaybeLayout layout, Device device,
               Pinned pinned) {
  const Tensor like = at::empty_symint(size, dtype, layout, device, pinned, std::nullopt);
  return kDraw(like).to(like.scalar_type());
}
template <Tensor (*kDraw)(const Tensor&)>
Tensor as_like(const Tensor& x, Dtype dtype, MaybeLayout layout, Device device, Pinned pinned,
               Format format) {
  const Tensor like = at::empty_like(x, dtype, layout, device, pinned, format);
  return kDraw(like).to(like.scalar_type());
}

}  // namespace

int64_t draw_word(const at::Device& device) {
  if (device.is_cpu()) return *draw_words(device, 1).const_data_ptr<int64_t>();  // as a CPU does
  at::Generator generator = at::globalContext().defaultGenerator(device);
  const std::lock_guard lock(generator.mutex());
  const uint64_t offset = generator.get_offset();
  generator.set_offset(offset + 4);
  // SplitMix64 (Steele, Lea and Flood, OOPSLA 2014).
  uint64_t word = generator.current_seed() + (offset + 1) * 0x9E3779B97F4A7C15;
  word = (word ^ word >> 30) * 0xBF58476D1CE4E5B9;
  word = (word ^ word >> 27) * 0x94D049BB133111EB;
  return static_cast<int64_t>(word ^ word >> 31);
}

TORCH_LIBRARY_FRAGMENT(torch_stitch, library) {
  library.def("random(Tensor seed, int stream, SymInt[] size, bool coarse=False) -> Tensor");
  library.impl("random", c10::DispatchKey::CompositeExplicitAutograd, &random);
  library.impl("random", c10::DispatchKey::Meta, &random_meta);
  define_op(library, "native_dropout", "", &native_dropout);
  define_op(library, "bernoulli", "", &bernoulli);
  define_op(library, "bernoulli", "p", &bernoulli_p);
  define_op(library, "bernoulli", "Tensor", &bernoulli_of);
  define_op(library, "uniform", "", &uniform);
  define_op(library, "normal_functional", "", &normal_functional);
  define_op(library, "exponential", "", &exponential);
  define_op(library, "rand", "", &of_size<uniforms>);
  define_op(library, "rand_like", "", &as_like<uniforms>);
  define_op(library, "randn", "", &of_size<normals>);
  define_op(library, "randn_like", "", &as_like<normals>);
}

}  // namespace stitch
