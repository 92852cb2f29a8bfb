// torch_stitch::segments: the positions of a list of rows, sorted by row.
//
// What adds to, or replaces, rows at indices becomes a reader of its segment by it: row r takes the
// positions order[offsets[r]] to order[offsets[r + 1]], which are ascending.  So sums have eager's
// order on a CPU, the last of several writes wins, and nothing depends on threads.
#include <ATen/ATen.h>
#include <torch/library.h>

#include <numeric>

namespace stitch {
namespace {

using at::Tensor;

struct Rows {
  int64_t size;
  std::optional<int64_t> ignored;  // an index whose positions are in no segment
  bool wraps;                      // negative indices count from the end

  static constexpr int64_t kIgnored = -1, kInvalid = -2;
  int64_t at(int64_t index) const {
    if (ignored && index == *ignored) return kIgnored;
    const int64_t row = wraps && index < 0 ? index + size : index;
    return row >= 0 && row < size ? row : kInvalid;
  }
};

// offsets[r + 1] becomes the number of positions of row r.  An invalid index ends it.
struct Counted {
  bool is_valid = true, is_sorted = true;
};
template <class Index>
Counted count_rows(const Index* index, int64_t count, const Rows& rows, int64_t* offsets) {
  Counted counted;
  int64_t before = 0;
  for (int64_t i = 0; i < count; ++i) {
    const int64_t row = rows.at(index[i]);
    if (row == Rows::kInvalid) return {false, false};
    counted.is_sorted &= row >= before;
    if (row == Rows::kIgnored) continue;
    before = row;
    ++offsets[row + 1];
  }
  return counted;
}

template <class Index>
void sort_positions(const Tensor& index, const Rows& rows, Tensor& order, Tensor& offsets) {
  const Index* given = index.const_data_ptr<Index>();
  int64_t *ends = offsets.data_ptr<int64_t>(), *sorted = order.data_ptr<int64_t>();
  const Counted counted = count_rows(given, index.numel(), rows, ends);
  if (!counted.is_valid) {
    offsets.zero_();
    ends[rows.size] = -1;
    return;
  }
  std::partial_sum(ends, ends + rows.size + 1, ends);
  if (counted.is_sorted) {
    std::iota(sorted, sorted + index.numel(), 0);
    return;
  }
  std::vector<int64_t> next(ends, ends + rows.size);
  for (int64_t i = 0; i < index.numel(); ++i) {
    const int64_t row = rows.at(given[i]);
    if (row != Rows::kIgnored) sorted[next[row]++] = i;
  }
}

// index: integers [count] -> order i64[count], offsets i64[size + 1].  Where an index is out of
// range the last offset is -1 and all others are 0; kernels report it.
std::tuple<Tensor, Tensor> segments_cpu(const Tensor& index, int64_t size,
                                        std::optional<int64_t> ignored, bool wraps) {
  Tensor order = at::zeros(index.sizes(), at::kLong), offsets = at::zeros({size + 1}, at::kLong);
  const Tensor given = index.contiguous();
  AT_DISPATCH_INTEGRAL_TYPES(given.scalar_type(), "segments", [&] {
    sort_positions<scalar_t>(given, {size, ignored, wraps}, order, offsets);
  });
  return {order, offsets};
}

// On any device, by its own sort.
std::tuple<Tensor, Tensor> segments(const Tensor& index, int64_t size,
                                    std::optional<int64_t> ignored, bool wraps) {
  const Tensor given = index.to(at::kLong);
  const Tensor kept = ignored ? given.ne(*ignored) : at::ones_like(given, at::kBool);
  const Tensor rows = wraps ? at::where(given.lt(0), given + size, given) : given;
  const Tensor is_invalid = (rows.lt(0).logical_or(rows.ge(size))).logical_and(kept).any();
  const auto [sorted, order] =
      at::sort(at::where(kept, rows, size), /*stable=*/true, /*dim=*/0, /*descending=*/false);
  const Tensor ends = at::arange(size + 1, given.options());
  const Tensor none = at::where(ends.eq(size), -1, at::zeros_like(ends));
  return {order, at::where(is_invalid, none, at::searchsorted(sorted, ends))};
}

}  // namespace

TORCH_LIBRARY_FRAGMENT(torch_stitch, library) {
  library.def("segments(Tensor index, int size, int? ignored, bool wraps) -> (Tensor, Tensor)");
  library.impl("segments", c10::DispatchKey::CPU, &segments_cpu);
  library.impl("segments", c10::DispatchKey::CompositeExplicitAutograd, &segments);
}

}  // namespace stitch
